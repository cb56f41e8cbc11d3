"""All tasks of the baselines by name: what they are given, their classes, their scores and the files they come from.

Splits: ``train``; ``tune``, a tenth of the training file by which a checkpoint is chosen; ``test``, the official
development set (or a tenth, where there is none), on which figures are reported. The hash of a text decides how a
training file is split: SST's two tasks share sentences, and reviews occur twice. Official files share texts, too, also
those of other data sets: what stands in a test split is left out of the rest when tasks are trained (``held_out.py``).
"""

import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Final, Literal

from mqan_baselines import formats
from mqan_baselines.formats import Row

Form = Literal["sentence", "pair", "similarity", "ranking"]
Split = Literal["train", "tune", "test"]
Source = Callable[[Path], Iterator[Row]]
"""Reads rows, given the folder of the datasets."""

_TENTHS: Final = 10
_NLI: Final = ("entailment", "neutral", "contradiction")
_TWO: Final = ("entailment", "not entailment")
_SENTIMENT: Final = ("negative", "positive")
_SUBJ: Final = ("objective", "subjective")


@dataclass(frozen=True, slots=True)
class BaselineTask:
    """One task."""

    name: str
    form: Form
    labels: tuple[str, ...]  # names of its classes; empty for a similarity and a ranking
    scores: tuple[str, ...]  # names of its scores (scores.py); the first one counts
    train: Source  # reads the training file of the folder of datasets
    test: Source | None  # reads the file to report on; None for a tenth of the training file
    together: int = 1  # how many rows, one after the other, belong together: the two pairs of a question of QNLI

    def rows(self, data: Path, *splits: Split) -> list[Row]:
        """Return the rows of splits, in the order of the files in the folder of datasets."""
        found: list[Row] = []
        if {"train", "tune"} & set(splits) or self.test is None:
            found = [row for row in self.train(data) if self._split(row) in splits]
        if "test" in splits and self.test is not None:
            found += self.test(data)
        return found

    def _split(self, row: Row) -> Split:
        tenth = zlib.crc32(row.texts[0].encode()) % _TENTHS
        return "tune" if tenth == 0 else "test" if tenth == 1 and self.test is None else "train"


def _examples(task: str, split: str, labels: Sequence[str] = _SENTIMENT, id_prefix: str = "") -> Source:
    return lambda data: formats.rows_of_examples(task, data, split, labels, id_prefix)


def _product(domain: str, split: str) -> Source:
    return _examples("product_reviews", split, id_prefix=f"{domain}/")


def _part(
    name: str,
    keys: Sequence[str],
    columns: Sequence[str] = ("sentence1", "sentence2"),
    test: str = "validation",
    files: Mapping[str, tuple[str, ...]] | None = None,
) -> tuple[Source, Source]:
    train, report = (
        partial(formats.rows_of_part, name, columns=columns, keys=keys, splits=s.split(), files=files)
        for s in ("train", test)
    )
    return train, report


def _qnli(split: str) -> Source:
    return lambda data: formats.pairs_of(formats.rankings(data, split))


def _mnli(data: Path) -> Iterator[Row]:
    for name in ("multinli.inference", "multinli_more.inference"):
        yield from _part(name, _NLI)[0](data)


_FIVE: Final = ("very negative", "negative", "neutral", "positive", "very positive")
_SAME: Final = ("different", "same")
_FROM_0: Final = ("0", "1", "2", "3", "4")  # keys of classes that the files number
_SENTENCES: Final = ("sentence_A", "sentence_B")
_QUESTIONS: Final = ("question1", "question2")
_SNLI: Final = {"train": ("train.tsv.gz",), "test": ("snli_dev.tsv.gz",)}
_SICK: Final = tuple(label.upper() for label in _NLI)
_DOMAINS: Final = {"books": "books", "dvds": "dvd", "electronics": "electronics", "kitchen": "kitchen_&_housewares"}

_SHARED_MEMORY = (  # Liu et al. 2016, table 1: movie reviews, then product reviews
    BaselineTask("sst-1", "sentence", _FIVE, ("accuracy",), *_part("sst.stars", _FROM_0, ("text",))),
    BaselineTask(
        "sst-2", "sentence", _SENTIMENT, ("accuracy",), _examples("sst", "train"), _examples("sst", "validation")
    ),
    BaselineTask("subj", "sentence", _SUBJ, ("accuracy",), _examples("subj", "train", _SUBJ), None),
    BaselineTask("imdb", "sentence", _SENTIMENT, ("accuracy",), _examples("imdb", "train"), _examples("imdb", "test")),
    *(
        BaselineTask(
            name, "sentence", _SENTIMENT, ("accuracy",), _product(domain, "train"), _product(domain, "validation")
        )
        for name, domain in _DOMAINS.items()
    ),
)
_GLUE = (  # Liu et al. 2019, table 1; SST-2 is above
    BaselineTask(
        "cola",
        "sentence",
        ("unacceptable", "acceptable"),
        ("matthews", "accuracy"),
        *_part("cola.acceptable", _FROM_0[:2], ("sentence",), test="validation test"),
    ),
    BaselineTask("mnli", "pair", _NLI, ("accuracy",), _mnli, _part("multinli.inference", _NLI)[1]),
    BaselineTask("rte", "pair", _TWO, ("accuracy",), *_part("rte.inference", ("entailment", "not_entailment"))),
    BaselineTask("wnli", "pair", _TWO, ("accuracy",), *_part("wnli.follows", ("1", "0"))),
    BaselineTask("qqp", "pair", _SAME, ("accuracy", "f1"), *_part("qqp.duplicate", _FROM_0[:2], _QUESTIONS)),
    BaselineTask("mrpc", "pair", _SAME, ("f1", "accuracy"), *_part("mrpc.paraphrase", _FROM_0[:2], test="test")),
    BaselineTask("sts-b", "similarity", (), ("pearson", "spearman"), *_part("stsb.similarity", ())),
    BaselineTask(
        "qnli", "pair", formats.QNLI_LABELS, ("accuracy", "paired"), _qnli("train"), _qnli("validation"), together=2
    ),
    BaselineTask(
        "qnli-ranking",
        "ranking",
        (),
        ("paired", "top1"),
        partial(formats.rankings, split="train"),
        partial(formats.rankings, split="validation"),
    ),
)
_ADAPTATION = (  # the paper's second data set, SciTail, is not at hand: SICK stands in its place
    BaselineTask("snli", "pair", _NLI, ("accuracy",), *_part("snli.inference", _NLI, files=_SNLI, test="test")),
    BaselineTask("sick", "pair", _NLI, ("accuracy",), *_part("sick.inference", _SICK, _SENTENCES)),
)
TASKS: Final[dict[str, BaselineTask]] = {task.name: task for task in (*_SHARED_MEMORY, *_GLUE, *_ADAPTATION)}


def baseline_task(name: str) -> BaselineTask:
    if name in TASKS:
        return TASKS[name]
    near = get_close_matches(name, TASKS, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known tasks: {', '.join(TASKS)}"
    raise ValueError(f"the baselines have no task {name!r}; {hint}")


_FIRST, _SECOND = "{first}", "{second}"
_MARKER: Final = re.compile(r"\{first\}|\{second\}")


@dataclass(frozen=True, slots=True)
class Wording:
    """Templates of a question and its context, with a place for each text: ``{first}`` and of a pair ``{second}``."""

    question: str
    context: str = _FIRST

    def __post_init__(self) -> None:
        if sorted(_MARKER.findall(self.question + self.context)) not in ([_FIRST], [_FIRST, _SECOND]):
            raise ValueError(f"a wording has {_FIRST}, and for a pair {_SECOND}, once: {self.question!r}")

    def fill(self, *texts: str) -> tuple[str, str]:
        of_marker = dict(zip((_FIRST, _SECOND), texts, strict=False))
        context, question = (_MARKER.sub(lambda found: of_marker[found[0]], t) for t in (self.context, self.question))
        return context, question


_OF_TASK: Final[Mapping[str, Wording]] = {
    "sst-1": Wording("Is this sentence very negative, negative, neutral, positive, or very positive?"),
    "sst-2": Wording("Is this sentence negative or positive?"),
    "subj": Wording("Is this sentence subjective or objective?"),
    "imdb": Wording("Is this movie review negative or positive?"),
    "books": Wording("Is this review of a book negative or positive?"),
    "dvds": Wording("Is this review of a DVD negative or positive?"),
    "electronics": Wording("Is this review of an electronic device negative or positive?"),
    "kitchen": Wording("Is this review of a kitchen appliance negative or positive?"),
    "cola": Wording("Is this sentence acceptable or unacceptable?"),
    "qqp": Wording("Do the two questions ask the same?", f"{_FIRST}\n{_SECOND}"),
    "mrpc": Wording("Do the two sentences mean the same?", f"{_FIRST}\n{_SECOND}"),
    "qnli": Wording("Does the sentence answer the question?", f"Question: {_FIRST}\nSentence: {_SECOND}"),
}


def wording_of(task: str) -> Wording:
    if task in _OF_TASK:
        return _OF_TASK[task]
    *labels, last = baseline_task(task).labels
    named = f"{', '.join(labels)}, or {last}" if len(labels) > 1 else f"{labels[0]} or {last}"
    return Wording(f'Hypothesis: "{_SECOND}" -- {named}?', f'Premise: "{_FIRST}"')
