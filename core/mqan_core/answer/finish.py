"""From what an engine decoded to the answer that a caller gets: ``finish``, for torch and onnxruntime alike.

Its stages, and why they are in this order:

1. decide: what the trace says: a label, a refusal or words with their sources (``decide.py``);
2. calibrate: how often such answers are right, which never changes which of several is the likeliest
   (``calibration.py``); an adapter is told that of each label, and decides in the trace's place (``adapter.py``);
3. quote: where quotations are asked for they take the answer's place, by their own scores (``quotations.py``);
4. explain: what each step of the answer looked at (``explain.py``);
5. complete: what the options make of the calibrated probabilities: several labels, expected values, a least
   probability, and of what then holds the evidence (``evidence.py``).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from mqan_core.answer.adapter import Adapter
from mqan_core.answer.calibration import Temperatures, kind_of
from mqan_core.answer.decide import Trace, decide
from mqan_core.answer.evidence import EvidenceVectors, find_evidence, logits_of_attention
from mqan_core.answer.explain import Pointers, Weights, explain_choice, explain_quotation, explain_words
from mqan_core.answer.quotations import QuotationScores, quote
from mqan_core.answer.trace import TraceField
from mqan_core.answer.types import Answer, ChoiceProbability, StepExplanation
from mqan_core.ask.request import Request
from mqan_core.text.vocab import Vocabulary

HOLDS: Final = 0.5
"""Of several labels, those hold that are likelier than this, each beside the refusal."""


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """What an engine found for one request."""

    trace: Trace  # of its steps, [steps, F], at least one
    masses: Sequence[float]  # of each choice at the first step, in the request's order
    attention_C: Weights  # how the decision between choices divided its attention over the context
    scores: QuotationScores | None = None  # of each word as the first and last of a quotation
    pointers: Sequence[Pointers] | None = None  # of each step, where the answer is to be explained
    evidence: EvidenceVectors | None = None  # which words decide for which choice; without it those attended to
    num_windows: int = 1  # that the context was read in
    text_vector: npt.NDArray[np.float32] | None = None  # what the text is about, where an adapter asks


def finish(
    decoded: Decoded, request: Request, vocabulary: Vocabulary, temperatures: Temperatures, max_answer_tokens: int
) -> Answer:
    options = request.options
    adapter = options.adapter
    if adapter is not None:
        decoded = _adapted(adapter, decoded, request, temperatures)
    answer = decide(
        *(decoded.trace, decoded.masses, request, vocabulary, max_answer_tokens), may_be_none=options.may_be_none
    )
    # without the step at which an answer that is too long would have gone on
    num_steps = max(1, len(answer.tokens) + (not answer.truncated))
    answer = temperatures.calibrate(answer) if adapter is None else replace(answer, adapter=adapter.version)
    if decoded.scores is not None:
        answer = quote(answer, decoded.scores, options, request, max_answer_tokens)
    if decoded.pointers is not None:
        answer = replace(answer, explanation=_explain(decoded, decoded.pointers[:num_steps], request, vocabulary))
    return _complete(replace(answer, num_windows=decoded.num_windows), request, decoded)


def prior_of(decoded: Decoded, request: Request, temperatures: Temperatures) -> list[float]:
    """Return what the model says of each choice, calibrated: of itself where several can be right, else the refusal's.

    The masses are in the order of the request, the refusal's is the last.
    """
    refusal = float(decoded.trace[0, TraceField.REFUSAL])
    if request.options.multiple:
        return list(temperatures.against_refusal(decoded.masses, refusal))
    kind = kind_of([choice.label for choice in request.choices], multiple=False)
    masses, refusal = temperatures.masses(kind, decoded.masses, refusal)
    return [*masses, refusal]


def _adapted(adapter: Adapter, decoded: Decoded, request: Request, temperatures: Temperatures) -> Decoded:
    if decoded.text_vector is None:
        raise ValueError("an adapter needs the vector of the text")
    masses, refusal = adapter.masses(prior_of(decoded, request, temperatures), decoded.text_vector)
    trace = decoded.trace.copy()
    trace[0, TraceField.REFUSAL] = refusal
    return replace(decoded, trace=trace, masses=masses)


def _explain(
    decoded: Decoded, pointers: Sequence[Pointers], request: Request, vocabulary: Vocabulary
) -> tuple[StepExplanation, ...]:
    if request.choices:
        return explain_choice(decoded.attention_C, request)
    if decoded.scores is not None and request.options.quotes:
        return explain_quotation(decoded.scores, request, refuses=request.options.refuses)
    return explain_words(pointers, decoded.trace, request, vocabulary)


def _complete(answer: Answer, request: Request, decoded: Decoded) -> Answer:
    options = request.options
    of_label = {choice.label: choice for choice in answer.choices}
    in_order = tuple(of_label[choice.label] for choice in options.choices)
    answer = replace(answer, choices=in_order, is_multiple=options.multiple)
    if options.multiple:
        answer = several(answer, options.least)
    else:
        if answer.choices:
            answer = replace(answer, choices=_normalised(answer.choices))
        if options.is_scale:
            expected = sum(level * c.among_choices for level, c in enumerate(answer.choices, start=1))
            answer = replace(answer, expected=expected)
        if answer.answered and answer.probability < options.least:
            answer = replace(_unanswered(answer), explanation=())  # of words that are not given
    if not answer.chosen:
        return answer
    found = {}
    for place, choice in enumerate(request.choices):
        if choice.label in answer.chosen:
            evidence, attention_C = decoded.evidence, decoded.attention_C
            logits_C = logits_of_attention(attention_C) if evidence is None else evidence.logits(place)
            found[choice.label] = find_evidence(logits_C, request)
    return replace(answer, choices=tuple(replace(c, evidence=found.get(c.label, ())) for c in answer.choices))


def several(answer: Answer, least: float = 0.0) -> Answer:
    holding = [choice for choice in answer.choices if choice.against_refusal > HOLDS]
    chosen = tuple(choice.label for choice in holding if choice.against_refusal >= least)
    decided = chosen or [choice.label for choice in holding]  # those that are withheld, too
    probability = math.prod(
        choice.against_refusal if choice.label in decided else 1 - choice.against_refusal for choice in answer.choices
    )
    answer = replace(answer, probability=probability, choices=_normalised(answer.choices))
    if not chosen:
        return replace(_unanswered(answer), explanation=() if holding else answer.explanation)
    return replace(answer, text=", ".join(chosen), tokens=(), spans=(), answered=True, chosen=chosen)


def _normalised(choices: Sequence[ChoiceProbability]) -> tuple[ChoiceProbability, ...]:
    """Return choices whose shares of one another sum to 1 as far as float64 goes."""
    total = math.fsum(choice.among_choices for choice in choices)  # the same in every order
    if total <= 0:
        return tuple(replace(choice, among_choices=1 / len(choices)) for choice in choices)
    return tuple(replace(choice, among_choices=choice.among_choices / total) for choice in choices)


def _unanswered(answer: Answer) -> Answer:
    return replace(answer, text="", tokens=(), spans=(), truncated=False, answered=False, chosen=(), places=())
