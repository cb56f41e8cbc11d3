"""Mini-batches of nearly one length, drawn by a seed."""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

T = TypeVar("T")
_TOGETHER: Final = 20  # batches of which the rows are sorted by length


def draw(rows: Sequence[T], most: int, seed: int, together: int = 1) -> list[T]:
    """Return so many rows at random, in their own order; all of them if ``most`` is 0 or there are no more.

    Args:
        rows: to draw from.
        most: how many; a multiple of ``together`` at most, but one group at least.
        seed: of the draw.
        together: rows that stand so many together are drawn together.
    """
    if not most or len(rows) <= most:
        return list(rows)
    starts = random.Random(seed).sample(range(0, len(rows), together), max(most // together, 1))  # noqa: S311
    return [row for start in sorted(starts) for row in rows[start : start + together]]


def refuse_empty(splits: Mapping[str, Sequence[object]]) -> None:
    """Check that splits have rows, before anything is trained.

    Raises:
        ValueError: some have none; the message lists their names.
    """
    if empty := [name for name, rows in splits.items() if not rows]:
        raise ValueError(f"there are no rows: {', '.join(empty)}")


def mini_batches(lengths: Sequence[int], size: int, generator: random.Random) -> list[list[int]]:
    """Return the places of all rows in batches, at random: each row once, rows of a batch nearly of one length."""
    order = list(range(len(lengths)))
    generator.shuffle(order)
    batches = []
    for first in range(0, len(order), size * _TOGETHER):
        together = sorted(order[first : first + size * _TOGETHER], key=lengths.__getitem__)
        batches += [together[start : start + size] for start in range(0, len(together), size)]
    generator.shuffle(batches)
    return batches


def endless_batches(lengths: Sequence[int], size: int, generator: random.Random) -> Iterator[list[int]]:
    """Yield batches for ever: all rows once, then all again in another order.

    Raises:
        ValueError: there are no rows.
    """
    if not lengths:
        raise ValueError("there are no rows to train on")
    while True:
        yield from mini_batches(lengths, size, generator)


def sorted_batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Return the places of all rows, the shortest first, in batches: for evaluation."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    return [order[start : start + size] for start in range(0, len(order), size)]
