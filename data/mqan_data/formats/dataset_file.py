"""What a file of ``datasets/`` says: the dataset, its parts, and for each what is read and how it is asked."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from mqan_data.settings import parse, read_yaml

DATASETS = Path(__file__).resolve().parent.parent / "datasets"
"""Folder of the dataset files."""

OWN_DATA = DATASETS.parents[1]
"""Folder of the datasets that come with the project; there are none beside an installed package."""


@dataclass(frozen=True, slots=True)
class Label:
    """One label of a set.

    Attributes:
        name: readable; "" for the key with spaces for underscores.
        synonyms: other names.
        description: what it stands for, in a few words.
        questions: questions that are answered by yes where the label is right and by no where another one is.
        negated: the same, the other way round.
    """

    name: str = ""
    synonyms: tuple[str, ...] = ()
    description: str = ""
    questions: tuple[str, ...] = ()
    negated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """One field that a text can fill.

    Attributes:
        name: readable, singular; "" for the key with spaces for underscores.
        plural: "" for the name with an s.
        synonyms: other names, singular.
        description: what it stands for, in a few words.
        type: fields of one type are filled by the same kind of thing (two cities, two dates).
        questions: wordings of its own.
        values: the closed set that it is filled from; empty for an open one.
        only_filled: never asked for where it is not filled, because the files do not tell that well enough.
    """

    name: str = ""
    plural: str = ""
    synonyms: tuple[str, ...] = ()
    description: str = ""
    type: str = ""
    questions: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    only_filled: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """One way of laying out a row: a template for the text and wordings that go with it.

    Attributes:
        text: template of the context.
        questions: templates of the question.
        options: templates of questions that name the choices, with ``{options}``.
        yes_no: templates of questions about one label or answer, with ``{label}``.
        negated: the same, answered the other way round.
    """

    text: str
    questions: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    yes_no: tuple[str, ...] = ()
    negated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows of one shape; what all shapes have.

    Attributes:
        shape: which.
        format: how the files are written (``records.FORMATS``).
        files: by split (train, validation, test): paths below the folder of the dataset. ``#key`` behind a JSON
            file takes a value of its object; ``|`` joins files that have a line a row each.
        columns: names of the columns, for files without a header.
        each: key of a list in a record: each of its entries is a record with the fields of both.
        options: of the format.
        keep: by column: only records with one of these values are rows.
        hold_out: without files for validation, one row in so many is held out for it, by its text; 0 for none.
    """

    shape: Literal["labels", "fields", "choices", "questions", "facts", "everyday", "task"]
    format: str
    files: Mapping[str, tuple[str, ...]]
    columns: tuple[str, ...] = ()
    each: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    keep: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hold_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsPart(Part):
    """Texts with labels.

    Attributes:
        kind: what the labels are, for example ``topic``.
        kinds: its plural; "" for the noun with an s.
        label: template that gives the key of the label, or a dotted path to a list of keys.
        separator: splits what ``label`` gives into several keys.
        groups: by label, the values of ``label`` that belong to it, where it stands for several.
        labels: the set, by key.
        forms: ways of laying out a row.
        multiple: whether a row can have several labels.
        ordered: whether the labels are steps of a scale, as listed.
        closed: whether the question implies the whole set (yes or no), so that none is ever left out.
        free: whether the question also makes sense without choices.
        generic: whether "Which of these is right?" asks the same: not where only the last turn, or a target, is meant.
        none: keys that stand for "none of the labels".
        drop: keys whose rows are left out.
        distractors: parts of other datasets whose labels can never be right here, as ``dataset.part``.
        round: whether the label is a number that is rounded to a whole one.
        refusals: share of the questions that are asked of another row's text instead, which does not answer them.
    """

    kind: str
    kinds: str = ""
    label: str
    separator: str = ""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: Mapping[str, Label]
    forms: tuple[Form, ...]
    multiple: bool = False
    ordered: bool = False
    closed: bool = False
    free: bool = False
    generic: bool = True
    none: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    distractors: tuple[str, ...] = ()
    round: bool = False
    refusals: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldsPart(Part):
    """Texts with fields; the format gives each record ``text`` and ``mentions`` or ``values``, or a ``scheme`` too.

    Attributes:
        fields: that can be asked for, by key; empty where the files describe them.
        drop: keys that are left out.
        keep_empty: share of the texts without any mention that stays.
        typed: whether the kind of a mention can be asked for ("Is Paris a person or a place?").
    """

    fields: Mapping[str, Field] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    keep_empty: float = 0.2
    typed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoicesPart(Part):
    """Questions with answers to choose from.

    Attributes:
        choices: templates, one an answer ("" where it says that none of them is right), or one dotted path to a list.
        descriptions: dotted path to a list of what each answer stands for, where its name does not tell; "" for none.
        right: template that gives which is right: one of ``keys``, or the text of the answer itself.
        keys: what ``right`` calls the answers, in their order.
        forms: ways of laying out a row; ``questions`` are asked as they are and with the choices behind them.
        quoted: whether the answers stand in the text, so that the question makes sense without choices.
        flags: dotted path to a list with a true or false for each answer, where several can be right.
        refusals: share of the questions that are asked of another row's text instead, which does not answer them.
    """

    choices: tuple[str, ...]
    descriptions: str = ""
    right: str = ""
    keys: tuple[str, ...] = ()
    forms: tuple[Form, ...]
    quoted: bool = False
    flags: str = ""
    refusals: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionsPart(Part):
    """Questions on texts.

    Attributes:
        text: template of the context.
        question: template, or a dotted path to a list of wordings.
        answers: template, or a dotted path to a list.
        start: dotted path to where the first answer begins in the text; "" where the files do not say.
        joined: whether the answers are one list, joined by commas, rather than different ways to say the same.
        refusals: share of the questions that are asked of another text of the part instead.
    """

    text: str
    question: str
    answers: str
    start: str = ""
    joined: bool = False
    refusals: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsPart(Part):
    """Yes/no questions on texts, or statements about them, that a text can also leave open.

    Attributes:
        text: template of the context.
        question: template of a question; "" where there are statements.
        statement: template of a statement, of which a question is made; "" where there are questions.
        label: template of the key that says what the text makes of it.
        yes, no, unknown: keys that mean that the text affirms it, denies it, or does not say.
        drop: keys whose rows are left out.
        evidence: dotted path to the passages of the text that decide it, one or a list; "" where the files have none.
        refusals: share of the questions that are asked of another row's text instead, which does not answer them.
    """

    text: str
    question: str = ""
    statement: str = ""
    label: str
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    evidence: str = ""
    refusals: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EverydayPart(Part):
    """Texts with questions of every kind, in the form of ``everyday/SPEC.md``; the records have all there is to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPart(Part):
    """A task of decaNLP or like it: questions that are always asked in the same words.

    Attributes:
        name: what the command line and the recipes of the paper's network call it.
        metric: key into ``metrics.METRICS``; the number that counts for this task.
        context, question, answer: templates, where the format does not give the records ``answers``.
        id: template of the examples' names; ``line`` is counted from 1, ``row`` from 0.
        labels: answers by what the files call them; empty where they stand there.
        max_context_tokens: contexts are cut to this many tokens, as in decaNLP; 0 for never.
        mixed: whether it is a part of the dataset, too, which the default model is trained on and measured by.
    """

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
    """An official file.

    Attributes:
        url: where the publisher (or decaNLP) has it.
        sha256: checksum in hex; "" where no trusted one is known.
        folder: where it goes, below the dataset's folder, under its own name.
    """

    url: str
    sha256: str = ""
    folder: str = ""

    @property
    def path(self) -> str:
        """Where it goes, below the dataset's folder."""
        return f"{self.folder}/{name}" if (name := self.url.rpartition("/")[2]) and self.folder else name


AnyPart = LabelsPart | FieldsPart | ChoicesPart | QuestionsPart | FactsPart | EverydayPart | TaskPart

TASK = "task"
"""Name of the part that a mixed task is."""

_PART_OF_SHAPE: Mapping[str, type[AnyPart]] = {
    "labels": LabelsPart,
    "fields": FieldsPart,
    "choices": ChoicesPart,
    "questions": QuestionsPart,
    "facts": FactsPart,
    "everyday": EverydayPart,
}


@dataclass(frozen=True, slots=True)
class Dataset:
    """What a dataset file says.

    Attributes:
        name: of the file, without ``.yaml``.
        folder: below the data folder.
        licence: as the source states it.
        commercial: whether the licence allows commercial use.
        held_back: never trained on; for measuring only.
        parts: by name; a mixed task is the last.
        tasks: by name.
        downloads: official files.
    """

    name: str
    folder: str
    licence: str
    commercial: bool
    held_back: bool = False
    parts: Mapping[str, AnyPart] = field(default_factory=dict)
    tasks: Mapping[str, TaskPart] = field(default_factory=dict)
    downloads: tuple[Download, ...] = ()

    def folder_in(self, data: Path) -> Path:
        """Return where its files are: with the project, or below the folder of the datasets."""
        own = OWN_DATA / self.folder
        return own if (own / "SPEC.md").is_file() else data / self.folder


@dataclass(frozen=True, slots=True)
class _Document:
    folder: str
    licence: str
    commercial: bool
    held_back: bool = False
    parts: Mapping[str, dict] = field(default_factory=dict)  # type: ignore[type-arg]
    tasks: Mapping[str, dict] = field(default_factory=dict)  # type: ignore[type-arg]
    downloads: tuple[Download, ...] = ()


def dataset_names(folder: Path = DATASETS) -> list[str]:
    """Return the names of all datasets, in order."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def load_dataset(name: str, folder: Path = DATASETS) -> Dataset:
    """Read a dataset file.

    Raises:
        ValueError: there is none, it is not YAML, a key is unknown or missing, or a value has the wrong type; the
            message names the file and the key.
    """
    path = folder / f"{name}.yaml"
    if not path.is_file():
        near = get_close_matches(name, dataset_names(folder), n=3)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Write {path} to add it."
        raise ValueError(f"There is no dataset {name!r}. {hint}")
    content = parse(_Document, read_yaml(path), str(path))
    parts = {part: _parse_part(body, f"{path}: parts.{part}") for part, body in content.parts.items()}
    tasks = {
        task: parse(TaskPart, {"shape": "task", "name": task, **body}, f"{path}: tasks.{task}")
        for task, body in content.tasks.items()
    }
    if not parts and not tasks:
        raise ValueError(f"{path}: give `parts`, `tasks` or both.")
    parts |= [(TASK, task) for task in tasks.values() if task.mixed]
    fixed = (content.folder, content.licence, content.commercial, content.held_back)
    return Dataset(name, *fixed, parts, tasks, content.downloads)


def _parse_part(body: Mapping[str, Any], where: str) -> AnyPart:
    shape = str(body.get("shape"))
    if shape not in _PART_OF_SHAPE:
        raise ValueError(f"{where}: `shape` must be one of {', '.join(_PART_OF_SHAPE)}; found {shape!r}.")
    part = parse(_PART_OF_SHAPE[shape], body, where)
    if isinstance(part, LabelsPart):
        keys = {*part.none, *part.drop} & set(part.labels)
        if keys or not part.forms or not all(form.questions for form in part.forms):
            raise ValueError(f"{where}: needs `forms` with `questions`; and {sorted(keys)} cannot be labels as well.")
    if isinstance(part, ChoicesPart) and not (bool(part.right) ^ bool(part.flags)):
        raise ValueError(f"{where}: give either `right` or `flags`.")
    if isinstance(part, FactsPart):
        meant = Counter((*part.yes, *part.no, *part.unknown, *part.drop))
        if bool(part.question) == bool(part.statement) or max(meant.values(), default=0) != 1:
            raise ValueError(f"{where}: give either `question` or `statement`, and each key of `label` one meaning.")
    return part


def readable(key: str, name: str) -> str:
    """Return a name, or the key as words where there is none."""
    return name or key.replace("_", " ")
