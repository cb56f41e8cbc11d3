"""``mqan evaluate``: the suite for a model with a pretrained reader, the paper's tasks for the paper's network."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from mqan_cli.errors import make_folder
from mqan_cli.suite import evaluate_suite
from mqan_core.answer import Answer
from mqan_core.manifest import ANSWERING_FORMAT, CLASSIFYING_FORMAT
from mqan_core.request import read_request
from mqan_evaluation.evaluate import AnswerBatch, Read, Result, answer_with_engine, evaluate_task, write_results
from mqan_evaluation.report import write_report
from mqan_runtime.engine import Engine
from mqan_runtime.interface import format_of
from mqan_runtime.session import Precision
from mqan_training.checkpoint import has_pretrained_reader, load_checkpoint
from mqan_training.data.readers.files import in_words
from mqan_training.data.readers.registry import ALL, FOLDER_OF_JSON_LINES, tasks_named
from mqan_training.data.readers.task import Task
from mqan_training.errors import MissingFileError
from mqan_training.model.network import Network
from mqan_training.transfer import network_of, pretrained_of

_TORCH_ANSWER_TOKENS = 100


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
    """Measure a model by what it is; print tables on stdout and progress on stderr.

    Args:
        bundle: folder of a bundle; where neither it nor ``checkpoint`` is given, the one that ``mqan serve`` serves.
        checkpoint: folder of a checkpoint.
        data: folder of the datasets.
        names: sections or sets of the suite, or tasks of the paper's network, or ``all``; None for the model's own.
        limit: most examples a set.
        cases: file of questions that users report, for the suite.
        precision: products of a bundle's engine.
        threads: batches of a bundle that are answered side by side.
        output: folder for the numbers, the answers and the report; None for none.
        record: whether what the suite finds takes the place of what stands in the bundle.

    Raises:
        ValueError: two models are given, or an option does not fit the model, or nothing can be scored.
        CommandError: the folder for the numbers cannot be made.
        DatasetError: the files of a task are malformed, or missing where it was asked for by name.
        SettingsError: no model is given and the default bundle is not there.
    """
    if bundle is not None and checkpoint is not None:
        raise ValueError("give either --bundle or --checkpoint")
    if record and bundle is None:
        raise ValueError("--record writes into a bundle: name it with --bundle")
    if checkpoint is not None and precision != "auto":
        raise ValueError("--precision is for a bundle; a checkpoint runs in float32")
    model = bundle or checkpoint or _default_bundle()
    is_checkpoint = checkpoint is not None
    if not is_checkpoint and format_of(model) == CLASSIFYING_FORMAT:
        raise ValueError(f"{model} is of fixed tasks and was measured by the export: its README.md has the scores")
    if has_pretrained_reader(model) if is_checkpoint else format_of(model) == ANSWERING_FORMAT:
        evaluate_suite(
            model,
            data,
            names,
            limit=limit,
            cases=cases,
            precision=precision,
            threads=threads,
            output=output,
            record=record,
        )
        return
    if record or cases is not None:
        option = "--record" if record else "--cases"
        raise ValueError(f"{option} is for a model with a pretrained reader, and {model} has the paper's")
    evaluate_paper(
        _checkpoint(model) if is_checkpoint else _bundle(model, threads, precision),
        data,
        names,
        limit=limit,
        output=output,
    )


@dataclass(frozen=True)
class _Model:
    """A bundle or a checkpoint of the paper's network, as far as scoring it goes."""

    title: str
    answer: AnswerBatch
    read: Read
    own_tasks: list[str]
    threads: int  # that may answer side by side
    network: Network | None  # to draw what it attends to


def evaluate_paper(
    model: _Model, data: Path, names: list[str] | None, *, limit: int | None, output: Path | None
) -> None:
    """Score the paper's network on the validation sets of tasks; the other arguments and errors are those above."""
    if output is not None:  # now: an error must not come after the work
        make_folder(output)
    wanted = names or model.own_tasks
    if not wanted:
        raise ValueError("the bundle does not say what it was trained on: name the tasks with --tasks")
    folders = [name for name in wanted if name.startswith(FOLDER_OF_JSON_LINES) and not names]  # their maker's own
    chosen, skipped = _choose(wanted, set(folders), data, limit)
    results: list[Result] = []
    messages = Console(stderr=True)
    with Progress(console=messages, disable=not messages.is_terminal, transient=True) as progress:
        for task in chosen:
            bar = progress.add_task(task.name, total=None)

            def show(done: int, total: int, bar: Any = bar) -> None:
                progress.update(bar, completed=done, total=total)

            results.append(
                evaluate_task(
                    model.answer,
                    model.read,
                    task,
                    data,
                    limit=limit,
                    own_tasks=model.own_tasks,
                    threads=model.threads,
                    progress=show,
                )
            )
    _print(results, skipped)
    if output is not None:
        write_results(output, results)
        write_report(output / "report.html", model.title, results, model.network)
        written = ", ".join(str(output / name) for name in ("metrics.json", "predictions.jsonl", "report.html"))
        messages.print(f"wrote {written}")


def _default_bundle() -> Path:
    """Return the bundle that a server serves when none is given."""
    from mqan_serving.settings import find_bundle, load_settings

    return find_bundle(load_settings())


def _choose(names: list[str], optional: set[str], data: Path, limit: int | None) -> tuple[list[Task], dict[str, str]]:
    """Divide tasks into those to score and those to skip, with the reason; what is to be scored can be read.

    The optional ones, and those that ``all`` stands for, may lack their files.
    """
    chosen: list[Task] = []
    skipped: dict[str, str] = {}
    for task in tasks_named(names):
        if "validation" not in task.splits:
            skipped[task.name] = "has no validation split"
            continue
        try:
            num_examples = sum(1 for _ in islice(task.read(data / task.folder, "validation"), limit))
        except MissingFileError as error:
            if ALL not in names and task.name not in optional:
                raise
            skipped[task.name] = str(error).removeprefix(f"{task.name}: ")
        else:
            if not num_examples:
                raise ValueError(f"{task.name}, validation: its files give no examples")
            chosen.append(task)
    if not chosen:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
        raise ValueError(f"there is no task to score: {reasons or 'no name is given'}")
    return chosen, skipped


def _bundle(folder: Path, threads: int, precision: Precision) -> _Model:
    engine = Engine.open(folder, precision=precision)
    manifest = engine.bundle.manifest
    own_tasks = [str(name) for name in manifest.training.get("tasks", [])]
    title = f"{manifest.name} {manifest.version}"
    return _Model(title, answer_with_engine(engine), engine.read, own_tasks, threads, None)


def _checkpoint(folder: Path) -> _Model:
    loaded = load_checkpoint(folder)
    network = network_of(pretrained_of(loaded))

    def answer(requests: Sequence[Any]) -> list[Answer]:
        return network.greedy_answers(requests, _TORCH_ANSWER_TOKENS)

    own_tasks = [task.name for task in loaded.train_config.tasks]
    title = f"{loaded.config.name}, step {loaded.step:,}"
    return _Model(title, answer, partial(read_request, network.vocabulary), own_tasks, 1, network)


def _print(results: list[Result], skipped: dict[str, str]) -> None:
    sources = ("vocabulary", "context", "question")
    table = Table("task", "examples", "scores", *sources, "answers/s")
    for column in table.columns[1:2] + table.columns[3:]:
        column.justify = "right"
    for result in results:
        scores = "  ".join(f"{metric} {value:.2f}" for metric, value in result.scores.items())
        mix = [f"{100 * result.source_mix[source]:.0f} %" for source in sources]
        rate = f"{result.num_examples / result.seconds:.0f}" if result.seconds else "-"
        table.add_row(result.label, f"{result.num_examples:,}", scores, *mix, rate)
    Console(width=None if Console().is_terminal else 160).print(table)
    for result in results:
        if result.unreadable:
            print(
                f"{result.task}: {len(result.unreadable)} examples have no text to ask about: {result.unreadable[:5]}"
            )
        if result.dropped:
            print(f"{result.task}: {in_words(result.dropped)}")
    for name, reason in skipped.items():
        print(f"{name}: skipped: {reason}")
