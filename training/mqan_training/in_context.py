"""Word vectors from a sentence encoder that reads words in sentences: ``mqan embed --in-context N``.

A word's vector is the mean of the encoder's states over sentences in which it stands: Bommasani et al. (2020),
"Interpreting Pretrained Contextualized Representations via Reductions to Static Embeddings". That says more than the
encoder does of the word alone: see ``training/results``.

Shape letters: W words, S width of a vector, B sentences, P word pieces, H width of the encoder.
"""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch

from mqan_core.text import read_tokens
from mqan_core.vectors import FloatArray
from mqan_training.embeddings import reduce_width
from mqan_training.pseudo_labels import sentences
from mqan_training.runlog import console
from mqan_training.sentence_encoder import load_encoder

_BATCH = 64
_SORTED_TOGETHER = 40  # batches whose sentences are sorted by length, so that little is padding
_MAX_PIECES = 128  # of a sentence; the rest is not read


def covering_sentences(texts: Iterable[str], words: Iterable[str], occurrences: int, seed: int = 1) -> list[str]:
    """Return sentences of the texts in which every word stands ``occurrences`` times, as far as there are so many.

    The first ones have every word once, those behind them every word twice, then four times and so on.
    """
    wanted = set(words)
    pool = [(text, {token.word for token in read_tokens(text)} & wanted) for text in sentences(texts)]
    random.Random(seed).shuffle(pool)  # noqa: S311
    met: Counter[str] = Counter()
    chosen: list[str] = []
    enough = 0
    while enough < occurrences:
        enough = min(max(1, 2 * enough), occurrences)
        left = []
        for text, known in pool:
            if any(met[word] < enough for word in known):
                met.update(known)
                chosen.append(text)
            else:
                left.append((text, known))
        pool = left
    return chosen


@torch.inference_mode()
def distil_in_context(
    words: Sequence[str], texts: Sequence[str], width: int, encoder: Path
) -> tuple[list[str], FloatArray]:
    """Return the words that stand in the texts and their vectors, float32 [W, S].

    The states of three layers, a third and two thirds up and the last, stand side by side before they are reduced to
    ``width`` by PCA.

    Args:
        words: lower-cased words.
        texts: sentences; of one longer than 128 word pieces the beginning is read.
        width: S, at most three times that of the encoder.
        encoder: folder of a sentence-transformers or Hugging Face encoder with its tokenizer.

    Raises:
        MissingVectorsError: there is no encoder in the folder.
        ValueError: no word stands in the texts, or the encoder's states are narrower than ``width``.
    """
    tokenizer, model = load_encoder(encoder)
    model.eval()  # type: ignore[no-untyped-call]
    row_of = {word: row for row, word in enumerate(words)}
    depth = model.config.num_hidden_layers
    layers = [max(1, depth * third // 3) for third in (1, 2, 3)]
    sums = np.zeros((len(words), len(layers) * model.config.hidden_size), np.float32)
    counts = np.zeros(len(words), np.float32)
    group = _BATCH * _SORTED_TOGETHER
    for first in range(0, len(texts), group):
        some = sorted((read_tokens(text) for text in texts[first : first + group]), key=len)
        for start in range(0, len(some), _BATCH):
            tokens_B = some[start : start + _BATCH]
            encoded = tokenizer(
                [[token.piece.strip() or token.piece for token in tokens] for tokens in tokens_B],
                is_split_into_words=True,
                padding=True,
                truncation=True,
                max_length=_MAX_PIECES,
                return_tensors="pt",
            )
            hidden = model(**encoded, output_hidden_states=True).hidden_states
            states_BPH = torch.cat([hidden[layer] for layer in layers], dim=-1).numpy()
            for i, tokens in enumerate(tokens_B):
                places, rows, shares = _words_of_pieces(encoded.word_ids(i), [row_of.get(t.word) for t in tokens])
                np.add.at(sums, rows, states_BPH[i, places] * shares[:, None])
                np.add.at(counts, rows, shares)
        console.print(f"{min(first + group, len(texts))} of {len(texts)} sentences read", markup=False)
    met = np.flatnonzero(counts)
    if not len(met):
        raise ValueError(f"none of the {len(words)} words stands in the {len(texts)} sentences")
    means = sums[met] / counts[met, None]
    return [words[int(row)] for row in met], reduce_width(means.astype(np.float64), width)


def _words_of_pieces(
    word_of_piece: Sequence[int | None], row_of_word: Sequence[int | None]
) -> tuple[list[int], list[int], FloatArray]:
    """Return the places of the pieces of known words, their words' rows, and the share each piece has in its word."""
    num_pieces = Counter(word_of_piece)
    places, rows, shares = [], [], []
    for place, word in enumerate(word_of_piece):
        row = None if word is None else row_of_word[word]
        if row is not None:
            places.append(place)
            rows.append(row)
            shares.append(1.0 / num_pieces[word])
    return places, rows, np.array(shares, np.float32)
