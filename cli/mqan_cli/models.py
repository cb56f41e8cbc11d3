"""``mqan models``: what a server serves, changed while it serves."""

import os
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from mqan_cli.errors import CommandError
from mqan_cli.sections import option
from mqan_client.transport import authorization

models_app = typer.Typer(
    help="List and change the models of a running server; the key is that of MQAN_ADMIN_KEY.", no_args_is_help=True
)
Server = Annotated[str, typer.Option(metavar="URL", help="The server: http://HOST:PORT.")]
ModelName = Annotated[str, typer.Argument(help="Name of the model.")]
_DEFAULT = "http://127.0.0.1:8000"
_TIMEOUT_S = 300.0


@models_app.command("list")
def list_models(server: Server = _DEFAULT) -> None:
    """List the models: name, version, hash, whether it is loaded, aliases."""
    _show(_ask(server, "GET", "models"))


@models_app.command("load")
def load(
    name: ModelName,
    folder: Path | None = option("Folder of the bundle on the server's machine."),
    server: Server = _DEFAULT,
) -> None:
    """Load a model; with a folder, serve that bundle by this name from now on."""
    given = {} if folder is None else {"folder": str(folder.absolute())}
    _show(_ask(server, "PUT", f"models/{quote(name)}", given))


@models_app.command("unload")
def unload(name: ModelName, server: Server = _DEFAULT) -> None:
    """Serve a model no more; requests in progress end on it."""
    _show(_ask(server, "DELETE", f"models/{quote(name)}"))


@models_app.command("alias")
def alias(
    alias: Annotated[str, typer.Argument(help="stable or canary.")],
    name: Annotated[str | None, typer.Argument(help="Name of the model; none ends the canary.")] = None,
    share: float | None = option("Share of the canary, 0 to 1.", min=0, max=1),
    server: Server = _DEFAULT,
) -> None:
    """Say which model is stable, or which is the canary and what share of the requests without a name it gets."""
    if alias not in ("stable", "canary") or (alias == "stable" and (name is None or share is not None)):
        raise typer.BadParameter("give stable NAME, canary NAME --share SHARE, or canary alone to end it")
    given = None if name is None else {"model": name, **({} if share is None else {"share": share})}
    _show(_ask(server, "DELETE" if given is None else "PUT", f"aliases/{alias}", given))


def _ask(server: str, method: str, path: str, given: dict[str, Any] | None = None) -> dict[str, Any]:
    import httpx2

    url = f"{server.rstrip('/')}/admin/{path}"
    if not url.startswith(("http://", "https://")):
        raise typer.BadParameter("give http://HOST:PORT or https://HOST", param_hint="--server")
    try:
        headers = authorization(os.environ.get("MQAN_ADMIN_KEY") or None)
    except ValueError as error:
        raise typer.BadParameter(f"{error}, such as a line end", param_hint="MQAN_ADMIN_KEY") from None
    try:
        response = httpx2.request(method, url, headers=headers, json=given, timeout=_TIMEOUT_S)
    except (httpx2.RequestError, httpx2.InvalidURL) as error:
        raise CommandError(f"no answer from {server}: {error}") from None
    if response.status_code == 404 and path == "models":
        raise CommandError(f"{server} lets nobody change its models: set MQAN_ADMIN_KEY_FILE there")
    try:
        document: dict[str, Any] = response.json()
        if response.is_success:
            return document
        raise CommandError(f"{document['message']} {document['hint']}")
    except (ValueError, KeyError, TypeError):
        raise CommandError(f"{server} answered HTTP {response.status_code}") from None


def _show(document: dict[str, Any]) -> None:
    for row in document["models"]:
        aliases = [f"{one} {document['canary_share']:g}" if one == "canary" else one for one in row["aliases"]]
        loaded = "loaded" if row["loaded"] else "-"
        words = [row["name"], row["version"], row["sha256"][:16], loaded, ", ".join(aliases)]
        print("  ".join(words).rstrip())
