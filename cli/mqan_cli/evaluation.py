"""``mqan evaluate``: the table of scores on the terminal."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from mqan_core.vocab import Vocabulary
from mqan_export.engine import Engine
from mqan_export.evaluate import (
    ZERO_SHOT,
    AnswerBatch,
    Renaming,
    Result,
    answer_with_engine,
    default_tasks,
    evaluate_task,
    write_results,
)
from mqan_export.report import write_report
from mqan_export.session import Precision
from mqan_export.weights import pretrained_of_bundle
from mqan_training.checkpoint import load_checkpoint
from mqan_training.network import Network, load_network
from mqan_training.transfer import network_of

_TORCH_ANSWER_TOKENS = 100


def evaluate_model(
    bundle: Path | None,
    checkpoint: Path | None,
    data: Path,
    tasks: list[str] | None,
    *,
    limit: int | None,
    zero_shot: bool,
    threads: int,
    precision: Precision,
    output: Path | None,
) -> list[Result]:
    """Score a model, print the table on stdout and progress on stderr, and return the results.

    Raises:
        ValueError: not exactly one model is given, or no task.
    """
    if (bundle is None) == (checkpoint is None):
        raise ValueError("give either --bundle or --checkpoint")
    if checkpoint is not None and precision != "auto":
        raise ValueError("--precision is for a bundle; a checkpoint runs in float32")
    model = _bundle(bundle, threads, precision) if bundle is not None else _checkpoint(checkpoint)  # type: ignore[arg-type]
    network = model.network() if output is not None else None  # now: an error must not come after the work
    names = tasks or model.own_tasks
    if not names:
        raise ValueError("the bundle does not say what it was trained on: name the tasks with --task")
    results: list[Result] = []
    messages = Console(stderr=True)
    with Progress(console=messages, disable=not messages.is_terminal, transient=True) as progress:
        for task in default_tasks(names):
            renamings: list[Renaming | None] = [None, *(ZERO_SHOT.get(task.name, ()) if zero_shot else ())]
            for renaming in renamings:
                bar = progress.add_task(f"{task.name} {renaming or ''}", total=None)
                results.append(
                    evaluate_task(
                        model.answer,
                        model.vocabulary,
                        task,
                        data,
                        limit=limit,
                        renaming=renaming,
                        progress=lambda done, total, bar=bar: progress.update(bar, completed=done, total=total),  # type: ignore[misc]
                    )
                )
    _print(results)
    if output is not None and network is not None:
        write_results(output, results)
        write_report(output / "report.html", model.title, results, network)
        written = ", ".join(str(output / name) for name in ("metrics.json", "predictions.jsonl", "report.html"))
        messages.print(f"wrote {written}")
    return results


@dataclass(frozen=True)
class _Model:
    """A bundle or a checkpoint, as far as scoring it goes."""

    title: str
    answer: AnswerBatch
    vocabulary: Vocabulary
    own_tasks: list[str]
    network: Callable[[], Network]


def _bundle(folder: Path, threads: int, precision: Precision) -> _Model:
    engine = Engine.open(folder, num_threads=threads, precision=precision)
    manifest = engine.bundle.manifest
    return _Model(
        f"{manifest.name} {manifest.version}",
        answer_with_engine(engine),
        engine.bundle.vocabulary,
        list(manifest.training.get("tasks", [])),
        lambda: network_of(pretrained_of_bundle(engine.bundle, str(folder))),
    )


def _checkpoint(folder: Path) -> _Model:
    loaded = load_checkpoint(folder)
    network = load_network(loaded)
    return _Model(
        f"{loaded.config.name}, step {loaded.step:,}",
        lambda requests: network.greedy_answers(requests, _TORCH_ANSWER_TOKENS),
        network.vocabulary,
        [task.name for task in loaded.config.tasks],
        lambda: network,
    )


def _print(results: list[Result]) -> None:
    table = Table("task", "classes", "examples", "scores", "vocabulary", "context", "question", "answers/s")
    for column in table.columns[2:3] + table.columns[4:]:
        column.justify = "right"
    for result in results:
        scores = "  ".join(f"{metric} {value:.2f}" for metric, value in result.scores.items())
        mix = [f"{100 * result.source_mix[source]:.0f} %" for source in ("vocabulary", "context", "question")]
        rate = f"{result.num_examples / result.seconds:.0f}" if result.seconds else "-"
        table.add_row(result.task, result.variant, f"{result.num_examples:,}", scores, *mix, rate)
    Console(width=None if Console().is_terminal else 160).print(table)
    for result in results:
        if result.unreadable:
            print(
                f"{result.task}: {len(result.unreadable)} examples have no text to ask about: {result.unreadable[:5]}"
            )
