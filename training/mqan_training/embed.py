"""Make the word vectors of a recipe: ``mqan embed RECIPE.yaml``."""

from pathlib import Path

from mqan_training.config import TrainConfig
from mqan_training.embeddings import (
    StaticVectors,
    count_words,
    distil,
    join_columns,
    most_frequent,
    quantized_vectors,
    read_glove,
    write_vectors,
)
from mqan_training.in_context import covering_sentences, distil_in_context
from mqan_training.readers.registry import task_named
from mqan_training.sentence_encoder import packaged_encoder


def make_vectors(
    config: TrainConfig,
    data: Path,
    *,
    num_words: int,
    width: int,
    encoder: Path | None = None,
    glove: Path | None = None,
    in_context: int | None = None,
    beside: StaticVectors | None = None,
) -> int:
    """Write ``config.vectors`` for the most frequent words of the recipe's training data; return their number.

    Args:
        config: names the tasks and the file to write.
        data: folder of the datasets.
        num_words: most words to keep.
        width: width of distilled vectors; GloVe keeps its own.
        encoder: folder of a sentence-transformers model to distil; the packaged one when None.
        glove: GloVe text file to read instead of distilling.
        in_context: in how many sentences of the training data to encode a word, where there are so many; alone when
            None.
        beside: vectors to keep as the first columns, for a run that goes on from a network trained on them; the new
            ones come beside them.
    """
    tasks = [task_named(task.name) for task in config.tasks]
    counts = count_words(example for task in tasks for example in task.read(data / task.folder, "train"))
    words = most_frequent(counts, num_words)
    if glove is not None:
        words, rows = read_glove(glove, words)
    elif in_context is not None:
        contexts = (example.context for task in tasks for example in task.read(data / task.folder, "train"))
        texts = covering_sentences(contexts, words, in_context)
        words, rows = distil_in_context(words, texts, width, encoder or packaged_encoder())
    else:
        rows = distil(words, width, encoder or packaged_encoder())
    vectors = quantized_vectors(words, rows)
    if beside is not None:
        vectors = join_columns(beside, vectors)
    write_vectors(Path(config.vectors), vectors)
    return len(vectors.words)
