"""The command ``mqan batch``: what is asked about which rows, who answers, and where it is written."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from mqan_cli import asked
from mqan_cli.answering import BundleOption, ServerOption, explain, find_folder, find_server, open_adapters, open_client
from mqan_cli.batch.answering import Parts, answering, num_cores
from mqan_cli.batch.inputs import SUFFIX, Row, Rows, TextOption
from mqan_cli.batch.outputs import ENDINGS, write_page, write_table
from mqan_cli.batch.plan import Plan, read_plan
from mqan_cli.batch.running import Journal, answer_all
from mqan_cli.errors import CommandError
from mqan_cli.files import STANDARD_INPUT
from mqan_cli.sections import option
from mqan_client import Client, ClientError

_ORDER: Final = "mqan_cli.order"

Texts = list[str] | None


class InOrder(TyperCommand):
    """A command whose options mean something by their order."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, and keep the names of what is given in its order."""
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        ctx.meta[_ORDER] = [parameter.name for parameter in order]
        return super().parse_args(ctx, args)


@asked.asks(before="schema", repeats=True)
def batch(
    ctx: typer.Context,
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT...", help="Tables, texts, folders or patterns of them; - is standard input."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="CSV, TSV, JSONL or Parquet, by its ending.")],
    text: TextOption = None,
    question: Texts = option("QUESTION or NAME=QUESTION.", "--question", "-q"),
    schema: str | None = option("Fill a record: a JSON Schema, or MODULE:CLASS."),
    ask: Path | None = option("YAML: questions, and fields of a record, by name."),
    html: Path | None = option("Write a page to look the rows through, too."),
    server: ServerOption = None,
    bundle: BundleOption = None,
    ray: bool = option("Answer on Ray: the cluster of RAY_ADDRESS, or here.", "--ray", default=False),
    workers: int | None = option("Processes, or calls to a server at a time.", min=1, max=256),
    **given: Any,
) -> None:
    """Ask about every row of a table, or every file of a folder. The same command goes on where a run was killed.

    Options of a question stand after it; those before the first hold for all.

    mqan batch mails.csv -o out.csv -t mail -q team="Which team?" -c "billing, IT" -q angry="Is it angry?" --yes-no

    mqan batch invoices/ -o invoices.parquet --schema invoice.json --html invoices.html

    If the server requires an API key, set MQAN_API_KEY.
    """
    if server is not None and (bundle is not None or ray):
        raise typer.BadParameter("give --server alone: --bundle and --ray are for answering without one")
    if output.suffix not in ENDINGS:
        raise typer.BadParameter(f"its ending is none of {', '.join(ENDINGS)}", param_hint="--output")
    if output.suffix == ".parquet":
        import pyarrow  # noqa: F401  before the work, not after it
    journal_path = output.with_name(output.name + SUFFIX)
    if output.exists() and not journal_path.exists():
        raise typer.BadParameter(f"{output} is there already: remove it, or give another", param_hint="--output")
    counted = {name: [True] * value if isinstance(value, int) else value for name, value in given.items()}
    values = {name: iter(some) for name, some in {"question": question, **counted}.items() if some}
    plan = read_plan([(name, next(values[name])) for name in ctx.meta[_ORDER] if name in values], schema, ask)
    rows = Rows(inputs, text, plan.columns)
    if ray and STANDARD_INPUT in inputs:
        raise typer.BadParameter("Ray cannot read standard input: give a file", param_hint="--ray")
    if STANDARD_INPUT not in inputs:
        next(iter(rows), None)  # wrong columns are refused before anything is written
    url = None if ray else find_server(server, bundle)
    folder = Path() if url is not None else find_folder(bundle).absolute()

    def answer(stream: Iterator[Row], num_done: int) -> AbstractContextManager[Parts]:
        if not ray:
            return answering(stream, url, folder, plan, workers)
        from mqan_cli.batch.on_ray import on_ray

        return on_ray(rows, num_done, folder, plan, workers or num_cores())

    heading = {"questions": plan.questions, "schema": plan.schema, "text": rows.template}
    model, hashes = _find_model(url, folder, plan)
    with closing(Journal(journal_path, heading | hashes)) as journal:
        answer_all(rows, journal, answer)
        write_table(output, journal, plan)
        if html is not None:
            write_page(html, journal, plan, model)
        journal_path.unlink()


def _find_model(url: str | None, folder: Path, plan: Plan) -> tuple[str, dict[str, Any]]:
    """Return the model's name and version, and the hashes that tell model and adapters from others.

    Questions that adapters do not read are refused.
    """
    from mqan_core.bundle import read_manifest

    names = set(plan.adapters.values())
    try:
        if url is None:
            manifest, model = read_manifest(folder)
            adapters = open_adapters(manifest, model)
            title = f"{manifest.name} {manifest.version}"
            named = {name: adapters.named(name) for name in names}
            found = {name: (one.version.sha256, one.head.question) for name, one in named.items()}
        else:
            with open_client(Client, url) as client:
                told = client.get_model()
            title, model = f"{told.name} {told.version}", told.sha256
            found = {one.name: (one.sha256, one.question) for one in told.adapters if one.name in names}
    except ClientError as error:
        raise CommandError(explain(error, url or "")) from None
    if unknown := ", ".join(names - found.keys()):
        raise CommandError(f"{url} has no adapter {unknown} that can be used; GET /v1/model lists those it has")
    for question, name in plan.adapters.items():
        _, own = found[name]
        if plan.questions[question]["question"] not in ("", own):
            message = f"the adapter {name} has a question of its own: ask {own!r}, or leave the question out"
            raise typer.BadParameter(message, param_hint=question)
    hashes = {name: sha256 for name, (sha256, _) in found.items()}
    return title, {"model": model, **({"adapters": hashes} if hashes else {})}
