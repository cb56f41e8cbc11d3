"""The recipe of the comparison: the tasks, how each baseline is trained on them, and other words for the classes."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, PositiveInt, field_validator, model_validator

from mqan_baselines.recipes import MtDnnRecipe, RecipeT, Settings, SharedMemoryRecipe, parse_recipe
from mqan_baselines.tasks import Wording, baseline_task
from mqan_data.settings import read_settings, validated


class SystemSettings(Settings):
    """How a baseline is trained: a recipe of its kind, in the same folder, and what is changed in it."""

    recipe: Path
    changes: dict[str, Any] = {}


class Renamed(Settings):
    """A task with other words for its classes, in the order of its own, and so another question."""

    question: str
    labels: tuple[str, ...]


class FewShot(Settings):
    """The baselines, each learning one task from so many rows in so many mini-batches."""

    task: str
    rows: tuple[PositiveInt, ...] = Field(min_length=1)
    steps: PositiveInt


class ComparisonRecipe(Settings):
    """What is compared."""

    name: str
    tasks: tuple[str, ...] = Field(min_length=1)  # sentences and pairs, that the baselines are trained on together
    renamed: dict[str, Renamed] = {}  # by task; tasks that are not compared may be among them, and below
    trained_as: dict[str, str] = {}  # what the question-answering system calls a task, where it has another name
    shared_memory: SystemSettings
    mt_dnn: SystemSettings
    few_shot: FewShot
    seed: int = 1  # of training, and of the rows that are asked about
    folder: Path  # of the recipe's file

    @field_validator("tasks")
    @classmethod
    def _have_classes(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [name for name in names if baseline_task(name).form not in ("sentence", "pair")]:
            raise ValueError(f"{', '.join(wrong)}: only tasks with classes are compared")
        if len(set(names)) != len(names):
            raise ValueError("a task is named twice")
        return names

    @model_validator(mode="after")
    def _fit(self) -> "ComparisonRecipe":
        if self.few_shot.task not in self.tasks:
            raise ValueError(f"few_shot.task: {self.few_shot.task!r} is none of the tasks")
        _refuse_unknown("renamed", self.renamed)
        _refuse_unknown("trained_as", self.trained_as)
        for name, renamed in self.renamed.items():
            number = len(baseline_task(name).labels)
            if not len(set(renamed.labels)) == len(renamed.labels) == number:
                raise ValueError(f"renamed.{name}: needs {number} different labels")
        return self

    def memory_recipe(self, folder: Path) -> SharedMemoryRecipe | None:
        """Return the recipe of shared-memory LSTMs; None if no task is about single texts, which are all they read.

        Word vectors, if it has any, go into the folder of the run.
        """
        tasks = [task for task in self.tasks if baseline_task(task).form == "sentence"]
        if not tasks:
            return None
        recipe = self._recipe("shared_memory", SharedMemoryRecipe, tasks)
        return recipe.model_copy(update={"vectors": str(folder / "vectors.safetensors")}) if recipe.vectors else recipe

    def mt_dnn_recipe(self) -> MtDnnRecipe:
        return self._recipe("mt_dnn", MtDnnRecipe, self.tasks).model_copy(update={"adaptation": None})

    def wording_of_renamed(self, task: str, own: Wording) -> Wording:
        """Return how a task is asked with its classes renamed: the context stays as it is."""
        return Wording(self.renamed[task].question, own.context)

    def _recipe(self, key: str, recipe_type: type[RecipeT], tasks: Sequence[str]) -> RecipeT:
        system: SystemSettings = getattr(self, key)
        fixed = {"name": f"{self.name}-{key.replace('_', '-')}", "tasks": list(tasks), "seed": self.seed}
        recipe = parse_recipe({**read_settings(self.folder / system.recipe), **system.changes, **fixed}, key)
        if not isinstance(recipe, recipe_type):
            raise ValueError(f"{key}.recipe: {system.recipe} is of the kind {recipe.kind!r}")
        return recipe


def _refuse_unknown(key: str, names: Iterable[str]) -> None:
    for name in names:
        try:
            baseline_task(name)
        except ValueError as error:
            raise ValueError(f"{key}.{name}: {error}") from error


def load_comparison(path: Path, overrides: Mapping[str, str] | None = None) -> ComparisonRecipe:
    """Read a recipe, with overrides such as ``{"mt_dnn.changes.epochs": "1"}``, whose values are YAML."""
    document = {**read_settings(path, overrides), "folder": path.parent}
    return validated(ComparisonRecipe.model_validate, document, str(path), "recipe")
