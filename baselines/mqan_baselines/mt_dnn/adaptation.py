"""Domain adaptation (section 4.5, figure 2): new tasks, learnt from shares of their rows, by MT-DNN and by BERT.

Both begin with an encoder, MT-DNN's after its joint training and the pretrained one, and with an output layer that is
new. The rows of a small share are among those of a larger one.
"""

import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import matplotlib
from matplotlib.figure import Figure

from mqan_baselines.figures import SETTINGS, draw_line, finish_panel, save_figure
from mqan_baselines.folders import read_results, weights_sha256, write_results
from mqan_baselines.mt_dnn.learning import Item, evaluate, load_network, read_items, train_tasks
from mqan_baselines.mt_dnn.network import pretrained_network
from mqan_baselines.mt_dnn.packing import checked_packer
from mqan_baselines.recipes import Adaptation, MtDnnRecipe
from mqan_baselines.scores import markdown_table
from mqan_baselines.tasks import baseline_task
from mqan_training.batch import prepare_device
from mqan_training.runlog import console

JOINT: Final = "mt-dnn/joint"  # below a run's folder: the model that `mqan_baselines train` left
_MODELS: Final = ("MT-DNN", "BERT")

Items = Sequence[Item]
Point = tuple[int, float]  # how many rows were learnt from, and the accuracy


def adapt(recipe: MtDnnRecipe, data: Path, folder: Path) -> str:
    """Adapt both encoders to each task from each share; draw figure 2; return its numbers as Markdown.

    Written: ``adaptation/`` below the folder, with a folder a point; one that has ended is not computed again.
    """
    if recipe.adaptation is None:
        raise ValueError("the recipe has no `adaptation`: give it tasks, for example {tasks: [snli, sick]}")
    joint, _ = load_network(folder / JOINT)  # before any point is computed
    if both := set(recipe.adaptation.tasks) & set(joint.heads):
        raise ValueError(f"{', '.join(sorted(both))}: joint training has seen this task; adapt to others")
    packer = checked_packer(recipe)
    curves: dict[str, dict[str, list[Point]]] = {}
    of_task, tests = read_items(recipe.adaptation.tasks, recipe, data, packer)
    for name, training in of_task.items():
        random.Random(recipe.seed).shuffle(training)  # noqa: S311
        curves[name] = {}
        for model in _MODELS:
            points = [
                _point(recipe, recipe.adaptation, folder, model, name, training[:number], tests[name])
                for number in sorted({max(round(share * len(training)), 1) for share in recipe.adaptation.shares})
            ]
            curves[name][model] = points
    text = _as_text(curves)
    (folder / "adaptation" / "figure-2.md").write_text(text, encoding="utf-8")
    draw_adaptation(curves, folder / "adaptation" / "figure-2.svg")
    return text


def _point(
    recipe: MtDnnRecipe, adaptation: Adaptation, folder: Path, model: str, task: str, training: Items, test: Items
) -> Point:
    place = folder / "adaptation" / f"{task}-{model.lower()}-{len(training)}"
    settings = recipe.model_dump(mode="json", exclude={"adaptation": {"shares"}})
    if model == "MT-DNN":
        settings["joint_model"] = weights_sha256(folder / JOINT)
    found = read_results(place, settings)
    if found is None:
        network = pretrained_network(recipe, (task,)).to(prepare_device())
        if model == "MT-DNN":
            joint, _ = load_network(folder / JOINT)
            network.encoder.load_state_dict(joint.encoder.state_dict())
        num_batches = math.ceil(len(training) / recipe.batch)
        epochs = max(adaptation.epochs, math.ceil(adaptation.least_steps / num_batches))
        train_tasks(network, {task: training}, recipe, epochs, place)
        found = {"rows": len(training), **evaluate(network, baseline_task(task), test)}
        write_results(place, settings, found)
    console.print(f"{task}, {model}, {found['rows']} rows: accuracy {found['accuracy']:.1f} of {len(test)}")
    return found["rows"], found["accuracy"]


def draw_adaptation(curves: Mapping[str, Mapping[str, Sequence[Point]]], path: Path) -> None:
    """Draw figure 2: a panel a task, a line a model, the accuracy against the rows learnt from."""
    with matplotlib.rc_context(SETTINGS):
        figure = Figure((4.6 * len(curves), 3.4), layout="constrained")
        for place, (task, of_model) in enumerate(curves.items(), 1):
            axes = figure.add_subplot(1, len(curves), place)
            for number, (model, points) in enumerate(of_model.items()):
                rows, accuracies = zip(*points, strict=True)
                draw_line(axes, number, rows, accuracies, model, f"curve-{task}-{model}")
            axes.set_xscale("log")
            ticks = sorted({rows for points in of_model.values() for rows, _ in points})
            axes.set_xticks(ticks, [f"{rows:,}" for rows in ticks])
            axes.minorticks_off()
            axes.set_title(task, fontsize=10)
            axes.set_xlabel("training rows")
            axes.set_ylabel("accuracy (%)")
            finish_panel(axes)
        save_figure(figure, path)


def _as_text(curves: Mapping[str, Mapping[str, Sequence[Point]]]) -> str:
    lines = [
        (task, str(rows), f"{bert:.1f}", f"{mt_dnn:.1f}")
        for task, of_model in curves.items()
        for (rows, bert), (_, mt_dnn) in zip(of_model["BERT"], of_model["MT-DNN"], strict=True)
    ]
    return markdown_table(("task", "rows", "BERT", "MT-DNN"), lines)
