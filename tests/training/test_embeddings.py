"""Word vectors: GloVe text, files of vectors, PCA, and one embedding in training and serving."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from mqan_core.text.vectors import WordVectors
from mqan_core.text.vocab import Vocabulary
from mqan_training.embed import make_vectors
from mqan_training.model.embeddings import (
    Embedder,
    MissingVectorsError,
    StaticVectors,
    load_vectors,
    quantized_vectors,
    read_glove,
    reduce_width,
    write_vectors,
)
from mqan_training.recipe import Recipe, WordsConfig

GLOVE = ", 0.5 -1 2\nthe 1 2 3\n. . . 4 5 6\ncat -0.25 1e-3 0\nunused 1 1 1\n"


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    path = tmp_path / "glove.txt"
    path.write_text(GLOVE, encoding="utf-8")
    return path


# --- GloVe


def test_glove_rows_come_in_the_order_of_the_words_asked_for(glove: Path) -> None:
    words, rows = read_glove(glove, ["cat", "missing", "the", ",", ". . ."])
    assert words == ["cat", "the", ",", ". . ."]  # one of GloVe's few words that hold spaces
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, np.array([[-0.25, 1e-3, 0], [1, 2, 3], [0.5, -1, 2], [4, 5, 6]], np.float32))


@pytest.mark.parametrize("line", ["dog 1 2 x", "dog 1 2 ", "dog 1 2", "dog 1", "dog", ""])
def test_a_malformed_line_is_named(glove: Path, line: str) -> None:
    glove.write_text(GLOVE + line + "\nend 1 2 3\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"glove\.txt:6: expected a word and 3 numbers"):
        read_glove(glove, ["the", "dog", "dog 1"])


# --- Which words have vectors


def test_vectors_of_a_recipe_are_made_from_its_training_data(glove: Path, tmp_path: Path) -> None:
    (tmp_path / "data" / "sst").mkdir(parents=True)
    (tmp_path / "data" / "sst" / "train_binary_sent.csv").write_text('label,sentence\n1,"The cat, the Cat"\n0,a dog\n')
    words = WordsConfig(kind="words", vectors=str(tmp_path / "made" / "v.safetensors"))
    recipe = Recipe(name="t", reader=words, sources={"sst": 1}, order="by_task", steps=1)
    assert make_vectors(recipe, tmp_path / "data", num_words=50, width=2, glove=glove) == 3
    assert load_vectors(Path(words.vectors)).words == ("cat", "the", ",")


# --- Files of vectors


def test_a_file_gives_back_words_directions_and_a_common_scale(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((40, 8), np.float32) * np.float32(0.03)
    words = [f"w{i} " for i in range(38)] + ["ß", '"']
    write_vectors(tmp_path / "new" / "v.safetensors", quantized_vectors(words, rows))
    vectors = load_vectors(tmp_path / "new" / "v.safetensors")
    assert vectors.words == tuple(words)
    assert [str(array.dtype) for array in (vectors.rows, vectors.scales)] == ["int8", "float32"]
    assert vectors.width == 8
    read = vectors.dequantized()
    assert np.linalg.norm(read, axis=1).mean() == pytest.approx(5.0, rel=1e-2)
    scale = 5.0 / np.linalg.norm(rows, axis=1).mean()
    np.testing.assert_allclose(read, rows * scale, atol=float(np.abs(rows).max() * scale / 127))
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["v.safetensors"]


def test_missing_vectors_say_how_to_make_them(tmp_path: Path) -> None:
    with pytest.raises(MissingVectorsError, match=r"none\.safetensors: make them with `mqan embed"):
        load_vectors(tmp_path / "none.safetensors")


def write_without_words(path: Path) -> None:
    save_file({"rows": np.zeros((2, 3), np.int8)}, path)


def write_words(path: Path, words: str) -> None:
    save_file({"scales": np.ones(2, np.float32)}, path, {"words": words})


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_text(GLOVE, encoding="utf-8"),
        lambda path: path.write_bytes(b""),
        write_without_words,
        lambda path: save_file({"rows": np.zeros((2, 3), np.int8)}, path, {"format": "np"}),
        lambda path: write_words(path, "[not JSON"),
        lambda path: write_words(path, "7"),
        lambda path: write_words(path, '["a", "b"]'),  # without rows
    ],
    ids=["GloVe", "empty", "no metadata", "no words", "no JSON", "no list", "no rows"],
)
def test_a_file_that_holds_no_vectors_is_refused(tmp_path: Path, write: Callable[[Path], object]) -> None:
    path = tmp_path / "v.safetensors"
    write(path)
    with pytest.raises(MissingVectorsError, match=r"v\.safetensors holds no word vectors: .* damaged.*--glove FILE"):
        load_vectors(path)


# --- PCA


def test_reducing_keeps_the_first_principal_components() -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((60, 9)) * np.array([9, 7, 5, 4, 3, 2, 1, 0.5, 0.1]) + 4
    reduced = reduce_width(rows, 4)
    centred = rows - rows.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    expected = left[:, :4] * sizes[:4]
    signs = np.sign((reduced * expected).sum(axis=0))
    assert reduced.dtype == np.float32
    np.testing.assert_allclose(reduced * signs, expected, atol=1e-4)
    np.testing.assert_allclose(reduced.mean(axis=0), 0, atol=1e-5)


# --- One embedding in training and serving

WORDS = ("the", "cat", "ß", "'", "a")
ASKED = ["cat", "unknown", "the", "cat", "x", "", "a" * 60, "🙂", "ß", "naïve", "'"]


@pytest.fixture
def both() -> tuple[Embedder, WordVectors]:
    rng = np.random.default_rng(4)
    rows = rng.integers(-127, 128, (len(WORDS), 7), dtype=np.int8)
    scales = rng.random(len(WORDS), np.float32)
    embedder = Embedder(StaticVectors(WORDS, rows, scales), 30, 5)
    ngrams = embedder.ngrams.weight.detach().numpy()
    return embedder, WordVectors(Vocabulary([], WORDS), rows, scales, ngrams)


def test_training_and_serving_embed_alike(both: tuple[Embedder, WordVectors]) -> None:
    embedder, served = both
    trained = embedder.embed_words(ASKED).detach().numpy()
    assert trained.shape == (len(ASKED), embedder.width) == (len(ASKED), served.width)
    np.testing.assert_allclose(trained, served.lookup(ASKED), atol=1e-6)
    assert (trained[[1, 4, 6, 7, 9], :7] == 0).all()  # no pretrained row, but n-grams
    assert (np.abs(trained[[1, 4, 6, 7, 9], 7:]).sum(axis=1) > 0).all()
    assert (np.abs(trained[[0, 2, 8, 10], :7]).sum(axis=1) > 0).all()
