"""Examples as the network is trained on them: a request, its window, and what each step should choose.

A target is a slot of the request (a word that can be copied, or the separator of a choice), a piece of the generator,
or both; see ``mqan_core.text.vocab`` for slots.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mqan_core.ask.request import Request, read_request, separator
from mqan_core.errors import InputError
from mqan_core.example import Example
from mqan_core.text.layout import Layout, Window
from mqan_core.text.tokens import Token
from mqan_core.text.vocab import END_ID, REFUSAL_ID, Vocabulary, number_slots
from mqan_training.batch import ANSWER_COST
from mqan_training.spelling import spell_answer

_VERDICTS = frozenset({"yes", "no", "true", "false"})
NO_SLOT = -2  # equal to no slot and not to padding


@dataclass(frozen=True, slots=True)
class PieceExample:
    """One training example; the request's context is that of its window.

    ``starts`` and ``ends`` are places of the answer's first and last words among the question's words, then the
    context's. ``decided`` is the place among the question's words of the label whose evidence is known.
    """

    task: str
    request: Request
    window: Window
    num_generated: int
    slots: npt.NDArray[np.int64]  # of each target, NO_SLOT where it cannot be copied, [A]
    ids: npt.NDArray[np.int64]  # of each target, num_generated where it has none, [A]
    answer: tuple[str, ...] = ()  # of which the steps after the first read the previous token, [A - 1]
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    is_refusal: bool = False
    right: tuple[bool, ...] = ()  # with several choices, which are right
    decided: int = -1
    evidence: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))  # words that decide, [C]
    outcomes: tuple[int, ...] = ()  # that the choices stand for, where it is asked in two ways
    is_twin: bool = False  # whether it is the second of these, which follows the first

    @property
    def is_written(self) -> bool:
        """Whether the answer is not one quotation and its first word can be generated."""
        return len(self.slots) > 1 and not self.starts and int(self.ids[0]) < self.num_generated

    @property
    def num_steps(self) -> int:
        return len(self.slots)

    @property
    def cost(self) -> int:
        return len(self.window.pieces) + ANSWER_COST * len(self.slots)


Made = Callable[..., PieceExample]  # of slots, ids and what else is known


def prepare_pieces(
    example: Example, vocabulary: Vocabulary, layout: Layout, max_answer_tokens: int, rng: np.random.Generator
) -> PieceExample | None:
    """Read an example; None where it cannot be trained on: no text, a question that is too long, choices that take
    several readings, or an answer too long or out of reach.

    Of a context that is longer than a window the one with the answer is kept.
    """
    if not example.context.strip() or not example.question.strip():
        return None
    try:
        request = read_request(vocabulary, example.context, example.question, example.choices)
        windows = layout.windows(request.question_tokens, request.choice_tokens, request.context_tokens)
    except InputError:
        return None  # as it would be refused if it were asked
    if windows[-1].labels.start > 0:
        return None  # choices that are not read together
    if len(windows) > 1:
        words = _window_with(windows, request.context_tokens, example, rng)
        if words is None:
            return None
        request = _cut(request, words, vocabulary)
        windows = layout.windows(request.question_tokens, request.choice_tokens, request.context_tokens)
    made = partial(
        PieceExample,
        example.task,
        request,
        windows[0],
        vocabulary.num_generated,
        outcomes=example.outcomes,
        is_twin=bool(example.outcomes) and example.twin is None,
    )
    if not example.answers and not (example.choices and example.multiple):
        return made(_numbers(NO_SLOT), _numbers(REFUSAL_ID), is_refusal=True)
    if example.choices:
        return _chosen(example, request, vocabulary, made)
    return _spelled(example, request, vocabulary, made, max_answer_tokens)


def _numbers(*numbers: int) -> npt.NDArray[np.int64]:
    return np.array(numbers, np.int64)


def _window_with(
    windows: Sequence[Window], tokens: Sequence[Token], example: Example, rng: np.random.Generator
) -> slice | None:
    spans = [(w.words, tokens[w.words.start].start, tokens[w.words.stop - 1].end) for w in windows]
    if example.answer_start is None:
        if not example.answers:
            return windows[int(rng.integers(len(windows)))].words
        answer = example.answers[0].casefold()
        if answer not in example.context.casefold():
            return windows[0].words
        found = [words for words, start, end in spans if answer in example.context[start:end].casefold()]
        if example.choices:
            return windows[0].words if windows[0].words in found else None
        return found[int(rng.integers(len(found)))] if found else None
    first, last = example.answer_start, example.answer_start + len(example.answers[0])
    whole = [words for words, start, end in spans if start <= first and last <= end]
    if whole:
        return whole[int(rng.integers(len(whole)))]
    return windows[0].words if example.choices else None


def _cut(request: Request, words: slice, vocabulary: Vocabulary) -> Request:
    tokens = request.context_tokens[words]
    question = [*(t.key for t in request.question_tokens), *map(separator, range(len(request.choices)))]
    slots = number_slots(vocabulary, [t.key for t in tokens], question)
    return replace(request, context_tokens=tokens, slots=slots)


def _chosen(example: Example, request: Request, vocabulary: Vocabulary, made: Made) -> PieceExample | None:
    labels = [choice.label for choice in example.choices]
    marked = _marked(example, request, labels)
    if example.multiple:
        return made(_numbers(), _numbers(), right=tuple(label in example.answers for label in labels), **marked)
    if example.answers[0] not in labels:
        return None
    place = len(request.question_tokens) + labels.index(example.answers[0])
    slot = int(request.slots.question[place])
    return made(_numbers(slot), _numbers(vocabulary.num_generated), starts=(place,), **marked)


def _marked(example: Example, request: Request, labels: Sequence[str]) -> dict[str, Any]:
    if not example.evidence or len(example.answers) != 1 or example.answers[0] not in labels:
        return {}
    words = np.array(
        [any(t.end > start and t.start < end for start, end in example.evidence) for t in request.context_tokens]
    )
    if not words.any():
        return {}
    return {"decided": len(request.question_tokens) + labels.index(example.answers[0]), "evidence": words}


def _spelled(
    example: Example, request: Request, vocabulary: Vocabulary, made: Made, max_answer_tokens: int
) -> PieceExample | None:
    answer = spell_answer(example, request.context_tokens, request.question_tokens)
    if not 0 < len(answer) <= max_answer_tokens:
        return None
    slot_of = {piece: i for i, piece in enumerate(request.slots.pieces)}
    slots = [slot_of.get(piece, NO_SLOT) for piece in answer]
    if _is_verdict(example):
        asked = set(request.slots.question.tolist())
        slots = [slot if slot in asked else NO_SLOT for slot in slots]
    known = (vocabulary.piece_id(piece) for piece in answer)
    ids = [vocabulary.num_generated if i is None else i for i in known]
    if any(slot == NO_SLOT and i == vocabulary.num_generated for slot, i in zip(slots, ids, strict=True)):
        return None
    starts, ends = _places(example, request, slots)
    return made(_numbers(*slots, NO_SLOT), _numbers(*ids, END_ID), tuple(answer), starts, ends)


def _is_verdict(example: Example) -> bool:
    return example.answer_start is None and example.answers[0].casefold() in _VERDICTS


def _places(example: Example, request: Request, slots: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    # A verdict is not quoted: "no" in "no restaurants" is another word.
    num_question, length = len(request.slots.question), len(slots)
    found: list[int] = []
    for offset, text in ((num_question, request.slots.context), (0, request.slots.question)):
        if offset and _is_verdict(example):
            continue
        row = text.tolist()
        found = [offset + i for i in range(len(row) - length + 1) if row[i : i + length] == list(slots)]
        if offset and example.answer_start is not None:
            starts = [request.context_tokens[place - offset].start for place in found]
            if example.answer_start in starts:
                found = [found[starts.index(example.answer_start)]]
        if found:
            break
    return tuple(found), tuple(i + length - 1 for i in found)
