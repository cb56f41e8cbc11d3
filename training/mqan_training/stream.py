"""An endless, seeded stream of batches of a mixture; two numbers say where it stands, so that a run can be resumed."""

import gc
from bisect import bisect_left
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from functools import cached_property

import numpy as np
import torch
from safetensors.torch import load, save
from torch.utils.data import DataLoader, Dataset

from mqan_core.example import Example
from mqan_core.text.layout import Layout
from mqan_core.text.tokens import read_tokens
from mqan_core.text.vocab import NUM_SPECIAL, Vocabulary
from mqan_data.kept import KeptPools
from mqan_data.noise import add_noise
from mqan_data.source import Source
from mqan_training.collate import TrainingBatch, collate, common_shape
from mqan_training.numbering import spell_answer
from mqan_training.prepare import Prepared, prepare
from mqan_training.recipe import Recipe

_POOL = 16_384  # examples that are drawn together, and cut into batches by length
_POOLS = 1 << 31  # more than any run takes
_STEPS = (1, 4, 8, 16)  # batches have answers of alike lengths: the decoder takes its steps one after the other
_COUNTED = 40_000  # examples from which the generator's pieces are chosen


def shares_of(sources: Sequence[Source], recipe: Recipe) -> np.ndarray:
    """Return the share of each source in the examples, which sum to 1."""
    sizes = np.array([len(source) for source in sources], float)
    weights = np.array([recipe.sources[source.name] for source in sources]) * sizes ** (1 / recipe.temperature)
    shares: np.ndarray = weights / weights.sum()
    return shares


class MixtureStream(Dataset[torch.Tensor]):
    """Batches of examples drawn from sources; as torch's dataset, the batches of each pool as safetensors.

    Args:
        sources: at least one.
        recipe: says in what proportions, and how large batches are.
        vocabulary: of the generator.
        layout: of the reader.
        kept: where pools are kept, and where those that were drawn before are found; None for nowhere.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        recipe: Recipe,
        vocabulary: Vocabulary,
        layout: Layout,
        kept: KeptPools | None = None,
    ) -> None:
        self._sources = sources
        self._recipe = recipe
        self._vocabulary = vocabulary
        self._layout = layout
        self._kept = kept

    @cached_property
    def _shares(self) -> np.ndarray:
        return shares_of(self._sources, self._recipe)

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
        groups: list[list[Prepared]] = [[] for _ in range(len(_STEPS) + 1)]
        for example in (e for e in found if e is not None):
            groups[bisect_left(_STEPS, len(example.slots))].append(example)
        batches = [batch for group in groups for batch in _cut(group, self._recipe.batch_pieces)]
        return [batches[i] for i in rng.permutation(len(batches))]

    def __getitem__(self, number: int) -> torch.Tensor:
        """Return the batches of a pool as safetensors: one block of shared memory and not one for each tensor."""
        content = None if self._kept is None else self._kept.read_pool(number)
        if content is None:
            content = self._made(number)
            if self._kept is not None:
                self._kept.write_pool(number, content)
        return torch.frombuffer(bytearray(content), dtype=torch.uint8)

    def _made(self, number: int) -> bytes:
        made = (collate(batch, self._layout, self._vocabulary.num_generated) for batch in self.pool(number))
        named = {f"{i}.{j}": tensor for i, batch in enumerate(made) for j, tensor in enumerate(batch.tensors())}
        return save(named)

    def batches(
        self, pool: int, index: int, num_workers: int = 1
    ) -> Generator[tuple[int, int, TrainingBatch], None, None]:
        """Yield batches from a place on, each with the place behind it; they are made in processes of their own.

        Args:
            pool: number of the first pool.
            index: of its first batch.
            num_workers: processes; the batches are the same with any number of them.
        """
        if num_workers > 1:
            _ = self._shares  # read what all of them draw from once
        gc.collect()
        gc.freeze()  # the examples stay: no process need look through them, nor copy their pages
        first = None if self._kept is None else self._kept.read_pool(pool)
        numbers = range(pool + (first is not None), _POOLS)
        pools = DataLoader(
            self,
            batch_size=None,
            sampler=numbers,
            num_workers=num_workers,
            multiprocessing_context="fork",
            generator=torch.Generator(),  # or it would take a number from the run's
        )
        drawn = iter(pools)  # from here on the others are drawn
        for number in range(pool, _POOLS):
            named = load(next(drawn).numpy().tobytes() if first is None else first)
            first = None
            num_tensors = 1 + max(int(name.split(".")[1]) for name in named)
            for i in range(index, len(named) // num_tensors):
                yield number, i + 1, TrainingBatch.of_tensors([named[f"{i}.{j}"] for j in range(num_tensors)])
            index = 0


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
    """Cut examples into batches, the longest first, whose number of rows their longest one alone decides.

    The last one is filled up with examples of the one before: few shapes of batches are few products to compile.
    """
    ordered = sorted(examples, key=lambda example: -example.cost)
    start = 0
    while start < len(ordered):
        size = max(budget // common_shape(ordered[start].cost, bits=3), 1)
        batch = ordered[start : start + size]
        yield batch + ordered[max(start + len(batch) - size, 0) : start][: size - len(batch)]
        start += size
