"""A question about a context, read into tokens and slots."""

from dataclasses import dataclass

from mqan_core.errors import InputError
from mqan_core.text import Token, read_tokens
from mqan_core.vocab import Slots, Vocabulary, number_slots


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the model reads it.

    Attributes:
        context: the caller's context.
        question: the caller's question.
        context_tokens: tokens of the context that the model reads.
        question_tokens: tokens of the question that the model reads.
        slots: their distinct pieces, numbered.
    """

    context: str
    question: str
    context_tokens: tuple[Token, ...]
    question_tokens: tuple[Token, ...]
    slots: Slots

    @property
    def num_context_tokens(self) -> int:
        """Tokens of the context."""
        return len(self.context_tokens)

    @property
    def num_question_tokens(self) -> int:
        """Tokens of the question."""
        return len(self.question_tokens)


def read_request(vocabulary: Vocabulary, context: str, question: str) -> Request:
    """Tokenise a context and a question.

    Raises:
        InputError: the context or the question holds nothing but white space.
    """
    context_tokens, question_tokens = read_tokens(context), read_tokens(question)
    for name, tokens in (("context", context_tokens), ("question", question_tokens)):
        if not tokens:
            raise InputError(
                f"empty_{name}", name, f"The {name} is empty or white space only.", f"Send a {name} with some text."
            )
    slots = number_slots(vocabulary, [t.key for t in context_tokens], [t.key for t in question_tokens])
    return Request(context, question, tuple(context_tokens), tuple(question_tokens), slots)
