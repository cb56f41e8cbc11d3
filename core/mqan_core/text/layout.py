"""A request as a pretrained reader sees it: windows of word pieces, and where the words stand in them.

A window is one sequence, as a BERT is pretrained on:

    [CLS] question [SEP] context [SEP]                                  without choices
    [CLS] question [SEP] label 1 [SEP] label 2 [SEP] context [SEP]      with them: a separator in front of each label

- A word is a RevTok word; it is cut into pieces by itself, so that no piece belongs to two words.
- A label is chosen by pointing at the separator in front of it. All labels begin at the same position; a label's pieces
  and its separator attend to question, context and themselves, and not to the other labels (``groups``). So the order
  of the labels cannot matter.
- A context that is longer than a window is read in several that overlap, each with question and choices before it. A
  word counts in the window in which it has the most text around it.
- Choices that are longer than ``TOGETHER`` pieces are read in several groups, each with the question and the context's
  beginning around it; the rest of the context is read with the first group. They are still chosen from together.

Shape letters: S pieces of a window, T words of a window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np
import numpy.typing as npt

from mqan_core.errors import InputError
from mqan_core.text.tokens import Token
from mqan_core.text.word_pieces import BETWEEN, FIRST, WordPieces

Int64Array = npt.NDArray[np.int64]

WINDOW: Final = 384  # pieces of a window, question and choices included
LEAST_CONTEXT: Final = 128  # pieces of context in a window, however long question and choices are
OVERLAP: Final = 64  # pieces that neighbouring windows share
MOST_PIECES: Final = 16  # pieces of a word that are read: a run of ideographs is one word
TOGETHER: Final = 1024  # pieces of labels that are read together: each attends to all of the text
MOST_CHOICES: Final = 8192  # pieces of all labels
_NAMED: Final = 5  # words of a choice that is too long
MOST_QUESTION: Final = 256  # pieces of the question and of the longest label
SHARED: Final = 1  # the group of question and context, which attend to all and which all attend to
_NUM_MARKS = 3  # [CLS], and [SEP] after question and context
_AS_LONG: Final = 750  # pieces of a window whose attention to each other takes as long as all else


@dataclass(frozen=True, slots=True)
class Window:
    """One sequence of pieces, which attend to their own group and to ``SHARED``; those of ``SHARED`` attend to all."""

    pieces: Int64Array  # ids, [S]
    positions: Int64Array  # [S]
    segments: Int64Array  # 1 for the context, [S]
    groups: Int64Array  # ``SHARED``, or 2 and up for the labels, [S]
    firsts: Int64Array  # first piece of each word: the question's, the labels' with their separators, ``words``, [T]
    lasts: Int64Array  # last piece of each word, [T]
    labels: slice  # that this window holds
    words: slice  # of the context, that this window holds
    counted: slice  # of these, as read here; the parts of all windows make up the context


class Layout:
    """Lays requests out for a reader with one vocabulary of word pieces."""

    def __init__(self, word_pieces: WordPieces) -> None:
        self.word_pieces = word_pieces
        self._first, self._between = word_pieces.id_of(FIRST), word_pieces.id_of(BETWEEN)

    def ids(self, token: Token) -> tuple[int, ...]:
        return self.word_pieces.ids(token.word)[:MOST_PIECES]

    def windows(
        self, question: Sequence[Token], choices: Sequence[Sequence[Token]], context: Sequence[Token]
    ) -> list[Window]:
        """Return the windows of a request, at least one; refuse a question or labels longer than a window allows."""
        question_ids = [self.ids(token) for token in question]
        choice_ids = [[i for token in tokens for i in self.ids(token)] for tokens in choices]
        context_ids = [self.ids(token) for token in context]
        num_question = sum(map(len, question_ids))
        longest = max(map(len, choice_ids), default=0)
        if num_question > MOST_QUESTION:
            message = f"The question takes {num_question} word pieces; at most {MOST_QUESTION} are read."
            raise InputError("question_too_long", "question", message, "Send a shorter question.")
        if num_question + longest > MOST_QUESTION:
            tokens = next(tokens for tokens, ids in zip(choices, choice_ids, strict=True) if len(ids) == longest)
            beginning = " ".join(token.word for token in tokens[:_NAMED])
            message = (
                f"The choice that begins with {beginning!r} takes {longest} word pieces with its description, and the "
                f"question {num_question}; together at most {MOST_QUESTION} are read."
            )
            raise InputError("choices_too_long", "choices", message, "Shorten the choice or the question.")
        num_choices = sum(1 + len(ids) for ids in choice_ids)
        if num_choices > MOST_CHOICES:
            message = f"The choices take {num_choices} word pieces; at most {MOST_CHOICES} are read."
            hint = "Send fewer choices, or shorter labels and descriptions."
            raise InputError("choices_too_long", "choices", message, hint)
        groups = _groups([1 + len(ids) for ids in choice_ids])
        num_before = num_question + sum(1 + len(ids) for ids in choice_ids[groups[0]]) + _NUM_MARKS
        size = max(WINDOW - num_before, LEAST_CONTEXT)
        parts = _parts([len(ids) for ids in context_ids], size)
        heads = [_Head(self._first, self._between, question_ids, choice_ids, labels, longest) for labels in groups]
        first, *others = heads
        windows = [first.window(context_ids[words], words, counted, self._between) for words, counted in parts]
        words = parts[0][0]
        return [*windows, *(head.window(context_ids[words], words, slice(0, 0), self._between) for head in others)]


def work_of(num_pieces: int) -> int:
    """Return how long a window takes to read, in pieces of a short one: each attends to all others."""
    return num_pieces + num_pieces * num_pieces // _AS_LONG


def estimate_work(num_question: int, num_labels: int, num_context: int) -> int:
    """Return the work of a request by its pieces, with the separators in front of labels, in all its windows."""
    head = num_question + min(num_labels, TOGETHER) + _NUM_MARKS
    size = max(WINDOW - head, LEAST_CONTEXT)
    num_windows = 1 + max(0, ceil((num_context - size) / (size - OVERLAP))) + max(0, ceil(num_labels / TOGETHER) - 1)
    return num_windows * work_of(head + min(num_context, size))


def _groups(lengths: Sequence[int]) -> list[slice]:
    """Cut labels of so many pieces into groups of at most ``TOGETHER``, one at least."""
    groups, start, total = [], 0, 0
    for i, length in enumerate(lengths):
        if total + length > TOGETHER:
            groups.append(slice(start, i))
            start, total = i, 0
        total += length
    return [*groups, slice(start, len(lengths))]


class _Head:
    def __init__(
        self,
        first: int,
        between: int,
        question: Sequence[Sequence[int]],
        choices: Sequence[Sequence[int]],
        labels: slice,
        longest: int,
    ) -> None:
        self.labels = labels
        pieces = [first]
        self.firsts: list[int] = []
        self.lasts: list[int] = []
        for ids in question:
            self.firsts.append(len(pieces))
            pieces += ids
            self.lasts.append(len(pieces) - 1)
        pieces.append(between)
        positions = list(range(len(pieces)))
        groups = [SHARED] * len(pieces)
        start = len(pieces)  # the position at which all labels begin
        for group, ids in enumerate(choices[labels], start=SHARED + 1):
            self.firsts.append(len(pieces))
            pieces += [between, *ids]
            self.lasts.append(len(pieces) - 1)
            positions += range(start, start + 1 + len(ids))
            groups += [group] * (1 + len(ids))
        self.pieces, self.positions, self.groups = pieces, positions, groups
        self.next_position = start + (1 + longest if choices else 0)

    def window(self, context: Sequence[Sequence[int]], words: slice, counted: slice, between: int) -> Window:
        lengths = np.array([len(ids) for ids in context], np.int64)
        ends = np.cumsum(lengths) + len(self.pieces)
        flat = [i for ids in context for i in ids]
        num_context = len(flat) + 1
        zeros, ones = [0] * len(self.pieces), [1] * num_context
        return Window(
            np.array([*self.pieces, *flat, between], np.int64),
            np.array([*self.positions, *range(self.next_position, self.next_position + num_context)], np.int64),
            np.array([*zeros, *ones], np.int64),
            np.array([*self.groups, *[SHARED] * num_context], np.int64),
            np.concatenate([np.array(self.firsts, np.int64), ends - lengths]),
            np.concatenate([np.array(self.lasts, np.int64), ends - 1]),
            self.labels,
            words,
            counted,
        )


def _parts(lengths: Sequence[int], size: int) -> list[tuple[slice, slice]]:
    """Cut words of so many pieces into parts of at most ``size`` pieces that overlap; return what each counts, too."""
    starts, ends = [0], []
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    while True:
        end = int(np.searchsorted(offsets, offsets[starts[-1]] + size, side="right")) - 1
        ends.append(end)
        if end >= len(lengths):
            break
        back = int(np.searchsorted(offsets, offsets[end] - OVERLAP, side="left"))
        starts.append(max(back, starts[-1] + 1))
    borders = [0, *((start + end) // 2 for start, end in zip(starts[1:], ends[:-1], strict=True)), len(lengths)]
    return [
        (slice(start, end), slice(borders[i], borders[i + 1]))
        for i, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]
