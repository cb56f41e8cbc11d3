"""The windows in which a contextual encoder reads a long context, each with the question before it."""

from collections.abc import Iterator
from typing import Final

WINDOW: Final = 300  # words of a context that are read together
MOST_QUESTION: Final = 200  # words of a question that are read; those behind them get nothing added


def windows_of(num_context: int) -> Iterator[slice]:
    """Yield the places of each window's words in a context."""
    for first in range(0, num_context, WINDOW):
        yield slice(first, min(first + WINDOW, num_context))
