"""A question about a context, read into tokens and slots."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mqan_core.answer.types import Span
from mqan_core.ask.listed import find_listed
from mqan_core.ask.options import MOST_CHOICES
from mqan_core.errors import InputError
from mqan_core.example import Choice
from mqan_core.text.tokens import Token, has_words, read_tokens
from mqan_core.text.vocab import Slots, Vocabulary, number_slots


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the model reads it.

    Attributes:
        context_tokens: tokens of the context that the model reads.
        question_tokens: tokens of the question that the model reads: without labels that it lists, which are choices.
        slots: their distinct pieces, numbered. After the question's words stand the separators of the choices, each
            a piece of its own.
        choices: the closed set of labels, empty for a free answer.
        choice_tokens: tokens of each label, its description after it.
        label_places: where the question has each label; empty for the caller's own choices.
    """

    context: str
    question: str
    context_tokens: tuple[Token, ...]
    question_tokens: tuple[Token, ...]
    slots: Slots
    choices: tuple[Choice, ...] = ()
    choice_tokens: tuple[tuple[Token, ...], ...] = ()
    label_places: tuple[Span, ...] = ()

    @property
    def listed(self) -> tuple[Choice, ...]:
        """The choices that the question lists, in its order."""
        places = zip(self.choices, self.label_places, strict=False)
        return tuple(choice for choice, place in sorted(places, key=lambda pair: pair[1].start))

    @property
    def num_context_tokens(self) -> int:
        """Tokens of the context."""
        return len(self.context_tokens)

    @property
    def num_question_tokens(self) -> int:
        """Tokens of the question."""
        return len(self.question_tokens)

    @property
    def num_read(self) -> int:
        """Tokens that are read."""
        return self.num_context_tokens + self.num_question_tokens


def read_request(vocabulary: Vocabulary, context: str, question: str, choices: Sequence[Choice] = ()) -> Request:
    """Tokenise a context, a question and the labels to choose from.

    Raises:
        InputError: the context, the question or a label holds nothing but white space.
    """
    return _request(vocabulary, context, question, read_tokens(question), choices)


def read_listing(vocabulary: Vocabulary, context: str, question: str) -> Request:
    """Tokenise a context and a question without choices; labels that the question lists become choices, sorted.

    Raises:
        InputError: the context or the question holds nothing but white space.
    """
    listed = find_listed(question, MOST_CHOICES)
    if listed is None:
        return read_request(vocabulary, context, question)
    tokens = [t for t in read_tokens(question) if t.end <= listed.place.start or t.start >= listed.place.end]
    places = tuple(sorted(listed.labels, key=lambda place: question[place.start : place.end]))
    choices = [Choice(question[place.start : place.end]) for place in places]
    return replace(_request(vocabulary, context, question, tokens, choices), label_places=places)


def _request(
    vocabulary: Vocabulary, context: str, question: str, question_tokens: Sequence[Token], choices: Sequence[Choice]
) -> Request:
    context_tokens = read_tokens(context)
    choice_tokens = tuple(tuple(read_tokens(_shown(choice))) for choice in choices)
    for name, tokens in (("context", context_tokens), ("question", question_tokens)):
        if not tokens:
            raise empty(name)
    if not all(has_words(choice.label) for choice in choices):  # a description is no label
        raise empty("choice")
    separators = [separator(i) for i in range(len(choices))]
    slots = number_slots(vocabulary, [t.key for t in context_tokens], [*(t.key for t in question_tokens), *separators])
    return Request(
        context, question, tuple(context_tokens), tuple(question_tokens), slots, tuple(choices), choice_tokens
    )


def empty(name: str) -> InputError:
    """Return the error that a context, question or label holds nothing to read."""
    return InputError(
        f"empty_{name}", name, f"The {name} is empty or white space only.", f"Send a {name} with some text."
    )


def separator(choice: int) -> str:
    """Return the piece that stands for the separator in front of a label; no text holds it."""
    return f"<choice {choice}>"


def _shown(choice: Choice) -> str:
    return f"{choice.label}: {choice.description}" if choice.description else choice.label
