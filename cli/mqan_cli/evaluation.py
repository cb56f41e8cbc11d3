"""``mqan evaluate``: open a checkpoint or a bundle, measure it, print the tables.

A model with a pretrained reader is measured by the suite, the paper's network on the paper's tasks.
"""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from mqan_cli.answering import find_folder
from mqan_cli.errors import CommandError, make_folder
from mqan_core.bundle import read_manifest
from mqan_core.manifest import MANIFEST, MODEL_CARD
from mqan_data.tasks import Task
from mqan_evaluation.answerers import Answerer, EngineAnswerer, TorchAnswerer
from mqan_evaluation.decanlp_section import beside_paper, choose_tasks, paper_section
from mqan_evaluation.fit_temperatures import fit_refusal_offset
from mqan_evaluation.report import write_report
from mqan_evaluation.sections import Measuring, Section, shown
from mqan_evaluation.suite import CALIBRATION, Measured, chosen_names, record_suite, run_suite, write_suite
from mqan_runtime.session import Precision
from mqan_training.model.network import Network


def evaluate_model(
    bundle: Path | None,
    checkpoint: Path | None,
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
    """Measure a model by what it is; print tables on stdout as they come, and progress on stderr.

    ``bundle`` is by default the one that ``mqan serve`` serves; without ``names`` a model's own sections or tasks are
    asked. With ``record`` and calibration, the offset of refusals is fitted first.
    """
    if bundle is not None and checkpoint is not None:
        raise ValueError("give either --bundle or --checkpoint")
    if record and bundle is None:
        raise ValueError("--record writes into a bundle: name it with --bundle")
    if checkpoint is not None and precision != "auto":
        raise ValueError("--precision is for a bundle; a checkpoint runs in float32")
    model = checkpoint or find_folder(bundle)
    if record and not os.access(model, os.W_OK):
        raise CommandError(f"cannot write into {model}: permission denied; --record needs a bundle that it may change")
    opened = None if checkpoint is None else TorchAnswerer.open(checkpoint)
    is_papers = _is_papers(model, opened=opened)
    if is_papers and (record or cases is not None):
        option = "--record" if record else "--cases"
        raise ValueError(f"{option} is for a model with a pretrained reader, and {model} has the paper's")
    chosen = {} if is_papers else chosen_names(names, has_cases=cases is not None)  # an error comes before the work
    answerer: Answerer = opened or EngineAnswerer.open(model, precision=precision)
    if output is not None:
        make_folder(output)
    tasks = choose_tasks(names, answerer.sources, data, limit) if is_papers else None
    measuring = Measuring(answerer, data, limit, threads=1 if answerer.has_one_thread else threads)
    offset = None
    if record and CALIBRATION in chosen and isinstance(answerer, EngineAnswerer):
        offset = fit_refusal_offset(measuring, answerer)
        fitted = "not fitted, there is too little to fit it to" if offset is None else f"{offset:g}"
        Console(stderr=True).print(f"offset of refusals: {fitted}", highlight=False)
    measured = _measure(measuring, names, cases, tasks)
    written: list[Path] = []
    if output is not None:  # first: nothing is lost where the bundle cannot be written
        written += [*write_suite(output, measured, measuring.answers), output / "report.html"]
        write_report(written[-1], measured, measuring.answers)
    if record:
        record_suite(
            model, measured, measuring.answers, command=_command(names, limit, precision, cases), refusal_offset=offset
        )
        written += [model / MANIFEST, model / MODEL_CARD]
    if written:
        Console(stderr=True).print(f"wrote {', '.join(map(str, written))}")


def _measure(
    measuring: Measuring,
    names: list[str] | None,
    cases: Path | None,
    tasks: tuple[list[Task], Mapping[str, str]] | None,
) -> Measured:
    out, messages = Console(width=None if Console().is_terminal else 200), Console(stderr=True)
    answerer = measuring.answerer
    out.print(f"{answerer.title}, {answerer.where}", highlight=False)
    with Progress(
        "{task.description}", "{task.completed:,.0f} answers", console=messages, disable=not messages.is_terminal
    ) as progress:
        bar = progress.add_task("asking", total=None)
        measuring.progress = lambda done: progress.advance(bar, done)
        if tasks is None:
            show = partial(_print, out)
            return run_suite(measuring, names, cases=cases, trained_on=answerer.sources, show=show)
        section = paper_section(measuring, *tasks)
        _print(out, section)
    sections = [section, *beside_paper(section)]
    return Measured(answerer.title, answerer.where, measuring.limit, measuring.seed, sections)


def _is_papers(model: Path, *, opened: TorchAnswerer | None) -> bool:
    return read_manifest(model)[0].reader == "words" if opened is None else isinstance(opened.trained, Network)


def _command(names: list[str] | None, limit: int | None, precision: Precision, cases: Path | None) -> str:
    parts = ["mqan evaluate --bundle BUNDLE"]
    parts += [f"--tasks {','.join(names)}"] if names else []
    parts += [f"--limit {limit}"] if limit else []
    parts += [f"--precision {precision}"] if precision != "auto" else []
    parts += ["--cases FILE"] if cases else []
    return " ".join(parts)


def _print(out: Console, section: Section) -> None:
    columns = list(section.rows[0])
    table = Table(*columns, title=section.title, title_justify="left")
    for column, name in zip(table.columns, columns, strict=True):
        if section.is_number(name):
            column.justify = "right"
    for row in section.rows:
        table.add_row(*(shown(row[name]) or "-" for name in columns))
    out.print(table)
    if section.summary:
        told = (f"{name}: {shown(value) or '-'}" for name, value in section.summary.items())
        out.print("  ".join(told), highlight=False)
    for note in section.notes:
        print(note)
