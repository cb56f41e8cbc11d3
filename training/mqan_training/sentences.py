"""Sentences of datasets' contexts, and what tells that one stands in another split, too."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mqan_training.errors import MissingFileError
from mqan_training.readers.task import Task

_SENTENCE_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"')\]]))\s+(?=[A-Z\"'(])")
_LINE_BREAK = re.compile(r"<br\s*/?>")
_NO_WORD = re.compile(r"[\W_]+")
_FEWEST_WORDS, _MOST_WORDS = 4, 45


def sentences(texts: Iterable[str]) -> Iterator[str]:
    """Yield the sentences of 4 to 45 words in texts, each once."""
    seen: set[str] = set()
    for text in texts:
        for part in _SENTENCE_END.split(_LINE_BREAK.sub(" ", text)):
            words = part.split()
            sentence = " ".join(words)
            if _FEWEST_WORDS <= len(words) <= _MOST_WORDS and sentence not in seen:
                seen.add(sentence)
                yield sentence


def letters_and_digits(text: str) -> str:
    """Return these alone, in lower case: datasets spell the same sentence with other case, spaces and signs."""
    return _NO_WORD.sub("", text.lower())


def texts_of(task: Task, data: Path, splits: Iterable[str]) -> set[str]:
    """Return the letters and digits of the contexts, whole and by sentences, of those of the splits that are there."""
    found: set[str] = set()
    for split in splits:
        try:
            contexts = dict.fromkeys(example.context for example in task.read(data / task.folder, split))
        except MissingFileError:
            continue
        found.update(map(letters_and_digits, contexts))
        found.update(map(letters_and_digits, sentences(contexts)))
    return found
