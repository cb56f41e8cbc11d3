"""From what a model that chooses and refuses decided to an answer: the one place for torch and onnxruntime.

- A request with choices takes one step: each label has the mass of its separator, and there is the refusal's, which
  decides where none of them may be the answer.
- Without choices the first step may refuse; otherwise the trace is read as an answer.
- A decoding that says the same again and again, copied from the same places, never ends by itself. It is cut in front
  of the first repetition.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from mqan_core.answer.trace import TraceField, attribute
from mqan_core.answer.types import Answer, AnswerToken, ChoiceProbability, Masses, Source, Span, compose
from mqan_core.ask.request import Request
from mqan_core.text.vocab import END_ID, REFUSAL_ID, Vocabulary

LONGEST_REPEATED: Final = 8  # words that are said again
REPEATS: Final = 4  # times that they are said, until they count as said for ever
_SAME = [TraceField.SLOT, TraceField.PIECE, TraceField.CONTEXT_POSITION, TraceField.QUESTION_POSITION]
_LEAST = 1e-30

Trace = npt.NDArray[np.float32]


def decide(
    trace: Trace,
    masses: Sequence[float],
    request: Request,
    vocabulary: Vocabulary,
    max_answer_tokens: int,
    *,
    may_be_none: bool = True,
) -> Answer:
    """Turn what was decided of one request into an answer.

    The trace has at least one step, [steps, F], and may be longer than the answer; the masses are those of the choices
    at the first step. Where none ``may_be_none``, the likeliest of them is the answer.
    """
    trace = trace[: max_answer_tokens + 1]
    ends = (trace[:, TraceField.SLOT] < 0) & (trace[:, TraceField.PIECE] == END_ID)
    trace = trace[: int(ends.argmax()) + 1] if ends.any() else trace
    refusal = float(trace[0, TraceField.REFUSAL])
    if request.choices:
        return _chosen(trace[0], masses, request, refusal, may_be_none)
    if _refuses(trace):
        return Answer("", refusal, (), (), False, answered=False, refusal=refusal)
    repeats = find_repeats(trace)
    if repeats is None:
        return replace(attribute(trace, request, vocabulary, max_answer_tokens), refusal=refusal)
    answer = attribute(trace[: repeats.start], request, vocabulary, repeats.start)
    # The end was less likely than the word chosen instead, and than all that this left: so the answer is never sure.
    instead = trace[repeats, TraceField.PROBABILITY]
    at_most = float(np.minimum(instead, 1 - instead).clip(0).min())
    return replace(answer, probability=answer.probability * at_most, truncated=True, refusal=refusal)


def find_repeats(trace: Trace) -> slice | None:
    """Return the steps at which an answer begins to say for ever what it has said before; None where it does not.

    That is where its last words, up to ``LONGEST_REPEATED`` of them, are the same ``REPEATS`` times, from the same
    places. The slice begins after the first time and ends with the last.
    """
    said = _said(trace)
    found: list[slice] = []
    for period in range(1, min(LONGEST_REPEATED, len(said) // REPEATS) + 1):
        is_same = (said[:-period] == said[period:]).all(axis=1)
        needed = (REPEATS - 1) * period  # steps in a row that are as those a period later
        counts = np.concatenate([[0], np.cumsum(is_same)])
        starts = np.flatnonzero(counts[needed:] - counts[:-needed] == needed)
        if len(starts):
            found.append(slice(int(starts[0]) + period, int(starts[0]) + REPEATS * period))
    return min(found, key=lambda steps: int(steps.stop), default=None)


def count_decided(trace: Trace) -> int:
    """Return how many words of a free answer, after steps [steps, F] without the end, no later step can take back.

    These are all but the last words that repeat what was said before them: if they go on so, they are cut.
    """
    if not len(trace) or _refuses(trace):
        return 0
    repeats = find_repeats(trace)
    if repeats is not None:
        return int(repeats.start)
    said = _said(trace)
    decided = len(said)
    for period in range(1, min(LONGEST_REPEATED, len(said) - 1) + 1):
        others = np.flatnonzero((said[:-period] != said[period:]).any(axis=1))
        decided = min(decided, period + (int(others[-1]) + 1 if len(others) else 0))
    return decided


def _refuses(trace: Trace) -> bool:
    return bool(trace[0, TraceField.SLOT] < 0 and int(trace[0, TraceField.PIECE]) == REFUSAL_ID)


def _said(trace: Trace) -> Trace:
    """Return what was said at each step, and where it was copied from, [steps, 4]."""
    said = trace[:, _SAME].copy()
    from_context, from_question = trace[:, TraceField.FROM_CONTEXT], trace[:, TraceField.FROM_QUESTION]
    is_slot = trace[:, TraceField.SLOT] >= 0
    said[is_slot, 1] = 0
    said[~is_slot | (from_context < from_question), 2] = 0
    said[~is_slot | (from_question <= from_context), 3] = 0
    return said


def _chosen(
    step: npt.NDArray[np.float32], masses: Sequence[float], request: Request, refusal: float, may_be_none: bool
) -> Answer:
    total = max(sum(masses), _LEAST)
    choices = tuple(
        ChoiceProbability(choice.label, mass, mass / total, mass / max(mass + refusal, _LEAST))
        for choice, mass in zip(request.choices, masses, strict=True)
    )
    best = max(range(len(masses)), key=lambda i: masses[i])
    if may_be_none and refusal > masses[best]:
        return Answer("", refusal, (), (), False, answered=False, refusal=refusal, choices=choices, may_be_none=True)
    label = request.choices[best].label
    first, named_in = (request.label_places[best].start, request.question) if request.label_places else (0, label)
    gamma = float(step[TraceField.GAMMA])
    switches = Masses(0.0, 1 - gamma, gamma)
    tokens = [
        AnswerToken(
            label[t.start : t.end], t.piece, 1.0, Source.QUESTION, switches, Span(first + t.start, first + t.end)
        )
        for t in request.choice_tokens[best]
        if t.end <= len(label)  # its description stands after it
    ]
    sure = masses[best] if may_be_none else choices[best].among_choices
    tokens[0] = replace(tokens[0], probability=sure)
    answer = compose(tokens, sure, False, request.context, named_in)
    # spaces around it are not in the text
    return replace(answer, refusal=refusal, choices=choices, chosen=(label,), may_be_none=may_be_none)
