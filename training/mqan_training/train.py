"""Train a recipe: ``mqan train RECIPE.yaml``; ``--resume`` goes on where a run was cut, with the same batches.

mqan train training/recipes/debug.yaml --data DIR         under two minutes
mqan train training/recipes/default.yaml --data DIR --resume
"""

import json
import random
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch.utils.tensorboard import SummaryWriter

from mqan_core.example import Example
from mqan_core.request import Request, read_request
from mqan_core.vocab import Vocabulary
from mqan_training.batching import Batcher, TaskStream
from mqan_training.cache import cached
from mqan_training.checkpoint import (
    Checkpoint,
    latest_checkpoint,
    load_checkpoint,
    prune_checkpoints,
    restore_run,
    save_checkpoint,
)
from mqan_training.config import TaskConfig, TrainConfig, to_document
from mqan_training.curriculum import schedule
from mqan_training.dataset import PieceTable, TaskData, generator_pieces, number_examples
from mqan_training.embeddings import load_vectors, write_vectors
from mqan_training.metrics import score
from mqan_training.network import Loss, Network
from mqan_training.optim import WeightAverage, learning_rate, make_optimizer
from mqan_training.readers.registry import task_named
from mqan_training.transfer import Pretrained, adopt, grow_pieces

_CHECKPOINTS_KEPT = 2
_VALIDATION_BATCH = 32
_SAMPLES_SHOWN = 3
_LOG = "log.jsonl"
_FROM = "from.txt"  # which network a run started from

console = Console(stderr=True)


@dataclass(slots=True)
class Run:
    """Everything a training run works with."""

    config: TrainConfig
    folder: Path
    vectors_path: Path
    network: Network
    optimizer: torch.optim.Adam
    average: WeightAverage | None
    batcher: Batcher
    streams: Mapping[str, TaskStream]
    validation: Mapping[str, list[tuple[Example, Request]]]
    device: torch.device
    step: int = 0
    seconds: float = 0.0


def train(
    config: TrainConfig,
    data: Path,
    folder: Path,
    *,
    resume: bool = False,
    pretrained: Pretrained | None = None,
    cache: Path | None = None,
) -> Path:
    """Run a recipe to its last step; return the last checkpoint.

    Args:
        config: the recipe.
        data: folder of the datasets.
        folder: where the run's checkpoints, log and TensorBoard files go.
        resume: go on from the newest checkpoint in ``folder``.
        pretrained: start from these weights, pieces and vectors instead of random weights and the recipe's vectors.
        cache: folder where numbered examples are kept for the next start; None for none.

    Raises:
        ValueError: the recipe does not fit the data or the pretrained network, or ``folder`` holds a run and
            ``resume`` was not asked for.
        CheckpointError: the checkpoint to resume from is damaged.
    """
    newest = latest_checkpoint(folder)
    if newest is None and resume and pretrained is None and (folder / _FROM).exists():
        source = (folder / _FROM).read_text(encoding="utf-8")
        raise ValueError(f"{folder} has no checkpoint yet and started from {source}: give --from {source} again")
    if newest is not None and not resume:
        raise ValueError(f"{folder} already holds a run; resume it with --resume, or name another folder with --output")
    steps = schedule(config)
    checkpoint = load_checkpoint(newest) if newest is not None else None
    run = prepare(config, data, folder, checkpoint, pretrained if checkpoint is None else None, cache)
    if checkpoint is not None:
        console.print(f"resuming at step {run.step} of {config.steps}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(to_document(config), indent=2), encoding="utf-8")
    _cut_log(folder / _LOG, run.step)
    writer = SummaryWriter(str(folder / "tensorboard"), purge_step=run.step + 1)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("training", total=config.steps, completed=run.step)
        while run.step < config.steps:
            task = steps[run.step]
            started = time.perf_counter()
            loss, rate, num_tokens = take_step(run, task)
            elapsed = time.perf_counter() - started
            run.seconds += elapsed
            _log(run, writer, task, loss, rate, num_tokens / elapsed)
            progress.update(bar, advance=1, description=f"{task} loss {float(loss.mean.detach()):.3f}")
            if run.step % config.validate_every == 0 or run.step == config.steps:
                _validate(run, writer)
            if run.step % config.checkpoint_every == 0 or run.step == config.steps:
                _save(run)
    writer.close()
    return _checkpoint_folder(run)


def prepare(
    config: TrainConfig,
    data: Path,
    folder: Path,
    checkpoint: Checkpoint | None,
    pretrained: Pretrained | None = None,
    cache: Path | None = None,
) -> Run:
    """Read data, choose the vocabulary, build the network; put back a checkpoint's state, or start from weights."""
    torch.manual_seed(config.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    table = PieceTable()
    tasks = {task.name: read_task(config, task, data, table, cache) for task in config.tasks}
    streams = {
        task.name: TaskStream(tasks[task.name], task, table, config.batch_tokens, config.seed) for task in config.tasks
    }
    if pretrained is not None:
        vectors_path = folder / "vectors.safetensors"
        write_vectors(vectors_path, pretrained.vectors)
        (folder / _FROM).write_text(pretrained.source, encoding="utf-8")
    else:
        vectors_path = checkpoint.vectors_path if checkpoint else Path(config.vectors)
    vectors = load_vectors(vectors_path)
    if checkpoint is not None:
        pieces = checkpoint.pieces
    else:
        pieces = tuple(generator_pieces(tasks.values(), table, config.num_generated))
        if pretrained is not None:
            pieces = grow_pieces(pretrained.pieces, pieces, config.num_generated)
    vocabulary = Vocabulary(pieces, vectors.words)
    network = Network(config.model, vectors, vocabulary)
    if pretrained is not None:
        adopt(network, pretrained)
    network.to(device)
    optimizer = make_optimizer(network, config.optim)
    average = WeightAverage(network, config.optim.average_decay) if config.optim.average_decay else None
    batcher = Batcher(table, vocabulary, network.embedder)
    validation = {task.name: _read_validation(config, task, data, vocabulary) for task in config.tasks}
    run = Run(config, folder, vectors_path, network, optimizer, average, batcher, streams, validation, device)
    if checkpoint is not None:
        restore_run(checkpoint, network, optimizer)
        if average is not None:
            average.tensors = {name: tensor.to(device) for name, tensor in checkpoint.average.items()}
        run.step, run.seconds = checkpoint.step, checkpoint.training["seconds"]
        for name, drawn in checkpoint.drawn.items():
            streams[name].skip_to(drawn)
    return run


def take_step(run: Run, task: str) -> tuple[Loss, float, int]:
    """Draw a batch of a task and take one optimiser step; return its loss, learning rate and tokens."""
    stream = run.streams[task]
    batch = run.batcher.collate(task, stream.draw()).to(run.device)
    run.step += 1
    rate = learning_rate(run.config.optim, run.step, run.config.steps)
    for group in run.optimizer.param_groups:
        group["lr"] = rate
    run.network.train()
    reduced = run.config.autocast == "bfloat16"
    with torch.autocast(run.device.type, dtype=torch.bfloat16) if reduced else nullcontext():
        loss: Loss = run.network(batch)
    run.optimizer.zero_grad(set_to_none=True)
    (loss.mean * stream.config.loss_weight).backward()
    norm = torch.nn.utils.clip_grad_norm_(run.network.parameters(), run.config.optim.grad_clip)
    if not bool(torch.isfinite(norm)):
        raise FloatingPointError(f"step {run.step} ({task}): the gradient is not finite; lower optim.peak_rate")
    run.optimizer.step()
    if run.average is not None:
        run.average.update(run.network, run.step)
    return loss, rate, batch.num_tokens


def read_task(config: TrainConfig, task: TaskConfig, data: Path, table: PieceTable, cache: Path | None) -> TaskData:
    """Read, tokenise and number a task's training examples, or take them from the cache, and say what was left out."""
    reader = task_named(task.name)
    started = time.perf_counter()
    cut_at = min(reader.max_context_tokens, config.max_context_tokens) if reader.max_context_tokens else None

    def read() -> TaskData:
        dropped: Counter[str] = Counter()
        numbered = number_examples(
            task.name,
            reader.read(data / reader.folder, "train", dropped),
            table,
            cut_context_at=cut_at,
            max_context_tokens=config.max_context_tokens,
            max_answer_tokens=config.max_answer_tokens,
        )
        numbered.dropped.update(dropped)
        return numbered

    limits = (cut_at, config.max_context_tokens, config.max_answer_tokens)
    numbered = cached(cache, reader, data, "train", limits, table, read)
    left_out = ", ".join(f"{count} {reason}" for reason, count in numbered.dropped.items()) or "none"
    elapsed = time.perf_counter() - started
    console.print(f"{task.name}: {len(numbered.items)} training examples in {elapsed:.0f} s, left out: {left_out}")
    return numbered


def _read_validation(
    config: TrainConfig, task: TaskConfig, data: Path, vocabulary: Vocabulary
) -> list[tuple[Example, Request]]:
    reader = task_named(task.name)
    if "validation" not in reader.splits:
        return []
    examples = [
        example
        for example in reader.read(data / reader.folder, "validation")
        if example.context.strip() and example.question.strip()
    ]
    if reader.metric != "joint_goal_em":  # that one needs whole dialogues, in order
        random.Random(config.seed).shuffle(examples)  # noqa: S311
    examples = examples[: config.validate_examples]
    return [(example, read_request(vocabulary, example.context, example.question)) for example in examples]


def _validate(run: Run, writer: SummaryWriter) -> None:
    trained = None
    if run.average is not None:
        trained = {name: p.detach().clone() for name, p in run.network.named_parameters()}
        run.network.load_state_dict(run.average.state())
    for name, pairs in run.validation.items():
        if not pairs:
            continue
        answers: dict[int, str] = {}
        by_length = sorted(range(len(pairs)), key=lambda i: pairs[i][1].num_context_tokens)
        for first in range(0, len(pairs), _VALIDATION_BATCH):
            chosen = by_length[first : first + _VALIDATION_BATCH]
            batch = run.network.greedy_answers([pairs[i][1] for i in chosen], run.config.max_answer_tokens)
            answers.update(zip(chosen, (answer.text for answer in batch), strict=True))
        scores = score(task_named(name).metric, [answers[i] for i in range(len(pairs))], [e for e, _ in pairs])
        for metric, value in scores.items():
            writer.add_scalar(f"validation/{name}/{metric}", value, run.step)
        text = " ".join(f"{metric} {value:.1f}" for metric, value in scores.items())
        console.print(f"step {run.step} {name}: {text} on {len(pairs)} examples")
        for i in range(min(_SAMPLES_SHOWN, len(pairs))):
            example = pairs[i][0]
            console.print(f"    {example.question[:80]!r} -> {answers[i]!r}, gold {example.answers[0]!r}", markup=False)
    if trained is not None:
        run.network.load_state_dict(trained)


def _log(run: Run, writer: SummaryWriter, task: str, loss: Loss, rate: float, tokens_per_s: float) -> None:
    if run.step % run.config.log_every:
        return
    values: dict[str, Any] = {
        "loss": float(loss.mean.detach()),
        "spread/context": loss.spread_context,
        "spread/question": loss.spread_question,
        "spread/first_word": loss.spread_state,
        "source/vocabulary": loss.source_mix[0],
        "source/context": loss.source_mix[1],
        "source/question": loss.source_mix[2],
    }
    for name, value in values.items():
        writer.add_scalar(f"{task}/{name}", value, run.step)
    writer.add_scalar("rate", rate, run.step)
    writer.add_scalar("tokens_per_s", tokens_per_s, run.step)
    with (run.folder / _LOG).open("a", encoding="utf-8") as file:
        record = {"step": run.step, "task": task, "rate": rate, "tokens_per_s": tokens_per_s, **values}
        file.write(json.dumps(record) + "\n")


def _cut_log(path: Path, step: int) -> None:
    """Drop the lines of steps after ``step``, which are taken again, and lines that were cut while written."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line + "\n")
        except ValueError:  # cut while written
            continue
    aside = path.with_suffix(".tmp")
    aside.write_text("".join(kept), encoding="utf-8")
    aside.replace(path)


def _checkpoint_folder(run: Run) -> Path:
    return run.folder / f"step-{run.step:07d}"


def _save(run: Run) -> None:
    save_checkpoint(
        _checkpoint_folder(run),
        config=run.config,
        step=run.step,
        drawn={name: stream.drawn for name, stream in run.streams.items()},
        pieces=run.network.vocabulary.pieces[1:],
        vectors=_vectors_path(run),
        model=run.network,
        average=run.average.state() if run.average is not None else {},
        optimizer=run.optimizer,
        training={
            "seconds": run.seconds,
            "torch": torch.__version__,
            "device": run.device.type,
            "from": (run.folder / _FROM).read_text(encoding="utf-8") if (run.folder / _FROM).exists() else None,
        },
    )
    prune_checkpoints(run.folder, _CHECKPOINTS_KEPT)


def _vectors_path(run: Run) -> Path:
    newest = latest_checkpoint(run.folder)
    return newest / "vectors.safetensors" if newest is not None else run.vectors_path
