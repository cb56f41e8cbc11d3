"""Joint training by drawing tasks, fine-tuning of each task, and the runs of one architecture (sections 4 and 5.3).

A step draws a task, each as likely as another, and takes one mini-batch of it: in expectation the gradient of equation
21 with equal weights. AdaGrad; the weights that were best on the tuning splits are kept.
"""

import os
import random
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional

from mqan_baselines.folders import append_log, begin_log, opened_model, read_results, save_model, write_results
from mqan_baselines.recipes import Architecture, SharedMemoryRecipe
from mqan_baselines.scores import refuse_not_finite, score
from mqan_baselines.shared_memory.architectures import SharedMemoryNetwork
from mqan_baselines.shared_memory.words import Lexicon, Numbered, make_lexicon, number, start_vectors
from mqan_baselines.splits import endless_batches, read_splits
from mqan_baselines.tasks import Split, baseline_task
from mqan_training.batch import sorted_batches
from mqan_training.optim import refuse_divergence
from mqan_training.runlog import console

_EVALUATED_TOGETHER: Final = 64
_LEFT_OUT: Final = {"left_out": "test splits of the tasks"}
"""A setting of every run, which those that learnt from such rows lack."""
_COMPILED_FROM: Final = 200  # steps: compiling takes as long as some 50 steps of the paper's sizes save

Splits = Mapping[str, Mapping[Split, Numbered]]  # of each task


class Texts:
    """All splits of a recipe's tasks as numbers (``of_task``), read once for all of its runs."""

    def __init__(self, recipe: SharedMemoryRecipe, data: Path) -> None:
        self._recipe = recipe
        splits: dict[Split, tuple[Split]] = {"train": ("train",), "tune": ("tune",)}
        self._rows = read_splits(recipe.tasks, data, splits, recipe.most_rows, recipe.seed)
        self.of_task: dict[str, dict[Split, Numbered]] = {}

    def lexicon(self, tasks: Sequence[str]) -> Lexicon:
        """Return the words of some tasks' training texts, and number their texts by it."""
        lexicon = make_lexicon((row for task in tasks for row in self._rows[task]["train"]), self._recipe.least_count)
        for task in tasks:
            numbered = {s: number(rows, lexicon, self._recipe.most_words) for s, rows in self._rows[task].items()}
            self.of_task[task] = numbered
        return lexicon


@torch.no_grad()
def accuracy(network: SharedMemoryNetwork, task: str, texts: Numbered) -> float:
    predicted = [0] * len(texts.classes)
    for places in sorted_batches(texts.lengths, _EVALUATED_TOGETHER):
        words_NT, lengths_N, _ = texts.batch(places)
        logits_NC = network(task, words_NT, lengths_N)
        refuse_not_finite(logits_NC.tolist())
        for place, found in zip(places, logits_NC.argmax(dim=-1).tolist(), strict=True):
            predicted[place] = found
    return score(("accuracy",), texts.classes, predicted)["accuracy"]


def train_tasks(
    network: SharedMemoryNetwork, of_task: Splits, recipe: SharedMemoryRecipe, steps: int, folder: Path
) -> float:
    """Train in place on one task or several; return the mean accuracy on the tuning splits.

    The network ends with the weights that were best there. Those that it begins with count, too: fine-tuning that does
    not help changes nothing. ``steps`` are those of all tasks together; ``folder`` gets the log.
    """
    begin_log(folder)
    generator = random.Random(recipe.seed)  # noqa: S311
    batches = {
        task: endless_batches(splits["train"].lengths, recipe.batch, generator) for task, splits in of_task.items()
    }
    optimizer = _adagrad(network, recipe)
    if steps >= _COMPILED_FROM:
        compile_steps(network)
    best, kept = _tuning(network, of_task, 0, folder), _copy(network)
    begun, losses = time.perf_counter(), dict.fromkeys(of_task, 0.0)
    for step in range(1, steps + 1):
        task = generator.choice(list(of_task))
        words_NT, lengths_N, classes_N = of_task[task]["train"].batch(next(batches[task]))
        loss = functional.cross_entropy(network(task, words_NT, lengths_N), classes_N)
        optimizer.zero_grad()
        loss.backward()
        with torch.sparse.check_sparse_tensor_invariants(False):  # AdaGrad's own of word vectors; unsaid, torch warns
            optimizer.step()
        losses[task] = loss.item()
        refuse_divergence(step, {f"the loss of {task}": losses[task]}, "lower rate")
        if step % recipe.tune_every == 0 or step == steps:
            mean = _tuning(network, of_task, step, folder)
            if mean > best:
                best, kept = mean, _copy(network)
            told = ", ".join(f"{task} {value:.3f}" for task, value in losses.items())
            seconds = time.perf_counter() - begun
            console.print(
                f"step {step} of {steps}, {seconds:.0f} s: last losses {told}; tuning {mean:.1f}, best {best:.1f}"
            )
    network.load_state_dict(kept)
    return best


def compile_steps(network: SharedMemoryNetwork) -> None:
    """Compile the reading of a word, where there is a C++ compiler: ARC-II takes a quarter of the time.

    With a compiler that does not work, torch says so and reads as it would without.
    """
    if shutil.which(os.environ.get("CXX", "g++")):
        torch._dynamo.reset()  # it compiles one function for eight networks at most, and reads on without
        torch._dynamo.config.suppress_errors = True
        for lstm in network.lstms.values():
            lstm.compile()


def run(recipe: SharedMemoryRecipe, architecture: Architecture, texts: Texts, folder: Path) -> dict[str, Any]:
    """Train one architecture on the recipe's tasks; return its results, or those that are there from an earlier run.

    ``lstm`` and ``me-lstm`` train each task alone, for its share of the joint steps and the steps of fine-tuning.
    ``arc-i`` and ``arc-ii`` train all jointly and then fine-tune a copy on each task. Written: the model of each task
    in a folder of its name, the joint one in ``joint``.

    Returns:
        ``tasks``: of each task ``tune`` and ``test`` accuracy, of ``arc-*`` also ``joint_test``, before fine-tuning,
        and ``num_test``; ``seconds``.
    """
    settings = {**recipe.model_dump(mode="json"), "architecture": architecture, **_LEFT_OUT}
    if (results := read_results(folder, settings)) is not None:
        return results
    begun = time.perf_counter()
    is_joint = architecture in ("arc-i", "arc-ii")
    tasks: dict[str, dict[str, float]] = {}
    if is_joint:
        network, lexicon = _start(recipe, architecture, texts, recipe.tasks)
        train_tasks(network, texts.of_task, recipe, recipe.steps, folder / "joint")
        _save(folder / "joint", network, lexicon, recipe.tasks)
        joint = _copy(network)
    for task in recipe.tasks:
        steps = recipe.fine_tune_steps
        if is_joint:
            network.load_state_dict(joint)
            tasks[task] = {"joint_test": accuracy(network, task, texts.of_task[task]["test"])}
        else:
            network, lexicon = _start(recipe, architecture, texts, (task,))
            tasks[task] = {}
            steps += recipe.steps // len(recipe.tasks)
        splits = texts.of_task[task]
        tasks[task]["tune"] = train_tasks(network, {task: splits}, recipe, steps, folder / task)
        tasks[task]["test"] = accuracy(network, task, splits["test"])
        tasks[task]["num_test"] = len(splits["test"].classes)
        _save(folder / task, network, lexicon, recipe.tasks if is_joint else (task,))
        console.print(f"{architecture} {task}: {tasks[task]['test']:.1f} % of {tasks[task]['num_test']} test texts")
    results = {"tasks": tasks, "seconds": round(time.perf_counter() - begun, 1)}
    write_results(folder, settings, results)
    return results


def load_network(folder: Path) -> tuple[SharedMemoryNetwork, Lexicon, dict[str, tuple[str, ...]], SharedMemoryRecipe]:
    with opened_model(folder, SharedMemoryRecipe) as (document, weights, recipe):
        lexicon = Lexicon(document["words"])
        labels = {task: tuple(names) for task, names in document["tasks"].items()}
        counts = {task: len(names) for task, names in labels.items()}
        network = SharedMemoryNetwork(recipe, document["architecture"], counts, len(lexicon))
        network.load_state_dict(weights)
    return network.eval(), lexicon, labels, recipe


def _start(
    recipe: SharedMemoryRecipe, architecture: Architecture, texts: Texts, tasks: Sequence[str]
) -> tuple[SharedMemoryNetwork, Lexicon]:
    lexicon = texts.lexicon(tasks)
    torch.manual_seed(recipe.seed)
    counts = {task: len(baseline_task(task).labels) for task in tasks}
    network = SharedMemoryNetwork(recipe, architecture, counts, len(lexicon))
    if recipe.vectors:
        num_known = start_vectors(network.words.weight, lexicon, Path(recipe.vectors))
        console.print(f"{num_known} of {len(lexicon.words)} words begin with a vector of {recipe.vectors}")
    return network, lexicon


def _save(folder: Path, network: SharedMemoryNetwork, lexicon: Lexicon, tasks: Sequence[str]) -> None:
    document = {
        "architecture": network.architecture,
        "tasks": {task: list(baseline_task(task).labels) for task in tasks},
        "recipe": network.recipe.model_dump(mode="json"),
        "words": list(lexicon.words),
    }
    save_model(folder, document, network.state_dict())


def _adagrad(network: SharedMemoryNetwork, recipe: SharedMemoryRecipe) -> torch.optim.Optimizer:
    """Return AdaGrad; word vectors have sparse gradients, and no L2 term, which would make them dense."""
    words = [network.words.weight]
    others = [p for name, p in network.named_parameters() if name != "words.weight"]
    groups = [{"params": words, "weight_decay": 0.0}, {"params": others, "weight_decay": recipe.l2}]
    return torch.optim.Adagrad(groups, lr=recipe.rate)


def _tuning(network: SharedMemoryNetwork, of_task: Splits, step: int, folder: Path) -> float:
    found = {task: accuracy(network, task, splits["tune"]) for task, splits in of_task.items()}
    append_log(folder, {"step": step, "tune": found})
    return sum(found.values()) / len(found)


def _copy(network: SharedMemoryNetwork) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}
