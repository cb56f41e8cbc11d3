"""``mqan``: get data, train, export, serve, ask.

Each verb imports what it needs when it runs, so that asking a server loads neither torch nor Ray.
"""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperCommand

from mqan_cli import training_verbs
from mqan_cli.answering import BundleOption, Provider
from mqan_cli.ask import ask
from mqan_cli.batch.command import InOrder, batch
from mqan_cli.errors import CommandError
from mqan_cli.files import exposing_tree
from mqan_cli.labelled.adapting import adapt
from mqan_cli.mcp.command import mcp
from mqan_cli.models import models_app
from mqan_cli.sections import SECTION_OF, SectionedGroup, option
from mqan_cli.show import escape_unknown_characters
from mqan_core import __version__

app = typer.Typer(
    cls=SectionedGroup,
    help="Answer natural-language questions about texts, and say where every word of the answer came from.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Get the official datasets.", no_args_is_help=True)
app.add_typer(data_app, name="data", rich_help_panel=SECTION_OF["data"])
app.add_typer(models_app, name="models", rich_help_panel=SECTION_OF["models"])


_CONFIG = option("TOML file of settings, by their names without MQAN_.", dir_okay=False)


def _verb(name: str, kind: type[TyperCommand] | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return app.command(name, cls=kind, rich_help_panel=SECTION_OF[name])


for _run in (ask, adapt, mcp):
    _verb(_run.__name__)(_run)
for _run in training_verbs.VERBS:
    _verb(_run.__name__, training_verbs.ResearchCommand)(_run)
_verb("batch", InOrder)(batch)


def _show_version(wanted: bool) -> None:
    if wanted:
        from mqan_serving.default_bundle import default_model

        print(f"mqan {__version__}")
        if (model := default_model()) is not None:
            print(f"default model {model}")
        raise typer.Exit


@app.callback()
def _main(
    version: bool = option(
        "Show the versions and exit.", "--version", default=False, callback=_show_version, is_eager=True
    ),
) -> None:
    escape_unknown_characters()


@_verb("serve")
def serve(
    bundle: BundleOption = None,
    host: str | None = option("Address to listen on."),
    http_port: int | None = option("Port for REST."),
    grpc_port: int | None = option("Port for gRPC."),
    ray: bool = option("Serve on Ray Serve, or in this one process.", "--ray/--local", default=False),
    config: Path | None = _CONFIG,
) -> None:
    """Serve a bundle over REST and gRPC, in one process; --ray, with the extra `serve`, starts several on Ray Serve.

    Every other setting is an environment variable, MQAN_MAX_CONTEXT_TOKENS, MQAN_NUM_REPLICAS and so on, or in the file
    of --config: `mqan settings` lists them.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the first process of a container has none by itself
    from mqan_serving.main import serve_local, serve_ray
    from mqan_serving.settings import load_settings

    given = {"bundle": bundle, "host": host, "http_port": http_port, "grpc_port": grpc_port}
    settings = load_settings(config, **{name: value for name, value in given.items() if value is not None})
    if ray:
        serve_ray(settings)
    else:
        serve_local(settings)


@_verb("settings")
def settings(config: Path | None = _CONFIG) -> None:
    """Print each setting of a server, its value and where it has that from."""
    from mqan_serving.settings import load_settings, origins

    loaded, origin_of = load_settings(config), origins(config, {})
    for name in type(loaded).model_fields:
        value = getattr(loaded, name)
        print(f"{name:<24} {'-' if value is None else value!s:<32} {origin_of[name]}")


@_verb("key")
def key(
    name: Annotated[str, typer.Argument(help="Name of the key's owner, which appears in the server's log.")],
    file: Annotated[
        Path, typer.Option(envvar="MQAN_API_KEY_FILE", dir_okay=False, help="File of keys; created if there is none.")
    ],
    rate: str | None = option("Requests a second, and how many at once after a pause.", metavar="N/M"),
    quota: int | None = option("Requests a day, in UTC.", metavar="N"),
) -> None:
    """Make an API key, print it once, and append its hash to the file; a running server accepts it at once.

    The file must not be in a git repository, unless git ignores it.
    """
    from mqan_serving.keys import add_key

    if (tree := exposing_tree(file)) is not None:
        raise CommandError(
            f"{file} is in the git work tree {tree}, which does not ignore it: names and hashes of keys would be "
            "committed; give a file outside, or add it to .gitignore"
        )
    try:
        print(add_key(file, name, rate, quota))
    except OSError as error:
        raise CommandError(f"cannot write {file}: {error.strerror}") from None
    except ValueError as error:
        raise CommandError(str(error)) from None


@_verb("verify")
def verify(
    bundle: Annotated[Path, typer.Argument(help="Folder of the bundle.")],
    provider: Provider = option("What to run it on.", default="auto"),
) -> None:
    """Check a bundle: the hash of every file, and that it runs; print what it runs on."""
    from mqan_cli.local import open_engine
    from mqan_core.bundle import verify_files

    verify_files(bundle)
    engine = open_engine(bundle, provider)
    manifest = engine.bundle.manifest
    print(f"{manifest.name} {manifest.version}")
    print(f"sha256 {engine.bundle.sha256}")
    for name, entry in manifest.files.items():
        print(f"{name} {entry.num_bytes} bytes, hash as stated")
    print(f"runs on {engine.provider}, {engine.precision}")


@data_app.command("get", cls=training_verbs.ResearchCommand)
def get_data(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Datasets or tasks, such as squad; or all.")
    ] = None,
    data: Path = option("Folder to put them in, a folder each.", default=training_verbs.DATASETS, envvar="MQAN_DATA"),
    recipe: Path | None = option("Get all that this recipe trains on.", exists=True),
    *,
    show: bool = option("Only say where each is from.", "--list", default=False),
    allow_unverified: bool = option(
        "Also download files without a known checksum.", "--allow-unverified", default=False
    ),
) -> None:
    """Download the official files of datasets, verified by their checksums; say where to get the others.

    Exit status 1: something is missing, such as what has to be got by hand.
    """
    from mqan_data.download import fetch_all, list_all

    wanted = training_verbs.datasets_of(names or [], recipe)
    if show:
        list_all(wanted, data)
    elif not fetch_all(wanted, data, allow_unverified=allow_unverified):
        raise typer.Exit(1)


if __name__ == "__main__":
    app()
