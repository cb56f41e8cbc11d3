"""An endless, seeded stream of batches; two numbers say where it stands, so that a run can be resumed.

The batches of a pool are decided by the seed and the pool's number alone. A pool of the order ``mixed`` is examples of
all sources, cut into batches by length; one of ``by_task`` is the batches of so many steps, of the sources in turn. The
pools of a phase have numbers of their own.
"""

import gc
from bisect import bisect_left
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from safetensors.torch import load, save
from torch.utils.data import DataLoader, Dataset

from mqan_core.example import Example
from mqan_data.derived import Source
from mqan_data.kept import KeptPools
from mqan_data.noise import add_noise
from mqan_training.batch import Batch, common_shape
from mqan_training.piece_examples import PieceExample
from mqan_training.recipe import Recipe
from mqan_training.words import WordExample

_POOL_STEPS = 64  # batches of a pool where sources take turns
POOLS = 1 << 16  # of a phase; more than any run takes
_STEPS = (1, 4, 8, 16)  # batches have answers of alike lengths: the decoder takes its steps one after the other
_MOST_USELESS = 4096  # examples drawn one after the other of which none can be trained on
_COUNTED = 40_000  # examples from which the generator's tokens are chosen, or more for a large generator
_MIXED = -1
_TURNS = "turns"  # for each batch its source, or _MIXED, and whether it counts


Prepared = PieceExample | WordExample


class Collation(Protocol):
    @property
    def batch(self) -> type[Batch]: ...

    def prepare(self, example: Example, rng: np.random.Generator) -> Prepared | None: ...

    def collate(self, examples: Sequence[Any]) -> Batch: ...


class Drawn(NamedTuple):
    """A batch, and the place after it."""

    pool: int
    next: int
    batch: Batch
    source: str  # whose examples it holds; "" for several
    counts: bool  # False where a process's share of a batch is empty, so that this is a row of another


def shares_of(sources: Sequence[Source], weights: Mapping[str, float], temperature: float) -> np.ndarray:
    sizes = np.array([len(source) for source in sources], float)
    weighted = np.array([weights.get(source.name, 0.0) for source in sources]) * sizes ** (1 / temperature)
    return weighted / weighted.sum()


def round_of(weights: Mapping[str, float]) -> list[str]:
    """Spread the sources of one round evenly: one of weight w stands at every 1/w of the round."""
    places = [((i + 0.5) / weight, name) for name, weight in weights.items() for i in range(int(weight))]
    return [name for _, name in sorted(places, key=lambda place: place[0])]


class Stream(Dataset[torch.Tensor]):
    """Batches of examples drawn from sources; as torch's dataset, the batches of each pool as safetensors."""

    def __init__(
        self,
        sources: Sequence[Source],
        recipe: Recipe,
        reader: Collation,
        kept: KeptPools | None = None,
        share: tuple[int, int] = (0, 1),  # number of this process, of how many that divide the rows of each batch
    ) -> None:
        self._sources = sources
        self._recipe = recipe
        self._reader = reader
        self._kept = kept
        self._share = share
        self._shares: dict[int, np.ndarray] = {}

    def _shares_in(self, phase: int) -> np.ndarray:
        if phase not in self._shares:
            recipe = self._recipe
            self._shares[phase] = shares_of(self._sources, recipe.weights_of(phase), recipe.temperature)
        return self._shares[phase]

    def _draw(self, source: Source, rng: np.random.Generator) -> Example:
        example = source.draw(int(rng.integers(len(source))), rng)
        return add_noise(example, rng) if rng.random() < self._recipe.noise_rate else example

    def pool(self, number: int) -> list[tuple[int, list[Prepared]]]:
        """Return the batches of a pool, each with the number of its source, or -1 for several."""
        rng = np.random.default_rng([self._recipe.seed, 7, number])
        phase, place = divmod(number, POOLS)
        if self._recipe.order == "by_task":
            return self._turns(phase, place * _POOL_STEPS, rng)
        shares = self._shares_in(phase)
        drawn = (
            self._draw(self._sources[int(rng.choice(len(shares), p=shares))], rng)
            for _ in range(self._recipe.pool_size)
        )
        batches = self._cut([found for example in drawn if (found := self._asked_twice(example, rng))])
        return [(_MIXED, batches[i]) for i in rng.permutation(len(batches))]

    def _asked_twice(self, example: Example, rng: np.random.Generator) -> list[Prepared]:
        """Prepare an example and its twin, if it has one; none where it cannot be trained on."""
        both = [example] if example.twin is None else [example, replace(example.twin, task=example.task)]
        found = [self._reader.prepare(one, rng) for one in both]
        return [] if found[0] is None else [one for one in found if one is not None]

    def _turns(self, phase: int, first: int, rng: np.random.Generator) -> list[tuple[int, list[Prepared]]]:
        one_round = round_of(self._recipe.weights_of(phase))
        numbers = {source.name: number for number, source in enumerate(self._sources)}
        turns = [numbers[one_round[step % len(one_round)]] for step in range(first, first + _POOL_STEPS)]
        batches = {n: iter(self._batches_of(self._sources[n], turns.count(n), rng)) for n in dict.fromkeys(turns)}
        return [(number, next(batches[number])) for number in turns]

    def _batches_of(self, source: Source, number: int, rng: np.random.Generator) -> list[list[Prepared]]:
        found: list[list[Prepared]] = []
        batches: list[list[Prepared]] = []
        cost, num_useless = 0, 0
        while len(batches) < number:
            wanted = cost + (number - len(batches)) * self._recipe.batch_size
            while cost < wanted:
                example = self._reader.prepare(self._draw(source, rng), rng)
                num_useless = num_useless + 1 if example is None else 0
                if num_useless == _MOST_USELESS:
                    raise ValueError(f"{source.name}: of {num_useless} examples none can be trained on by this recipe")
                if example is not None:
                    found.append([example])
                    cost += example.cost
            batches = self._cut(found)
        return [batches[i] for i in rng.permutation(len(batches))[:number]]

    def _cut(self, examples: Sequence[Sequence[Prepared]]) -> list[list[Prepared]]:
        # The longest example alone decides the number of rows; the last batch is filled up with examples of the one
        # before: few shapes of batches are few products to compile.
        batches: list[list[Prepared]] = []
        for steps in range(len(_STEPS) + 1):
            alike = [some for some in examples if bisect_left(_STEPS, some[0].num_steps) == steps]
            alike.sort(key=lambda some: -max(example.cost for example in some))
            group = [example for some in alike for example in some]
            start = 0
            while start < len(group):
                size = max(self._recipe.batch_size // common_shape(group[start].cost, bits=3), 1)
                batch = group[start : start + size]
                batches.append(batch + group[max(start + len(batch) - size, 0) : start][: size - len(batch)])
                start += size
        return batches

    def examples(self) -> Iterator[Example]:
        """Yield the examples from which the generator's tokens are chosen."""
        recipe = self._recipe
        rng = np.random.default_rng([recipe.seed, 8])
        shares = self._shares_in(0)
        for _ in range(max(_COUNTED, 6 * recipe.num_generated)):
            source = self._sources[int(rng.choice(len(shares), p=shares))]
            yield source.draw(int(rng.integers(len(source))), rng)

    def __getitem__(self, number: int) -> torch.Tensor:
        """Return the batches of a pool as safetensors: one block of shared memory and not one for each tensor."""
        content = None if self._kept is None else self._kept.read(f"pool-{number}")
        if content is None:
            content = self._made(number)
            if self._kept is not None:
                self._kept.write_pool(number, content)
        return torch.frombuffer(bytearray(content), dtype=torch.uint8)

    def _made(self, number: int) -> bytes:
        rank, count = self._share
        named: dict[str, torch.Tensor] = {}
        turns = []
        for i, (source, rows) in enumerate(self.pool(number)):
            own = rows[rank::count]
            turns.append([source, bool(own)])
            batch = self._reader.collate(own or rows[:1])
            named |= {f"{i}.{j}": tensor for j, tensor in enumerate(batch.tensors())}
        return save(named | {_TURNS: torch.tensor(turns)})

    def batches(self, pool: int, index: int, num_workers: int = 1) -> Generator[Drawn, None, None]:
        """Yield batches from a place on; processes of their own make them, the same with any number of these."""
        if num_workers > 1 or self._recipe.phases:
            _ = [len(source) for source in self._sources]  # read what all of them draw from once
        gc.collect()
        gc.freeze()  # the examples stay: no process need look through them, nor copy their pages
        first = None if self._kept is None else self._kept.read(f"pool-{pool}")
        end = pool - pool % POOLS + POOLS
        pools = DataLoader(
            self,
            batch_size=None,
            sampler=range(pool + (first is not None), end),
            num_workers=num_workers,
            multiprocessing_context="fork",
            generator=torch.Generator(),  # or it would take a number from the run's
        )
        drawn = iter(pools)  # from here on the others are drawn
        for number in range(pool, end):
            named = load(next(drawn).numpy().tobytes() if first is None else first)
            first = None
            turns = named.pop(_TURNS).tolist()
            num_tensors = len(named) // len(turns)
            for i in range(index, len(turns)):
                batch = self._reader.batch.of_tensors([named[f"{i}.{j}"] for j in range(num_tensors)])
                source, counts = turns[i]
                name = "" if source == _MIXED else self._sources[source].name
                yield Drawn(number, i + 1, batch, name, bool(counts))
            index = 0
