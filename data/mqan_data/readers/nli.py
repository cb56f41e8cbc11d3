"""Natural language inference: does a hypothesis follow from a premise. One way to ask (McCann et al. 2018, table 1).

- MultiNLI 1.0 (Williams et al. 2018): ten genres. Validation is the matched and then the mismatched half.
- SNLI 1.0 (Bowman et al. 2015): between captions. In both, pairs without a gold label stay as in decaNLP, with the
  answer ``-``.
- SICK (Marelli et al. 2014), of SemEval 2014, task 1: between simple sentences.
- RTE in the layout of GLUE (Dagan et al. 2006 and later; Wang et al. 2018). The labels of the test set are not public.
  Not a task of decaNLP, so the words of the question are ours.
- XNLI, English part (Conneau et al. 2018): evaluation sets in the style of MultiNLI; there is no English training set.

Files are plain or in their publisher's archive.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mqan_core.example import Example
from mqan_data.readers.files import (
    Member,
    check_split,
    count_dropped,
    find_source,
    malformed,
    read_json_lines,
    read_table,
    text_field,
)
from mqan_data.readers.task import Download, Task

_THREE: Final = {label: label for label in ("entailment", "neutral", "contradiction")}
_THREE_OR_NONE: Final = _THREE | {"-": "-"}
_MISMATCHED: Final = "dev_mismatched"  # the half of MultiNLI that may be missing


Rows = Iterator[tuple[int, tuple[str, ...]]]
"""Numbers of lines; of each the cells of some columns."""


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Where the pairs of a dataset stand, and what their labels mean.

    Attributes:
        task: its name.
        files: by split: what file, archive, member and prefix call its parts.
        file: name of the file of a ``{part}``.
        archive, member: archive that it may be in instead, and where there.
        prefix: of ids, before the name of a row.
        columns: of premise, hypothesis and label; then of the name, if not the number of the line is it.
        answers: by label in lower case.
        choices: as the question names them.
    """

    task: str
    files: Mapping[str, tuple[str, ...]]
    file: str
    archive: str
    member: str
    prefix: str
    columns: tuple[str, ...] = ("sentence1", "sentence2", "gold_label")
    answers: Mapping[str, str] = field(default_factory=lambda: _THREE)
    choices: str = "entailment, neutral, or contradiction"

    def read(self, folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
        """Yield the pairs of a split; a mismatched half that is not there, and other languages, are counted."""
        check_split(self.task, split, self.files)
        for part in self.files[split]:
            name, archive, member = (text.format(part=part) for text in (self.file, self.archive, self.member))
            try:
                source = find_source(self.task, folder, name, archive=archive, member=member)
            except FileNotFoundError:
                if part != _MISMATCHED:
                    raise
                count_dropped(dropped, f"{name} is not there")
                continue
            prefix = self.prefix.format(split=split, part=part)
            for number, (premise, hypothesis, label, *names) in self._rows(source, dropped):
                if label.lower() not in self.answers:
                    raise malformed(source, number, f"unknown label {label!r}.")
                question = f'Hypothesis: "{hypothesis}" -- {self.choices}?'
                row = f"{prefix}{names[0] if names else number}"
                yield Example(self.task, row, f'Premise: "{premise}"', question, (self.answers[label.lower()],))

    def _rows(self, source: Path | Member, dropped: Counter[str] | None) -> Rows:
        if self.file.endswith(".jsonl"):
            for number, row in read_json_lines(source):
                yield number, tuple(text_field(source, number, row, column) for column in self.columns)
        elif self.task == "xnli":
            for number, (language, *cells) in read_table(source, "language", *self.columns):
                if language == "en":
                    yield number, tuple(cells)
                else:
                    count_dropped(dropped, "row in another language")
        else:
            yield from read_table(source, *self.columns)

    def as_task(self, folder: str, *downloads: Download) -> Task:
        """Return the task, whose files are in a folder."""
        return Task(self.task, folder, tuple(self.files), "em", self.read, sources=downloads)


_MULTINLI: Final = _Pairs(
    "multinli",
    {"train": ("train",), "validation": ("dev_matched", _MISMATCHED)},
    "multinli_1.0_{part}.jsonl",
    "multinli_1.0.zip",
    "multinli_1.0/multinli_1.0_{part}.jsonl",
    "{part}/",
    ("sentence1", "sentence2", "gold_label", "pairID"),
    _THREE_OR_NONE,
)
_SNLI: Final = _Pairs(
    "snli",
    {"train": ("train",), "validation": ("dev",), "test": ("test",)},
    "snli_1.0_{part}.jsonl",
    "snli_1.0.zip",
    "snli_1.0/snli_1.0_{part}.jsonl",
    "{split}/",
    answers=_THREE_OR_NONE,
)
_SICK: Final = _Pairs(
    "sick",
    {"train": ("train",), "validation": ("trial",), "test": ("test_annotated",)},
    "SICK_{part}.txt",
    "sick_{part}.zip",
    "SICK_{part}.txt",
    "",
    ("sentence_A", "sentence_B", "entailment_judgment", "pair_ID"),
)
_RTE: Final = _Pairs(
    "rte",
    {"train": ("train",), "validation": ("dev",)},
    "{part}.tsv",
    "RTE.zip",
    "RTE/{part}.tsv",
    "{split}/",
    ("sentence1", "sentence2", "label", "index"),
    {"entailment": "entailment", "not_entailment": "not entailment"},
    "entailment or not entailment",
)
_XNLI: Final = _Pairs(
    "xnli",
    {"validation": ("dev",), "test": ("test",)},
    "xnli.{part}.en.tsv",
    "XNLI-1.0.zip",
    "XNLI-1.0/xnli.{part}.tsv",
    "{split}/",
)
TASK: Final = _MULTINLI.as_task(
    "multinli",
    Download(
        "https://www.nyu.edu/projects/bowman/multinli/multinli_1.0.zip",
        "multinli_1.0.zip",
        sha256="049f507b9e36b1fcb756cfd5aeb3b7a0cfcb84bf023793652987f7e7e0957822",
    ),
)
OTHERS: Final = (
    _SNLI.as_task(
        "snli",
        Download(
            "https://nlp.stanford.edu/projects/snli/snli_1.0.zip",
            "snli_1.0.zip",
            sha256="afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e",
        ),
    ),
    _SICK.as_task(
        "nli_extra/sick",
        *(
            Download(f"https://alt.qcri.org/semeval2014/task1/data/uploads/sick_{part}.zip", f"sick_{part}.zip")
            for (part,) in _SICK.files.values()
        ),
    ),
    _RTE.as_task("nli_extra/rte", Download("https://dl.fbaipublicfiles.com/glue/data/RTE.zip", "RTE.zip")),
    _XNLI.as_task("nli_extra/xnli", Download("https://dl.fbaipublicfiles.com/XNLI/XNLI-1.0.zip", "XNLI-1.0.zip")),
)
