"""Batches of the paper's network: what can be trained on, padding and targets."""

import torch

from mqan_core.example import Choice, Example
from mqan_core.text.vocab import END_ID, Vocabulary
from mqan_training.batch import common_shape
from mqan_training.model.embeddings import Embedder, StaticVectors
from mqan_training.words import WordBatch, WordCollator, WordExample, prepare_words

TOKENS = (" a ", " b", "? ")
WORDS = ("one", "b")
COLLATOR = WordCollator(Vocabulary(TOKENS, WORDS), 20)
LONG = WordExample((" one ", " two ", " one "), ("? ",), (" two ", " b", " never "))
SHORT = WordExample((" b",), (" two ", " a "), (" a ",))


def numbers_of(batch: WordBatch) -> tuple[int, ...]:
    context, question, target = batch.context_tokens, batch.question_tokens, batch.target_tokens
    places = (context[0, 0], context[1, 0], context[0, 1], question[0, 0], target[0, 2], question[1, 1])
    return tuple(int(place) for place in places)


def test_collate_pads_and_marks_targets() -> None:
    batch = COLLATOR.collate([LONG, SHORT])
    one, b, two, mark, never, a = numbers_of(batch)
    assert len({one, b, two, mark, never, a}) == 6
    assert batch.context_tokens.tolist() == [[one, two, one], [b, -1, -1]]
    assert batch.question_tokens.tolist() == [[mark, -1], [two, a]]
    assert batch.target_tokens.tolist() == [[two, b, never, -2], [a, -2, -1, -1]]
    assert batch.target_ids.tolist() == [[4, 2, 4, END_ID], [1, END_ID, 4, 4]]
    assert batch.reachable.tolist() == [[True, True, False, True], [True, True, False, False]]
    assert batch.context_lengths.tolist() == [3, 1]
    assert batch.question_lengths.tolist() == [1, 2]
    assert batch.size == 3 + 1 + 1 + 2 + 3 + 2
    assert batch.target_ids.dtype == batch.context_words.dtype == torch.int64


def test_words_of_a_batch_stand_for_its_tokens() -> None:
    batch = COLLATOR.collate([LONG, SHORT])
    assert len(batch.word_rows) == len(batch.word_offsets) == common_shape(6, least=1, bits=3)
    embedder = Embedder(StaticVectors(WORDS, torch.ones(2, 3, dtype=torch.int8).numpy(), torch.ones(2).numpy()), 20, 2)
    vectors = embedder(batch.word_rows, batch.word_buckets, batch.word_offsets)
    for index, words in (
        (batch.context_words, [["one", "two", "one"], ["b"]]),
        (batch.question_words, [["?"], ["two", "a"]]),
        (batch.answer_words[:, 1:], [["two", "b", "never"], ["a"]]),
    ):
        for row, expected in zip(index, words, strict=True):
            torch.testing.assert_close(vectors[row[: len(expected)]], embedder.embed_words(expected))
            assert (row[len(expected) :] == 0).all()


def test_only_free_answers_within_the_limits_are_trained_on() -> None:
    def kept(context: str, question: str, *answers: str, choices: tuple[Choice, ...] = ()) -> bool:
        return prepare_words(Example("t", "0", context, question, answers, choices=choices), 6, 2) is not None

    assert kept("a b c d e f", "q", "a b")
    assert not kept("a b c d e f g", "q", "a")
    assert not kept("a", "q", "x y z")
    assert not kept(" \n", "q", "a")
    assert not kept("a", " ", "a")
    assert not kept("a", "q", "")
    assert not kept("a", "q")
    assert not kept("a", "q", "a", choices=(Choice("a"),))
