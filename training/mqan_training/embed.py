"""Make the word vectors of a recipe: ``mqan embed RECIPE.yaml``."""

from pathlib import Path

from mqan_training.config import TrainConfig
from mqan_training.data.readers.registry import task_named
from mqan_training.data.sentences import texts_of
from mqan_training.in_context import covering_sentences, distil_in_context
from mqan_training.model.embeddings import (
    StaticVectors,
    count_words,
    distil,
    join_columns,
    most_frequent,
    quantized_vectors,
    read_glove,
    write_vectors,
)
from mqan_training.runlog import console
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
        num_words: most words of the data to keep; those of ``beside`` are kept, too.
        width: width of distilled vectors; GloVe keeps its own.
        encoder: folder of a sentence-transformers model to distil; the packaged one when None.
        glove: GloVe text file to read instead of distilling.
        in_context: in at least how many sentences of the training contexts to encode a word, where there are so many; a
            word of none gets no vector. Sentences that stand in other splits, too, are left out. None: words alone.
        beside: vectors to keep as the first columns, for a run that goes on from a network trained on them; the new
            ones come beside them.
    """
    folder = packaged_encoder() if encoder is None and glove is None else encoder
    tasks = [task_named(task.name) for task in config.tasks]
    counts = count_words(example for task in tasks for example in task.read(data / task.folder, "train"))
    known = () if beside is None else beside.words
    words = list(dict.fromkeys((*known, *most_frequent(counts, num_words))))
    if glove is not None:
        words, rows = read_glove(glove, words)
    elif folder is not None and in_context is not None:
        contexts = dict.fromkeys(
            example.context for task in tasks for example in task.read(data / task.folder, "train")
        )
        others = [texts_of(task, data, [split for split in task.splits if split != "train"]) for task in tasks]
        texts = covering_sentences(contexts, words, in_context, set().union(*others))
        num_words = len(words)
        words, rows = distil_in_context(words, texts, width, folder)
        console.print(f"{num_words - len(words)} of {num_words} words are in no sentence, as the encoder reads them")
    elif folder is not None:
        rows = distil(words, width, folder)
    vectors = quantized_vectors(words, rows)
    if beside is not None:
        vectors = join_columns(beside, vectors)
    write_vectors(Path(config.vectors), vectors)
    return len(vectors.words)
