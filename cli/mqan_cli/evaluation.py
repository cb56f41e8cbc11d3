"""``mqan evaluate``: the table of scores on the terminal."""

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
    output: Path | None,
) -> list[Result]:
    """Score a model, print the table on stdout and progress on stderr, and return the results.

    Raises:
        ValueError: not exactly one model is given, or no task.
    """
    if (bundle is None) == (checkpoint is None):
        raise ValueError("give either --bundle or --checkpoint")
    if bundle is not None:
        answer_batch, vocabulary, own_tasks = _open_bundle(bundle, threads)
    else:
        answer_batch, vocabulary, own_tasks = _open_checkpoint(checkpoint)  # type: ignore[arg-type]
    names = tasks or own_tasks
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
                        answer_batch,
                        vocabulary,
                        task,
                        data,
                        limit=limit,
                        renaming=renaming,
                        progress=lambda done, total, bar=bar: progress.update(bar, completed=done, total=total),  # type: ignore[misc]
                    )
                )
    _print(results)
    if output is not None:
        write_results(output, results)
        messages.print(f"wrote {output / 'metrics.json'} and {output / 'predictions.jsonl'}")
    return results


def _open_bundle(folder: Path, threads: int) -> tuple[AnswerBatch, Vocabulary, list[str]]:
    engine = Engine.open(folder, num_threads=threads)
    own_tasks = engine.bundle.manifest.training.get("tasks", [])
    return answer_with_engine(engine), engine.bundle.vocabulary, list(own_tasks)


def _open_checkpoint(folder: Path) -> tuple[AnswerBatch, Vocabulary, list[str]]:
    from mqan_training.checkpoint import load_checkpoint
    from mqan_training.network import load_network

    loaded = load_checkpoint(folder)
    network = load_network(loaded)
    own_tasks = [task.name for task in loaded.config.tasks]
    return lambda requests: network.greedy_answers(requests, _TORCH_ANSWER_TOKENS), network.vocabulary, own_tasks


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
