"""Make the word vectors of a recipe: ``mqan embed RECIPE.yaml``."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mqan_training.model.embeddings import (
    count_words,
    distil,
    most_frequent,
    quantized_vectors,
    read_glove,
    write_vectors,
)
from mqan_training.recipe import Recipe
from mqan_training.sentence_encoder import encoder_folder
from mqan_training.tasks import sources_of


def make_vectors(
    recipe: Recipe,
    data: Path,
    *,
    num_words: int,
    width: int,
    encoder: Path | None = None,
    glove: Path | None = None,
) -> int:
    """Write the vectors of a recipe's words reader for the most frequent words of its examples; return their number.

    ``width`` is that of distilled vectors; GloVe keeps its own.
    """
    refuse_both(encoder, glove)
    path, rng = Path(recipe.words.vectors), np.random.default_rng(recipe.seed)
    sources = sources_of(recipe, data)
    counts = count_words(source.draw(i, rng) for source in sources for i in range(len(source)))
    return write_word_vectors(path, most_frequent(counts, num_words), width, encoder, glove)


def refuse_both(encoder: Path | None, glove: Path | None) -> None:
    """Refuse two sources of word vectors, before texts are read."""
    if glove is not None and encoder is not None:
        raise ValueError("--encoder distils an encoder and --glove reads a file: leave one of them out")


def write_word_vectors(
    path: Path, words: Sequence[str], width: int, encoder: Path | None, glove: Path | None, *, is_fixed: bool = False
) -> int:
    """Write the vectors of words, of GloVe or else distilled, to a file; return how many there are."""
    if glove is None:
        rows = distil(words, width, encoder_folder(encoder))
    else:
        words, rows = read_glove(glove, words)
        if is_fixed and rows.shape[1] != width:
            raise ValueError(f"{glove} has vectors of width {rows.shape[1]}; the recipe says {width}")
    write_vectors(path, quantized_vectors(words, rows))
    return len(words)
