"""Make the word vectors of a recipe: ``mqan embed RECIPE.yaml``."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mqan_training.model import embeddings
from mqan_training.model.bert import packaged_encoder
from mqan_training.recipe import Recipe
from mqan_training.tasks import sources_of


def make_vectors(
    recipe: Recipe,
    data: Path,
    *,
    num_words: int,
    width: int,  # of distilled vectors; GloVe keeps its own
    glove: Path | None = None,
) -> int:
    """Write the vectors of a recipe's words reader for the most frequent words of its examples; return their number."""
    path, rng = Path(recipe.words.vectors), np.random.default_rng(recipe.seed)
    sources = sources_of(recipe, data)
    counts = embeddings.count_words(source.draw(i, rng) for source in sources for i in range(len(source)))
    return write_word_vectors(path, embeddings.most_frequent(counts, num_words), width, glove)


def write_word_vectors(
    path: Path, words: Sequence[str], width: int, glove: Path | None, *, is_fixed: bool = False
) -> int:
    """Write the vectors of words, of GloVe or else distilled, to a file; return how many there are."""
    if glove is None:
        rows = embeddings.distil(words, width, packaged_encoder())
    else:
        words, rows = embeddings.read_glove(glove, words)
        if is_fixed and rows.shape[1] != width:
            raise ValueError(f"{glove} has vectors of width {rows.shape[1]}; the recipe says {width}")
    embeddings.write_vectors(path, embeddings.quantized_vectors(words, rows))
    return len(words)
