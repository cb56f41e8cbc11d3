"""Pretrained word vectors, from a GloVe text file or distilled from a sentence encoder, and the embedder over them.

A vectors file is safetensors with int8 ``rows`` [W, S], ``scales`` [W] and the words in its metadata, most frequent
first. Rows are quantised when the file is made, so that training and serving read the same numbers.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from torch import Tensor, nn

from mqan_core.errors import MqanError
from mqan_core.example import Example
from mqan_core.text.tokens import read_tokens
from mqan_core.text.vectors import FloatArray, Int8Array, ngram_buckets, quantize_rows

Int64Array = npt.NDArray[np.int64]

_MEAN_NORM = 5.0  # rows are scaled to this mean norm, about that of GloVe


class MissingVectorsError(MqanError, FileNotFoundError):
    """Word vectors, or the encoder to make them with, are not in the file named; the message says how to get them."""


@dataclass(frozen=True, slots=True)
class StaticVectors:
    words: tuple[str, ...]
    rows: Int8Array
    scales: FloatArray

    @property
    def width(self) -> int:
        return int(self.rows.shape[1])

    def dequantized(self) -> FloatArray:
        return self.rows.astype(np.float32) * self.scales[:, None]


def count_words(examples: Iterable[Example]) -> Counter[str]:
    """Count the lower-cased words of contexts (each distinct one once), questions and answers."""
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    for example in examples:
        texts = [example.question, *example.answers]
        if example.context not in seen:
            seen.add(example.context)
            texts.append(example.context)
        for text in texts:
            counts.update(token.word for token in read_tokens(text))
    return counts


def most_frequent(counts: Counter[str], num_words: int) -> list[str]:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [word for word, _ in ranked[:num_words]]


def quantized_vectors(words: Sequence[str], rows: FloatArray) -> StaticVectors:
    """Scale rows [W, S] to the common mean norm and quantise them."""
    quantized, scales = quantize_rows(rows.astype(np.float32))
    scales *= np.float32(_MEAN_NORM / np.linalg.norm(rows, axis=1).mean())
    return StaticVectors(tuple(words), quantized, scales)


def write_vectors(path: Path, vectors: StaticVectors) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    tensors: dict[str, np.ndarray] = {"rows": vectors.rows, "scales": vectors.scales}
    texts = {"words": json.dumps(list(vectors.words))}
    save_file(tensors, str(temporary), texts)
    temporary.replace(path)


def load_vectors(path: Path) -> StaticVectors:
    if not path.is_file():
        message = f"no word vectors at {path}: make them with `mqan embed RECIPE` (or from GloVe, --glove)"
        raise MissingVectorsError(message)
    try:
        with safe_open(str(path), framework="numpy") as file:
            words = json.loads(file.metadata()["words"])
            return StaticVectors(tuple(words), file.get_tensor("rows"), file.get_tensor("scales"))
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise MissingVectorsError(
            f"{path} holds no word vectors: it was not made by `mqan embed`, or is damaged. Make it with "
            "`mqan embed RECIPE` (from a text file of GloVe, `mqan embed RECIPE --glove FILE`)"
        ) from error


def read_glove(path: Path, words: Sequence[str]) -> tuple[list[str], FloatArray]:
    """Return the words that a file of GloVe (``word v1 v2 ...``) has, in the given order, and their rows [found, S]."""
    wanted = set(words)
    found: dict[str, FloatArray] = {}
    width = None
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            cells = line.rstrip("\n").split(" ")
            width = width or len(cells) - 1
            if len(cells) <= max(width, 1):
                message = f"{path}:{number}: expected a word and {f'{width} ' if width else ''}numbers, found {line!r}"
                raise ValueError(message)
            word = " ".join(cells[: len(cells) - width])  # a few GloVe words hold spaces
            if word not in wanted:
                continue
            try:
                found[word] = np.array(cells[len(cells) - width :], np.float32)
            except ValueError as error:
                raise ValueError(f"{path}:{number}: expected a word and {width} numbers: {error}") from error
    order = [word for word in words if word in found]
    if not order:
        raise ValueError(f"{path}: none of the {len(words)} words of the data is in this file")
    return order, np.stack([found[word] for word in order])


def distil(words: Sequence[str], width: int, encoder: str | Path) -> FloatArray:
    """Encode each lower-cased word alone with a sentence-transformers model, then reduce to ``width`` by PCA."""
    from sentence_transformers import SentenceTransformer  # heavy, and only this function needs it

    model = SentenceTransformer(str(encoder), device="cpu")
    encoded = model.encode(list(words), batch_size=512, show_progress_bar=True, convert_to_numpy=True)
    return reduce_width(np.asarray(encoded, np.float64), width)


def reduce_width(rows: np.ndarray[tuple[int, int], np.dtype[np.float64]], width: int) -> FloatArray:
    if width > rows.shape[1]:
        raise ValueError(f"the vectors have {rows.shape[1]} dimensions, {width} were asked for")
    centred = rows - rows.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)  # the largest last
    return (centred @ axes[:, ::-1][:, :width]).astype(np.float32)


class Embedder(nn.Module):
    """Vectors of words: frozen pretrained rows and trained n-gram means, [static ; n-grams] (d_emb of equation 1).

    Works on a list of distinct words; the batch refers to it by index. The frozen rows are no parameters and are not
    in the state dict.
    """

    def __init__(self, vectors: StaticVectors, num_buckets: int, ngram_width: int) -> None:
        super().__init__()
        self.vectors = vectors
        self.index = WordIndex(vectors.words, num_buckets)
        self.num_buckets = num_buckets
        self.width = vectors.width + ngram_width
        rows = np.concatenate([vectors.dequantized(), np.zeros((1, vectors.width), np.float32)])  # last: no vector
        self.register_buffer("static", torch.from_numpy(rows), persistent=False)
        self.ngrams = nn.EmbeddingBag(num_buckets, ngram_width, mode="mean")
        nn.init.normal_(self.ngrams.weight, std=0.3)

    def forward(self, rows_N: Tensor, buckets: Tensor, offsets_N: Tensor) -> Tensor:
        """Return the vectors [N, E] of N words, given what ``WordIndex.select`` returns."""
        static: Tensor = self.static  # type: ignore[assignment]
        return torch.cat([static[rows_N], self.ngrams(buckets, offsets_N)], dim=-1)

    def embed_words(self, words: Sequence[str]) -> Tensor:
        selected = self.index.select(words)
        device = self.ngrams.weight.device
        return self(*(torch.from_numpy(array).to(device) for array in selected))


class WordIndex:
    """Vector rows and n-gram buckets of words; ``known`` are those with vectors."""

    def __init__(self, known: Sequence[str], num_buckets: int) -> None:
        self._row_of = {word: i for i, word in enumerate(known)}
        self._num_buckets = num_buckets
        self._buckets: dict[str, list[int]] = {}

    def select(self, words: Sequence[str]) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return the rows [N], the flat buckets and the offsets [N] of words, as ``Embedder`` takes them."""
        for word in words:
            if word not in self._buckets:
                self._buckets[word] = ngram_buckets(word, self._num_buckets)
        buckets = [self._buckets[word] for word in words]
        rows = [self._row_of.get(word, len(self._row_of)) for word in words]
        offsets = np.cumsum([0, *map(len, buckets)])[:-1]
        return np.array(rows, np.int64), np.array([b for some in buckets for b in some], np.int64), offsets
