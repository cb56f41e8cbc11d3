"""The training loop of every recipe: ``mqan train RECIPE.yaml --data DIR [--resume]``.

Everything random comes from the recipe's seed and counters, so that a run that was cut at any moment goes on with the
same batches. Constant rates rise, stay, and fall over the last ``cooldown_steps``: a run can be made longer until then.
"""

import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mqan_core.example import Example
from mqan_data.derived import Source
from mqan_data.kept import KeptPools
from mqan_training import checkpoint as checkpoints
from mqan_training.batch import Batch, is_reduced, prepare_device, tune_process
from mqan_training.distributed import Processes, joined_processes
from mqan_training.losses import Losses
from mqan_training.optim import WeightAverage, make_optimizer, refuse_divergence
from mqan_training.readers import PieceReader, WordReader
from mqan_training.recipe import PiecesConfig, Recipe
from mqan_training.runlog import RunLog, console
from mqan_training.schedule import rate_share
from mqan_training.spelling import generator_tokens, grow
from mqan_training.start import Start, adopt, record_origin, refuse_other_start
from mqan_training.stream import POOLS, Drawn, Stream

_AVERAGE_EVERY = 10  # steps; the last one counts, too
_ADVICE = "lower reader_rate or decoder_rate"


class Learner(nn.Module):
    def __init__(self, network: nn.Module, losses: Callable[..., Losses]) -> None:
        super().__init__()
        self.network = network
        self._losses = losses

    def forward(self, batch: Batch) -> Losses:
        return self._losses(self.network, batch)


class Run:
    """A run and what it works with: it begins, or has the state of the checkpoint that it goes on from."""

    def __init__(
        self,
        recipe: Recipe,
        sources: Sequence[Source],
        validation: Mapping[str, Sequence[Example]],
        folder: Path,
        newest: Path | None,
        start: Start | None = None,
        kept: KeptPools | None = None,
        *,
        processes: Processes | None = None,
        resume: bool = True,
    ) -> None:
        if missing := [source.name for source in sources if source.name not in recipe.sources]:
            raise ValueError(f"recipe {recipe.name}: no weight for the sources {', '.join(missing)}")
        torch.manual_seed(recipe.seed)
        self.recipe, self.folder, self.validation, self.start = recipe, folder, validation, start
        device = prepare_device()
        self.processes = processes = processes or Processes(0, 1, device)
        checkpoint = None if newest is None else checkpoints.load_checkpoint(newest)
        if checkpoint is not None:
            checkpoints.refuse_other_recipe(checkpoint, recipe)
        refuse_other_start(folder, checkpoint, recipe, start, resume=resume)
        kind = PieceReader if isinstance(recipe.reader, PiecesConfig) else WordReader
        self.reader = reader = kind(recipe, checkpoint, start)
        kept = kept if processes.count == 1 else None  # else only a share of the rows would be kept
        self.stream = Stream(sources, recipe, reader, kept, (processes.rank, processes.count))
        self.tokens = self._chosen_tokens(kept) if checkpoint is None else checkpoint.tokens
        network: Any = reader.build(self.tokens).to(processes.device)
        losses = reader.losses_on(network, processes.device)
        if start is not None and checkpoint is None:
            adopt(network, start)
        self.network, self.optimizer = network, make_optimizer(network, recipe, reader.of_reader)
        self.average = WeightAverage(network, recipe.average_decay) if recipe.average_decay else None
        learner = Learner(network, losses)
        self.learner = processes.wrap(learner, has_unused_weights=reader.has_unused_weights)
        self.origin, self.tasks_before = ("", ()) if start is None else (start.origin, start.tasks)
        self.step, self.pool, self.index, self.seconds = 0, 0, 0, 0.0
        if checkpoint is not None:
            checkpoints.restore_run(checkpoint, self.network, self.optimizer)
            if self.average is not None:
                averaged = checkpoint.average.items()
                self.average.tensors = {name: tensor.to(processes.device) for name, tensor in averaged}
            self.origin = checkpoint.training.get("began_from", "")
            self.tasks_before = tuple(checkpoint.training.get("tasks_before", ()))
            self.step, self.seconds = checkpoint.step, checkpoint.training["seconds"]
            self.pool, self.index = checkpoint.drawn["pool"], checkpoint.drawn["index"]
            if self.step > recipe.steps:
                ends = f"the recipe ends at {recipe.steps}: give the run's --set again"
                raise ValueError(f"{folder} is at step {self.step}, and {ends}")
            console.print(f"resuming at step {self.step} of {recipe.steps}")
        elif resume and folder.exists():
            console.print(f"no checkpoint in {folder}: starting anew")

    def _chosen_tokens(self, kept: KeptPools | None) -> tuple[str, ...]:
        recipe, reader = self.recipe, self.reader
        number = recipe.num_generated - reader.num_special
        known = () if self.start is None else self.start.tokens
        if len(known) >= number:
            return grow(known, (), number)
        before = None if kept is None else kept.read("pieces")
        if before is not None:
            return tuple(json.loads(before))
        most, question_pointer = recipe.max_answer_tokens, reader.question_pointer
        wanted = generator_tokens(self.stream.examples(), number, most, question_pointer=question_pointer)
        tokens = grow(known, wanted, number)
        if kept is not None:
            kept.write("pieces", json.dumps(tokens).encode())
        return tokens


def train(
    recipe: Recipe,
    sources: Sequence[Source],
    validation: Mapping[str, Sequence[Example]],
    folder: Path,
    *,
    resume: bool = False,
    start: Start | None = None,
    kept: KeptPools | None = None,
) -> Path:
    """Run a recipe to its last step; return the last checkpoint.

    Processes that a launcher started together train one run; each calls this (see ``distributed``).
    All must see the same ``folder``, for checkpoints and logs. ``start`` counts where there is no checkpoint. With the
    first of the pools that are ``kept`` a run begins before its sources have been read.
    """
    tune_process()
    newest = checkpoints.latest_checkpoint(folder)
    if newest is not None and not resume:
        raise ValueError(f"{folder} already holds a run; resume it with --resume, or name another folder with --output")
    with joined_processes() as processes:
        console.quiet = not processes.is_first
        processes.wait()  # until all have looked into the folder
        run = Run(recipe, sources, validation, folder, newest, start, kept, processes=processes, resume=resume)
        if not processes.all_same(run.step):
            raise ValueError(f"the processes found different checkpoints: put {folder} where all machines see it")
        if recipe.autocast and not is_reduced(True, processes.device):
            console.print("autocast: this CPU has no bfloat16 instructions, training in float32, which is faster here")
        if processes.is_first:
            folder.mkdir(parents=True, exist_ok=True)
            if newest is None:
                record_origin(folder, start)
        with closing(RunLog(folder, run.step)) if processes.is_first else nullcontext() as log:
            _take_steps(run, log)
    return checkpoints.step_folder(folder, run.step)


def _take_steps(run: Run, log: RunLog | None) -> None:
    recipe, processes, batches = run.recipe, run.processes, None
    before, size, num_steps = time.perf_counter(), 0, 0
    begun = before - run.seconds
    processes.seed_dropout(recipe.seed, run.step)
    try:
        while run.step < recipe.steps:
            phase = recipe.phase_after(run.step)
            if batches is None or phase != run.pool // POOLS:
                if batches is not None:
                    batches.close()
                if phase != run.pool // POOLS:
                    run.pool, run.index = phase * POOLS, 0
                batches = run.stream.batches(run.pool, run.index, num_workers(processes.device))
            drawn = next(batches)
            run.pool, run.index = drawn.pool, drawn.next
            size, num_steps = size + drawn.batch.size, num_steps + 1
            losses = take_step(run, drawn)
            every = (recipe.log_every, recipe.validate_every, recipe.checkpoint_every)
            is_logged, is_validated, is_saved = (run.step % n == 0 or run.step == recipe.steps for n in every)
            if is_logged or is_validated or is_saved or processes.device.type == "cpu":
                refuse_divergence(run.step, losses, _ADVICE)  # waits for the device
            if is_logged and log is not None:
                values = {name: float(loss) for name, loss in losses.items()}
                others = {name: values.pop(name) for name in ("norm", "share_of_rate")}
                elapsed = time.perf_counter() - before
                speed = {f"{run.reader.unit}_per_s": size / elapsed, "s_per_step": elapsed / num_steps}
                log.numbers(run.step, drawn.source, values, others | speed)
                _show(run, drawn.source, values, size / elapsed, elapsed / num_steps)
            if is_logged:
                before, size, num_steps = time.perf_counter(), 0, 0
            paused = time.perf_counter()
            run.seconds = paused - begun
            if is_validated:
                if log is not None:
                    validate_run(run, log)
                processes.wait()
            if is_saved:  # last, or a run that is cut in the last validation would never be scored
                if processes.is_first:
                    save_run(run)
                processes.seed_dropout(recipe.seed, run.step)
                processes.wait()
            pause = time.perf_counter() - paused
            before, begun = before + pause, begun + pause
    except KeyboardInterrupt:
        console.print(f"stopped at step {run.step}; from its last checkpoint, if there is one, --resume goes on")
        raise
    finally:
        if batches is not None:
            batches.close()


def _show(run: Run, source: str, values: Mapping[str, float], per_s: float, s_per_step: float) -> None:
    left = timedelta(seconds=round((run.recipe.steps - run.step) * s_per_step))
    loss = ", ".join(f"{name} {values[name]:.3f}" for name in run.reader.loss_weights)
    where = f" {source}" if source else ""
    console.print(
        f"step {run.step:,} of {run.recipe.steps:,}{where}: {loss}; {per_s:,.0f} {run.reader.unit}/s, {left} left"
    )


def num_workers(device: torch.device) -> int:
    """Return how many processes make batches: one beside a CPU that learns; for a GPU, two of three cores."""
    return max((os.cpu_count() or 1) * 2 // 3, 1) if device.type == "cuda" else 1


def take_step(run: Run, drawn: Drawn) -> dict[str, float | Tensor]:
    """Take one optimiser step; return its losses, which may still be on their way."""
    recipe, device = run.recipe, run.processes.device
    run.step += 1
    share = rate_share(run.step, recipe.steps, recipe.warmup_steps, recipe.cooldown_steps, recipe.schedule)
    for group in run.optimizer.param_groups:
        group["lr"] = group["peak_rate"] * share
    run.network.train()
    with torch.autocast(device.type, torch.bfloat16, enabled=is_reduced(recipe.autocast, device)):
        own = run.learner(drawn.batch.to(device))
    total, losses = run.processes.merge(own, run.reader.loss_weights, counts=drawn.counts)
    total.backward()
    norm = nn.utils.clip_grad_norm_(run.network.parameters(), recipe.grad_clip)
    run.optimizer.step()
    run.optimizer.zero_grad(set_to_none=True)
    if run.average is not None:
        if run.step % _AVERAGE_EVERY == 0 or run.step == recipe.steps:
            run.average.update(run.network, math.ceil(run.step / _AVERAGE_EVERY))
        if run.step == recipe.steps and run.start is not None and recipe.start_share:
            run.average.mix(run.start.weights, recipe.start_share)
    return {**losses, "norm": norm, "share_of_rate": share}


def validate_run(run: Run, log: RunLog) -> None:
    """Score the averaged weights, where there are any, on some validation examples of each source that is named."""
    run.network.eval()
    with nullcontext() if run.average is None else run.average.in_use(run.network):
        for name, examples in run.validation.items():
            if examples:
                scores = run.reader.score(run.network, name, examples)
                log.validation(run.step, run.seconds, name, scores, len(examples))


def save_run(run: Run) -> None:
    newest = checkpoints.latest_checkpoint(run.folder)  # has the frozen files, whatever has become of the others
    frozen = {name: path if newest is None else newest / name for name, path in run.reader.frozen.items()}
    training = {
        "seconds": run.seconds,
        "torch": torch.__version__,
        "device": run.processes.device.type,
        "processes": run.processes.count,
        **({"began_from": run.origin, "tasks_before": run.tasks_before} if run.origin else {}),
    }
    folder, drawn = checkpoints.step_folder(run.folder, run.step), {"pool": run.pool, "index": run.index}
    weights, average = run.network.state_dict(), {} if run.average is None else run.average.tensors
    checkpoint = checkpoints.Checkpoint(folder, run.recipe, run.step, drawn, run.tokens, weights, average, training)
    checkpoints.save_checkpoint(checkpoint, frozen, run.optimizer)
    checkpoints.prune_checkpoints(run.folder)
