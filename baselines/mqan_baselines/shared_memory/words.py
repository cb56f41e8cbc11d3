"""Texts as numbers of words, and word vectors to begin with.

A word is a lower-cased word of the project's own tokenizer. Shape letters: N texts, T words, W words known, D width.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from mqan_baselines.formats import Row
from mqan_baselines.recipes import SharedMemoryRecipe
from mqan_baselines.tasks import baseline_task
from mqan_core.text.tokens import measure, read_tokens
from mqan_training.embed import write_word_vectors
from mqan_training.model.embeddings import load_vectors, most_frequent

PADDING, UNKNOWN = 0, 1
_NUM_SPECIAL: Final = 2


class Lexicon:
    """The words that have vectors, in the order of their numbers, which begin at 2; others share the unknown word's."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self._number_of = {word: i for i, word in enumerate(words, _NUM_SPECIAL)}
        if len(self._number_of) != len(self.words):
            raise ValueError("lexicon: a word is there twice")

    def __len__(self) -> int:
        return len(self.words) + _NUM_SPECIAL

    def count(self, *texts: str) -> int:
        return sum(measure(text).num_tokens for text in texts)

    def numbers(self, text: str, most_words: int) -> list[int]:
        """Return the numbers of a text's last words, at least one: the state after them decides for a class."""
        numbers = [self._number_of.get(token.word, UNKNOWN) for token in read_tokens(text)[-most_words:]]
        return numbers or [UNKNOWN]


@dataclass(frozen=True, slots=True)
class Numbered:
    """A split of a task as numbers: the words of each text, and its class."""

    texts: list[list[int]]
    classes: list[int]

    @property
    def lengths(self) -> list[int]:
        return [len(text) for text in self.texts]

    def batch(self, places: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        texts = [torch.tensor(self.texts[i]) for i in places]
        words_NT = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=PADDING)
        lengths_N = torch.tensor([len(text) for text in texts])
        return words_NT, lengths_N, torch.tensor([self.classes[i] for i in places])


def number(rows: Sequence[Row], lexicon: Lexicon, most_words: int) -> Numbered:
    return Numbered([lexicon.numbers(row.texts[0], most_words) for row in rows], [int(row.gold) for row in rows])


def make_lexicon(training_rows: Iterable[Row], least_count: int) -> Lexicon:
    """Return the words that stand so often in training texts, each distinct text counted once; the frequent first."""
    counts: Counter[str] = Counter()
    for text in dict.fromkeys(row.texts[0] for row in training_rows):
        counts.update(token.word for token in read_tokens(text))
    kept = Counter({word: count for word, count in counts.items() if count >= least_count})
    return Lexicon(most_frequent(kept, len(kept)))


def start_vectors(weight_WD: Tensor, lexicon: Lexicon, path: Path) -> int:
    """Put the vectors of a file into the rows of the words that it has; return how many."""
    vectors = load_vectors(path)
    if vectors.width != weight_WD.shape[1]:
        message = f"{path} has vectors of width {vectors.width}; the recipe says embedding_width {weight_WD.shape[1]}"
        raise ValueError(message)
    rows = torch.from_numpy(vectors.dequantized())
    row_of = {word: row for row, word in enumerate(vectors.words)}
    known = [(i, row_of[word]) for i, word in enumerate(lexicon.words, _NUM_SPECIAL) if word in row_of]
    if known:
        places, sources = (torch.tensor(column) for column in zip(*known, strict=True))
        with torch.no_grad():
            weight_WD[places] = rows[sources]
    return len(known)


def make_vectors(recipe: SharedMemoryRecipe, data: Path, *, glove: Path | None = None) -> int:
    """Write the recipe's file of word vectors, for the words of its training texts; return how many there are.

    They are distilled from the packaged encoder, or read from a file of GloVe, as the paper did.
    """
    if not recipe.vectors:
        raise ValueError("the recipe trains word vectors from scratch: its `vectors` names no file to write")
    rows = (row for task in recipe.tasks for row in baseline_task(task).rows(data, "train"))
    words = list(make_lexicon(rows, recipe.least_count).words)
    return write_word_vectors(Path(recipe.vectors), words, recipe.embedding_width, glove, is_fixed=True)
