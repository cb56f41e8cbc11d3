"""Train a recipe: ``mqan train RECIPE.yaml``; ``--resume`` goes on where a run was cut, with the same batches.

mqan train training/recipes/debug.yaml --data DIR         under two minutes
mqan train training/recipes/paper.yaml --data DIR --resume
"""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import nn

from mqan_core.ask.request import Request
from mqan_core.example import Example
from mqan_core.text.vocab import Vocabulary
from mqan_training.batching import Batcher, TaskStream, common_size
from mqan_training.checkpoint import (
    VECTORS,
    Checkpoint,
    checkpoint_to_resume,
    latest_checkpoint,
    load_checkpoint,
    prune_checkpoints,
    refuse_other_recipe,
    restore_run,
    save_checkpoint,
    step_folder,
)
from mqan_training.config import TrainConfig, to_document
from mqan_training.cpu import is_reduced, tune_process
from mqan_training.curriculum import schedule
from mqan_training.distributed import Processes, joined_processes
from mqan_training.examples import read_tasks, read_validation, validate
from mqan_training.model.embeddings import load_vectors, write_vectors
from mqan_training.model.network import Loss, Network
from mqan_training.numbering import PieceTable, generator_pieces
from mqan_training.optim import WeightAverage, learning_rate, make_optimizer, refuse_divergence
from mqan_training.runlog import RunLog, console
from mqan_training.transfer import (
    Pretrained,
    adopt,
    grow_pieces,
    record_source,
    recorded_source,
)


@dataclass(slots=True)
class Run:
    """Everything a training run works with.

    ``parallel`` is ``network`` itself, or around it what averages the gradients of several processes.
    """

    config: TrainConfig
    folder: Path
    vectors_path: Path
    network: Network
    parallel: nn.Module
    optimizer: torch.optim.Adam
    average: WeightAverage | None
    batcher: Batcher
    streams: Mapping[str, TaskStream]
    validation: Mapping[str, list[tuple[Example, Request]]]
    processes: Processes
    step: int = 0
    seconds: float = 0.0

    @property
    def is_reduced(self) -> bool:
        """Whether products are computed in bfloat16."""
        return is_reduced(self.config.autocast == "bfloat16", self.processes.device)


def train(
    config: TrainConfig,
    data: Path,
    folder: Path,
    *,
    resume: bool = False,
    pretrained: Pretrained | None = None,
) -> Path:
    """Run a recipe to its last step; return the last checkpoint.

    Processes that a launcher started together train one run; each calls this (see ``distributed``).

    Args:
        config: the recipe.
        data: folder of the datasets.
        folder: where the run's checkpoints, logs and TensorBoard files go; all processes must see the same.
        resume: go on from the newest checkpoint in ``folder``.
        pretrained: start from these weights, pieces and vectors instead of random weights and the recipe's vectors.
            Not needed once there is a checkpoint.

    Raises:
        ValueError: the recipe does not fit the data or the pretrained network, the checkpoint to resume from is of
            another recipe, or ``find_start`` refuses.
        CheckpointError: the checkpoint to resume from is damaged.
        DivergedError: the gradient is not finite.
    """
    tune_process()
    newest = find_start(folder, resume=resume, source=None if pretrained is None else pretrained.source)
    steps = schedule(config)
    checkpoint = load_checkpoint(newest) if newest is not None else None
    if checkpoint is not None:
        refuse_other_recipe(checkpoint, config)
    with joined_processes() as processes:
        console.quiet = not processes.is_first
        processes.wait()  # until all have looked into the folder
        start = pretrained if checkpoint is None else None
        run = prepare(config, data, folder, processes, checkpoint=checkpoint, pretrained=start)
        if not processes.all_same(run.step):
            raise ValueError(f"the processes found different checkpoints: put {folder} where all machines see it")
        if config.autocast == "bfloat16" and not run.is_reduced:
            console.print("autocast: this CPU has no bfloat16 instructions, training in float32, which is faster here")
        if checkpoint is not None:
            console.print(f"resuming at step {run.step} of {config.steps}")
        elif processes.is_first:
            record_source(folder, None if start is None else start.source)
        _take_steps(run, steps)
        return step_folder(folder, run.step)


def find_start(folder: Path, *, resume: bool, source: str | None) -> Path | None:
    """Return the checkpoint that a run goes on from, or None when it begins.

    Args:
        folder: of the run.
        resume: whether it may go on.
        source: the pretrained network that is given to start from, if any; without a checkpoint it is needed.

    Raises:
        ValueError: ``folder`` holds a run and ``resume`` was not asked for, or its run started from something else
            than ``source``.
    """
    newest = checkpoint_to_resume(folder, resume=resume)
    recorded = recorded_source(folder)
    if not resume or (newest is None and recorded is None):
        return newest
    if source is None:
        if newest is None:
            raise ValueError(
                f"{folder} has no checkpoint yet and started from {recorded}: give --from {recorded} again"
            )
    elif recorded is None or Path(recorded).resolve() != Path(source).resolve():
        instead = "leave --from out" if newest is not None else f"give --from {recorded}"
        raise ValueError(
            f"the run in {folder} started from {recorded or 'random weights'}, not from {source}: {instead} to go on "
            "with it, or name another folder with --output"
        )
    return newest


def _take_steps(run: Run, steps: Sequence[str]) -> None:
    """Train to the last step; the first process logs, validates and saves, while the others wait."""
    config, processes = run.config, run.processes
    log = None
    if processes.is_first:
        run.folder.mkdir(parents=True, exist_ok=True)
        (run.folder / "config.json").write_text(json.dumps(to_document(config), indent=2), encoding="utf-8")
        log = RunLog(run.folder, run.step)
    processes.seed_dropout(config.seed, run.step)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("training", total=config.steps, completed=run.step)
        while run.step < config.steps:
            task = steps[run.step]
            started = time.perf_counter()
            loss, rate, num_tokens = take_step(run, task)
            elapsed = time.perf_counter() - started
            run.seconds += elapsed
            progress.update(bar, advance=1, description=f"{task} loss {float(loss.mean.detach()):.3f}")
            if log is not None and run.step % config.log_every == 0:
                log.training_step(run.step, task, loss, rate, num_tokens / elapsed)
            if run.step % config.validate_every == 0 or run.step == config.steps:
                if log is not None:
                    _validate(run, log)
                processes.wait()
            if run.step % config.checkpoint_every == 0 or run.step == config.steps:
                if processes.is_first:
                    _save(run)
                processes.seed_dropout(config.seed, run.step)
                processes.wait()
    if log is not None:
        log.close()


def prepare(
    config: TrainConfig,
    data: Path,
    folder: Path,
    processes: Processes,
    *,
    checkpoint: Checkpoint | None = None,
    pretrained: Pretrained | None = None,
) -> Run:
    """Read data, choose the vocabulary, build the network; put back a checkpoint's state, or start from weights."""
    torch.manual_seed(config.seed)
    num_steps = common_size(config.max_answer_tokens + 1)
    if num_steps > config.model.max_positions:
        raise ValueError(
            f"max_answer_tokens {config.max_answer_tokens} takes {num_steps} steps of the decoder, model.max_positions "
            f"is {config.model.max_positions}: lower the one or raise the other"
        )
    device = processes.device
    vectors_path = _frozen_vectors(config, folder, processes, checkpoint, pretrained)
    vectors = load_vectors(vectors_path)
    table = PieceTable()
    tasks = read_tasks(config, data, table)
    streams = {task.name: TaskStream(tasks[task.name], config.batch_tokens, config.seed) for task in config.tasks}
    if checkpoint is not None:
        pieces = checkpoint.pieces
    else:
        pieces = tuple(
            generator_pieces(
                tasks.values(), table, config.num_generated, question_pointer=config.model.question_pointer
            )
        )
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
    validation = {task.name: read_validation(config, task, data, vocabulary) for task in config.tasks}
    run = Run(
        config, folder, vectors_path, network, network, optimizer, average, batcher, streams, validation, processes
    )
    if checkpoint is not None:
        restore_run(checkpoint, network, optimizer)
        if average is not None:
            average.tensors = {name: tensor.to(device) for name, tensor in checkpoint.average.items()}
        run.step, run.seconds = checkpoint.step, checkpoint.training["seconds"]
        for name, drawn in checkpoint.drawn.items():
            streams[name].skip_to(drawn)
    run.parallel = processes.wrap(network)
    return run


def _frozen_vectors(
    config: TrainConfig,
    folder: Path,
    processes: Processes,
    checkpoint: Checkpoint | None,
    pretrained: Pretrained | None,
) -> Path:
    """Return the file of a run's frozen vectors, written to its folder where it is not one that there is already."""
    if checkpoint is not None:
        return checkpoint.vectors_path
    if pretrained is None:
        return Path(config.vectors)
    path = folder / "vectors.safetensors"
    if processes.is_first:
        write_vectors(path, pretrained.vectors)
    processes.wait()
    return path


def take_step(run: Run, task: str) -> tuple[Loss, float, int]:
    """Draw a batch of a task and take one optimiser step; return its loss, learning rate and tokens.

    Of several processes each computes its share of the rows; one that has none computes a row without effect.
    """
    stream, processes = run.streams[task], run.processes
    rows = stream.draw()
    own = processes.share(rows)
    batch = run.batcher.collate(task, own or rows[:1]).to(processes.device)
    run.step += 1
    rate = learning_rate(run.config.optim, run.step, run.config.steps)
    for group in run.optimizer.param_groups:
        group["lr"] = rate
    run.network.train()
    with torch.autocast(processes.device.type, dtype=torch.bfloat16, enabled=run.is_reduced):
        own_loss: Loss = run.parallel(batch)
    objective, loss, num_tokens = processes.merge(own_loss, batch.num_tokens, counts=bool(own))
    run.optimizer.zero_grad(set_to_none=True)
    objective.backward()
    norm = torch.nn.utils.clip_grad_norm_(run.network.parameters(), run.config.optim.grad_clip)
    refuse_divergence(run.step, {f"the gradient of {task}": norm}, "lower optim.peak_rate")
    run.optimizer.step()
    if run.average is not None:
        run.average.update(run.network, run.step)
    return loss, rate, num_tokens


def _validate(run: Run, log: RunLog) -> None:
    """Score the averaged weights where there are any, otherwise the trained ones."""

    def record(task: str, scores: Mapping[str, float], num_examples: int) -> None:
        log.validation(run.step, run.seconds, task, scores, num_examples)

    with nullcontext() if run.average is None else run.average.in_use(run.network):
        validate(run.network, run.validation, run.config.max_answer_tokens, record)


def _save(run: Run) -> None:
    save_checkpoint(
        step_folder(run.folder, run.step),
        config=run.config,
        step=run.step,
        drawn={name: stream.drawn for name, stream in run.streams.items()},
        pieces=run.network.vocabulary.pieces[1:],
        frozen={VECTORS: _vectors_path(run)},
        model=run.network,
        average=run.average.state() if run.average is not None else {},
        optimizer=run.optimizer,
        training={
            "seconds": run.seconds,
            "torch": torch.__version__,
            "device": run.processes.device.type,
            "processes": run.processes.count,
            "from": recorded_source(run.folder),
        },
    )
    prune_checkpoints(run.folder)


def _vectors_path(run: Run) -> Path:
    newest = latest_checkpoint(run.folder)
    return newest / "vectors.safetensors" if newest is not None else run.vectors_path
