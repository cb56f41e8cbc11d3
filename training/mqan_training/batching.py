"""Token-budget batches of one task each, in an order that only the seed decides, so that a run can be resumed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import torch
from torch import Tensor

from mqan_core.text import read_tokens, word_of
from mqan_core.vocab import END_ID, Vocabulary
from mqan_training.config import TaskConfig
from mqan_training.data.dataset import (
    Item,
    PieceTable,
    TaskData,
    are_in,
    names_in,
    numbered,
    rename_classes,
    target_ids,
)
from mqan_training.model.embeddings import Embedder, NumbersOfWords, WordIndex

_POOL_BATCHES = 50  # batches are cut from pools of about this many batches, sorted by length
_ANSWER_COST = 5  # an answer token costs as much as five others (appendix B)
_PAD = -1
_SIZE_BITS = 3  # leading binary digits of a common size
_FIELD = re.compile(r"\{(\w*)\}")  # the place of a class in a wording
_END_PIECE = -2  # equal to no piece, so the end cannot be copied


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of one task.

    Shape letters as in ``model.py``, and N distinct words. Positions beyond a row's length hold 0 in words, -1 in
    pieces.

    Attributes:
        task: the task.
        words: rows [N], flat buckets and offsets [N] of the distinct words, for the embedder.
        word_pieces: their word pieces, one word's behind the other's, and offsets [N], for the contextual encoder; both
            are empty where the vectors have no word pieces.
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
    word_pieces: tuple[Tensor, Tensor]
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
        words, pieces = (tuple(t.to(device) for t in tensors) for tensors in (self.words, self.word_pieces))
        tensors = (getattr(self, name) for name in list(self.__dataclass_fields__)[3:])
        return Batch(self.task, words, pieces, *(t.to(device) for t in tensors))  # type: ignore[arg-type]


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
        pieces = self._embedder.vectors.pieces
        self._pieces = NumbersOfWords(list(number_of), pieces.word_pieces.ids) if pieces is not None else None
        self._ids = target_ids(self._table, self._vocabulary)

    def collate(self, task: str, items: Sequence[Item]) -> Batch:
        """Pad items into one batch."""
        if len(self._ids) != len(self._table.pieces):
            self._refresh()
        contexts, questions, answers = ([getattr(i, name) for i in items] for name in ("context", "question", "answer"))
        context_pieces, question_pieces = _pad(contexts, _PAD), _pad(questions, _PAD)
        targets = _pad([np.append(a, _END_PIECE) for a in answers], _PAD)
        previous = _pad([np.append(_PAD, a) for a in answers], _PAD)
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
        none = np.zeros(0, np.int64)
        pieces = (none, none) if self._pieces is None else self._pieces.select(distinct)
        return Batch(
            task,
            words,  # type: ignore[arg-type]
            (torch.from_numpy(pieces[0]), torch.from_numpy(pieces[1])),
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


def _pad(rows: Sequence[np.ndarray], value: int) -> np.ndarray:
    padded = np.full((len(rows), common_size(max(len(row) for row in rows))), value, np.int32)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded


class TaskStream:
    """An endless, seeded stream of batches of one task; ``drawn`` alone says where it stands.

    Args:
        data: the examples.
        config: how the task is trained on.
        table: numbers the pieces of renamed questions.
        batch_tokens: budget of a batch.
        seed: of the run.
    """

    def __init__(self, data: TaskData, config: TaskConfig, table: PieceTable, batch_tokens: int, seed: int) -> None:
        if not data.items:
            raise ValueError(f"task {data.name}: no training examples are left ({dict(data.dropped)})")
        if config.dropout is not None and not 0 <= config.dropout < 1:
            raise ValueError(f"task {data.name}: dropout is {config.dropout}; it must be at least 0 and less than 1")
        self.config = config
        self.drawn = 0
        self._data = data
        self._table = table
        self._batch_tokens = batch_tokens
        self._seed = [seed, *data.name.encode()]
        self._epoch = -1
        self._plan: list[list[int]] = []
        self._first_of_epoch = 0
        _check_questions(data, config)
        orders = [order for names in config.class_names for order in permutations(names)] or [()]
        varied = [name for names in config.class_names for name in names]
        for text in (*varied, *(wording.format(*order) for wording in config.wordings for order in orders)):
            numbered(read_tokens(text), table)  # now, so that numbers do not depend on the order of drawing

    def draw(self) -> list[Item]:
        """Return the next batch's items."""
        while self.drawn >= self._first_of_epoch + len(self._plan):
            self._first_of_epoch += len(self._plan)
            self._epoch += 1
            self._plan = self._plan_epoch()
        indices = self._plan[self.drawn - self._first_of_epoch]
        rng = np.random.default_rng([*self._seed, 1, self.drawn])
        vary = max(self.config.rename_rate, self.config.reword_rate) > 0 and self.drawn >= self.config.rename_after
        self.drawn += 1
        return [self._vary(i, rng) if vary else self._data.items[i] for i in indices]

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

    def _vary(self, index: int, rng: np.random.Generator) -> Item:
        """Ask an example with other names for its classes, in another order, in other words, or as it is."""
        item, config = self._data.items[index], self.config
        rename, reword = rng.random() < config.rename_rate, config.wordings and rng.random() < config.reword_rate
        if not rename and not reword:
            return item
        question, answer = self._data.texts[index]
        wording = config.wordings[int(rng.integers(len(config.wordings)))] if reword else None
        if not config.class_names:
            return Item(item.context, numbered(read_tokens(wording or question), self._table), item.answer)
        names, *others = config.class_names
        new_names = others[int(rng.integers(len(others)))] if rename and others and rng.random() < 0.8 else names
        order = rng.permutation(len(names)).tolist()
        question, answer = rename_classes(question, answer, names, new_names, order)
        if wording is not None:
            question = wording.format(*(new_names[i] for i in order))
        tokens = read_tokens(question)
        key_of = {token.word: token.key for token in tokens}
        answer_pieces = [key_of.get(token.word, token.key) for token in read_tokens(answer)]
        return Item(item.context, numbered(tokens, self._table), self._table.numbers(answer_pieces))


def _check_questions(data: TaskData, config: TaskConfig) -> None:
    """Refuse names and wordings that do not fit the task's questions."""
    if config.rename_rate and not config.class_names:
        raise ValueError(f"task {data.name}: rename_rate is set but class_names is empty")
    num_classes = {len(names) for names in config.class_names}
    if len(num_classes) > 1:
        raise ValueError(f"task {data.name}: the lists of class_names differ in length")
    if config.class_names:
        _check_names(data, config.class_names[0])
    if config.reword_rate and not config.wordings:
        raise ValueError(f"task {data.name}: reword_rate is set but wordings is empty")
    if config.wordings and len({question for question, _ in data.texts}) > 1:
        raise ValueError(f"task {data.name}: its questions differ, so that wordings cannot stand for them")
    expected = {str(place) for place in range(max(num_classes, default=0))}
    for wording in config.wordings:
        if set(_FIELD.findall(wording)) != expected:
            places = "".join(f" {{{place}}}" for place in sorted(expected)) or " none"
            raise ValueError(f"task {data.name}: wording {wording!r} must have these places for classes:{places}")


def _check_names(data: TaskData, names: Sequence[str]) -> None:
    """Refuse names of the classes with which ``rename_classes`` could not rename every text."""
    pattern = names_in(names)
    for question, answer in dict.fromkeys(data.texts):
        if answer not in names or sorted(pattern.findall(question)) != sorted(names):
            raise ValueError(
                f"task {data.name}: class_names begins with [{', '.join(names)}], which does not fit the question "
                f"{question!r} with the answer {answer!r}: the first list must name the classes as the task does, "
                "each once in the question, the answer among them"
            )


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
