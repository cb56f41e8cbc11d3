"""An answer and where each of its words came from: the result type that every layer passes on unchanged."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from mqan_core.text.tokens import HALF_SPACE, detokenize, has_words


class Source(StrEnum):
    """Where a word of an answer came from."""

    CONTEXT = "context"
    QUESTION = "question"
    VOCABULARY = "vocabulary"


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range of Unicode code points in the caller's string."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Masses:
    """The model's trust in the three sources at one step (equation 13); the three sum to 1."""

    context: float  # (1 - gamma) * lambda
    question: float  # (1 - gamma) * (1 - lambda)
    vocabulary: float  # gamma


@dataclass(frozen=True, slots=True)
class AnswerToken:
    """One token of an answer; a copied one's text is exactly ``source_text[span.start:span.end]``."""

    text: str
    piece: str  # the text with its half spaces, from which the answer is joined
    probability: float  # p(w_t) of equation 13
    source: Source  # the term of equation 13 that gave it most of its probability
    masses: Masses
    span: Span | None  # of those that hold the token, the position with the most pointer mass; None if generated


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """Neighbouring copied tokens as one quotation: ``text`` is exactly ``source_text[start:end]``."""

    source: Source
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class ChoiceProbability:
    """The probability of one of the labels to choose from."""

    label: str
    probability: float  # its share of all choices and the refusal
    among_choices: float  # its share of the choices alone
    against_refusal: float  # its share of itself and the refusal: over one half where it holds, when several can
    evidence: "tuple[Place, ...]" = ()  # what decides for it; empty where it was not chosen


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the context that answers, or decides for a label, and how likely it does."""

    span: AnswerSpan
    probability: float


@dataclass(frozen=True, slots=True)
class Candidate:
    text: str
    probability: float  # its share of the mixture
    source: Source  # that gave most of it


@dataclass(frozen=True, slots=True)
class StepExplanation:
    """The words that the model looked at when it chose one, and those it chose from, the largest first."""

    context: tuple[tuple[Span, float], ...]
    question: tuple[tuple[Span, float], ...]
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class ParsedValue:
    """A value in an answer that was read as a structure, and the quotations in it."""

    name: str  # of its slot, in lower case, or of its column, as the context has it
    text: str  # as it stands in the answer; of a request the slot itself
    spans: tuple[AnswerSpan, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    operator: str  # ``=``, ``>`` or ``<``
    value: ParsedValue


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    select: str  # the selected column, as the context has it
    aggregation: str  # MAX, MIN, COUNT, SUM, AVG, or empty
    conditions: tuple[Condition, ...]  # all of them hold
    sql: str  # standard SQL


@dataclass(frozen=True, slots=True)
class ParsedState:
    """A change of a dialogue's state: the values that its slots get, and the slots that are asked for."""

    slots: tuple[ParsedValue, ...]
    requests: tuple[ParsedValue, ...]


@dataclass(frozen=True, slots=True)
class AdapterVersion:
    """The name of an adapter, and the hash of its file."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its sources.

    Quotations keep the caller's casing and spacing, generated words are lower case; a refusal has no text. The
    probability is the product of those of the tokens and, unless ``truncated``, of the end; of a chosen label or a
    refusal it is its own; it is mapped by the bundle's calibration where it has one. The tokens of a chosen label have
    the question as source, and spans into the label, or into the question where that lists it.
    """

    text: str
    probability: float
    tokens: tuple[AnswerToken, ...]
    spans: tuple[AnswerSpan, ...]
    truncated: bool  # stopped at the limit of tokens, or where it would have said the same again and again
    answered: bool = True
    refusal: float = 0.0  # probability of there being none; 0 of a model that cannot refuse
    choices: tuple[ChoiceProbability, ...] = ()  # in the caller's order; empty for a free answer
    chosen: tuple[str, ...] = ()  # those that hold
    expected: float | None = None  # of a scale, the lowest level being 1
    alternatives: "tuple[Answer, ...]" = ()  # the next best answers, each whole, the likeliest first
    places: tuple[Place, ...] = ()  # all that answer, in the order of the text, where all are asked for
    num_windows: int = 1
    explanation: tuple[StepExplanation, ...] = ()
    is_multiple: bool = False
    may_be_none: bool = False  # none of the choices could be the answer, so that all probabilities sum to 1
    parsed: ParsedQuery | ParsedState | None = None
    parse_error: str | None = None
    adapter: AdapterVersion | None = None  # that decided between the choices

    @property
    def shares(self) -> tuple[float, ...]:
        """The probability of each choice: among all, all and none, or by itself where several can be right."""
        if self.is_multiple:
            return tuple(choice.against_refusal for choice in self.choices)
        return tuple(choice.probability if self.may_be_none else choice.among_choices for choice in self.choices)

    @property
    def confidence(self) -> float:
        """The best choice's share, or the probability; of no answer, that there is none."""
        if self.choices and self.answered:
            return max(self.shares)
        return self.probability if self.answered else self.refusal


def compose(tokens: Sequence[AnswerToken], probability: float, truncated: bool, context: str, question: str) -> Answer:
    """Join answer tokens into text and merge neighbouring copied tokens into quotations.

    Two copied tokens are neighbours when they come from the same source, in order, with nothing that is read between
    them, that is, white space and invisible characters; their quotation is the caller's own text, these included.
    """
    texts = {Source.CONTEXT: context, Source.QUESTION: question}
    pieces: list[str] = []
    spans: list[AnswerSpan] = []
    runs: list[list[AnswerToken]] = []
    for token in tokens:
        if runs and _continues(runs[-1][-1], token, texts):
            runs[-1].append(token)
        else:
            runs.append([token])
    for run in runs:
        first, last = run[0], run[-1]
        if first.span is None or last.span is None:
            pieces.append(first.piece)
            continue
        start, end = first.span.start, last.span.end
        quotation = texts[first.source][start:end]
        spans.append(AnswerSpan(first.source, start, end, quotation))
        opening = HALF_SPACE if first.piece.startswith(HALF_SPACE) else ""
        closing = HALF_SPACE if last.piece.endswith(HALF_SPACE) else ""
        pieces.append(opening + quotation.replace(" ", HALF_SPACE * 2) + closing)
    text = detokenize(pieces).strip()
    return Answer(text, probability, tuple(tokens), tuple(spans), truncated)


def _continues(left: AnswerToken, right: AnswerToken, texts: dict[Source, str]) -> bool:
    if left.span is None or right.span is None or left.source is not right.source:
        return False
    gap_start, gap_end = left.span.end, right.span.start
    return gap_start <= gap_end and not has_words(texts[left.source][gap_start:gap_end])
