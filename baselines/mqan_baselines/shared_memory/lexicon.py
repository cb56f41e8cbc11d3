"""The words that a word-by-word reader has vectors of, and texts as their numbers.

A word is a lower-cased word of the project's own tokenizer.
"""

from collections.abc import Sequence
from typing import Final

from mqan_core.text import measure, read_tokens

PADDING, UNKNOWN = 0, 1
NUM_SPECIAL: Final = 2


class Lexicon:
    """The words that have vectors; all others share that of the unknown word.

    Args:
        words: distinct, in the order of their numbers, which begin at 2.

    Raises:
        ValueError: a word is there twice.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self._number_of = {word: i for i, word in enumerate(words, NUM_SPECIAL)}
        if len(self._number_of) != len(self.words):
            raise ValueError("lexicon: a word is there twice")

    def __len__(self) -> int:
        return len(self.words) + NUM_SPECIAL

    def count(self, *texts: str) -> int:
        """Return how many words there are to read."""
        return sum(measure(text).num_tokens for text in texts)

    def numbers(self, text: str, most_words: int) -> list[int]:
        """Return the numbers of a text's last words, at most so many, at least one.

        The last ones, since a text is classified by the state after its last word.
        """
        numbers = [self._number_of.get(word, UNKNOWN) for word in words_of(text)[-most_words:]]
        return numbers or [UNKNOWN]


def words_of(text: str) -> list[str]:
    """Return the lower-cased words of a text."""
    return [token.word for token in read_tokens(text)]
