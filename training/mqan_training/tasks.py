"""Where the examples of a recipe come from.

A recipe of the paper's network asks the tasks of decaNLP by their names, each example with the question of the paper;
every other name is that of a dataset, about whose rows questions are drawn.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from mqan_core.example import Example
from mqan_core.text.tokens import read_tokens
from mqan_data.derived import Source
from mqan_data.formats.dataset_file import load_dataset
from mqan_data.formats.reading import missing_files
from mqan_data.kept import KeptPools, data_key
from mqan_data.mixture import OWN, ExampleSets, dataset_of, is_made, load_sources, validation_examples
from mqan_data.tasks import FOLDER_OF_JSON_LINES, task_named, tasks
from mqan_training.recipe import Recipe, WordsConfig
from mqan_training.runlog import console

_KEPT = Path("runs/cache")


class TaskSource:
    """The training examples of a task; a context is cut where the task says so."""

    def __init__(self, data: Path, name: str, max_context_tokens: int) -> None:
        self._task = task_named(name)
        self._folder = data / self._task.folder
        self._most = min(self._task.max_context_tokens, max_context_tokens)

    @property
    def name(self) -> str:
        return self._task.name

    @cached_property
    def _examples(self) -> list[Example]:
        dropped: Counter[str] = Counter()
        found = list(self._task.read(self._folder, "train", dropped))
        left_out = ", ".join(f"{count} {reason}" for reason, count in dropped.items()) or "none"
        console.print(f"{self.name}: {len(found)} training examples, left out: {left_out}")
        if not found:
            raise ValueError(f"task {self.name}: there are no training examples in {self._folder}")
        return found

    def __len__(self) -> int:
        return len(self._examples)

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        example = self._examples[index]
        tokens = read_tokens(example.context) if self._most else []
        if len(tokens) <= self._most:
            return example
        context = example.context[: tokens[self._most - 1].end]
        return replace(example, context=context, answer_start=None, reference=None)


def is_task(recipe: Recipe, name: str) -> bool:
    return name.startswith(FOLDER_OF_JSON_LINES) or (isinstance(recipe.reader, WordsConfig) and name in tasks())


def metric_of(name: str) -> str:
    return task_named(name).metric if name in tasks() or name.startswith(FOLDER_OF_JSON_LINES) else "nf1"


def sources_of(recipe: Recipe, data: Path, own: Source | None = None) -> list[Source]:
    """Return the sources of a recipe, of which ``own`` is ``rows``; nothing is read before one is used."""
    most = recipe.reader.max_context_tokens if isinstance(recipe.reader, WordsConfig) else 1 << 30
    if (own is None) == (OWN in recipe.sources):
        raise ValueError(f"recipe {recipe.name}: a source {OWN} goes with --rows, and --rows with a source {OWN}")
    return [
        own
        if own is not None and name == OWN
        else TaskSource(data, name, most)
        if is_task(recipe, name)
        else load_sources(data, [name])[0]
        for name in recipe.sources
    ]


def without_missing(recipe: Recipe, data: Path) -> Recipe:
    """Return a recipe without the sources whose files are not all there, which are named.

    Raises:
        ValueError: there are none.
    """
    names = dict.fromkeys(name for name in (*recipe.sources, *recipe.validate_sources) if name != OWN)
    missing = {name for name in names if _is_missing(recipe, name, data)}
    if missing:
        console.print(f"left out, since files are missing: {', '.join(sorted(missing))}; see `mqan data get`")

    def kept(weights: Mapping[str, float]) -> dict[str, float]:
        return {name: weight for name, weight in weights.items() if name not in missing}

    if not any(kept(recipe.sources).values()):
        raise ValueError(f"{data} has the files of no source of {recipe.name}: get some with `mqan data get`")
    changed = {
        "sources": kept(recipe.sources),
        "validate_sources": tuple(name for name in recipe.validate_sources if name not in missing),
        "phases": tuple(phase.model_copy(update={"weights": kept(phase.weights)}) for phase in recipe.phases),
    }
    return recipe.model_copy(update=changed)


def _is_missing(recipe: Recipe, name: str, data: Path) -> bool:
    if is_task(recipe, name):
        task = task_named(name)
        return bool(missing_files(data / task.folder, task))
    if is_made(name):
        return False
    dataset = load_dataset(dataset_of(name.partition(".")[0]))
    return any(missing_files(dataset.folder_in(data), part) for part in dataset.parts.values())


def validation_of(recipe: Recipe, data: Path) -> Mapping[str, Sequence[Example]]:
    """Return the examples that a run is scored on, by source; a set is read when it is first looked at."""

    def read(name: str) -> Sequence[Example]:
        if not is_task(recipe, name):
            return validation_examples(data, name, recipe.validate_examples, recipe.seed)
        task = task_named(name)
        found = task.read(data / task.folder, "validation") if "validation" in task.splits else ()
        examples = [example for example in found if example.context.strip() and example.question.strip()]
        if task.metric != "joint_goal_em":  # that one needs whole dialogues, in order
            random.Random(recipe.seed).shuffle(examples)  # noqa: S311
        return examples[: recipe.validate_examples]

    return ExampleSets(recipe.validate_sources, read)


def kept_pools(recipe: Recipe, data: Path, begins_with: Sequence[str]) -> KeptPools | None:
    """Return where pools of a run are kept; None for tasks, whose files nobody compares."""
    if any(is_task(recipe, name) for name in recipe.sources):
        return None
    read = [dataset_of(name) for name in recipe.sources if not is_made(name)]
    return KeptPools(_KEPT, f"{data_key(data, read)} {recipe.model_dump_json()} {tuple(begins_with)}")
