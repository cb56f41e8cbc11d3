"""What a file of ``datasets/`` says: the dataset, its parts, and for each what is read and how it is asked.

``docs/datasets.md`` describes every key.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Discriminator

from mqan_data.settings import parse, read_yaml

DATASETS = Path(__file__).resolve().parent.parent / "datasets"
OWN_DATA = DATASETS.parents[1]  # of the datasets that come with the project; none beside an installed package
TASK = "task"  # name of the part that a mixed task is
Texts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """One label of a set: its name ("" for the key as words), and the ways to speak of it."""

    name: str = ""
    synonyms: Texts = ()
    description: str = ""
    questions: Texts = ()  # answered by yes where the label is right and by no where another one is
    negated: Texts = ()  # the same, the other way round


@dataclass(frozen=True, slots=True)
class Field:
    """One field that a text can fill; its names are singular, and "" stands for the key as words."""

    name: str = ""
    plural: str = ""
    synonyms: Texts = ()
    description: str = ""
    type: str = ""  # fields of one type are filled by the same kind of thing (two cities, two dates)
    questions: Texts = ()
    values: Texts = ()  # the closed set that it is filled from
    only_filled: bool = False  # never asked for where it is not filled: the files do not tell that well enough


@dataclass(frozen=True, slots=True)
class Form:
    """One way of laying out a row: a template for the text and wordings that go with it."""

    text: str
    questions: Texts = ()
    options: Texts = ()  # questions that name the choices
    yes_no: Texts = ()  # questions about one label or answer
    negated: Texts = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows of one shape; what all shapes have."""

    format: str
    files: Mapping[str, Texts]
    columns: Texts = ()
    each: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    keep: Mapping[str, Texts] = field(default_factory=dict)
    hold_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsPart(Part):
    shape: Literal["labels"] = "labels"
    kind: str
    kinds: str = ""
    label: str
    separator: str = ""
    groups: Mapping[str, Texts] = field(default_factory=dict)
    labels: Mapping[str, Label]
    forms: tuple[Form, ...]
    multiple: bool = False
    ordered: bool = False
    closed: bool = False
    free: bool = False
    generic: bool = True
    none: Texts = ()
    drop: Texts = ()
    distractors: Texts = ()
    round: bool = False
    refusals: float = 0.0

    def __post_init__(self) -> None:
        twice = sorted({*self.none, *self.drop} & set(self.labels))
        if twice or not self.forms or not all(form.questions for form in self.forms):
            raise ValueError(f"needs `forms` with `questions`; and {twice} cannot be labels as well")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldsPart(Part):
    """Texts with fields; the format gives each record ``text`` and ``mentions`` or ``values``, or a ``scheme`` too."""

    shape: Literal["fields"] = "fields"
    fields: Mapping[str, Field] = field(default_factory=dict)
    drop: Texts = ()
    keep_empty: float = 0.2
    typed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoicesPart(Part):
    shape: Literal["choices"] = "choices"
    choices: Texts
    descriptions: str = ""
    right: str = ""
    keys: Texts = ()
    forms: tuple[Form, ...]
    quoted: bool = False
    flags: str = ""
    refusals: float = 0.0

    def __post_init__(self) -> None:
        if bool(self.right) == bool(self.flags):
            raise ValueError("give either `right` or `flags`")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionsPart(Part):
    shape: Literal["questions"] = "questions"
    text: str
    question: str
    answers: str
    start: str = ""
    joined: bool = False
    refusals: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsPart(Part):
    """Yes/no questions on texts, or statements about them, that a text can also leave open."""

    shape: Literal["facts"] = "facts"
    text: str
    question: str = ""
    statement: str = ""
    label: str
    yes: Texts = ()
    no: Texts = ()
    unknown: Texts = ()
    drop: Texts = ()
    evidence: str = ""
    refusals: float = 0.0

    def __post_init__(self) -> None:
        meant = Counter((*self.yes, *self.no, *self.unknown, *self.drop))
        if bool(self.question) == bool(self.statement) or max(meant.values(), default=1) != 1:
            raise ValueError("give either `question` or `statement`, and each key of `label` one meaning")


@dataclass(frozen=True, slots=True, kw_only=True)
class EverydayPart(Part):
    """Texts with questions of every kind, in the form of ``everyday/SPEC.md``; the records have all there is to say."""

    shape: Literal["everyday"] = "everyday"
    drawn: Mapping[str, int] = field(default_factory=dict)  # of a kind of question: how many times as often


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPart(Part):
    """A task of decaNLP or like it: questions that are always asked in the same words."""

    shape: Literal["task"] = "task"
    name: str
    metric: str
    context: str = "{context}"
    question: str = "{question}"
    answer: str = "{answer}"
    id: str = "{split}/{line}"
    labels: Mapping[str, str] = field(default_factory=dict)
    max_context_tokens: int = 0
    mixed: bool = False


@dataclass(frozen=True, slots=True)
class Download:
    """An official file, where its publisher (or decaNLP) has it; it goes to ``folder`` under its own name."""

    url: str
    sha256: str = ""  # where a trusted one is known
    folder: str = ""

    @property
    def path(self) -> str:
        name = self.url.rpartition("/")[2]
        return f"{self.folder}/{name}" if self.folder else name


AnyPart = LabelsPart | FieldsPart | ChoicesPart | QuestionsPart | FactsPart | EverydayPart | TaskPart


@dataclass(frozen=True, slots=True)
class Dataset:
    """What a dataset file says; its name is that of the file, and a mixed task is the last of the parts."""

    name: str
    folder: str
    licence: str
    commercial: bool
    origin: str = ""  # where the files are that are got by hand
    held_back: bool = False
    parts: Mapping[str, Annotated[AnyPart, Discriminator("shape")]] = field(default_factory=dict)
    tasks: Mapping[str, TaskPart] = field(default_factory=dict)
    downloads: tuple[Download, ...] = ()

    def __post_init__(self) -> None:
        if not self.parts and not self.tasks:
            raise ValueError("give `parts`, `tasks` or both")

    def folder_in(self, data: Path) -> Path:
        """Return where its files are: with the project, or below the folder of the datasets."""
        own = OWN_DATA / self.folder
        return own if (own / "SPEC.md").is_file() else data / self.folder


def dataset_names(folder: Path = DATASETS) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.yaml"))


def load_dataset(name: str, folder: Path = DATASETS) -> Dataset:
    path = folder / f"{name}.yaml"
    if not path.is_file():
        near = get_close_matches(name, dataset_names(folder), n=3)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Write {path} to add it."
        raise ValueError(f"There is no dataset {name!r}. {hint}")
    document = read_yaml(path)
    for task, body in document.get("tasks", {}).items():
        body["name"] = task
    dataset = parse(Dataset, {**document, "name": name}, str(path))
    mixed = [(TASK, task) for task in dataset.tasks.values() if task.mixed]
    return replace(dataset, parts={**dataset.parts, **dict(mixed)})


def readable(key: str, name: str) -> str:
    """Return a name, or the key as words where there is none."""
    return name or key.replace("_", " ")
