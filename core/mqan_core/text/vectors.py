"""Input vectors of words: a frozen pretrained part and a trained character n-gram part, [static ; n-grams].

The pretrained rows are int8 with one scale a row from the moment they are made, so training, export and serving read
the same numbers. A word without a row has zeros there (as in the paper) and is known by its n-grams.

The n-grams are those of Hashimoto et al. (2017, the paper's charNgram): 2-, 3- and 4-grams over the word with boundary
marks. They are hashed (CRC-32) into a fixed number of trained rows, as in Bojanowski et al. (2017).
"""

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt

from mqan_core.text.vocab import Vocabulary

FloatArray = npt.NDArray[np.float32]
Int8Array = npt.NDArray[np.int8]

LARGEST = 1e4  # of scales and vectors: 2,000 times the mean norm; what is computed from it is still a number
_LENGTHS = (2, 3, 4)
_MAX_WORD_CHARS = 24  # a longer word is represented by its beginning, so that cost per token is bounded


def ngram_buckets(word: str, num_buckets: int) -> list[int]:
    """Return the bucket of each n-gram of ``word``; empty for the empty word."""
    if not word:
        return []
    marked = "\x02" + word[:_MAX_WORD_CHARS] + "\x03"
    return [
        crc32(marked[i : i + n].encode("utf-8", "surrogatepass")) % num_buckets
        for n in _LENGTHS
        for i in range(len(marked) - n + 1)
    ]


def quantize_rows(rows: FloatArray) -> tuple[Int8Array, FloatArray]:
    """Quantise each row (the last axis) to int8 with its own scale: ``row ~ int8 * scale``; a zero row stays zero."""
    scales = (np.abs(rows).max(axis=-1) / 127.0).astype(np.float32)
    safe = np.where(scales > 0, scales, 1.0)
    return np.clip(np.rint(rows / safe[..., None]), -127, 127).astype(np.int8), scales


class WordVectors:
    """The input vector of any word: ``rows`` int8 [W, S], their ``scales`` [W], trained ``ngrams`` [N, G]."""

    def __init__(self, vocabulary: Vocabulary, rows: Int8Array, scales: FloatArray, ngrams: FloatArray) -> None:
        if rows.ndim != 2 or rows.dtype != np.int8 or ngrams.ndim != 2 or ngrams.shape[0] == 0:
            raise ValueError(
                f"word vectors: rows are {rows.dtype}{list(rows.shape)}, expected int8 [W, S]; the n-gram table is "
                f"{list(ngrams.shape)}, expected [N, G] with at least one bucket"
            )
        if rows.shape[0] != len(vocabulary.words) or scales.shape != rows.shape[:1]:
            raise ValueError(
                f"word vectors: {len(vocabulary.words)} words but {rows.shape[0]} rows and scales {list(scales.shape)}"
            )
        if not all((np.abs(values) <= LARGEST).all() for values in (scales, ngrams)):
            raise ValueError(f"word vectors: scales or the n-gram table hold numbers beyond {LARGEST:g}")
        self._vocabulary = vocabulary
        self.rows = rows
        self.scales = scales
        self.ngrams = ngrams
        self._static_width = int(rows.shape[1])
        self._ngram_means: dict[int, FloatArray] = {}  # of words with a row, filled as they are used

    @property
    def width(self) -> int:
        return self._static_width + int(self.ngrams.shape[1])

    def lookup(self, words: Sequence[str], out: FloatArray | None = None) -> FloatArray:
        """Return the vectors of lower-cased words, float32 [len(words), E], written into ``out`` if it is given."""
        vectors = np.empty((len(words), self.width), np.float32) if out is None else out
        static, ngrams = vectors[:, : self._static_width], vectors[:, self._static_width :]
        for i, word in enumerate(words):
            row = self._vocabulary.word_row(word)
            mean = self._ngram_means.get(-1 if row is None else row)
            ngrams[i] = mean = self._ngram_mean(word) if mean is None else mean
            static[i] = 0.0
            if row is not None:
                self._ngram_means[row] = mean
                static[i] = self.rows[row] * self.scales[row]
        return vectors

    def _ngram_mean(self, word: str) -> FloatArray:
        buckets = ngram_buckets(word, self.ngrams.shape[0])
        if not buckets:
            return np.zeros(self.ngrams.shape[1], np.float32)
        mean: FloatArray = self.ngrams[buckets].mean(axis=0, dtype=np.float32)
        return mean
