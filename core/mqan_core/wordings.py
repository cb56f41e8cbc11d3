"""The questions that a model of fixed tasks answers: templates of question and context, and texts read by them.

Such a model reads one text or two, ``{first}`` and ``{second}``. A template says where they stand in what a caller
sends; all around them has to be there letter by letter.

    context                  question
    {first}                  Is this review negative or positive?
    Premise: "{first}"       Hypothesis: "{second}" -- entailment or not entailment?
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mqan_core.manifest import STRICT
from mqan_core.text import has_words

FIRST, SECOND = "{first}", "{second}"
_MARKER: Final = re.compile(r"\{first\}|\{second\}")
_LONGEST: Final = 500  # characters of a template
_SAMPLE: Final = ("The kettle is in the kitchen.", "Where is the kettle?")  # of who takes any question


@dataclass(frozen=True, slots=True)
class Wording:
    """One way to ask a task.

    Attributes:
        question: template of the question.
        context: template of the context.

    Raises:
        ValueError: a template cannot be printed, or is too long; or the texts do not stand there once each, at least
            one of them in the context, with something between them.
    """

    __pydantic_config__ = STRICT

    question: str
    context: str

    def __post_init__(self) -> None:
        markers = _MARKER.findall(self.question) + _MARKER.findall(self.context)
        if sorted(markers) not in ([FIRST], [FIRST, SECOND]) or not _MARKER.search(self.context):
            raise ValueError(f"a wording has {FIRST}, and for a pair {SECOND}, once, and one of them in the context")
        for template in (self.question, self.context):
            if len(template) > _LONGEST or not template.replace("\n", "").isprintable():
                raise ValueError(f"a template is printable, with at most {_LONGEST} characters")
            if "" in _MARKER.split(template)[1:-1] or not template.strip():
                raise ValueError("a template is empty, or nothing stands between its two texts")

    @property
    def num_texts(self) -> int:
        """How many texts the model reads: 1 or 2."""
        return 2 if SECOND in self.question + self.context else 1

    def accepts(self, question: str) -> bool:
        """Whether a question is worded so."""
        return cut(self.question, question) is not None

    def texts(self, context: str, question: str) -> tuple[str, ...] | None:
        """Return what the model reads, the first text first; None where question or context do not fit."""
        of_question, of_context = cut(self.question, question), cut(self.context, context)
        if of_question is None or of_context is None:
            return None
        found = {**of_question, **of_context}
        return tuple(found[marker] for marker in (FIRST, SECOND) if marker in found)

    def fill(self, *texts: str) -> tuple[str, str]:
        """Return context and question that ask about one text or two."""
        of_marker = dict(zip((FIRST, SECOND), texts, strict=False))
        context, question = (_MARKER.sub(lambda found: of_marker[found[0]], t) for t in (self.context, self.question))
        return context, question


@dataclass(frozen=True, slots=True)
class AcceptedQuestion:
    """A question that a model of fixed tasks takes, and what it answers.

    Attributes:
        task: its task.
        wording: templates of question and context.
        labels: the classes that it chooses from.
    """

    task: str
    wording: Wording
    labels: tuple[str, ...]


def cut(template: str, text: str) -> dict[str, str] | None:
    """Return what stands in a text in the places of a template, without white space around it.

    None where the text does not fit, where it fits in two ways, and where a place holds nothing to read.
    """
    literals, text = _MARKER.split(template), text.strip()
    markers = _MARKER.findall(template)
    if not markers:
        return {} if text == template.strip() else None
    head, *between, tail = literals
    head, tail = head.lstrip(), tail.rstrip()
    if len(text) < len(head) + len(tail) or not (text.startswith(head) and text.endswith(tail)):
        return None
    inner = text[len(head) : len(text) - len(tail)]
    parts = _halves(inner, between[0]) if between else [inner]
    if parts is None or not all(map(has_words, parts)):
        return None
    return {marker: part.strip() for marker, part in zip(markers, parts, strict=True)}


def _halves(text: str, separator: str) -> list[str] | None:
    """Return what stands before and behind a separator; None where it is not there, or at two places."""
    at = text.find(separator)
    if at < 0 or text.find(separator, at + 1) >= 0:
        return None
    return [text[:at], text[at + len(separator) :]]


def samples_of(questions: Sequence[AcceptedQuestion]) -> list[tuple[str, str]]:
    """Return a context and a question of each task, for trying a model out.

    Args:
        questions: that the model takes; none where it takes any.
    """
    of_task = {question.task: question.wording for question in questions}
    text = _SAMPLE[0]
    return [wording.fill(text, text) for wording in of_task.values()] or [_SAMPLE]
