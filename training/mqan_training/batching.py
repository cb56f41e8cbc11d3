"""Token-budget batches of one task each, in an order that only the seed decides, so that a run can be resumed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mqan_core.text.tokens import word_of
from mqan_core.text.vocab import END_ID, Vocabulary
from mqan_training.model.embeddings import Embedder, WordIndex
from mqan_training.numbering import (
    Item,
    PieceTable,
    TaskData,
    are_in,
    target_ids,
)

_POOL_BATCHES = 50  # batches are cut from pools of about this many batches, sorted by length
_ANSWER_COST = 5  # an answer token costs as much as five others (appendix B)
_PAD = -1
_SIZE_BITS = 3  # leading binary digits of a common size
_END_PIECE = -2  # equal to no piece, so the end cannot be copied


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of one task.

    Shape letters as in ``model.py``, and N distinct words. Positions beyond a row's length hold 0 in words, -1 in
    pieces.

    Attributes:
        task: the task.
        words: rows [N], flat buckets and offsets [N] of the distinct words, for the embedder.
        context_words: index into the distinct words, [B, C]; likewise ``question_words`` [B, Q].
        answer_words: words of the answer shifted right, [B, A]; the first column is not used.
        context_pieces: piece numbers [B, C]; likewise ``question_pieces`` [B, Q].
        target_pieces: piece numbers of answer and end [B, A], -2 for the end.
        target_ids: generator ids of the same [B, A].
        reachable: which targets can be generated or copied, [B, A]; padding cannot.
        context_lengths, question_lengths: [B].
    """

    task: str
    words: tuple[Tensor, Tensor, Tensor]
    context_words: Tensor
    question_words: Tensor
    answer_words: Tensor
    context_pieces: Tensor
    question_pieces: Tensor
    target_pieces: Tensor
    target_ids: Tensor
    reachable: Tensor
    context_lengths: Tensor
    question_lengths: Tensor

    @property
    def num_tokens(self) -> int:
        """Tokens that are not padding."""
        return int(self.context_lengths.sum() + self.question_lengths.sum() + self.reachable.sum())

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on a device."""
        rows, buckets, offsets = self.words
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        moved: dict[str, Any] = {name: value.to(device) for name, value in values.items() if isinstance(value, Tensor)}
        return replace(self, words=(rows.to(device), buckets.to(device), offsets.to(device)), **moved)


class Batcher:
    """Turns examples into batches for one vocabulary and one set of vectors."""

    def __init__(self, table: PieceTable, vocabulary: Vocabulary, embedder: Embedder) -> None:
        self._table = table
        self._vocabulary = vocabulary
        self._embedder = embedder
        self._refresh()

    def _refresh(self) -> None:
        """Extend what is known of the pieces, after new ones were numbered."""
        number_of: dict[str, int] = {}
        words = [word_of(piece) for piece in self._table.pieces]
        self._word_of_piece = np.array([number_of.setdefault(word, len(number_of)) for word in words], np.int64)
        self._index: WordIndex = self._embedder.index(list(number_of))
        self._ids = target_ids(self._table, self._vocabulary)

    def collate(self, task: str, items: Sequence[Item]) -> Batch:
        """Pad items into one batch."""
        if len(self._ids) != len(self._table.pieces):
            self._refresh()
        contexts, questions, answers = ([getattr(i, name) for i in items] for name in ("context", "question", "answer"))
        context_pieces, question_pieces = _pad(contexts), _pad(questions)
        targets = _pad([np.append(a, _END_PIECE) for a in answers])
        previous = _pad([np.append(_PAD, a) for a in answers])
        ids = np.where(targets >= 0, self._ids[np.maximum(targets, 0)], self._vocabulary.num_generated)
        ids = np.where(targets == _END_PIECE, END_ID, ids)
        copyable = np.stack(
            [
                are_in(row, context) | are_in(row, question)
                for row, context, question in zip(targets, contexts, questions, strict=True)
            ]
        )
        reachable = (targets != _PAD) & ((ids < self._vocabulary.num_generated) | copyable)
        distinct, places = np.unique(
            np.concatenate([self._words(x).ravel() for x in (context_pieces, question_pieces, previous)]),
            return_inverse=True,
        )
        distinct = np.pad(distinct, (0, common_size(len(distinct)) - len(distinct)), mode="edge")
        sizes = np.cumsum([context_pieces.size, question_pieces.size])
        context_words, question_words, answer_words = np.split(places, sizes)
        words = tuple(torch.from_numpy(array) for array in self._index.select(distinct))
        return Batch(
            task,
            words,  # type: ignore[arg-type]
            torch.from_numpy(context_words.reshape(context_pieces.shape)),
            torch.from_numpy(question_words.reshape(question_pieces.shape)),
            torch.from_numpy(answer_words.reshape(previous.shape)),
            torch.from_numpy(context_pieces),
            torch.from_numpy(question_pieces),
            torch.from_numpy(targets),
            torch.from_numpy(ids.astype(np.int64)),
            torch.from_numpy(reachable),
            torch.tensor([len(x) for x in contexts]),
            torch.tensor([len(x) for x in questions]),
        )

    def _words(self, pieces: np.ndarray) -> np.ndarray:
        words: np.ndarray = self._word_of_piece[np.maximum(pieces, 0)]
        return words


def common_size(size: int, *, is_least: bool = True) -> int:
    """Return the next size, upwards or downwards, out of four to each doubling.

    oneDNN compiles every product anew for each shape that it meets, which takes longer than the product itself: with
    few shapes a training step on a CPU takes half as long.
    """
    step = 1 << max(size.bit_length() - _SIZE_BITS, 0)
    return -(-size // step) * step if is_least else size // step * step


def _pad(rows: Sequence[np.ndarray]) -> np.ndarray:
    padded = np.full((len(rows), common_size(max(len(row) for row in rows))), _PAD, np.int32)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded


class TaskStream:
    """An endless, seeded stream of batches of one task; ``drawn`` alone says where it stands.

    Args:
        data: the examples.
        batch_tokens: budget of a batch.
        seed: of the run.
    """

    def __init__(self, data: TaskData, batch_tokens: int, seed: int) -> None:
        if not data.items:
            raise ValueError(f"task {data.name}: no training examples are left ({dict(data.dropped)})")
        self.drawn = 0
        self._data = data
        self._batch_tokens = batch_tokens
        self._seed = [seed, *data.name.encode()]
        self._epoch = -1
        self._plan: list[list[int]] = []
        self._first_of_epoch = 0

    def draw(self) -> list[Item]:
        """Return the next batch's items."""
        while self.drawn >= self._first_of_epoch + len(self._plan):
            self._first_of_epoch += len(self._plan)
            self._epoch += 1
            self._plan = self._plan_epoch()
        indices = self._plan[self.drawn - self._first_of_epoch]
        self.drawn += 1
        return [self._data.items[i] for i in indices]

    def skip_to(self, drawn: int) -> None:
        """Go to where a stream stands that has drawn this many batches."""
        self.drawn = drawn
        self._epoch, self._plan, self._first_of_epoch = -1, [], 0

    def _plan_epoch(self) -> list[list[int]]:
        rng = np.random.default_rng([*self._seed, 0, self._epoch])
        items = self._data.items
        order = rng.permutation(len(items))
        cost = np.array([_cost(items[i]) for i in order])
        pool_of = (np.cumsum(cost) // (self._batch_tokens * _POOL_BATCHES)).astype(np.int64)
        by_length = np.lexsort((cost, pool_of))
        batches = list(_cut(order[by_length], cost[by_length], pool_of[by_length], self._batch_tokens))
        return [batches[i] for i in rng.permutation(len(batches))]


def _cost(item: Item) -> int:
    """Return how many tokens an example takes, padded as it will be."""
    context, question, answer = map(common_size, (len(item.context), len(item.question), len(item.answer) + 1))
    return context + question + _ANSWER_COST * answer


def _cut(order: np.ndarray, cost: np.ndarray, pool_of: np.ndarray, budget: int) -> Iterator[list[int]]:
    batch: list[int] = []
    longest, pool = 0, -1
    for index, size, this_pool in zip(order.tolist(), cost.tolist(), pool_of.tolist(), strict=True):
        longest = max(longest, size)
        while batch and (this_pool != pool or longest * (len(batch) + 1) > budget):
            num_rows = len(batch) if this_pool != pool else common_size(len(batch), is_least=False)
            yield batch[:num_rows]
            batch, longest = batch[num_rows:], size
        batch.append(index)
        pool = this_pool
    if batch:
        yield batch
