"""Questions drawn from sources, the same ones every time."""

import zlib
from collections.abc import Sequence

import numpy as np

from mqan_core.example import Example
from mqan_data.source import Source


def draw_questions(sources: Sequence[Source], each: int, seed: int) -> list[Example]:
    """Return so many questions about different rows of each source, or about all of its rows.

    What is drawn about a row depends on its source, too: otherwise the same kinds of questions would be asked of all.
    """
    drawn: list[Example] = []
    for source in sources:
        own = zlib.crc32(source.name.encode())
        order = np.random.default_rng([seed, own]).permutation(len(source))[:each]
        drawn += [source.draw(int(i), np.random.default_rng([seed, own, int(i)])) for i in sorted(order)]
    return drawn
