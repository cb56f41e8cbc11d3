"""The words of an answer one by one, as they are decided, each with what it appends to the answer's text."""

from collections.abc import Sequence
from dataclasses import dataclass

from mqan_core.answer.types import Answer, AnswerToken, compose


@dataclass(frozen=True, slots=True)
class StreamedWord:
    """A word of an answer that is not whole yet; nothing takes it back."""

    token: AnswerToken
    delta: str  # what it appends to the answer's text, with what stands between it and the word before it


class WordStream:
    def __init__(self, context: str, question: str) -> None:
        self._context = context
        self._question = question
        self._tokens: list[AnswerToken] = []
        self._num_chars = 0  # of the text, up to the last word

    def add(self, tokens: Sequence[AnswerToken]) -> list[StreamedWord]:
        """Return the next words of an answer that is not whole yet."""
        self._tokens += tokens
        text = compose(self._tokens, 1.0, False, self._context, self._question).text
        return self._cut(text, tokens)

    def end(self, answer: Answer) -> list[StreamedWord]:
        return self._cut(answer.text, answer.tokens[len(self._tokens) :])

    def _cut(self, text: str, tokens: Sequence[AnswerToken]) -> list[StreamedWord]:
        words = []
        for token in tokens:
            end = text.index(token.text, self._num_chars) + len(token.text)
            words.append(StreamedWord(token, text[self._num_chars : end]))
            self._num_chars = end
        return words
