"""Examples as the paper's network is trained on them: tokens of context, question and answer, and batches of these."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mqan_core.example import Example
from mqan_core.text.tokens import read_tokens, word_of
from mqan_core.text.vocab import END_ID, Vocabulary
from mqan_training.batch import ANSWER_COST, Batch, IntArray, common_shape, pad
from mqan_training.model.embeddings import WordIndex
from mqan_training.spelling import spell_answer

_PAD = -1
_END = -2  # equal to no token, so the end cannot be copied


@dataclass(frozen=True, slots=True)
class WordExample:
    context: tuple[str, ...]
    question: tuple[str, ...]
    answer: tuple[str, ...]

    @property
    def num_steps(self) -> int:
        return len(self.answer) + 1

    @property
    def cost(self) -> int:
        context, question, answer = map(_padded_size, (len(self.context), len(self.question), self.num_steps))
        return context + question + ANSWER_COST * answer


def prepare_words(example: Example, max_context_tokens: int, max_answer_tokens: int) -> WordExample | None:
    """Read an example; None where it cannot be trained on: no free answer, no text, or one that is too long."""
    if example.choices or not example.answers:
        return None
    context, question = read_tokens(example.context), read_tokens(example.question)
    if not (question and 0 < len(context) <= max_context_tokens):
        return None
    answer = spell_answer(example, context, question)
    if not 0 < len(answer) <= max_answer_tokens:
        return None
    return WordExample(tuple(t.key for t in context), tuple(t.key for t in question), tuple(answer))


@dataclass(frozen=True, slots=True)
class WordBatch(Batch):
    """A batch with its targets: numbers of words, 0 for padding, and of tokens, -1 for padding and -2 for the end."""

    word_rows: Tensor  # for the embedder: rows [N], flat buckets and offsets [N]
    word_buckets: Tensor
    word_offsets: Tensor
    context_words: Tensor  # index into the words, [B, C]
    question_words: Tensor
    answer_words: Tensor  # shifted right, [B, A]; the first column is not used
    context_tokens: Tensor
    question_tokens: Tensor
    target_tokens: Tensor
    target_ids: Tensor  # of the generator
    reachable: Tensor  # which targets can be generated or copied; padding cannot
    context_lengths: Tensor
    question_lengths: Tensor

    @property
    def size(self) -> int:
        return int(self.context_lengths.sum() + self.question_lengths.sum() + self.reachable.sum())


class WordCollator:
    def __init__(self, vocabulary: Vocabulary, num_buckets: int) -> None:
        self._vocabulary = vocabulary
        self._index = WordIndex(vocabulary.words, num_buckets)

    def collate(self, examples: Sequence[WordExample]) -> WordBatch:
        number_of: dict[str, int] = {}
        contexts, questions, answers = (
            [np.array([number_of.setdefault(token, len(number_of)) for token in tokens], np.int64) for tokens in rows]
            for rows in ([e.context for e in examples], [e.question for e in examples], [e.answer for e in examples])
        )
        context_tokens, question_tokens = _padded(contexts), _padded(questions)
        targets = _padded([np.append(answer, _END) for answer in answers])
        previous = _padded([np.append(_PAD, answer) for answer in answers])
        num_generated = self._vocabulary.num_generated
        known = (self._vocabulary.piece_id(token) for token in number_of)
        id_of = np.array([num_generated if i is None else i for i in known], np.int64)
        ids = np.where(targets >= 0, id_of[np.maximum(targets, 0)], num_generated)
        ids = np.where(targets == _END, END_ID, ids)
        copied = np.stack([_are_in(t, c) | _are_in(t, q) for t, c, q in zip(targets, contexts, questions, strict=True)])
        reachable = (targets != _PAD) & ((ids < num_generated) | copied)
        place_of: dict[str, int] = {}
        places = np.array([place_of.setdefault(word_of(token), len(place_of)) for token in number_of], np.int64)
        words = list(place_of)
        words += words[-1:] * (_padded_size(len(words)) - len(words))
        arrays = (
            *self._index.select(words),
            *(places[np.maximum(tokens, 0)] for tokens in (context_tokens, question_tokens, previous)),
            context_tokens,
            question_tokens,
            targets,
            ids,
            reachable,
            *(np.array([len(row) for row in rows]) for rows in (contexts, questions)),
        )
        return WordBatch(*map(torch.from_numpy, arrays))


def _padded_size(size: int) -> int:
    return common_shape(size, least=1, bits=3)


def _padded(rows: Sequence[IntArray]) -> IntArray:
    return pad(rows, _PAD, _padded_size(max(map(len, rows))))


def _are_in(wanted: IntArray, numbers: IntArray) -> npt.NDArray[np.bool_]:
    return (wanted[:, None] == numbers).any(axis=1)
