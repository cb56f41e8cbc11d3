"""``mqan evaluate``: the table of scores on the terminal."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from mqan_cli.errors import make_folder
from mqan_core.bundle import Bundle, open_bundle
from mqan_core.request import read_request
from mqan_evaluation.card import check_marks, record_scores
from mqan_evaluation.evaluate import (
    AnswerBatch,
    Read,
    Result,
    answer_with_engine,
    differences,
    evaluate_task,
    write_results,
)
from mqan_evaluation.reliability import calibration_table, fit, record_calibration
from mqan_evaluation.report import write_report
from mqan_evaluation.zero_shot import INFERENCE, read_renamings, wordings
from mqan_export.weights import pretrained_of_bundle
from mqan_runtime.engine import Engine
from mqan_runtime.interface import ServedBundle, open_engine
from mqan_runtime.session import CUDA, Precision
from mqan_training.checkpoint import load_checkpoint
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
    tasks: list[str] | None,
    *,
    limit: int | None,
    zero_shot: bool,
    rename: list[str],
    threads: int,
    precision: Precision,
    output: Path | None,
    record: bool,
) -> None:
    """Score a model, print the table on stdout and progress on stderr.

    Args:
        bundle: folder of a bundle; where neither it nor ``checkpoint`` is given, the one that ``mqan serve`` serves.
        checkpoint: folder of a checkpoint.
        data: folder of the datasets.
        tasks: names of tasks, or ``all``; None for those the model was trained on and, with ``zero_shot``, those of
            inference whose files are there.
        limit: most examples a task.
        zero_shot: whether to ask in other words and under other names of the classes too.
        rename: more names for the classes, comma-separated.
        threads: batches that are answered side by side.
        precision: products of the engine.
        output: folder for the scores, predictions and the report; None for none.
        record: whether the scores take the place of those in the bundle and its model card.

    Raises:
        ValueError: two models are given, or no task can be scored, or names do not fit the classes, or the card has
            no marks for scores, or scores are to be recorded that are no bundle's or not of all its examples.
        CommandError: the folder for the scores cannot be made.
        MissingFileError: the files of a task are missing that was asked for by name.
        SettingsError: no model is given and the default bundle is not there.
    """
    if bundle is not None and checkpoint is not None:
        raise ValueError("give either --bundle or --checkpoint")
    if record and (bundle is None or limit is not None or tasks):
        raise ValueError(
            "--record needs --bundle, and replaces all its scores by those of whole validation sets: "
            "leave --limit and --tasks out"
        )
    if bundle is None and checkpoint is None:
        bundle = _default_bundle()
    if checkpoint is not None and precision != "auto":
        raise ValueError("--precision is for a bundle; a checkpoint runs in float32")
    model = _bundle(bundle, threads, precision) if bundle is not None else _checkpoint(checkpoint)  # type: ignore[arg-type]
    # now: an error must not come after the work
    network = model.network() if output is not None else None
    if output is not None:
        make_folder(output)
    if record and bundle is not None:
        check_marks(bundle, "scores")
    names = tasks or model.own_tasks
    if not names:
        raise ValueError("the bundle does not say what it was trained on: name the tasks with --tasks")
    also = [name for name in INFERENCE if zero_shot and not tasks and name not in names]
    folders = [name for name in names if name.startswith(FOLDER_OF_JSON_LINES) and not tasks]  # their maker's own
    chosen, skipped = _choose([*names, *also], {*also, *folders}, data, limit)
    renamings = read_renamings(rename, [task.name for task in chosen])
    results: list[Result] = []
    messages = Console(stderr=True)
    with Progress(console=messages, disable=not messages.is_terminal, transient=True) as progress:
        for task in chosen:
            for wording in (None, *wordings(task.name, zero_shot=zero_shot, renamings=renamings)):
                bar = progress.add_task(f"{task.name} {wording or ''}", total=None)
                results.append(
                    evaluate_task(
                        model.answer,
                        model.read,
                        task,
                        data,
                        limit=limit,
                        wording=wording,
                        own_tasks=model.own_tasks,
                        threads=model.threads,
                        progress=lambda done, total, bar=bar: progress.update(bar, completed=done, total=total),  # type: ignore[misc]
                    )
                )
    _print(results, skipped)
    if output is not None and network is not None:
        write_results(output, results)
        write_report(output / "report.html", model.title, results, network)
        written = ", ".join(str(output / name) for name in ("metrics.json", "predictions.jsonl", "report.html"))
        messages.print(f"wrote {written}")
    if record and bundle is not None:
        command = ["mqan", "evaluate", *["--zero-shot"] * zero_shot]
        for classes in rename:
            command += ["--rename", classes]
        if precision != "auto":
            command += ["--precision", precision]
        record_scores(bundle, results, command=shlex.join(command), where=model.where)


def calibrate_bundle(folder: Path, data: Path, tasks: list[str], *, limit: int | None, threads: int) -> str:
    """Fit a bundle's probabilities on validation sets and write the fit into it; return the table of errors.

    Args:
        folder: of the bundle.
        data: folder of the datasets.
        tasks: names of tasks whose answers are right or wrong.
        limit: most examples a task.
        threads: batches that are answered side by side.

    Raises:
        ValueError: there is no such task, or it has too few examples, or the card has no marks for the calibration.
        DatasetError: the files of a task are missing or malformed.
    """
    opened = open_bundle(folder)
    check_marks(folder, "calibration")
    plain = replace(opened, manifest=replace(opened.manifest, calibration={}))
    engine = Engine(plain)
    answer = answer_with_engine(engine)
    chosen = tasks_named(tasks)
    maps, reliability = fit(
        [evaluate_task(answer, engine.read, task, data, limit=limit, threads=threads) for task in chosen]
    )
    record_calibration(folder, maps, reliability)
    return calibration_table(reliability)


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


@dataclass(frozen=True)
class _Model:
    """A bundle or a checkpoint, as far as scoring it goes."""

    title: str
    answer: AnswerBatch
    read: Read
    own_tasks: list[str]
    threads: int  # that may answer side by side
    network: Callable[[], Network]
    where: str  # it computes, in words


def _bundle(folder: Path, threads: int, precision: Precision) -> _Model:
    engine = open_engine(folder, precision=precision)
    manifest = engine.bundle.manifest
    return _Model(
        f"{manifest.name} {manifest.version}",
        answer_with_engine(engine),
        engine.read,
        list(manifest.training.get("tasks", [])),
        threads,
        lambda: _network_of_bundle(engine.bundle, folder),
        f"in onnxruntime on a {'GPU' if engine.provider == CUDA else 'CPU'}",
    )


def _network_of_bundle(bundle: ServedBundle, folder: Path) -> Network:
    if not isinstance(bundle, Bundle):
        raise ValueError(
            f"--output draws what the paper's reader attends to, and {folder} has a pretrained one: leave --output "
            "out, or measure it with --suite"
        )
    return network_of(pretrained_of_bundle(bundle, str(folder)))


def _checkpoint(folder: Path) -> _Model:
    loaded = load_checkpoint(folder)
    network = network_of(pretrained_of(loaded))
    return _Model(
        f"{loaded.config.name}, step {loaded.step:,}",
        lambda requests: network.greedy_answers(requests, _TORCH_ANSWER_TOKENS),
        partial(read_request, network.vocabulary),
        [task.name for task in loaded.train_config.tasks],
        1,
        lambda: network,
        "in torch",
    )


def _print(results: list[Result], skipped: dict[str, str]) -> None:
    sources = ("vocabulary", "context", "question")
    table = Table("task", "wording", "examples", "scores", "to trained\nwording", *sources, "answers/s")
    for column in table.columns[2:3] + table.columns[4:]:
        column.justify = "right"
    for result, difference in zip(results, differences(results), strict=True):
        scores = "  ".join(f"{metric} {value:.2f}" for metric, value in result.scores.items())
        mix = [f"{100 * result.source_mix[source]:.0f} %" for source in sources]
        change = "" if difference is None else f"{difference:+.2f}"
        rate = f"{result.num_examples / result.seconds:.0f}" if result.seconds else "-"
        table.add_row(result.label, result.variant, f"{result.num_examples:,}", scores, change, *mix, rate)
    Console(width=None if Console().is_terminal else 160).print(table)
    for result in results:
        if result.unreadable:
            print(
                f"{result.task}: {len(result.unreadable)} examples have no text to ask about: {result.unreadable[:5]}"
            )
    for result in results:
        if result.dropped and not result.variant:
            print(f"{result.task}: {in_words(result.dropped)}")
    for name, reason in skipped.items():
        print(f"{name}: skipped: {reason}")
