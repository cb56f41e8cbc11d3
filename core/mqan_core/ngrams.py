"""Character n-grams of a word, hashed into buckets, so that a word never seen still has a vector.

The units are those of Hashimoto et al. (2017, the paper's charNgram): 2-, 3- and 4-grams over the word with boundary
marks. They are hashed (CRC-32) into a fixed number of trained rows, as in Bojanowski et al. (2017).
"""

from zlib import crc32

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
