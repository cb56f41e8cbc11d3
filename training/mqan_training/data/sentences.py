"""Sentences of datasets' contexts, and what tells that one stands in another split, too."""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mqan_training.data.readers.task import Task
from mqan_training.errors import MissingFileError

_SENTENCE_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"')\]]))\s+(?=[A-Z\"'(])")
_LINE_BREAK = re.compile(r"<br\s*/?>")
_NO_WORD = re.compile(r"[\W_]+")
_SIGNS_AROUND = re.compile(r"^[\W_]+|[\W_]+$")
_FEWEST_WORDS, _MOST_WORDS = 4, 45
_PHRASE_WORDS = (1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 10)  # lengths of phrases, as often as they are drawn
_FROM_THE_FIRST, _TO_THE_LAST = 0.25, 0.45  # shares of excerpts: what a review says at its end sums it up
_DRAWS = 20  # for each phrase that is asked for


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, in order, with one space between words."""
    return [" ".join(part.split()) for part in _SENTENCE_END.split(_LINE_BREAK.sub(" ", text))]


def sentences(texts: Iterable[str]) -> Iterator[str]:
    """Yield the sentences of 4 to 45 words in texts, each once."""
    seen: set[str] = set()
    for text in texts:
        for sentence in sentences_of(text):
            if _FEWEST_WORDS <= sentence.count(" ") + 1 <= _MOST_WORDS and sentence not in seen:
                seen.add(sentence)
                yield sentence


def excerpt(parts: Sequence[str], most_words: int, generator: random.Random) -> str:
    """Return consecutive ones of a text's sentences, up to so many words: its first, its last, or from any one on.

    One sentence at least, however long.
    """
    lengths = [len(part.split()) for part in parts]
    chance = generator.random()
    first = 0 if chance < _FROM_THE_FIRST else generator.randrange(len(parts))
    if chance > 1 - _TO_THE_LAST:
        first = len(parts) - 1
        while first and sum(lengths[first - 1 :]) <= most_words:
            first -= 1
    end = first + 1
    while end < len(parts) and sum(lengths[first : end + 1]) <= most_words:
        end += 1
    return " ".join(parts[first:end])


def phrases(texts: Sequence[str], number: int, generator: random.Random) -> list[str]:
    """Return different runs of 1 to 10 words of texts, at random, without signs around them; fewer if texts are few."""
    found: dict[str, None] = {}
    for _ in range(_DRAWS * number if texts else 0):
        if len(found) == number:
            break
        words, length = generator.choice(texts).split(), generator.choice(_PHRASE_WORDS)
        if length <= len(words):
            first = generator.randint(0, len(words) - length)
            phrase = _SIGNS_AROUND.sub("", " ".join(words[first : first + length]))
            if phrase:
                found[phrase] = None
    return list(found)


def splices(texts: Sequence[str], number: int, generator: random.Random) -> list[str]:
    """Return different texts of 4 to 45 words, put together of two or three each; fewer if texts are few.

    One goes over into the next at a word that both have.
    """
    words_of = [words for text in texts if (words := text.split())]
    places: dict[str, list[tuple[int, int]]] = {}
    for row, words in enumerate(words_of):
        for place, word in enumerate(words):
            places.setdefault(word.lower(), []).append((row, place))
    known = set(map(letters_and_digits, texts))
    found: dict[str, None] = {}
    for _ in range(_DRAWS * number if words_of else 0):
        if len(found) == number:
            break
        words = generator.choice(words_of)
        for _ in range(generator.choice((1, 1, 2))):
            here = generator.randrange(len(words))
            row, there = generator.choice(places[words[here].lower()])
            words = words[:here] + words_of[row][there:]
        spliced = " ".join(words)
        if _FEWEST_WORDS <= len(words) <= _MOST_WORDS and letters_and_digits(spliced) not in known:
            found[spliced] = None
    return list(found)


def letters_and_digits(text: str) -> str:
    """Return these alone, in lower case: datasets spell the same sentence with other case, spaces and signs."""
    return _NO_WORD.sub("", text.lower())


def texts_of(task: Task, data: Path, splits: Iterable[str]) -> set[str]:
    """Return the letters and digits of the contexts of splits, whole and by sentences.

    Raises:
        MissingFileError: a split is not there; the test split may be missing.
    """
    found: set[str] = set()
    for split in splits:
        try:
            contexts = dict.fromkeys(example.context for example in task.read(data / task.folder, split))
        except MissingFileError:
            if split == "test":
                continue
            raise
        found.update(map(letters_and_digits, contexts))
        found.update(map(letters_and_digits, sentences(contexts)))
    return found
