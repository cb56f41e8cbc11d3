"""The suite of ``mqan evaluate``: open a checkpoint or a bundle, measure it, print the tables."""

from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from mqan_cli.errors import make_folder
from mqan_core.manifest import MANIFEST
from mqan_evaluation.answerers import TorchAnswerer
from mqan_evaluation.engine_answerer import EngineAnswerer
from mqan_evaluation.sections import Measuring, Section
from mqan_evaluation.suite import chosen_names, run_suite, write_suite
from mqan_evaluation.suite_card import record_suite
from mqan_runtime.session import Precision


def evaluate_suite(
    model: Path,
    data: Path,
    names: list[str] | None,
    *,
    limit: int | None,
    cases: Path | None,
    precision: Precision,
    threads: int,
    output: Path | None,
    record: bool,
) -> None:
    """Run the suite, print each table on stdout as it comes and progress on stderr.

    Args:
        model: folder of a checkpoint or of a bundle.
        data: folder of the datasets.
        names: sections of the suite, or sets; None for all.
        limit: most examples a set.
        cases: file of questions that users report.
        precision: products of a bundle's engine.
        threads: batches of a bundle that are answered side by side.
        output: folder for ``suite.json`` and ``answers.jsonl``; None for none.
        record: whether scores and calibration take the place of those in the bundle, and of its model card.

    Raises:
        ValueError: as of ``run_suite``.
        CheckpointError, BundleError: the model is damaged.
        CommandError: the folder cannot be made.
    """
    chosen_names(names, has_cases=cases is not None)  # now: an error must not come after the work
    is_bundle = (model / MANIFEST).is_file()
    answerer = EngineAnswerer.open(model, precision=precision) if is_bundle else TorchAnswerer.open(model)
    if output is not None:
        make_folder(output)
    out = Console(width=None if Console().is_terminal else 200)
    messages = Console(stderr=True)
    out.print(f"{answerer.title}, {answerer.where}", highlight=False)
    with Progress(
        "{task.description}", "{task.completed:,.0f} answers", console=messages, disable=not messages.is_terminal
    ) as progress:
        bar = progress.add_task("asking", total=None)
        measuring = Measuring(answerer, data, limit, threads=threads, progress=lambda done: progress.advance(bar, done))
        measured = run_suite(
            measuring, names, cases=cases, trained_on=answerer.sources, show=lambda section: _print(out, section)
        )
    if record:
        record_suite(model, measured, measuring.answers, command=_command(names, limit, precision))
        messages.print(f"wrote scores, calibration and model card into {model}")
    if output is not None:
        written = write_suite(output, measured, measuring.answers)
        messages.print(f"wrote {', '.join(map(str, written))}")


def _command(names: list[str] | None, limit: int | None, precision: Precision) -> str:
    parts = ["mqan evaluate --bundle BUNDLE"]
    parts += [f"--tasks {','.join(names)}"] if names else []
    parts += [f"--limit {limit}"] if limit else []
    parts += [f"--precision {precision}"] if precision != "auto" else []
    return " ".join(parts)


def _print(out: Console, section: Section) -> None:
    columns = list(section.rows[0])
    table = Table(*columns, title=section.title, title_justify="left")
    for column, name in zip(table.columns, columns, strict=True):
        if any(isinstance(row[name], int | float) for row in section.rows):
            column.justify = "right"
    for row in section.rows:
        table.add_row(*(_cell(row[name]) for name in columns))
    out.print(table)
    if section.summary:
        out.print("  ".join(f"{name}: {_cell(value)}" for name, value in section.summary.items()), highlight=False)


def _cell(value: str | float | int | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else value
