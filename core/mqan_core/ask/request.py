"""A question about a context, read into tokens and slots."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from mqan_core.answer.types import Span
from mqan_core.ask.listed import find_listed
from mqan_core.ask.options import MOST_CHOICES, PLAIN, Options
from mqan_core.errors import InputError
from mqan_core.example import Choice
from mqan_core.text.tokens import Size, Token, has_words, measure, read_tokens
from mqan_core.text.vocab import Slots, Vocabulary, number_slots

Check = Callable[[str, str, Size], None]
"""Takes the name of a text (``context``, ``question``, ``choice``), the text and its size; raises what refuses it."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the model reads it."""

    context: str
    question: str
    context_tokens: tuple[Token, ...]
    question_tokens: tuple[Token, ...]  # without labels that it lists, which are choices
    slots: Slots  # after the question's words stand the choices' separators, each a piece of its own
    choices: tuple[Choice, ...] = ()
    choice_tokens: tuple[tuple[Token, ...], ...] = ()  # of each label, its description after it
    label_places: tuple[Span, ...] = ()  # in the question; empty for the caller's own choices
    options: Options = PLAIN  # their choices are in the order of the caller or of the question

    @property
    def num_context_tokens(self) -> int:
        return len(self.context_tokens)

    @property
    def num_question_tokens(self) -> int:
        return len(self.question_tokens)

    @property
    def num_read(self) -> int:
        return self.num_context_tokens + self.num_question_tokens


def read_question(
    vocabulary: Vocabulary, context: str, question: str, options: Options = PLAIN, check: Check | None = None
) -> Request:
    """Tokenise a question as it is answered. Labels that it lists become choices, if it has none of its own.

    Choices are read in one order whatever the caller's: 8-bit products round on what is added up in another order. The
    check sees each text before its tokens are made. InputError: a text is blank, or options make no sense together.
    """
    context_tokens = read_tokens(context, check and partial(check, "context", context))
    question_tokens = read_tokens(question, check and partial(check, "question", question))
    options.check()
    listed = find_listed(question, MOST_CHOICES) if options.takes_labels else None
    if listed is None:
        if check is not None:
            for text in (text for choice in options.choices for text in (choice.label, choice.description)):
                if text:
                    check("choice", text, measure(text))
        choices = reading_order(options.choices)
        read = _request(vocabulary, context, question, context_tokens, question_tokens, choices)
        return replace(read, options=options)
    left = [t for t in question_tokens if t.end <= listed.place.start or t.start >= listed.place.end]
    places = tuple(sorted(listed.labels, key=lambda place: question[place.start : place.end]))
    in_order, choices = (
        [Choice(question[place.start : place.end]) for place in some] for some in (listed.labels, places)
    )
    read = _request(vocabulary, context, question, context_tokens, left, choices)
    return replace(read, label_places=places, options=replace(options, choices=tuple(in_order)))


def reading_order(choices: Sequence[Choice]) -> list[Choice]:
    """Return choices in the order in which they are read."""
    return sorted(choices, key=lambda choice: (choice.label, choice.description))


def read_request(vocabulary: Vocabulary, context: str, question: str, choices: Sequence[Choice] = ()) -> Request:
    """Tokenise a context, a question and the labels to choose from, as they stand; refuse what is blank."""
    return _request(vocabulary, context, question, read_tokens(context), read_tokens(question), choices)


def _request(
    vocabulary: Vocabulary,
    context: str,
    question: str,
    context_tokens: Sequence[Token],
    question_tokens: Sequence[Token],
    choices: Sequence[Choice],
) -> Request:
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
    return InputError(
        f"empty_{name}", name, f"The {name} is empty or white space only.", f"Send a {name} with some text."
    )


def separator(choice: int) -> str:
    """Return the piece that stands for the separator in front of a label; no text holds it."""
    return f"<choice {choice}>"


def _shown(choice: Choice) -> str:
    return f"{choice.label}: {choice.description}" if choice.description else choice.label
