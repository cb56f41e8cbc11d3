"""What a server returns. Positions are half-open ranges of code points: ``text[start:end]``.

Fields have the names that they have in documents of REST, unless their metadata say another ``name``; the fields of a
``flat`` one are in the document itself.
"""

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mqan_client.display import as_html, as_text, record_html


class Source(StrEnum):
    """Where a word of an answer came from."""

    CONTEXT = "context"
    QUESTION = "question"
    VOCABULARY = "vocabulary"


@dataclass(frozen=True, slots=True)
class Span:
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Masses:
    """How the model divided its trust between the sources; the three sum to 1."""

    context: float
    question: float
    vocabulary: float


@dataclass(frozen=True, slots=True)
class AnswerToken:
    """One token of an answer, and how likely it was after those before it."""

    text: str
    probability: float
    source: Source
    masses: Masses
    span: Span | None  # in the context or question that it was copied from; None for a generated token


@dataclass(frozen=True, slots=True)
class StreamedWord:
    """A word of an answer that is not whole yet, as the whole answer has it among its tokens; nothing takes it back."""

    token: AnswerToken = field(metadata={"flat": True})
    delta: str  # what it appends to the answer's text, with what stands between it and the word before it


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """A quotation: ``text`` is exactly ``context[start:end]``, or the question's, by ``source``.

    The words of a chosen label count as the question's; the positions of a label in ``choices`` are those in the label,
    of one that the question lists those in the question.
    """

    source: Source
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class ModelVersion:
    name: str
    version: str


@dataclass(frozen=True, slots=True)
class AdapterVersion:
    name: str
    sha256: str  # of its file


@dataclass(frozen=True, slots=True)
class Place:
    """A place of the context that answers, or decides for a label, and how likely it does."""

    span: AnswerSpan = field(metadata={"flat": True})
    probability: float


@dataclass(frozen=True, slots=True)
class ChoiceProbability:
    """How likely one of the choices is.

    ``probability`` is its share of all choices, which sum to 1; of the choices and ``none`` for yes and no, and where
    there may be none; with ``multiple`` how likely it is by itself.
    """

    label: str
    probability: float
    evidence: tuple[Place, ...]  # the words of the context that decide for it, where it was chosen


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of the next best answers: an unbroken quotation of the context."""

    text: str = field(metadata={"name": "answer"})
    probability: float
    tokens: tuple[AnswerToken, ...]
    spans: tuple[AnswerSpan, ...]


@dataclass(frozen=True, slots=True)
class PointerWeight:
    """What pointing at a word of a text gave to a step."""

    span: Span = field(metadata={"flat": True})
    weight: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A word that a step could have chosen; its text is empty for the end of the answer."""

    text: str
    probability: float
    source: Source


@dataclass(frozen=True, slots=True)
class Step:
    """What the model looked at when it chose a word, the end of the answer, or a label."""

    context: tuple[PointerWeight, ...]  # the largest weight first; for a label how attention was divided
    question: tuple[PointerWeight, ...]  # none for a label
    candidates: tuple[Candidate, ...]  # the likeliest words, of the vocabulary's only the one that was chosen


@dataclass(frozen=True, slots=True)
class Condition:
    column: str  # of the context
    operator: str  # ``=``, ``>`` or ``<``
    value: str
    spans: tuple[AnswerSpan, ...]


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query of WikiSQL that an answer was read as, and the same in standard SQL.

    ``aggregation`` is MAX, MIN, COUNT, SUM, AVG, or empty; all conditions hold.
    """

    select: str
    aggregation: str
    conditions: tuple[Condition, ...]
    sql: str


@dataclass(frozen=True, slots=True)
class SlotValue:
    value: str
    spans: tuple[AnswerSpan, ...]


@dataclass(frozen=True, slots=True)
class RequestedSlot:
    slot: str  # that is asked for, in lower case
    spans: tuple[AnswerSpan, ...]


@dataclass(frozen=True, slots=True)
class ParsedState:
    """A change of a dialogue's state that an answer was read as: slots by their names in lower case, and requests."""

    slots: dict[str, SlotValue]
    requests: tuple[RequestedSlot, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that says where each of its words came from.

    Its probability is the product of those of its tokens and, unless it is ``truncated``, of its end; of a chosen label
    its own, and with ``multiple`` that of every label being judged rightly; mapped to how often such answers were right
    where the model holds such a map. Its confidence is, of choices, the best one's probability; of no answer, that
    there is none; else the probability.
    """

    text: str = field(metadata={"name": "answer"})
    probability: float
    tokens: tuple[AnswerToken, ...]
    spans: tuple[AnswerSpan, ...]  # neighbouring copied tokens, merged into quotations, in order
    truncated: bool  # cut at the limit of tokens
    model: ModelVersion
    answered: bool = True
    confidence: float = 0.0
    none: float = 0.0  # how likely it is that the text does not say, or that none of the choices is right
    choices: tuple[ChoiceProbability, ...] = ()  # in the order given, also where the question lists them
    chosen: tuple[str, ...] = ()  # the labels that hold; several only with ``multiple``
    expected: float | None = None  # value of a scale, its lowest level being 1
    windows: int = 1  # of the context that were read
    places: tuple[Place, ...] = ()  # with ``all``, every place that answers, in the order of the text
    alternatives: tuple[Alternative, ...] = ()  # the next best quotations, the likeliest first
    steps: tuple[Step, ...] = ()
    parsed: ParsedQuery | ParsedState | None = None
    parse_error: str | None = None  # why the answer is not of that form
    adapter: AdapterVersion | None = field(default=None, metadata={"absent": True})  # that decided between the choices

    def citations(self, document_title: str | None = None, document_index: int = 0) -> list[dict[str, Any]]:
        """Return the quotations of the context in the shape of Anthropic's citations (``char_location``).

        Of labels that were chosen they are the words that decide for them. Positions count code points. Title and index
        are those of the context among the caller's documents.
        """
        spans = [*self.spans, *(place.span for choice in self.choices for place in choice.evidence)]
        return [
            {
                "type": "char_location",
                "cited_text": span.text,
                "document_index": document_index,
                "document_title": document_title,
                "start_char_index": span.start,
                "end_char_index": span.end,
            }
            for span in dict.fromkeys(spans)
            if span.source is Source.CONTEXT
        ]

    def __str__(self) -> str:
        return as_text(self)

    def __repr__(self) -> str:
        told = repr(self.text) if self.answered else "no answer"
        return f"<Answer {told} ({self.confidence:.2f})>"

    def _repr_html_(self) -> str:
        return as_html(self)


@dataclass(frozen=True, slots=True)
class Normalized:
    """What a library, price-parser or python-dateutil, made of a quotation.

    A number has an amount, and one of money the currency that the text names, if it does; a date or time has ``iso``.
    """

    library: str
    amount: float | None
    currency: str | None
    iso: str | None


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field of a record, and what the text says of it."""

    value: Any  # as the record has it; None where there is none, and an empty list of an array
    text: str  # the quotation, or the label; also where it has no value of the field's type, as ``reason`` says
    spans: tuple[AnswerSpan, ...]  # of an array each place; of labels, yes and no the words that decide for them
    answered: bool
    probability: float  # of the quotation, the label or the list of labels, or that the text has none
    question: str
    normalized: Normalized | None  # what a library made of the quotation; None of types that none is asked for
    reason: str | None


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a text, as its schema has it.

    A field without a value is None where the schema allows null, an empty list where it is an array, and left out
    otherwise.
    """

    values: dict[str, Any] = field(metadata={"name": "record"})
    missing: tuple[str, ...]  # names of the fields without a value
    fields: dict[str, RecordField]  # all of the schema, in its order
    model: ModelVersion

    def __str__(self) -> str:
        return "\n".join(f"{name}: {_line(found)}" for name, found in self.fields.items())

    def __repr__(self) -> str:
        return f"<Record {self.values}{', missing: ' + ', '.join(self.missing) if self.missing else ''}>"

    def _repr_html_(self) -> str:
        return record_html(self)


def _line(found: RecordField) -> str:
    if not found.answered:
        return f"none. {found.reason}"
    places = ", ".join(f"{span.start}-{span.end}" for span in found.spans)
    return f"{json.dumps(found.value, ensure_ascii=False)} ({found.probability:.2f}; {places})"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that hold for requests; more is refused, never cut.

    Tokens are those of a context, a question or an answer; a pair of metadata counts 32 bytes more than it has; of
    the requests inside one replica, ``max_queued_requests`` may wait.
    """

    max_request_bytes: int
    max_context_tokens: int
    max_question_tokens: int
    max_answer_tokens: int
    max_word_length: int
    max_metadata_bytes: int
    max_timeout_ms: int
    max_concurrent_requests: int
    max_queued_requests: int


@dataclass(frozen=True, slots=True)
class Score:
    task: str
    metric: str
    value: float  # 0 to 100


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter that can be named in a question, and how many rows it was made of."""

    name: str
    sha256: str
    question: str
    labels: tuple[str, ...]
    multiple: bool
    scale: bool
    rows: int


@dataclass(frozen=True, slots=True)
class Model:
    """The served model: its hash covers every file, its scores are those of validation, as measured.

    ``num_generated`` counts the pieces that it can generate, ``num_words`` the words that have a pretrained vector.
    """

    name: str
    version: str
    sha256: str
    provider: str
    limits: Limits
    num_generated: int
    num_words: int
    scores: tuple[Score, ...]
    server_version: str
    adapters: tuple[Adapter, ...] = ()
