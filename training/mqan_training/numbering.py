"""Examples as numbers: pieces of context, question and answer, with targets that can be copied.

The answer is spelled with the source's own pieces wherever it is a quotation: for SQuAD the pieces at the answer's
place, otherwise those of the first place in the context or question where the answer's words stand. Only half spaces
at its ends can differ from tokenising the answer alone, and they are not part of the answer's text.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mqan_core.example import Example
from mqan_core.text.tokens import Token, read_tokens
from mqan_core.text.vocab import END_ID, Vocabulary

Int32Array = npt.NDArray[np.int32]


class PieceTable:
    """Numbers every distinct piece of a run, so that pieces are equal exactly when their numbers are."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._number_of: dict[str, int] = {}

    def number(self, piece: str) -> int:
        """Return the number of a lower-cased piece, a new one for a new piece."""
        known = self._number_of.setdefault(piece, len(self.pieces))
        if known == len(self.pieces):
            self.pieces.append(piece)
        return known

    def numbers(self, pieces: Iterable[str]) -> Int32Array:
        """Return the numbers of several pieces."""
        return np.array([self.number(piece) for piece in pieces], np.int32)


@dataclass(frozen=True, slots=True)
class Item:
    """One training example in piece numbers.

    Attributes:
        context: pieces of the context, [C].
        question: pieces of the question, [Q].
        answer: pieces of the answer without its end, [A].
    """

    context: Int32Array
    question: Int32Array
    answer: Int32Array


def numbered(tokens: Sequence[Token], table: PieceTable) -> Int32Array:
    """Return the piece numbers of tokens."""
    return table.numbers(token.key for token in tokens)


def are_in(wanted: Int32Array, numbers: Int32Array) -> npt.NDArray[np.bool_]:
    """Return which of the wanted piece numbers are among others; of rows this short much quicker than ``np.isin``."""
    found: npt.NDArray[np.bool_] = (wanted[:, None] == numbers).any(axis=1)
    return found


def spell_answer(example: Example, context: Sequence[Token], question: Sequence[Token]) -> list[str]:
    """Return the pieces of the first answer, those of the source it can be quoted from if there is one."""
    answer = example.answers[0]
    if example.answer_start is not None:
        end = example.answer_start + len(answer)
        inside = [t for t in context if t.start < end and t.end > example.answer_start]
        if inside and inside[0].start == example.answer_start and inside[-1].end == end:
            return [t.key for t in inside]
    alone = read_tokens(answer)
    words = [t.word for t in alone]
    for source in (question, context):
        start = _find([t.word for t in source], words)
        if start is not None:
            return [t.key for t in source[start : start + len(words)]]
    return [t.key for t in alone]


def _find(words: Sequence[str], wanted: Sequence[str]) -> int | None:
    if not wanted:
        return None
    for start in range(len(words) - len(wanted) + 1):
        if words[start] == wanted[0] and list(words[start : start + len(wanted)]) == list(wanted):
            return start
    return None


@dataclass(frozen=True, slots=True)
class PieceCounts:
    """How often pieces occur in examples; a context that neighbours share counts once.

    Attributes:
        pieces: numbers of the distinct pieces, [P].
        total: how often each occurs, [P].
        not_in_context: how often in an answer that cannot copy it from the context, [P].
        not_in_source: how often in an answer that cannot copy it from the question either, [P].
    """

    pieces: Int32Array
    total: Int32Array
    not_in_context: Int32Array
    not_in_source: Int32Array


@dataclass
class TaskData:
    """The training examples of one task.

    Attributes:
        name: the task.
        items: its examples in piece numbers.
        dropped: how many examples were left out, by reason.
    """

    name: str
    items: list[Item] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)

    @cached_property
    def counts(self) -> PieceCounts:
        """How often pieces occur in ``items``, counted at the first use."""
        nothing = np.zeros(0, np.int32)
        everything, not_in_context, not_in_source = [nothing], [nothing], [nothing]
        previous: Int32Array | None = None
        for item in self.items:
            if item.context is not previous:
                everything.append(item.context)
                previous = item.context
            everything += (item.question, item.answer)
            missing = item.answer[~are_in(item.answer, item.context)]
            if missing.size:
                not_in_context.append(missing)
                not_in_source.append(missing[~are_in(missing, item.question)])
        pieces, total = np.unique(np.concatenate(everything), return_counts=True)
        of_answers = (
            np.bincount(np.searchsorted(pieces, np.concatenate(rows)), minlength=len(pieces)).astype(np.int32)
            for rows in (not_in_context, not_in_source)
        )
        return PieceCounts(pieces, total.astype(np.int32), *of_answers)


def number_examples(
    name: str,
    examples: Iterable[Example],
    table: PieceTable,
    *,
    cut_context_at: int | None,
    max_context_tokens: int,
    max_answer_tokens: int,
) -> TaskData:
    """Tokenise and filter training examples as decaNLP does (cut contexts first, then drop what is too long)."""
    data = TaskData(name)
    context_text: str | None = None
    context_numbers: Int32Array | None = None
    for example in examples:
        if example.context != context_text:  # neighbouring questions often share a paragraph
            context_text = example.context
            context = read_tokens(example.context)[:cut_context_at]
            context_numbers = None
        question = read_tokens(example.question)
        answer = spell_answer(example, context, question)
        reason = _reason_to_drop(len(context), len(question), len(answer), max_context_tokens, max_answer_tokens)
        if reason:
            data.dropped[reason] += 1
            continue
        if context_numbers is None:  # only pieces of what is kept get numbers
            context_numbers = numbered(context, table)
        data.items.append(Item(context_numbers, numbered(question, table), table.numbers(answer)))
    return data


def _reason_to_drop(context: int, question: int, answer: int, max_context: int, max_answer: int) -> str | None:
    if context == 0:
        return "empty context"
    if question == 0:
        return "empty question"
    if answer == 0:
        return "empty answer"
    if context > max_context:
        return f"context over {max_context} tokens"
    if answer > max_answer:
        return f"answer over {max_answer} tokens"
    return None


def generator_pieces(
    data: Iterable[TaskData], table: PieceTable, num_generated: int, *, question_pointer: bool = True
) -> list[str]:
    """Choose the generator's pieces: first those that answers need and cannot copy, then the most frequent ones.

    Args:
        data: the training examples.
        table: numbers their pieces.
        num_generated: rows of the generator, the end of the answer included.
        question_pointer: whether answers can be copied from the question.

    Returns:
        At most ``num_generated - 1`` pieces (the end of the answer takes the remaining place).
    """
    total, needed = np.zeros((2, len(table.pieces)), np.int64)
    for task in data:
        counts = task.counts
        total[counts.pieces] += counts.total
        needed[counts.pieces] += counts.not_in_source if question_pointer else counts.not_in_context
    ranked = sorted(zip((-needed).tolist(), (-total).tolist(), table.pieces, strict=True))
    return [piece for _, _, piece in ranked[: num_generated - 1]]


def target_ids(table: PieceTable, vocabulary: Vocabulary) -> Int32Array:
    """Return the generator id of every numbered piece, ``num_generated`` where it has none."""
    missing = vocabulary.num_generated
    ids = (vocabulary.piece_id(piece) for piece in table.pieces)
    array = np.array([missing if i is None else i for i in ids], np.int32)
    if (array == END_ID).any():
        raise ValueError("a piece of the data has the id of the end of the answer")
    return array
