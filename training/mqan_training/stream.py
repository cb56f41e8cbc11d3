"""An endless, seeded stream of batches of a mixture; two numbers say where it stands, so that a run can be resumed."""

import queue
import threading
from collections import Counter
from collections.abc import Generator, Iterator, Sequence

import numpy as np

from mqan_core.example import Example
from mqan_core.layout import Layout
from mqan_core.text import read_tokens
from mqan_core.vocab import NUM_SPECIAL, Vocabulary
from mqan_training.batching import common_size
from mqan_training.collate import TrainingBatch, collate
from mqan_training.data.dataset import spell_answer
from mqan_training.data.noise import add_noise
from mqan_training.data.source import Source
from mqan_training.prepare import Prepared, prepare
from mqan_training.recipe import Recipe

_POOL = 2048  # examples that are drawn together, and cut into batches by length
_COUNTED = 40_000  # examples from which the generator's pieces are chosen
_AHEAD = 4  # batches that are made while the network learns


def shares_of(sources: Sequence[Source], recipe: Recipe) -> np.ndarray:
    """Return the share of each source in the examples, which sum to 1."""
    sizes = np.array([len(source) for source in sources], float)
    weights = np.array([recipe.sources[source.name] for source in sources]) * sizes ** (1 / recipe.temperature)
    shares: np.ndarray = weights / weights.sum()
    return shares


class MixtureStream:
    """Batches of examples drawn from sources.

    Args:
        sources: at least one.
        recipe: says in what proportions, and how large batches are.
        vocabulary: of the generator.
        layout: of the reader.
    """

    def __init__(self, sources: Sequence[Source], recipe: Recipe, vocabulary: Vocabulary, layout: Layout) -> None:
        self._sources = sources
        self._recipe = recipe
        self._vocabulary = vocabulary
        self._layout = layout
        self._shares = shares_of(sources, recipe)

    def draw(self, rng: np.random.Generator) -> Example:
        """Draw one example."""
        source = self._sources[int(rng.choice(len(self._sources), p=self._shares))]
        example = source.draw(int(rng.integers(len(source))), rng)
        return add_noise(example, rng) if rng.random() < self._recipe.noise_rate else example

    def pool(self, number: int) -> list[list[Prepared]]:
        """Return the batches of a pool, which the seed and its number alone decide."""
        rng = np.random.default_rng([self._recipe.seed, 7, number])
        drawn = (self.draw(rng) for _ in range(_POOL))
        limit = self._recipe.max_answer_tokens
        found = [prepare(example, self._vocabulary, self._layout, limit, rng) for example in drawn]
        examples = sorted((e for e in found if e is not None), key=lambda e: e.cost)
        batches = list(_cut(examples, self._recipe.batch_pieces))
        return [batches[i] for i in rng.permutation(len(batches))]

    def batches(self, pool: int, index: int) -> Generator[tuple[int, int, list[Prepared], TrainingBatch], None, None]:
        """Yield batches from a place on: the place behind each, its examples, and their tensors.

        They are made on a thread of their own, which ends with the iterator.
        """
        made: queue.Queue[tuple[int, int, list[Prepared], TrainingBatch] | BaseException] = queue.Queue(_AHEAD)
        stop = threading.Event()

        def put(item: tuple[int, int, list[Prepared], TrainingBatch] | BaseException) -> None:
            while not stop.is_set():
                try:
                    return made.put(item, timeout=0.5)
                except queue.Full:
                    continue

        def work() -> None:
            number, first = pool, index
            try:
                while not stop.is_set():
                    batches = self.pool(number)
                    for i in range(first, len(batches)):
                        batch = collate(batches[i], self._layout, self._vocabulary.num_generated)
                        put((number, i + 1, batches[i], batch))
                    number, first = number + 1, 0
            except BaseException as error:  # the loop must see it
                put(error)

        threading.Thread(target=work, name="batches", daemon=True).start()
        try:
            while True:
                item = made.get()
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            stop.set()


def generator_pieces(sources: Sequence[Source], recipe: Recipe) -> list[str]:
    """Choose the generator's pieces from drawn examples: first those that answers need and cannot copy, by use."""
    rng = np.random.default_rng([recipe.seed, 8])
    shares = shares_of(sources, recipe)
    needed: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for _ in range(_COUNTED):
        source = sources[int(rng.choice(len(sources), p=shares))]
        example = source.draw(int(rng.integers(len(source))), rng)
        if example.choices or not example.answers:
            continue
        context, question = read_tokens(example.context), read_tokens(example.question)
        known = {token.key for token in (*context, *question)}
        answer = spell_answer(example, context, question)[: recipe.max_answer_tokens]
        needed.update(piece for piece in answer if piece not in known)
        total.update(known)
        total.update(answer)
    ranked = sorted(total, key=lambda piece: (-needed[piece], -total[piece], piece))
    return ranked[: recipe.num_generated - NUM_SPECIAL]


def _cut(examples: Sequence[Prepared], budget: int) -> Iterator[list[Prepared]]:
    batch: list[Prepared] = []
    for example in examples:
        if batch and common_size(example.cost) * (len(batch) + 1) > budget:
            yield batch
            batch = []
        batch.append(example)
    if batch:
        yield batch
