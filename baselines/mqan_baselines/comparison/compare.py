"""Question answering beside its baselines: trains what is missing, asks all of them the same, in torch.

What is written below a folder, each part once, so that an interrupted run goes on:

arc-ii/, mt-dnn/           the baselines, as ``mqan_baselines train`` writes them
few/ROWS/arc-ii/, mt-dnn/  the same of one task, from few rows
comparison.json, .md       what was measured, and its tables
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mqan_baselines.comparison.recipe import ComparisonRecipe
from mqan_baselines.comparison.report import report
from mqan_baselines.comparison.systems import (
    System,
    describe,
    measure_all,
    mt_dnn_system,
    question_answering_system,
    questions_of,
    shared_memory_system,
)
from mqan_baselines.folders import write_json
from mqan_baselines.formats import Row
from mqan_baselines.mt_dnn.learning import run as run_mt_dnn
from mqan_baselines.recipes import MtDnnRecipe, SharedMemoryRecipe
from mqan_baselines.shared_memory.learning import Texts
from mqan_baselines.shared_memory.learning import run as run_shared_memory
from mqan_baselines.shared_memory.words import make_vectors
from mqan_baselines.splits import draw
from mqan_baselines.tasks import Wording, baseline_task, wording_of

ASKED: Final = "mqan"
_JOINT: Final = "joint"

Recipes = tuple[SharedMemoryRecipe | None, MtDnnRecipe]


def compare(recipe: ComparisonRecipe, data: Path, folder: Path, checkpoint: Path, *, limit: int, price: float) -> str:
    """Train, ask and measure; write ``comparison.json`` and ``comparison.md``, and return the tables.

    At most ``limit`` test rows of a task are asked; ``price`` is that of a core for an hour.
    """
    recipes = recipe.memory_recipe(folder), recipe.mt_dnn_recipe()
    asked = {ASKED: question_answering_system(checkpoint)}  # first: damage is told before a night of training
    systems = _trained(recipes, data, folder) | asked
    rows = {task: draw(baseline_task(task).rows(data, "test"), limit, recipe.seed) for task in recipe.tasks}
    document = measure_systems(recipe, systems, rows)
    document |= {"price": price, "limit": limit, "settings": recipe.model_dump(mode="json", exclude={"folder"})}
    document["few_shot"] = _measure_few(recipe, recipes, asked, rows[recipe.few_shot.task], data, folder)
    write_json(folder / "comparison.json", document)  # first: what took a night is kept, whatever its tables lack
    text = report(document)
    (folder / "comparison.md").write_text(text, encoding="utf-8")
    return text


def measure_systems(
    recipe: ComparisonRecipe, systems: Mapping[str, System], rows: Mapping[str, list[Row]]
) -> dict[str, Any]:
    """Ask all systems about the same rows of each task, in its own words and with renamed classes.

    Returned are ``systems``: what they are; ``tasks`` and ``renamed``: of each task what was asked and what each system
    is worth; ``not_trained_on``: tasks that are new to the question-answering system.
    """
    described = {
        name: {
            "model": system.model,
            "bytes": sum(tensor.nbytes for tensor in system.network.state_dict().values()),
            "training": system.training,
            "seconds": system.seconds,
        }
        for name, system in systems.items()
    }
    known = systems[ASKED].sources
    tasks, renamed = {}, {}
    for task in recipe.tasks:
        wording = wording_of(task)
        tasks[task] = _measure(systems, task, rows[task], wording, baseline_task(task).labels)
        if task in recipe.renamed:
            other = recipe.wording_of_renamed(task, wording)
            renamed[task] = _measure(systems, None, rows[task], other, recipe.renamed[task].labels)
    new = [task for task in recipe.tasks if recipe.trained_as.get(task, task) not in known]
    return {"systems": described, "not_trained_on": new, "tasks": tasks, "renamed": renamed}


def _measure(
    systems: Mapping[str, System], task: str | None, rows: list[Row], wording: Wording, labels: tuple[str, ...]
) -> dict[str, Any]:
    questions = questions_of(task, rows, wording, labels)
    asked = {"question": wording.question, "labels": list(labels)}
    return {**asked, **describe(questions), "systems": measure_all(systems, questions)}


def _measure_few(
    recipe: ComparisonRecipe, full: Recipes, asked: Mapping[str, System], rows: list[Row], data: Path, folder: Path
) -> dict[str, Any]:
    task = recipe.few_shot.task
    found: dict[str, Any] = {}
    for number in recipe.few_shot.rows:
        trained = _trained(few_recipes(recipe, full, number), data, folder / "few" / str(number))
        measured = _measure({**trained, **asked}, task, rows, wording_of(task), baseline_task(task).labels)
        found[str(number)] = measured["systems"]
    return {"task": task, "questions": len(rows), "rows": found}


def few_recipes(recipe: ComparisonRecipe, full: Recipes, number: int) -> Recipes:
    """Return the baselines' recipes for so many rows of one task: the same number of steps, whatever the rows."""
    few, (memory, mt_dnn) = recipe.few_shot, full
    one = {"tasks": (few.task,), "most_rows": number}
    epochs = -(-few.steps // -(-number // mt_dnn.batch))
    if memory is not None:
        is_read = baseline_task(few.task).form == "sentence"
        changes = {**one, "steps": few.steps, "fine_tune_steps": 0, "least_count": 1}
        memory = memory.model_copy(update=changes) if is_read else None
    return memory, mt_dnn.model_copy(update={**one, "epochs": epochs, "fine_tune_epochs": 0})


def _trained(recipes: Recipes, data: Path, folder: Path) -> dict[str, System]:
    memory, mt_dnn = recipes
    found = {}
    if memory is not None:
        if memory.vectors and not Path(memory.vectors).is_file():
            make_vectors(memory, data)
        place = folder / memory.architecture
        results = run_shared_memory(memory, memory.architecture, Texts(memory, data), place)
        learnt = {"steps": memory.steps, "most rows of a task": memory.most_rows or "all"}
        found["ARC-II"] = replace(shared_memory_system(place / _JOINT), training=learnt, seconds=results["seconds"])
    place = folder / "mt-dnn"
    results = run_mt_dnn(mt_dnn, data, place)
    learnt = {"epochs": mt_dnn.epochs, "most rows of a task": mt_dnn.most_rows or "all"}
    found["MT-DNN"] = replace(mt_dnn_system(place / _JOINT), training=learnt, seconds=results["seconds"])
    return found
