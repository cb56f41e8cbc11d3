"""Batches: within the budget, every example once an epoch, an order that only the seed decides; padding and targets."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from mqan_core.example import Example
from mqan_core.text.vocab import END_ID, Vocabulary
from mqan_data.tasks import task_named
from mqan_training.batching import Batcher, TaskStream, common_size
from mqan_training.model.embeddings import Embedder, StaticVectors
from mqan_training.numbering import Item, PieceTable, TaskData, number_examples

BUDGET = 130
NUM_ROWS = 90


def write_sst(folder: Path) -> None:
    """Write an SST file whose sentences tell each other apart by their first word."""
    rng = random.Random(5)
    words = ["a", "film", "of", "two", "old", "friends", "and", "their", "long", "odd", "dull", "bright", "story"]
    rows = [f"{rng.randint(0, 1)},row{i} {' '.join(rng.choices(words, k=rng.randint(1, 25)))}" for i in range(NUM_ROWS)]
    folder.mkdir(exist_ok=True)
    (folder / "train_binary_sent.csv").write_text("\n".join(["label,sentence", *rows, ""]))


@pytest.fixture
def table() -> PieceTable:
    return PieceTable()


@pytest.fixture
def data(tmp_path: Path, table: PieceTable) -> TaskData:
    write_sst(tmp_path)
    examples = task_named("sst").read(tmp_path, "train")
    return number_examples("sst", examples, table, cut_context_at=None, max_context_tokens=50, max_answer_tokens=5)


def stream(data: TaskData, *, seed: int = 1) -> TaskStream:
    return TaskStream(data, BUDGET, seed)


def texts(items: list[Item], table: PieceTable) -> list[tuple[str, ...]]:
    return [
        tuple("".join(table.pieces[i] for i in x) for x in (item.context, item.question, item.answer)) for item in items
    ]


def cost(item: Item) -> int:
    return len(item.context) + len(item.question) + 5 * (len(item.answer) + 1)


def one_epoch(source: TaskStream) -> list[list[Item]]:
    batches: list[list[Item]] = []
    while sum(map(len, batches)) < NUM_ROWS:
        batches.append(source.draw())
    return batches


# --- Which examples make a batch


def test_batches_keep_to_the_budget_and_are_not_small(data: TaskData) -> None:
    batches = [batch for _ in range(3) for batch in one_epoch(stream(data))]
    assert all(len(batch) * max(map(cost, batch)) <= BUDGET for batch in batches)
    assert len(one_epoch(stream(data))) <= 1.5 * sum(map(cost, data.items)) / BUDGET


def test_an_example_over_the_budget_has_a_batch_of_its_own(table: PieceTable) -> None:
    question, answer = table.numbers(["q"]), table.numbers(["a"])
    data = TaskData("t", [Item(table.numbers(["c"] * n), question, answer) for n in (300, 3, 3)])
    source = stream(data)
    assert sorted(len(source.draw()) for _ in range(2)) == [1, 2]


@pytest.mark.parametrize(
    ("size", "least", "most"), [(1, 1, 1), (7, 7, 7), (8, 8, 8), (9, 10, 8), (19, 20, 16), (130, 160, 128)]
)
def test_common_sizes_are_four_to_each_doubling(size: int, least: int, most: int) -> None:
    assert common_size(size) == least
    assert common_size(size, is_least=False) == most


def test_batches_of_many_lengths_have_few_shapes(table: PieceTable) -> None:
    rng = random.Random(2)
    sizes = [(rng.randint(20, 300), rng.randint(5, 40), rng.randint(1, 20)) for _ in range(2_000)]
    word = table.numbers(["w"])
    data = TaskData("t", [Item(*(np.repeat(word, n) for n in lengths)) for lengths in sizes])
    source = TaskStream(data, 4_000, 1)
    drawn = [source.draw() for _ in range(100)]
    vectors = StaticVectors(("w",), np.ones((1, 3), np.int8), np.ones(1, np.float32))
    batcher = Batcher(table, Vocabulary(["w"], vectors.words), Embedder(vectors, 20, 2))
    shapes = [batcher.collate("t", items).context_words.shape for items in drawn]
    uneven = [rows for rows, _ in shapes if rows != common_size(rows)]
    assert len(uneven) <= 4  # the last batch of a pool holds what is left
    assert len(set(shapes)) <= 40
    assert len({(len(items), max(len(item.context) for item in items)) for items in drawn}) > 80


def test_every_example_comes_exactly_once_an_epoch(data: TaskData) -> None:
    source = stream(data)
    orders = []
    for _ in range(3):
        batches = one_epoch(source)
        assert Counter(map(id, (item for batch in batches for item in batch))) == Counter(map(id, data.items))
        orders.append([id(item) for batch in batches for item in batch])
    assert orders[0] != orders[1] != orders[2]


def test_only_the_seed_decides_on_the_order(data: TaskData) -> None:
    first, other = stream(data, seed=3), stream(data, seed=4)
    drawn = [first.draw() for _ in range(40)]
    np.random.default_rng(0).random(100)
    random.seed(9)
    torch.manual_seed(9)
    again = stream(data, seed=3)
    for batch in drawn:
        other.draw()
        assert list(map(id, again.draw())) == list(map(id, batch))
    fresh = stream(data, seed=4)
    assert [list(map(id, fresh.draw())) for _ in range(40)] != [list(map(id, batch)) for batch in drawn]


def test_two_tasks_with_the_same_data_have_orders_of_their_own(data: TaskData) -> None:
    twin = TaskData("twin", data.items)
    one, two = stream(data), stream(twin)
    assert [list(map(id, one.draw())) for _ in range(9)] != [list(map(id, two.draw())) for _ in range(9)]


@pytest.mark.parametrize("drawn", [0, 1, 7, 50, 200])
def test_skipping_goes_on_with_the_same_batches(data: TaskData, table: PieceTable, drawn: int) -> None:
    source = stream(data)
    for _ in range(drawn):
        source.draw()
    expected = [texts(source.draw(), table) for _ in range(30)]
    fresh = stream(data)
    fresh.skip_to(drawn)
    assert [texts(fresh.draw(), table) for _ in range(30)] == expected
    assert fresh.drawn == drawn + 30
    source.skip_to(drawn)  # back, also over the beginning of an epoch
    assert [texts(source.draw(), table) for _ in range(30)] == expected


def test_a_task_without_examples_says_what_was_left_out(table: PieceTable) -> None:
    empty = TaskData("sst", dropped=Counter({"empty answer": 3}))
    with pytest.raises(ValueError, match=r"task sst: no training examples are left \({'empty answer': 3}\)"):
        stream(empty)


# --- From items to tensors

PIECES = (" a ", " b", "? ")


@pytest.fixture
def batcher(table: PieceTable) -> Batcher:
    table.numbers([" one ", " b", " two "])
    vectors = StaticVectors(("one", "b"), np.ones((2, 3), np.int8), np.ones(2, np.float32))
    return Batcher(table, Vocabulary(PIECES, vectors.words), Embedder(vectors, 20, 2))


def item(table: PieceTable, context: list[str], question: list[str], answer: list[str]) -> Item:
    return Item(table.numbers(context), table.numbers(question), table.numbers(answer))


def test_collate_pads_and_marks_targets(table: PieceTable, batcher: Batcher) -> None:
    long = item(table, [" one ", " two ", " one "], ["? "], [" two ", " b", " never "])
    short = item(table, [" b"], [" two ", " a "], [" a "])
    batch = batcher.collate("t", [long, short])
    one, b, two, mark, never, a = (table.number(p) for p in (" one ", " b", " two ", "? ", " never ", " a "))

    assert batch.task == "t"
    assert batch.context_pieces.tolist() == [[one, two, one], [b, -1, -1]]
    assert batch.question_pieces.tolist() == [[mark, -1], [two, a]]
    assert batch.target_pieces.tolist() == [[two, b, never, -2], [a, -2, -1, -1]]
    assert batch.target_ids.tolist() == [[4, 2, 4, END_ID], [1, END_ID, 4, 4]]
    assert batch.reachable.tolist() == [[True, True, False, True], [True, True, False, False]]
    assert batch.context_lengths.tolist() == [3, 1]
    assert batch.question_lengths.tolist() == [1, 2]
    assert batch.num_tokens == 3 + 1 + 1 + 2 + 3 + 2
    assert batch.target_ids.dtype == batch.context_words.dtype == torch.int64


def test_words_of_a_batch_stand_for_its_pieces(table: PieceTable, batcher: Batcher) -> None:
    long = item(table, [" one ", " two ", " one "], ["? "], [" two ", " b", " never "])
    short = item(table, ["b"], [" two ", " a "], [" a "])
    batch = batcher.collate("t", [long, short])
    rows, buckets, offsets = batch.words
    assert len(rows) == len(offsets) == common_size(6)  # one, two, ?, b, never, a
    embedder = batcher._embedder
    vectors = embedder(*batch.words)
    for index, words in (
        (batch.context_words, [["one", "two", "one"], ["b"]]),
        (batch.question_words, [["?"], ["two", "a"]]),
        (batch.answer_words[:, 1:], [["two", "b", "never"], ["a"]]),
    ):
        for row, expected in zip(index, words, strict=True):
            torch.testing.assert_close(vectors[row[: len(expected)]], embedder.embed_words(expected))
            assert (row[len(expected) :] == 0).all()
    assert int(buckets.max()) < 20


def test_a_batch_is_the_same_wherever_its_pieces_were_numbered(data: TaskData, table: PieceTable) -> None:
    """A batcher that saw the pieces grow gives the tensors of one that was made afterwards."""
    vectors = StaticVectors(("a", "film"), np.ones((2, 3), np.int8), np.ones(2, np.float32))
    vocabulary, embedder = Vocabulary(PIECES, vectors.words), Embedder(vectors, 20, 2)
    source = stream(data)
    early = Batcher(table, vocabulary, embedder)
    drawn = [source.draw() for _ in range(5)]
    table.number(" late ")
    batches = [early.collate("sst", batch) for batch in drawn]
    late = Batcher(table, vocabulary, embedder)
    for batch, again in zip(batches, (late.collate("sst", batch) for batch in drawn), strict=True):
        for one, two in zip((*batch.words, batch.target_ids), (*again.words, again.target_ids), strict=True):
            assert torch.equal(one, two)


def test_a_batch_moves_whole() -> None:
    table = PieceTable()
    vectors = StaticVectors(("one",), np.ones((1, 3), np.int8), np.ones(1, np.float32))
    batcher = Batcher(table, Vocabulary(PIECES, vectors.words), Embedder(vectors, 20, 2))
    example = Example("t", "0", "one two", "two?", ("two",))
    data = number_examples("t", [example], table, cut_context_at=None, max_context_tokens=9, max_answer_tokens=9)
    batch = batcher.collate("t", data.items)
    moved = batch.to(torch.device("meta"))
    assert moved.task == "t"
    assert all(
        tensor.is_meta for tensor in (*moved.words, moved.context_words, moved.reachable, moved.question_lengths)
    )
    assert moved.target_ids.shape == batch.target_ids.shape
