"""Whether gold answers survive the way a model's answers take: ``mqan data check``.

A gold answer is spelled as training spells it, put into the trace of a model that chooses each of these pieces with
certainty, read from that trace as a server reads it, and scored. Whatever is below 100 then is lost by tokens,
detokenisation, the composing of quotations or the metric, and can be learnt by no model.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os.path import commonprefix

import numpy as np
import numpy.typing as npt

from mqan_core.answer.trace import TraceField, attribute
from mqan_core.ask.request import Request, read_request
from mqan_core.errors import InputError
from mqan_core.example import Example
from mqan_core.text.vocab import END_ID, Vocabulary
from mqan_data.metrics import normalize, score
from mqan_data.tasks import Task
from mqan_training.spelling import spell_answer

WAYS = ("copied", "generated")
"""The two ways to answer: quoting wherever context or question hold the pieces, or generating every piece."""

_PERFECT = 100 - 1e-6
_OF_A_WHOLE_SET = ("bleu", "corpus_f1")  # metrics that say nothing about one example
_NO_PIECES = Vocabulary((), ())  # of a request only the slots' pieces are needed here


@dataclass(frozen=True, slots=True)
class Loss:
    """An example whose gold answer does not come back."""

    id: str
    way: str
    gold: str
    text: str  # what came back
    reason: str  # why the metric does not give 100


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """How the gold answers of one split came back: for each of ``WAYS`` metric -> value, the task's own first."""

    num_examples: int
    longest_answer: int  # tokens, which a server has to allow
    scores: dict[str, dict[str, float]]
    losses: list[Loss]

    @property
    def num_lost(self) -> int:
        return len({loss.id for loss in self.losses})

    def is_within(self, share: float) -> bool:
        """Return whether at most this share of the examples is lost, and no score falls short without such a loss."""
        imperfect = {way for way, scores in self.scores.items() if next(iter(scores.values())) < _PERFECT}
        return imperfect <= {loss.way for loss in self.losses} and self.num_lost <= share * self.num_examples


def round_trip(task: Task, examples: Iterable[Example]) -> RoundTrip:
    """Send the first gold answers of examples through spelling, trace, answer and metric."""
    kept: list[Example] = []
    texts: dict[str, list[str]] = {way: [] for way in WAYS}
    unreadable: dict[str, str] = {}
    longest = 0
    for example in examples:
        kept.append(example)
        try:
            request = read_request(_NO_PIECES, example.context, example.question)
        except InputError as error:
            unreadable[example.id] = error.message
            for way in WAYS:
                texts[way].append("")  # as an evaluation counts it
            continue
        pieces = spell_answer(example, request.context_tokens, request.question_tokens)
        longest = max(longest, len(pieces))
        vocabulary = Vocabulary(tuple(dict.fromkeys(pieces)), ())
        for way in WAYS:
            trace = gold_trace(pieces, request, vocabulary, copy=way == "copied")
            texts[way].append(attribute(trace, request, vocabulary, len(pieces)).text)
    scores = {way: score(task.metric, texts[way], kept) for way in WAYS}
    losses = [loss for way in WAYS for loss in _losses(task, way, texts[way], kept, unreadable, scores[way])]
    return RoundTrip(len(kept), longest, scores, losses)


def gold_trace(
    pieces: Sequence[str], request: Request, vocabulary: Vocabulary, *, copy: bool
) -> npt.NDArray[np.float32]:
    """Return the trace [steps, F] of a model that chooses these pieces and then the end, each with probability 1.

    With ``copy`` they are copied where the request has them, from the place where most of the answer's next ones follow
    one another; the others, or all, are generated.
    """
    trace = np.zeros((len(pieces) + 1, len(TraceField)), np.float32)
    trace[:, TraceField.SLOT] = -1
    trace[:, TraceField.PIECE] = [*(vocabulary.piece_id(piece) for piece in pieces), END_ID]
    trace[:, [TraceField.PROBABILITY, TraceField.FROM_VOCABULARY, TraceField.GAMMA]] = 1
    sources = (
        ([token.key for token in request.context_tokens], TraceField.FROM_CONTEXT, TraceField.CONTEXT_POSITION),
        ([token.key for token in request.question_tokens], TraceField.FROM_QUESTION, TraceField.QUESTION_POSITION),
    )
    slot_of = {piece: slot for slot, piece in enumerate(request.slots.pieces)}
    step = 0
    while copy and step < len(pieces):
        quotations = [(*_longest_quotation(pieces[step:], keys), part, place) for keys, part, place in sources]
        length, start, part, place = max(quotations, key=lambda quotation: quotation[0])
        for offset in range(length):
            row = trace[step + offset]
            row[TraceField.SLOT] = slot_of[pieces[step + offset]]
            row[[TraceField.FROM_VOCABULARY, TraceField.GAMMA]] = 0
            row[part], row[place] = 1, start + offset
            row[TraceField.LAMBDA] = part is TraceField.FROM_CONTEXT
        step += max(length, 1)
    return trace


def _longest_quotation(wanted: Sequence[str], keys: Sequence[str]) -> tuple[int, int]:
    begins = (start for start, key in enumerate(keys) if key == wanted[0])
    found = [(len(commonprefix([list(wanted), list(keys[at : at + len(wanted)])])), at) for at in begins]
    return max(found, key=lambda quotation: quotation[0], default=(0, 0))


def _losses(
    task: Task,
    way: str,
    texts: Sequence[str],
    examples: Sequence[Example],
    unreadable: dict[str, str],
    scores: dict[str, float],
) -> list[Loss]:
    if scores[task.metric] >= _PERFECT:
        return []
    losses = []
    for text, example in zip(texts, examples, strict=True):
        gold, reason = example.answers[0], "the text that comes back is another one"
        if _is_perfect(task.metric, text, example):
            continue
        if example.id in unreadable:
            reason = unreadable[example.id]
        elif not _is_perfect(task.metric, gold, example):
            reason = f"{task.metric} does not give 100 to the gold answer itself"
            if task.metric == "nf1" and not normalize(gold):
                reason += ", of which nothing is left without articles and punctuation"
        losses.append(Loss(example.id, way, gold, text, reason))
    return losses


def _is_perfect(metric: str, text: str, example: Example) -> bool:
    metric = "em" if metric in _OF_A_WHOLE_SET else metric
    return score(metric, [text], [example])[metric] >= _PERFECT
