"""PieceExample examples, and requests, as padded tensors.

Shape letters as in ``model/pretrained.py``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mqan_core.ask.request import Request
from mqan_core.text.layout import Layout, Window
from mqan_core.text.tokens import word_of
from mqan_core.text.word_pieces import WordPieces
from mqan_training.batch import Batch, IntArray, common_shape, pad
from mqan_training.model.pretrained import ReaderInputs
from mqan_training.piece_examples import NO_SLOT, PieceExample

MOST_PIECES = 8  # of a word that the decoder reads as the previous one
NUM_NULL = 2  # scores of [CLS]: no answer, no quotation
_PAD = -1  # a slot that no target has
_MOST_OF_TEXT = 254  # pieces that a sentence encoder reads alone: MiniLM was trained on 256 with its marks
_MOST_OF_CHOICE = 62  # longer choices are rare, and all of a batch are padded to the longest


@dataclass(frozen=True, slots=True)
class PieceBatch(Batch):
    """A batch with its targets; slots are -1 for padding."""

    inputs: ReaderInputs
    answer_pieces: Tensor  # of the previous word of each step, [B, A, P]
    context_slots: Tensor  # [B, C]
    question_slots: Tensor  # [B, Q]
    target_slots: Tensor  # NO_SLOT for none, [B, A]
    target_ids: Tensor  # V for none, [B, A]
    is_step: Tensor  # bool, [B, A]
    starts: Tensor  # bool: no answer, no one quotation, the question's words, the context's, [B, 2 + Q + C]
    ends: Tensor  # as starts, of the last word
    right: Tensor  # of choices where several may be right: 1, 0, or -1 elsewhere, [B, Q]
    decided: Tensor  # place in Q of the label whose evidence is known, -1 for none, [B]
    evidence: Tensor  # bool, the words that decide for it, [B, C]
    outcomes: Tensor  # that a choice stands for where its question is asked in two ways, else -1, [B, Q]
    is_twin: Tensor  # bool, whether the row is the one before it asked otherwise, [B]
    text_pieces: Tensor  # texts with choices, alone as a sentence encoder reads them, 0 for padding, [U, S]
    choice_pieces: Tensor
    text_of: Tensor  # place in text_pieces, -1 for none, [B]
    choice_of: Tensor  # place in choice_pieces of each word of the question, -1 for none, [B, Q]

    @property
    def size(self) -> int:
        return int((self.inputs.groups_NS > 0).sum())

    def tensors(self) -> tuple[Tensor, ...]:
        return (*self.inputs, *(getattr(self, field.name) for field in fields(self)[1:]))

    @classmethod
    def of_tensors(cls, tensors: Sequence[Tensor]) -> "PieceBatch":
        num_inputs = len(ReaderInputs._fields)
        return cls(ReaderInputs(*tensors[:num_inputs]), *tensors[num_inputs:])


def word_ids(word_pieces: WordPieces, pieces: Sequence[str]) -> IntArray:
    """Return the word pieces of RevTok pieces, padded with 0, [len(pieces), P]."""
    return pad([word_pieces.ids(word_of(piece))[:MOST_PIECES] for piece in pieces], 0, MOST_PIECES)


def reader_inputs(
    requests: Sequence[Request], windows: Sequence[Sequence[Window]], allowed: npt.NDArray[np.float32]
) -> ReaderInputs:
    flat = [(row, window) for row, some in enumerate(windows) for window in some]
    size = common_shape(max(len(window.pieces) for _, window in flat), bits=3)
    inputs = np.zeros((4, len(flat), size), np.int64)  # pieces, positions, segments, groups
    num_context = common_shape(max(len(request.slots.context) for request in requests))
    num_question = common_shape(max(len(request.slots.question) for request in requests))
    c_mask, q_mask = np.zeros((len(requests), num_context), bool), np.zeros((len(requests), num_question), bool)
    nowhere = np.arange(len(requests))[:, None] * size  # not 0 for all: a GPU adds up gradients of one place in turn
    c_places, q_places = (np.repeat(nowhere, number, axis=1) for number in (num_context, num_question))
    c_counts, q_counts = np.ones_like(c_places), np.ones_like(q_places)
    pointed = np.zeros_like(q_mask)
    for n, (row, window) in enumerate(flat):
        length = len(window.pieces)
        inputs[:, n, :length] = window.pieces, window.positions, window.segments, window.groups
        of_question = len(requests[row].slots.question)
        of_words = len(requests[row].question_tokens)
        num_before = of_words + window.labels.stop - window.labels.start
        counted, behind = window.counted, num_before - window.words.start
        words, lengths = slice(counted.start + behind, counted.stop + behind), window.lasts - window.firsts + 1
        c_places[row, counted], c_counts[row, counted] = n * size + window.firsts[words], lengths[words]
        if window.words.start == 0:
            labels = slice(of_words + window.labels.start, of_words + window.labels.stop)
            own = slice(of_words, num_before)
            q_places[row, labels], q_counts[row, labels] = n * size + window.firsts[own], lengths[own]
            if window.labels.start == 0:
                q_places[row, :of_words] = n * size + window.firsts[:of_words]
                q_counts[row, :of_words] = lengths[:of_words]
            q_mask[row, :of_question] = True
            pointed[row, len(requests[row].question_tokens) if requests[row].choices else 0 : of_question] = True
    for row, request in enumerate(requests):
        c_mask[row, : len(request.slots.context)] = True
    arrays = (*inputs, np.array([row for row, _ in flat]))
    rest = (c_places, q_places, c_counts, q_counts, c_mask, q_mask, pointed, allowed)
    return ReaderInputs(*(torch.from_numpy(np.ascontiguousarray(array)) for array in (*arrays, *rest)))


def allowed_sources(requests: Sequence[Request]) -> npt.NDArray[np.float32]:
    """Return what requests may use by default: everything, or with choices the question's separators alone, [B, 3]."""
    return np.array([[0, 1, 0] if request.choices else [1, 1, 1] for request in requests], np.float32)


def collate_pieces(examples: Sequence[PieceExample], layout: Layout, num_generated: int) -> PieceBatch:
    requests = [example.request for example in examples]
    inputs = reader_inputs(requests, [[example.window] for example in examples], allowed_sources(requests))
    num_context, num_question = inputs.c_mask_BC.shape[1], inputs.q_mask_BQ.shape[1]
    num_steps = common_shape(max(max(len(example.slots) for example in examples), 1), least=1)
    rows = len(examples)
    is_step = pad([np.ones_like(example.slots) for example in examples], 0, num_steps).astype(bool)
    answer_pieces = np.zeros((rows, num_steps, MOST_PIECES), np.int64)
    starts, ends = np.zeros((2, rows, NUM_NULL + num_question + num_context), bool)
    right = np.full((rows, num_question), -1)
    decided, evidence = np.full(rows, -1), np.zeros((rows, num_context), bool)
    outcomes, is_twin = np.full((rows, num_question), -1), np.zeros(rows, bool)
    for row, example in enumerate(examples):
        request = example.request
        answer_pieces[row, 1 : 1 + len(example.answer)] = word_ids(layout.word_pieces, example.answer)[: num_steps - 1]
        of_question = len(request.slots.question)
        for target, places in ((starts, example.starts), (ends, example.ends)):
            for place in places:
                target[row, NUM_NULL + (place if place < of_question else place - of_question + num_question)] = True
        starts[row, 0] = example.is_refusal
        starts[row, 1] = example.is_written
        decided[row] = example.decided
        evidence[row, : len(example.evidence)] = example.evidence
        labels = slice(len(request.question_tokens), of_question)
        right[row, labels] = example.right or -1
        outcomes[row, labels] = example.outcomes or -1
        is_twin[row] = example.is_twin and row > 0 and request.context == requests[row - 1].context
    slots = (
        pad([request.slots.context for request in requests], _PAD, num_context),
        pad([request.slots.question for request in requests], _PAD, num_question),
        pad([example.slots for example in examples], NO_SLOT, num_steps),
        pad([example.ids for example in examples], num_generated, num_steps),
    )
    rest = (is_step, starts, ends, right, decided, evidence, outcomes, is_twin, *_alone(examples, num_question))
    return PieceBatch(inputs, *map(torch.from_numpy, (answer_pieces, *slots, *rest)))


def _alone(examples: Sequence[PieceExample], num_question: int) -> tuple[IntArray, ...]:
    texts: dict[tuple[int, ...], int] = {}
    choices: dict[tuple[int, ...], int] = {}
    text_of, choice_of = np.full(len(examples), -1), np.full((len(examples), num_question), -1)
    for row, example in enumerate(examples):
        request, window = example.request, example.window
        if not request.choices:
            continue
        whole = window.pieces.tolist()
        first, between = whole[0], whole[-1]
        start = int(window.segments.argmax())
        text_of[row] = texts.setdefault((first, *whole[start:-1][:_MOST_OF_TEXT], between), len(texts))
        for place in range(len(request.question_tokens), len(request.slots.question)):
            pieces = whole[window.firsts[place] + 1 : window.lasts[place] + 1]
            if len(pieces) <= _MOST_OF_CHOICE:
                choice_of[row, place] = choices.setdefault((first, *pieces, between), len(choices))
    alone = (
        pad(list(rows), 0, common_shape(max(map(len, rows), default=1)), common_shape(len(rows)) if rows else 0)
        for rows in (texts, choices)
    )
    return *alone, text_of, choice_of
