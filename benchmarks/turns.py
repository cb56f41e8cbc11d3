"""Turns of several ways of doing the same, so that a busy machine slows all of them alike."""

import statistics
import time
from collections.abc import Callable, Mapping

SENTENCE = "The harbour office keeps a list of every ship that entered the bay between March and late October of 1923. "
CONTEXT = SENTENCE * 7
QUESTION = "Which ships does the list of the harbour office name for the month of October?"

TURN, UNTIMED = 10, 2  # calls of a turn; the first of them only bring the weights back into the caches


def take_turns(ways: Mapping[str, Callable[[], object]], num_calls: int) -> dict[str, list[list[float]]]:
    """Time each way by turns.

    Args:
        ways: what to call, by name.
        num_calls: calls to time of each, at least; rounded up to whole turns.

    Returns:
        Milliseconds of each call, by name and turn, [num_turns][TURN - UNTIMED].
    """
    times: dict[str, list[list[float]]] = {name: [] for name in ways}
    for _ in range(-(-num_calls // (TURN - UNTIMED))):
        for name, call in ways.items():
            turn = []
            for _ in range(TURN):
                begun = time.perf_counter()
                call()
                turn.append(1000 * (time.perf_counter() - begun))
            times[name].append(turn[UNTIMED:])
    return times


def flat(turns: list[list[float]]) -> list[float]:
    """Return the times of all turns."""
    return [value for turn in turns for value in turn]


def ratio(slow: list[list[float]], fast: list[list[float]]) -> float:
    """Return how many times faster one way is: the median over its turns beside the other's."""
    return statistics.median(statistics.median(a) / statistics.median(b) for a, b in zip(slow, fast, strict=True))


def difference(slow: list[list[float]], fast: list[list[float]]) -> float:
    """Return how many milliseconds longer one way takes: the median over its turns beside the other's."""
    return statistics.median(statistics.median(a) - statistics.median(b) for a, b in zip(slow, fast, strict=True))
