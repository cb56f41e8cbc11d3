"""The question-answering system beside its baselines: trains what is missing, asks all of them the same, in torch.

What is written below a folder, each part once, so that an interrupted run goes on:

arc-ii/, mt-dnn/           the baselines, as ``mqan_baselines train`` writes them
few/ROWS/arc-ii/, mt-dnn/  the same of one task, from few rows
comparison.json, .md       what was measured, and its tables
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from mqan_baselines.batches import draw
from mqan_baselines.comparison.measures import describe, measure_all, questions_of
from mqan_baselines.comparison.recipe import ComparisonRecipe
from mqan_baselines.comparison.report import report
from mqan_baselines.comparison.systems import (
    System,
    mt_dnn_system,
    question_answering_system,
    shared_memory_system,
)
from mqan_baselines.folders import write_json
from mqan_baselines.formats import Row
from mqan_baselines.mt_dnn.learning import run as run_mt_dnn
from mqan_baselines.recipes import MtDnnRecipe, SharedMemoryRecipe
from mqan_baselines.shared_memory.learning import Texts
from mqan_baselines.shared_memory.learning import run as run_shared_memory
from mqan_baselines.shared_memory.words import make_vectors
from mqan_baselines.tasks import baseline_task
from mqan_baselines.wordings import Wording, wording_of

MEMORY: Final = "ARC-II"
MT_DNN: Final = "MT-DNN"
ASKED: Final = "mqan"
_JOINT: Final = "joint"


@dataclass(frozen=True, slots=True)
class Baseline:
    """A trained baseline.

    Attributes:
        system: what is asked.
        training: what it learnt from, for readers.
        seconds: that its training took.
    """

    system: System
    training: dict[str, Any]
    seconds: float


def compare(recipe: ComparisonRecipe, data: Path, folder: Path, checkpoint: Path, *, limit: int, price: float) -> str:
    """Train, ask and measure; write ``comparison.json`` and ``comparison.md``.

    Args:
        recipe: what is compared.
        data: folder of the datasets.
        folder: of the run.
        checkpoint: folder of that of the question-answering system.
        limit: most test rows of a task.
        price: of a core for an hour.

    Returns:
        The tables, in Markdown.

    Raises:
        ValueError: a setting is wrong, or the folder has a run with other settings.
        MissingFileError, DatasetError: a data set is not there, or malformed.
        CheckpointError: the question-answering system is missing or damaged.
    """
    memory, mt_dnn = recipe.memory_recipe(folder), recipe.mt_dnn_recipe()
    asked = question_answering_system(checkpoint)  # first: what is damaged is told before a night of training
    baselines = _baselines(memory, mt_dnn, data, folder)
    rows = {task: draw(baseline_task(task).rows(data, "test"), limit, recipe.seed) for task in recipe.tasks}
    document = measure_systems(recipe, baselines, asked, rows)
    document |= {"price": price, "limit": limit, "settings": recipe.model_dump(mode="json", exclude={"folder"})}
    document["few_shot"] = _measure_few(recipe, (memory, mt_dnn), asked, rows, data, folder)
    write_json(folder / "comparison.json", document)  # first: what took a night is kept, whatever its tables lack
    text = report(document)
    (folder / "comparison.md").write_text(text, encoding="utf-8")
    return text


def measure_systems(
    recipe: ComparisonRecipe, baselines: Mapping[str, Baseline], asked: System, rows: Mapping[str, list[Row]]
) -> dict[str, Any]:
    """Ask all systems about the same rows, in the tasks' own words and with renamed classes.

    Args:
        recipe: what is compared.
        baselines: by name.
        asked: the question-answering system.
        rows: test rows, by task.

    Returns:
        ``systems``: what they are; ``tasks`` and ``renamed``: of each task what was asked and what each system is
        worth; ``not_trained_on``: tasks that are new to the question-answering system.
    """
    systems = _systems(baselines, asked)
    described = {name: _describe_system(system, baselines.get(name)) for name, system in systems.items()}
    new = [task for task in recipe.tasks if recipe.trained_as.get(task, task) not in asked.sources]
    tasks, renamed = {}, {}
    for task in recipe.tasks:
        wording = wording_of(task)
        tasks[task] = _measure(systems, task, rows[task], wording, baseline_task(task).labels)
        if task in recipe.renamed:
            other, labels = recipe.wording_of_renamed(task, wording), recipe.renamed[task].labels
            renamed[task] = _measure(systems, task, rows[task], other, labels, is_renamed=True)
    return {"systems": described, "not_trained_on": new, "tasks": tasks, "renamed": renamed}


def _measure(
    systems: Mapping[str, System],
    task: str,
    rows: list[Row],
    wording: Wording,
    labels: tuple[str, ...],
    *,
    is_renamed: bool = False,
) -> dict[str, Any]:
    questions = questions_of(task, rows, wording, labels)
    if is_renamed:
        questions = [replace(question, task=None) for question in questions]
    asked = {"question": wording.question, "labels": list(labels)}
    return {**asked, **describe(questions), "systems": measure_all(systems, questions)}


def _systems(baselines: Mapping[str, Baseline], asked: System) -> dict[str, System]:
    return {**{name: baseline.system for name, baseline in baselines.items()}, ASKED: asked}


def _describe_system(system: System, baseline: Baseline | None) -> dict[str, Any]:
    return {
        "model": system.model,
        "bytes": system.num_bytes,
        "training": baseline.training if baseline else {},
        "seconds": baseline.seconds if baseline else 0.0,
    }


def _measure_few(
    recipe: ComparisonRecipe,
    full: tuple[SharedMemoryRecipe | None, MtDnnRecipe],
    asked: System,
    rows: Mapping[str, list[Row]],
    data: Path,
    folder: Path,
) -> dict[str, Any]:
    """Train the baselines on few rows of one task, and ask all systems about its test rows."""
    few = recipe.few_shot
    wording = wording_of(few.task)
    found: dict[str, Any] = {}
    for number in few.rows:
        memory, mt_dnn = few_recipes(recipe, full, number)
        baselines = _baselines(memory, mt_dnn, data, folder / "few" / str(number))
        systems = _systems(baselines, asked)
        measured = _measure(systems, few.task, rows[few.task], wording, baseline_task(few.task).labels)
        found[str(number)] = measured["systems"]
    return {"task": few.task, "questions": len(rows[few.task]), "rows": found}


def few_recipes(
    recipe: ComparisonRecipe, full: tuple[SharedMemoryRecipe | None, MtDnnRecipe], number: int
) -> tuple[SharedMemoryRecipe | None, MtDnnRecipe]:
    """Return the baselines' recipes for so many rows of one task: the same number of steps, whatever the rows."""
    few, (memory, mt_dnn) = recipe.few_shot, full
    one = {"tasks": (few.task,), "most_rows": number}
    epochs = -(-few.steps // -(-number // mt_dnn.batch))
    if memory is not None:
        is_read = baseline_task(few.task).form == "sentence"
        changes = {**one, "steps": few.steps, "fine_tune_steps": 0, "least_count": 1}
        memory = memory.model_copy(update=changes) if is_read else None
    return memory, mt_dnn.model_copy(update={**one, "epochs": epochs, "fine_tune_epochs": 0})


def _baselines(memory: SharedMemoryRecipe | None, mt_dnn: MtDnnRecipe, data: Path, folder: Path) -> dict[str, Baseline]:
    """Train what is not there yet."""
    found = {}
    if memory is not None:
        if memory.vectors and not Path(memory.vectors).is_file():
            make_vectors(memory, data)
        place = folder / memory.architecture
        results = run_shared_memory(memory, memory.architecture, Texts(memory, data), place)
        learnt = {"steps": memory.steps, "most rows of a task": memory.most_rows or "all"}
        found[MEMORY] = Baseline(shared_memory_system(place / _JOINT), learnt, results["seconds"])
    place = folder / "mt-dnn"
    results = run_mt_dnn(mt_dnn, data, place)
    learnt = {"epochs": mt_dnn.epochs, "most rows of a task": mt_dnn.most_rows or "all"}
    found[MT_DNN] = Baseline(mt_dnn_system(place / _JOINT), learnt, results["seconds"])
    return found
