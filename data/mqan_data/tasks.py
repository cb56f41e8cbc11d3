"""The tasks of dataset files by name: decaNLP's ten and others of their kind, and any folder of JSON lines."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Final

from mqan_core.example import Example
from mqan_data.files import MissingFileError
from mqan_data.formats.dataset_file import Download, TaskPart, dataset_names, load_dataset
from mqan_data.formats.reading import read_examples
from mqan_data.formats.records import read_json_value

ALL: Final = "all"  # in a list of names: every task of a dataset file
FOLDER_OF_JSON_LINES: Final = "jsonl:"  # with the folder after it the name of a task
_METRICS_OF_JSON_LINES: Final = ("em", "nf1", "bleu", "avg_rouge", "corpus_f1")  # they need the answers alone
_JSON_LINES: Final = {"train": ("train.jsonl",), "validation": ("val.jsonl",), "test": ("test.jsonl",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(TaskPart):
    """One dataset as a question-answering task, its folder below the data folder, and the files to download."""

    folder: str
    sources: tuple[Download, ...] = ()

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that the official files have; ``test`` is for a final score only."""
        return tuple(self.files)

    def read(self, folder: Path, split: str, dropped: Counter[str] | None = None) -> Iterator[Example]:
        """Yield the examples of a split; ``dropped`` counts the rows and fields that are left out, by reason."""
        if split not in self.splits:
            raise ValueError(f"{self.name} has no split {split!r}; it has {', '.join(self.splits)}.")
        try:
            yield from read_examples(folder, self, split, dropped)
        except MissingFileError as error:
            hint = f"Or download the official files with `mqan data get {self.name}`."
            if self.name.startswith(FOLDER_OF_JSON_LINES):
                hint = "Put ./ before a folder below the working directory, or give its absolute path."
            raise MissingFileError(f"{self.name}: {error} {hint}") from error
        finally:
            read_json_value.cache_clear()


@cache
def tasks() -> dict[str, Task]:
    found = {}
    for dataset in map(load_dataset, dataset_names()):
        for name, part in dataset.tasks.items():
            files = " ".join(spec for specs in part.files.values() for spec in specs)
            sources = tuple(source for source in dataset.downloads if source.path in files)
            settings = {field.name: getattr(part, field.name) for field in fields(part)}
            found[name] = Task(folder=dataset.folder, sources=sources, **settings)
    return found


def task_named(name: str) -> Task:
    """Return the task with a name; ``jsonl:FOLDER`` or ``jsonl:FOLDER:METRIC`` is a folder of JSON lines."""
    rest = name.removeprefix(FOLDER_OF_JSON_LINES)
    if rest not in ("", name):
        folder, _, metric = rest.partition(":")
        folder = str(Path(folder).absolute()) if folder.startswith("./") else folder  # else in the data folder
        if (metric := metric or "em") not in _METRICS_OF_JSON_LINES:
            known = ", ".join(_METRICS_OF_JSON_LINES)
            raise ValueError(f"A folder of JSON lines is scored by {known}; {metric!r} is none.")
        return Task(name=name, folder=folder, format="context_question_answer", files=_JSON_LINES, metric=metric)
    if name in tasks():
        return tasks()[name]
    near = get_close_matches(name, tasks(), n=3)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Known tasks: {', '.join(tasks())}."
    raise ValueError(f"There is no task {name!r}. {hint}")


def tasks_named(names: Iterable[str]) -> list[Task]:
    """Return the tasks with these names, each once, in the order given; ``ALL`` stands for all there are."""
    expanded = [task for name in names for task in (tasks() if name == ALL else (name,))]
    return [task_named(name) for name in dict.fromkeys(expanded)]
