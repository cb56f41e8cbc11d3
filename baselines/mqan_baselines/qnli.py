"""QNLI out of SQuAD, as its authors made it (Wang et al. 2018, "GLUE"): does a sentence answer a question.

Every question of SQuAD meets each sentence of its paragraph; the sentence with the answer is the right one, and
sentences that have little in common with the question are left out. What they did not write down is ours: a sentence
has to share a word of four letters or more with the question; it has the answer if one of the gold answers stands in it
as whole words; and a question of which no sentence has the answer, or more than one, is left out, so that no candidate
is wrong by accident.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mqan_baselines.formats import Row
from mqan_core.example import Example
from mqan_training.data.readers.registry import task_named
from mqan_training.data.sentences import sentences_of

LABELS: Final = ("entailment", "not entailment")
_WORD: Final = re.compile(r"\w{4,}")  # shorter ones are shared by any two texts


def rankings(folder: Path, split: str) -> Iterator[Row]:
    """Yield for each question of SQuAD: the question, the sentence that answers it, and others of its paragraph."""
    squad = task_named("squad")
    for example in squad.read(folder / squad.folder, split):
        row = _ranking(example)
        if row is not None:
            yield row


def pairs_of(rankings: Iterator[Row]) -> Iterator[Row]:
    """Yield of each question two pairs, with the right sentence and with the first other one: as many of both."""
    for row in rankings:
        question, right, wrong, *_ = row.texts
        yield Row((question, right), LABELS.index("entailment"))
        yield Row((question, wrong), LABELS.index("not entailment"))


def _ranking(example: Example) -> Row | None:
    """Return a question with its candidates; None where there is no wrong one, or not exactly one right one."""
    asked = _words(example.question)
    candidates = [part for part in dict.fromkeys(sentences_of(example.context)) if asked & _words(part)]
    answers = [" ".join(answer.split()) for answer in example.answers]
    right = [part for part in candidates if any(_has(part, answer) for answer in answers)]
    wrong = [part for part in candidates if part not in right]
    if len(right) != 1 or not wrong:
        return None
    return Row((example.question, right[0], *wrong))


def _has(sentence: str, answer: str) -> bool:
    start = sentence.find(answer)
    while start >= 0:
        around = sentence[max(start - 1, 0) : start], sentence[start + len(answer) : start + len(answer) + 1]
        if not any(map(str.isalnum, around)):
            return True
        start = sentence.find(answer, start + 1)
    return False


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
