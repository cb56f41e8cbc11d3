"""``mqan adapt ROWS``: an adapter of rows that say what is right, and what cross-validation says of it."""

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mqan_cli.answering import BundleOption, find_folder
from mqan_cli.batch.inputs import Rows, TextOption
from mqan_cli.errors import CommandError, make_folder
from mqan_cli.sections import option

if TYPE_CHECKING:
    from mqan_runtime.adapters import Fitted


def adapt(
    inputs: Annotated[list[str], typer.Argument(metavar="ROWS...", help="Tables that say what is right.")],
    label: Annotated[str, typer.Option(help="Column of the label, or of several with ; between.")],
    name: Annotated[str, typer.Option(help="What the adapter is called: letters, digits and ._-")],
    text: TextOption = None,
    output: Path = option(
        "Folder of adapters.", "--output", "-o", default=Path("adapters"), envvar="MQAN_ADAPTERS", file_okay=False
    ),
    question: str | None = option("What is asked about each row.", "--question", "-q"),
    labels: str | None = option("LABEL=WHAT IT COVERS, separated by semicolons.", metavar="LABELS"),
    scale: str | None = option("The labels are levels: these, low to high, with commas.", metavar="LEVELS"),
    none: bool = option("An empty cell says that no label is right.", "--none", default=False),
    bundle: BundleOption = None,
) -> None:
    """Make an adapter: a small file with which the model answers with your labels, as a few rows have them.

    mqan adapt mails.csv --text mail --label team --name support-teams -o adapters

    It takes seconds. Eight rows of each label are a start. Then ask with --adapter NAME, or with the choices
    {"adapter": NAME}, where MQAN_ADAPTERS names the folder.
    """
    from mqan_cli.labelled.rows import read_task
    from mqan_core.answer.adapter import ENDING, NAME, write_adapter
    from mqan_runtime.adapters import LEAST_ROWS, fit_adapter, head_of, observe
    from mqan_runtime.engine import Engine
    from mqan_serving.contract.questions import Question

    if not NAME.fullmatch(name):
        raise typer.BadParameter("use 1 to 64 letters, digits and ._-", param_hint="--name")
    rows = list(Rows(inputs, text, ()))
    task = read_task(rows, label=label, question=question, labels=labels, scale=scale, none=none)
    given = [(row.text, gold) for row in rows if row.error is None and (gold := task.gold(row)) is not None]
    if len(given) < LEAST_ROWS or len({gold for _, gold in given}) < 2:
        raise CommandError(f"{len(given)} rows have a text and a label: give at least {LEAST_ROWS}, of two labels")
    num_rows = Counter(one for _, gold in given for one in set(gold))
    if max(num_rows.values()) == 1:
        raise CommandError(f"the {len(num_rows)} labels of the column {label} have one row each: name another --label")
    begun = time.monotonic()
    engine = Engine.open(find_folder(bundle), provider="cpu")
    options = Question(context="-", **task.asked).options
    seen = observe(engine, [one for one, _ in given], task.asked["question"], options)
    head = head_of(task.asked["question"], options, engine.bundle.sha256, len(given), none=none)
    fitted = fit_adapter(seen, [gold for _, gold in given], head)
    path = output / f"{name}{ENDING}"
    make_folder(output)
    try:
        write_adapter(path, fitted.head, fitted.center_F, fitted.weights_FK)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from None
    _tell(fitted, [*seen.labels, *(["(none)"] if head.none else [])])
    size, seconds = path.stat().st_size / 1000, time.monotonic() - begun
    print(f"\n{path}: {size:.0f} kB in {seconds:.0f} s. Ask with MQAN_ADAPTERS={output.resolve()} and --adapter {name}")


def _tell(fitted: "Fitted", names: list[str]) -> None:
    from mqan_cli.labelled.report import aligned, share

    before, after = fitted.accuracy
    print(f"Of {len(fitted.gold)} rows {share(before)} are answered rightly before, {share(after)} after.")
    print("After: each by what the other rows teach (cross-validation).\n")
    table = [["label", "rows", "before", "after"]]
    for place, name in enumerate(names):
        of_label = fitted.gold[:, place] > 0
        found = [said[of_label, place].mean() if of_label.any() else None for said in (fitted.before, fitted.after)]
        table.append([name, str(int(of_label.sum())), *map(share, found)])
    print("\n".join(aligned(table)))
    if not fitted.is_better:
        print("\nThese rows show no certain gain, so that the adapter answers as the model does: give more rows.")
