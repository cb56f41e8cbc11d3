"""Word vectors from a sentence encoder that reads words in sentences: ``mqan embed --in-context N``.

A word's vector is the mean of the encoder's states over sentences in which it stands: Bommasani et al. (2020),
"Interpreting Pretrained Contextualized Representations via Reductions to Static Embeddings". What that gains is in
``training/results``.

Shape letters: W words, S width of a vector, B sentences, P word pieces, H width of the encoder.
"""

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import numpy as np
import torch

from mqan_core.text import Token, read_tokens
from mqan_core.vectors import FloatArray
from mqan_training.data.sentences import letters_and_digits, sentences
from mqan_training.errors import MissingVectorsError
from mqan_training.model.embeddings import reduce_width
from mqan_training.runlog import console
from mqan_training.sentence_encoder import load_encoder

_BATCH = 64
_SORTED_TOGETHER = 40  # batches whose sentences are sorted by length, so that little is padding
_MAX_PIECES = 128  # of a sentence; the rest is not read


def covering_sentences(
    texts: Iterable[str], words: Iterable[str], least: int, held_out: AbstractSet[str] = frozenset(), seed: int = 1
) -> list[str]:
    """Return sentences of the texts so that every word stands in at least so many, if there are so many.

    The first ones have every word once, those behind them every word twice, then four times and so on.

    Args:
        texts: what to take sentences of 4 to 45 words from.
        words: lower-cased words.
        least: in how many sentences a word shall stand.
        held_out: sentences to leave out, their letters and digits.
        seed: of the order in which sentences are looked at.
    """
    row_of = {word: row for row, word in enumerate(words)}
    pool = []
    for text in sentences(texts):
        rows = {row_of[token.word] for token in read_tokens(text) if token.word in row_of}
        if rows and letters_and_digits(text) not in held_out:
            pool.append((text, tuple(rows)))
    random.Random(seed).shuffle(pool)  # noqa: S311
    met = [0] * len(row_of)
    chosen: list[str] = []
    enough = 0
    while enough < least:
        enough = min(max(1, 2 * enough), least)
        left = []
        for text, rows_of_text in pool:
            if any(met[row] < enough for row in rows_of_text):
                for row in rows_of_text:
                    met[row] += 1
                chosen.append(text)
            else:
                left.append((text, rows_of_text))
        pool = left
    return chosen


@torch.inference_mode()
def distil_in_context(
    words: Sequence[str], texts: Sequence[str], width: int, encoder: Path
) -> tuple[list[str], FloatArray]:
    """Return the words that stand in the texts and their vectors, float32 [W, S].

    A vector is the mean over all places where the word stands. The states of three layers, a third and two thirds up
    and the last, stand side by side before they are reduced to ``width`` by PCA.

    Args:
        words: lower-cased words.
        texts: sentences; of one longer than 128 word pieces the beginning is read.
        width: S, at most three times that of the encoder.
        encoder: folder of a sentence-transformers or Hugging Face encoder with its tokenizer.

    Raises:
        MissingVectorsError: there is no encoder in the folder, or its tokenizer does not say where pieces stand.
        ModuleNotFoundError: ``transformers`` is not installed (the extra ``embed``).
        ValueError: no word stands in the texts, or the encoder's states are narrower than ``width``.
    """
    tokenizer, model = load_encoder(encoder)
    if not tokenizer.is_fast:
        raise MissingVectorsError(f"{encoder}: its tokenizer does not say where pieces stand; it has no tokenizer.json")
    model.eval()  # type: ignore[no-untyped-call]
    depth = model.config.num_hidden_layers
    layers = [max(1, depth * third // 3) for third in (1, 2, 3)]
    num_states = len(layers) * model.config.hidden_size
    if width > num_states:
        raise ValueError(f"three layers of {encoder} have {num_states} dimensions, {width} were asked for")
    row_of = {word: row for row, word in enumerate(words)}
    sums = np.zeros((len(words), num_states), np.float32)
    counts = np.zeros(len(words), np.float32)
    group = _BATCH * _SORTED_TOGETHER
    for first in range(0, len(texts), group):
        some = sorted(texts[first : first + group], key=len)
        for start in range(0, len(some), _BATCH):
            batch = some[start : start + _BATCH]
            encoded = tokenizer(
                batch,
                padding=True,
                truncation=True,
                max_length=_MAX_PIECES,
                return_tensors="pt",
                return_offsets_mapping=True,
            )
            offsets_BP2 = encoded.pop("offset_mapping").tolist()
            hidden = model(**encoded, output_hidden_states=True).hidden_states
            states_BPH = torch.cat([hidden[layer] for layer in layers], dim=-1).numpy()
            for i, text in enumerate(batch):
                tokens = list(read_tokens(text))
                words_of_pieces = _words_of_pieces(offsets_BP2[i], tokens)
                places, rows, shares = _known_pieces(words_of_pieces, [row_of.get(token.word) for token in tokens])
                np.add.at(sums, rows, states_BPH[i, places] * shares[:, None])
                np.add.at(counts, rows, shares)
        console.print(f"{min(first + group, len(texts))} of {len(texts)} sentences read", markup=False)
    met = np.flatnonzero(counts)
    if not len(met):
        raise ValueError(f"none of the {len(words)} words stands in the {len(texts)} sentences")
    means = sums[met] / counts[met, None]
    return [words[int(row)] for row in met], reduce_width(means.astype(np.float64), width)


def _words_of_pieces(offsets: Sequence[tuple[int, int]], tokens: Sequence[Token]) -> list[int | None]:
    """Return for each piece the number of the token in which its last character stands; None for padding and marks."""
    starts = [token.start for token in tokens]
    found: list[int | None] = []
    for start, end in offsets:
        number = bisect_right(starts, end - 1) - 1
        found.append(number if start < end and number >= 0 and end <= tokens[number].end else None)
    return found


def _known_pieces(
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
