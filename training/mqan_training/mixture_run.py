"""Train a recipe with a pretrained reader: ``mqan train training/recipes/default.yaml --data DIR [--resume]``.

Everything random comes from the recipe's seed and counters, so that a run that was cut at any moment goes on with the
same batches. The rates rise, stay, and fall over the last ``cooldown_steps``: a run can be made longer until then.
"""

import json
import math
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import torch
from torch import nn

from mqan_core.example import Example
from mqan_core.text.layout import Layout
from mqan_core.text.vocab import NUM_SPECIAL, Vocabulary
from mqan_data.kept import KeptPools
from mqan_data.source import Source
from mqan_training.checkpoint import (
    Checkpoint,
    checkpoint_to_resume,
    load_checkpoint,
    prune_checkpoints,
    refuse_other_recipe,
    restore_run,
    save_checkpoint,
    step_folder,
)
from mqan_training.collate import TrainingBatch
from mqan_training.cpu import is_reduced, tune_process
from mqan_training.device import prepare_device
from mqan_training.losses import network_losses
from mqan_training.model.bert import Bert
from mqan_training.model.pretrained import PretrainedNetwork
from mqan_training.optim import WeightAverage, decay_groups, rate_share, refuse_divergence
from mqan_training.recipe import Recipe
from mqan_training.runlog import RunLog, console
from mqan_training.sentence_encoder import WORD_PIECES, encoder_folder, read_word_pieces
from mqan_training.stream import MixtureStream, generator_pieces
from mqan_training.torch_answers import score_examples

ENCODER_CONFIG: Final = "encoder.json"  # a file of a checkpoint, beside the word pieces
_AVERAGE_EVERY = 10  # steps; the last one counts, too


@dataclass(frozen=True, slots=True)
class Start:
    """What a run may begin with instead of the pretrained reader alone.

    Attributes:
        weights: of the whole network, by name.
        pieces: of the generator, end and refusal not among them.
        origin: what they are of; checkpoints say it.
    """

    weights: Mapping[str, torch.Tensor]
    pieces: tuple[str, ...]
    origin: str


@dataclass(slots=True)
class MixtureRun:
    """Everything that a run works with."""

    recipe: Recipe
    folder: Path
    encoder: Path
    network: PretrainedNetwork
    teacher: Bert | None
    vocabulary: Vocabulary
    layout: Layout
    stream: MixtureStream
    optimizer: torch.optim.Optimizer
    average: WeightAverage
    validation: Mapping[str, Sequence[Example]]
    device: torch.device
    start: Start | None = None
    step: int = 0
    pool: int = 0
    index: int = 0
    seconds: float = 0.0
    origin: str = ""


def train_mixture(
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

    Args:
        recipe: the run.
        sources: of its examples, by the names of the recipe.
        validation: examples to score the run on, by name of their source.
        folder: where checkpoints and logs go.
        resume: go on from the newest checkpoint there.
        start: what to begin with, where no checkpoint is there.
        kept: pools of examples that were drawn before, and room for those of this run; with the first of them the run
            begins before its sources have been read.

    Raises:
        ValueError: the folder holds a run and ``resume`` was not asked for, it is one of another recipe, a source has
            no weight, or weights to begin with are missing of which a share is to be kept.
        CheckpointError: the checkpoint to resume from is damaged.
        DivergedError: a loss or the gradient is not finite.
    """
    tune_process()
    newest = checkpoint_to_resume(folder, resume=resume)
    run = prepare_run(recipe, sources, validation, folder, newest, start, kept)
    folder.mkdir(parents=True, exist_ok=True)
    log = RunLog(folder, run.step)
    batches = run.stream.batches(run.pool, run.index, num_workers(run.device))
    before, num_pieces, num_steps = time.perf_counter(), 0, 0
    begun = before - run.seconds
    try:
        while run.step < recipe.steps:
            run.pool, run.index, batch = next(batches)
            num_pieces, num_steps = num_pieces + batch.num_pieces, num_steps + 1
            losses = take_step(run, batch)
            is_logged, is_validated, is_saved = _due(run)
            if is_logged or is_validated or is_saved or run.device.type == "cpu":
                refuse_divergence(run.step, losses, "lower reader_rate or decoder_rate")  # waits for the device
            if is_logged:
                values = {name: float(loss) for name, loss in losses.items()}
                elapsed = time.perf_counter() - before
                log.numbers(
                    run.step, {**values, "pieces_per_s": num_pieces / elapsed, "s_per_step": elapsed / num_steps}
                )
                _show(run, values, num_pieces / elapsed, elapsed / num_steps)
                before, num_pieces, num_steps = time.perf_counter(), 0, 0
            paused = time.perf_counter()
            run.seconds = paused - begun
            if is_validated:
                validate_run(run, log)
            if is_saved:  # last, or a run that is cut in the last validation would never be scored
                save_run(run)
            pause = time.perf_counter() - paused
            before, begun = before + pause, begun + pause
    finally:
        batches.close()
        log.close()
    return step_folder(folder, run.step)


def _show(run: MixtureRun, losses: Mapping[str, float], pieces_per_s: float, s_per_step: float) -> None:
    """Print a line of progress."""
    left = timedelta(seconds=round((run.recipe.steps - run.step) * s_per_step))
    loss = ", ".join(f"{name} {losses[name]:.3f}" for name in ("answer", "span", "similarity", "evidence"))
    console.print(f"step {run.step:,} of {run.recipe.steps:,}: {loss}; {pieces_per_s:,.0f} pieces/s, {left} left")


def _due(run: MixtureRun) -> tuple[bool, bool, bool]:
    """Return whether the step that was taken is logged, validated and saved, as the last one is."""
    recipe, is_last = run.recipe, run.step == run.recipe.steps
    log, validate, save = (
        is_last or run.step % every == 0 for every in (recipe.log_every, recipe.validate_every, recipe.checkpoint_every)
    )
    return log, validate, save


def prepare_run(
    recipe: Recipe,
    sources: Sequence[Source],
    validation: Mapping[str, Sequence[Example]],
    folder: Path,
    newest: Path | None,
    start: Start | None = None,
    kept: KeptPools | None = None,
) -> MixtureRun:
    """Choose the generator's pieces, build the network, and put back a checkpoint's state."""
    if missing := [source.name for source in sources if source.name not in recipe.sources]:
        raise ValueError(f"recipe {recipe.name}: no weight for the sources {', '.join(missing)}")
    if recipe.start_share and start is None:
        raise ValueError(f"recipe {recipe.name}: start_share is of the weights that --from gives; resume with it, too")
    torch.manual_seed(recipe.seed)
    device = prepare_device()
    encoder = encoder_folder(recipe.encoder)
    layout = Layout(read_word_pieces(encoder))
    checkpoint = None if newest is None else load_checkpoint(newest)
    if checkpoint is not None:
        refuse_other_recipe(checkpoint, recipe)
        _refuse_other_encoder(checkpoint, encoder)
        _refuse_other_start(checkpoint, recipe, start)
        pieces = checkpoint.pieces
    else:
        pieces = start.pieces if start is not None else _generator_pieces(sources, recipe, kept)
    vocabulary = Vocabulary(pieces, refuses=True)
    bert = Bert.from_folder(encoder, recipe.reader_dropout)
    network = PretrainedNetwork(recipe.decoder.model_config_of(), bert, vocabulary.num_generated).to(device)
    teacher = Bert.from_folder(encoder).to(device).eval() if recipe.similarity_weight else None
    if device.type == "cuda" and shutil.which(os.environ.get("CC", "gcc")):
        _compile(network)
    if start is not None and checkpoint is None:
        take_weights(network, start)
    optimizer = make_optimizer(network, recipe)
    average = WeightAverage(network, recipe.average_decay)
    stream = MixtureStream(sources, recipe, vocabulary, layout, kept)
    run = MixtureRun(
        recipe,
        folder,
        encoder,
        network,
        teacher,
        vocabulary,
        layout,
        stream,
        optimizer,
        average,
        validation,
        device,
        start,
    )
    if checkpoint is not None:
        restore_run(checkpoint, network, optimizer)
        average.tensors = {name: tensor.to(device) for name, tensor in checkpoint.average.items()}
        run.origin = checkpoint.training.get("began_from", "")
        run.step, run.seconds = checkpoint.step, checkpoint.training["seconds"]
        run.pool, run.index = checkpoint.drawn["pool"], checkpoint.drawn["index"]
        console.print(f"resuming at step {run.step} of {recipe.steps}")
    elif start is not None:
        run.origin = start.origin
    return run


def _generator_pieces(sources: Sequence[Source], recipe: Recipe, kept: KeptPools | None) -> tuple[str, ...]:
    known = None if kept is None else kept.read("pieces")
    if known is not None:
        return tuple(json.loads(known))
    pieces = generator_pieces(sources, recipe)
    if kept is not None:
        kept.write("pieces", json.dumps(pieces).encode())
    return tuple(pieces)


def _refuse_other_encoder(checkpoint: Checkpoint, encoder: Path) -> None:
    """Check that a folder holds the word pieces and sizes of the encoder that a run began with."""
    for kept, name in ((WORD_PIECES, WORD_PIECES), (ENCODER_CONFIG, "config.json")):
        if (checkpoint.folder / kept).read_bytes() != (encoder / name).read_bytes():
            raise ValueError(
                f"{encoder / name} is not that of the encoder that the run in {checkpoint.folder} began with; "
                "give its folder as `encoder`"
            )


def _refuse_other_start(checkpoint: Checkpoint, recipe: Recipe, start: Start | None) -> None:
    """Check that a run is given what it began with, of which it may keep a share."""
    if start is not None:
        had = checkpoint.training.get("began_from", "")
        if start.origin != had:
            raise ValueError(
                f"the run in {checkpoint.folder.parent} began with {had or 'the encoder alone'}, not with "
                f"{start.origin}: give that to go on with it, or name another folder with --output"
            )
        if start.pieces != checkpoint.pieces:
            raise ValueError(
                f"{start.origin} has other words than when the run in {checkpoint.folder.parent} began with it"
            )
    if recipe.start_share and checkpoint.step == checkpoint.config.steps and recipe.steps > checkpoint.step:
        raise ValueError(
            f"the run in {checkpoint.folder.parent} has ended, and its weights hold the share that start_share keeps: "
            "begin another run, from its bundle"
        )


def take_weights(network: PretrainedNetwork, start: Start) -> None:
    """Give a network the weights of a start; what that lacks because it is older stays untrained."""
    untrained = {name: value for name, value in network.state_dict().items() if name.startswith("evidence.")}
    try:
        network.load_state_dict(untrained | dict(start.weights))  # bundles did not always have evidence
    except RuntimeError as error:
        raise ValueError(f"the weights to start from do not fit the model of the recipe: {error}") from error


def _compile(network: PretrainedNetwork) -> None:
    """Compile what is launched most often: small kernels keep a GPU waiting; a step takes four fifths of the time."""
    network.decoder.taught_step = torch.compile(network.decoder.taught_step, dynamic=True)  # type: ignore[method-assign]
    for layer in network.bert.layers:
        layer.compile(dynamic=True)


def make_optimizer(network: PretrainedNetwork, recipe: Recipe) -> torch.optim.Optimizer:
    """Return AdamW with a rate for the reader and one for all else; vectors do not decay."""
    groups = []
    for is_reader, rate in ((True, recipe.reader_rate), (False, recipe.decoder_rate)):
        found = (p for name, p in network.named_parameters() if name.startswith("bert.") == is_reader)
        groups += decay_groups(found, recipe.weight_decay, peak_rate=rate)
    return torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-8, fused=True)


def num_workers(device: torch.device) -> int:
    """Return how many processes make batches: one beside a CPU that learns; for a GPU, two of three cores."""
    return max((os.cpu_count() or 1) * 2 // 3, 1) if device.type == "cuda" else 1


def take_step(run: MixtureRun, batch: TrainingBatch) -> dict[str, float | torch.Tensor]:
    """Take one optimiser step; return its losses, which may still be on their way."""
    recipe = run.recipe
    run.step += 1
    share = rate_share(run.step, recipe.steps, recipe.warmup_steps, recipe.cooldown_steps)
    for group in run.optimizer.param_groups:
        group["lr"] = group["peak_rate"] * share
    run.network.train()
    with torch.autocast(run.device.type, torch.bfloat16, enabled=is_reduced(recipe.autocast, run.device)):
        losses = network_losses(run.network, batch.to(run.device), run.teacher)
    total = losses.answer + recipe.span_weight * losses.span + recipe.similarity_weight * losses.similarity
    total = total + recipe.evidence_weight * losses.evidence
    total.backward()
    norm = nn.utils.clip_grad_norm_(run.network.parameters(), recipe.grad_clip)
    run.optimizer.step()
    run.optimizer.zero_grad(set_to_none=True)
    if run.step % _AVERAGE_EVERY == 0 or run.step == recipe.steps:
        run.average.update(run.network, math.ceil(run.step / _AVERAGE_EVERY))
    if run.step == recipe.steps and run.start is not None and recipe.start_share:
        run.average.mix(run.start.weights, recipe.start_share)
    found = {name: value.detach() for name, value in losses._asdict().items() if name != "answer_B"}
    return {**found, "norm": norm, "share_of_rate": share}


def validate_run(run: MixtureRun, log: RunLog) -> None:
    """Score the averaged weights on some validation examples of each source that the recipe names."""
    run.network.eval()
    with run.average.in_use(run.network):
        for name, examples in run.validation.items():
            if examples:
                scores = score_examples(run.network, run.vocabulary, run.layout, examples, run.recipe.max_answer_tokens)
                log.validation(run.step, run.seconds, name, scores, len(examples))


def save_run(run: MixtureRun) -> None:
    """Write a checkpoint and delete old ones."""
    save_checkpoint(
        step_folder(run.folder, run.step),
        config=run.recipe,
        step=run.step,
        drawn={"pool": run.pool, "index": run.index},
        pieces=run.vocabulary.pieces[NUM_SPECIAL:],
        frozen={ENCODER_CONFIG: run.encoder / "config.json", WORD_PIECES: run.encoder / WORD_PIECES},
        model=run.network,
        average=run.average.state(),
        optimizer=run.optimizer,
        training={
            "seconds": run.seconds,
            "torch": torch.__version__,
            "device": run.device.type,
            **({"began_from": run.origin} if run.origin else {}),
        },
    )
    prune_checkpoints(run.folder)
