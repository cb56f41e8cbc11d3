"""Algorithm 1: mini-batches of all tasks, shuffled in each epoch; fine-tuning; the runs of one recipe (section 3.1).

Adamax, a rate that rises over the warm-up and falls linearly to 0, clipped gradients (section 4.2). No checkpoint is
chosen: what is reported is the last one, so that the training file is used whole.
"""

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from mqan_baselines.folders import append_log, begin_log, opened_model, read_results, save_model, write_results
from mqan_baselines.formats import Row
from mqan_baselines.mt_dnn.network import MtDnn, pretrained_network, ranking_loss
from mqan_baselines.mt_dnn.packing import Packed, Packer, checked_packer, stack
from mqan_baselines.recipes import MtDnnRecipe
from mqan_baselines.scores import score_task
from mqan_baselines.splits import mini_batches, read_splits
from mqan_baselines.tasks import BaselineTask, baseline_task
from mqan_training.batch import moved, prepare_device, sorted_batches
from mqan_training.model.bert import Bert, BertConfig
from mqan_training.optim import refuse_divergence
from mqan_training.runlog import console
from mqan_training.schedule import rate_share

_EVALUATED_TOGETHER: Final = 64  # sequences
_LOG_EVERY: Final = 50  # steps


@dataclass(frozen=True, slots=True)
class Item:
    """A row as sequences: one; or for a ranking the candidates with their question, the right one first."""

    sequences: tuple[Packed, ...]
    gold: float

    @property
    def length(self) -> int:
        return max(len(one.pieces) for one in self.sequences)


def pack_rows(task: BaselineTask, rows: Sequence[Row], packer: Packer) -> list[Item]:
    if task.form == "ranking":
        return [Item(tuple(packer.pack(row.texts[0], text) for text in row.texts[1:]), row.gold) for row in rows]
    return [Item((packer.pack(*row.texts),), row.gold) for row in rows]


def read_items(
    names: Sequence[str], recipe: MtDnnRecipe, data: Path, packer: Packer, others: Sequence[str] = ()
) -> tuple[dict[str, list[Item]], dict[str, list[Item]]]:
    """Read what tasks are trained on, and what they report on; arguments are those of ``read_splits``."""
    rows = read_splits(names, data, {"train": ("train", "tune")}, recipe.most_rows, recipe.seed, others)
    training, tests = (
        {name: pack_rows(baseline_task(name), of[split], packer) for name, of in rows.items()}
        for split in ("train", "test")
    )
    return training, tests


def batch_loss(
    network: MtDnn, task: BaselineTask, items: Sequence[Item], recipe: MtDnnRecipe, generator: random.Random
) -> Tensor:
    """Return the loss of a mini-batch, by the objective of its task (equations 6 to 8).

    Of a ranking's wrong candidates ``recipe.candidates - 1`` are drawn anew each time.
    """
    if task.form == "ranking":
        groups = [_draw_candidates(item.sequences, recipe.candidates, generator) for item in items]
        relevances_N = network(task.name, stack([one for group in groups for one in group]).to(network.device))
        return ranking_loss(relevances_N, [len(group) for group in groups])
    output = network(task.name, stack([item.sequences[0] for item in items]).to(network.device))
    gold_N = moved(torch.tensor([item.gold for item in items]), network.device)
    if task.form == "similarity":
        return functional.mse_loss(output, gold_N)  # (7)
    return functional.cross_entropy(output, gold_N.long())  # (6); logarithms of probabilities are logits, too


def train_tasks(
    network: MtDnn, of_task: Mapping[str, Sequence[Item]], recipe: MtDnnRecipe, epochs: int, folder: Path
) -> None:
    """Train in place by algorithm 1, on the device that the network is on; ``folder`` gets the log."""
    begin_log(folder)
    generator = random.Random(recipe.seed)  # noqa: S311
    torch.manual_seed(recipe.seed)
    lengths = {name: [item.length for item in items] for name, items in of_task.items()}
    num_steps = epochs * sum(-(-len(items) // recipe.batch) for items in of_task.values())
    optimizer = torch.optim.Adamax(network.parameters(), lr=recipe.rate)
    num_warmup = round(recipe.warmup * num_steps)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: rate_share(step + 1, num_steps, num_warmup, max(num_steps - num_warmup, 1))
    )
    network.train()
    begun, step = time.perf_counter(), 0
    for epoch in range(1, epochs + 1):
        for name, places in epoch_batches(lengths, recipe.batch, generator):
            items = of_task[name]
            loss = batch_loss(network, baseline_task(name), [items[i] for i in places], recipe, generator)
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(network.parameters(), recipe.clip)
            optimizer.step()
            schedule.step()
            step += 1
            is_logged = step % _LOG_EVERY == 0 or step == num_steps
            if is_logged or network.device.type == "cpu":
                values = {f"the loss of {name}": loss.detach(), f"the gradient of {name}": norm}
                refuse_divergence(step, values, "lower rate")  # waits for the device
            if is_logged:
                seconds = time.perf_counter() - begun
                append_log(
                    folder, {"step": step, "epoch": epoch, "task": name, "loss": loss.item(), "seconds": seconds}
                )
                console.print(f"step {step} of {num_steps}, {seconds:.0f} s: {name} loss {loss.item():.3f}")
    network.eval()


def epoch_batches(
    lengths: Mapping[str, Sequence[int]], size: int, generator: random.Random
) -> list[tuple[str, list[int]]]:
    """Return the mini-batches of all tasks, merged and shuffled (algorithm 1, lines 1 and 2): each row once."""
    merged = [(name, places) for name, of in lengths.items() for places in mini_batches(of, size, generator)]
    generator.shuffle(merged)
    return merged


@torch.no_grad()
def evaluate(network: MtDnn, task: BaselineTask, items: Sequence[Item]) -> dict[str, float]:
    """Return the scores of a task, from 0 (correlations: -100) to 100, the one that counts first."""
    network.eval()
    flat = [one for item in items for one in item.sequences]
    outputs: list[list[float]] = [[] for _ in flat]
    for places in sorted_batches([len(one.pieces) for one in flat], _EVALUATED_TOGETHER):
        output = network(task.name, stack([flat[i] for i in places]).to(network.device))
        of_class = output.softmax(dim=-1) if output.dim() == 2 else output.unsqueeze(-1)
        for place, found in zip(places, of_class.tolist(), strict=True):
            outputs[place] = found
    of_sequences = iter(outputs)
    of_rows = [[next(of_sequences) for _ in item.sequences] for item in items]
    return score_task(task, [item.gold for item in items], of_rows)


def run(recipe: MtDnnRecipe, data: Path, folder: Path) -> dict[str, Any]:
    """Train a recipe; return its results, or those that are there from an earlier run.

    With ``joint``, all tasks are trained together, and with ``fine_tune_epochs`` a copy of the network goes on with
    each task alone; test rows of the tasks to adapt to are left out. Without it each task is trained alone from the
    pretrained encoder (ST-DNN). Written: the joint model in ``joint``, others in folders of their tasks' names.

    Returns:
        ``tasks``: the scores of each task and ``num_test``; ``joint``: those before fine-tuning; ``seconds``.
    """
    others = recipe.adaptation.tasks if recipe.joint and recipe.adaptation else ()
    settings = {**recipe.model_dump(mode="json", exclude={"adaptation"}), "left_out_for": others}
    if (results := read_results(folder, settings)) is not None:
        return results
    begun = time.perf_counter()
    device = prepare_device()
    packer = checked_packer(recipe)
    tasks = {name: baseline_task(name) for name in recipe.tasks}
    training, tests = read_items(recipe.tasks, recipe, data, packer, others)
    results = {"tasks": {}, "seconds": 0.0}
    joint: dict[str, Tensor] = {}
    if recipe.joint:
        network = pretrained_network(recipe).to(device)
        train_tasks(network, training, recipe, recipe.epochs, folder / "joint")
        _save(folder / "joint", recipe, network, recipe.tasks)
        joint = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        results["joint"] = {name: _report(network, tasks[name], tests[name], "joint") for name in tasks}
        if not recipe.fine_tune_epochs:
            results["tasks"] = results["joint"]
    if not recipe.joint or recipe.fine_tune_epochs:
        for name, task in tasks.items():
            if recipe.joint:
                network.load_state_dict(joint)
            else:
                network = pretrained_network(recipe, (name,)).to(device)
            epochs = recipe.fine_tune_epochs if recipe.joint else recipe.epochs
            train_tasks(network, {name: training[name]}, recipe, epochs, folder / name)
            _save(folder / name, recipe, network, recipe.tasks if recipe.joint else (name,))
            results["tasks"][name] = _report(network, task, tests[name], "alone" if not recipe.joint else "fine-tuned")
    results["seconds"] = round(time.perf_counter() - begun, 1)
    write_results(folder, settings, results)
    return results


def load_network(folder: Path) -> tuple[MtDnn, MtDnnRecipe]:
    with opened_model(folder, MtDnnRecipe) as (document, weights, recipe):
        encoder = Bert(BertConfig.model_validate(document["encoder"]), recipe.dropout)
        network = MtDnn(recipe, encoder, tuple(document["tasks"]))
        network.load_state_dict(weights)
    return network.eval(), recipe


def _report(network: MtDnn, task: BaselineTask, items: Sequence[Item], how: str) -> dict[str, float]:
    scores = evaluate(network, task, items)
    told = ", ".join(f"{name} {value:.1f}" for name, value in scores.items())
    console.print(f"{task.name}, {how}: {told} on {len(items)} test rows")
    return {**scores, "num_test": len(items)}


def _save(folder: Path, recipe: MtDnnRecipe, network: MtDnn, tasks: Sequence[str]) -> None:
    document = {
        "tasks": {task: list(baseline_task(task).labels) for task in tasks},
        "recipe": recipe.model_dump(mode="json"),
        "encoder": network.encoder.config.model_dump(mode="json"),
    }
    save_model(folder, document, network.state_dict())


def _draw_candidates(candidates: Sequence[Packed], most: int, generator: random.Random) -> list[Packed]:
    right, *others = candidates
    return [right, *generator.sample(others, min(most - 1, len(others)))]
