"""How a task is asked of a system that takes questions: in decaNLP's words where it has them.

A sentence is the whole context. Of a pair the premise is the context and the hypothesis is in the question, as in
decaNLP, or both are in the context, one below the other.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mqan_baselines.tasks import baseline_task

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
