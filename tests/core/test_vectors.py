"""Word vectors: rows, words without a row, n-grams, quantisation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mqan_core.text.vectors import FloatArray, WordVectors, ngram_buckets, quantize_rows
from mqan_core.text.vocab import Vocabulary

WORDS = ["paris", "yes", "no"]
STATIC_WIDTH = 6
NGRAM_WIDTH = 4
NUM_BUCKETS = 64

words = st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=30)), max_size=20)


def make_vectors() -> tuple[WordVectors, FloatArray, FloatArray]:
    generator = np.random.default_rng(0)
    rows, scales = quantize_rows(generator.normal(size=(len(WORDS), STATIC_WIDTH)).astype(np.float32))
    ngrams = generator.normal(size=(NUM_BUCKETS, NGRAM_WIDTH)).astype(np.float32)
    static = rows.astype(np.float32) * scales[:, None]
    return WordVectors(Vocabulary([], WORDS), rows, scales, ngrams), static, ngrams


@given(words)
def test_lookup_is_static_then_ngrams(looked_up: list[str]) -> None:
    vectors, static, ngrams = make_vectors()
    result = vectors.lookup(looked_up)
    assert result.shape == (len(looked_up), vectors.width)
    assert result.dtype == np.float32
    for word, vector in zip(looked_up, result, strict=True):
        row = static[WORDS.index(word)] if word in WORDS else np.zeros(STATIC_WIDTH, np.float32)
        np.testing.assert_array_equal(vector[:STATIC_WIDTH], row)
        buckets = ngram_buckets(word, NUM_BUCKETS)
        mean = ngrams[buckets].mean(axis=0) if buckets else np.zeros(NGRAM_WIDTH, np.float32)
        np.testing.assert_array_equal(vector[STATIC_WIDTH:], mean)


@given(words, words)
def test_a_vector_does_not_depend_on_other_lookups(before: list[str], looked_up: list[str]) -> None:
    fresh, _, _ = make_vectors()
    used, _, _ = make_vectors()
    used.lookup(before)
    alone = [fresh.lookup([word])[0] for word in looked_up]
    out = np.full((len(looked_up), used.width), np.nan, np.float32)
    assert used.lookup(looked_up, out) is out
    for vector, expected in zip(out, alone, strict=True):
        np.testing.assert_array_equal(vector, expected)


@given(st.text(st.characters(exclude_categories=()), max_size=40), st.integers(1, 10_000))
def test_ngrams_are_bounded(word: str, num_buckets: int) -> None:
    buckets = ngram_buckets(word, num_buckets)
    assert all(0 <= bucket < num_buckets for bucket in buckets)
    assert bool(buckets) == bool(word)
    assert len(buckets) <= 3 * 26
    assert buckets == ngram_buckets(word, num_buckets)


def test_ngrams_never_change() -> None:
    """Trained tables are indexed by these numbers."""
    assert ngram_buckets("a", 10_000) == [3635, 8931, 4480]


@given(
    arrays(
        np.float32,
        array_shapes(min_dims=2, max_dims=2, max_side=8),
        elements=st.floats(-1e4, 1e4, width=32, allow_subnormal=False),
    )
)
def test_quantisation_error_is_half_a_step(rows: FloatArray) -> None:
    quantized, scales = quantize_rows(rows)
    assert quantized.dtype == np.int8
    assert np.abs(quantized.astype(np.int32)).max() <= 127
    restored = quantized.astype(np.float32) * scales[:, None]
    bound = scales[:, None] * np.float32(0.5 + 1e-3) + np.finfo(np.float32).tiny
    assert (np.abs(rows - restored) <= bound).all()


@pytest.mark.parametrize(
    "fault", ["rows", "scales", "flat rows", "flat ngrams", "no ngrams", "float rows", "nan", "inf"]
)
def test_tables_that_do_not_belong_together_are_refused(fault: str) -> None:
    rows, scales = np.ones((3, STATIC_WIDTH), np.int8), np.ones(3, np.float32)
    ngrams = np.ones((NUM_BUCKETS, NGRAM_WIDTH), np.float32)
    match fault:
        case "rows":
            rows = rows[:2]
        case "scales":
            scales = scales[:2]
        case "flat rows":
            rows = rows[:, 0]
        case "flat ngrams":
            ngrams = ngrams[:, 0]
        case "no ngrams":
            ngrams = ngrams[:0]
        case "nan":
            scales[0] = np.nan
        case "inf":
            ngrams[0, 0] = np.inf
        case _:
            rows = rows.astype(np.float32)
    with pytest.raises(ValueError, match="word vectors"):
        WordVectors(Vocabulary([], WORDS), rows, scales, ngrams)
