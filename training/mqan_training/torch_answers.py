"""Answers of a network with a pretrained reader, in torch: the reference for every other way to run it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mqan_core.answer import Answer
from mqan_core.attribution import TraceField, attribute
from mqan_core.decision import decide as decide_answer
from mqan_core.example import Example
from mqan_core.layout import Layout
from mqan_core.request import Request, read_request
from mqan_core.vocab import END_ID, REFUSAL_ID, Vocabulary
from mqan_training.collate import allowed_sources, reader_inputs, word_ids
from mqan_training.data.metrics import normalized_exact_match, normalized_f1
from mqan_training.model.greedy import GreedyStep, LoopState, SlotBatch, greedy_trace
from mqan_training.model.pretrained import PretrainedNetwork

_BATCH = 16
_MOST_TOKENS = 6000  # of the contexts of a batch


@dataclass(frozen=True, slots=True)
class Decided:
    """What a request was answered with.

    Attributes:
        answer: words and their sources; of a request with choices none.
        is_refusal: whether the model says that there is no answer.
        refusal: probability of that.
        choices: probability of each choice, in the request's order; empty without choices.
    """

    answer: Answer | None
    is_refusal: bool
    refusal: float
    choices: tuple[float, ...]


def decide(
    network: PretrainedNetwork,
    vocabulary: Vocabulary,
    layout: Layout,
    requests: Sequence[Request],
    max_answer_tokens: int,
) -> list[Decided]:
    """Decide on a batch of requests greedily; the network must be in evaluation mode."""
    decoded = _decode(network, vocabulary, layout, requests, max_answer_tokens)
    return [
        _decided(request, trace, masses, vocabulary, max_answer_tokens)
        for request, (trace, masses) in zip(requests, decoded, strict=True)
    ]


def answer_batch(
    network: PretrainedNetwork,
    vocabulary: Vocabulary,
    layout: Layout,
    requests: Sequence[Request],
    max_answer_tokens: int,
    generator_inputs: Tensor | None = None,
) -> list[Answer]:
    """Answer a batch of requests as a bundle of the network does; the network must be in evaluation mode.

    ``generator_inputs`` are the decoder's inputs for the generator's words, [V, D]; by default they are computed.
    """
    decoded = _decode(network, vocabulary, layout, requests, max_answer_tokens, generator_inputs)
    return [
        decide_answer(trace, masses, request, vocabulary, max_answer_tokens)
        for request, (trace, masses) in zip(requests, decoded, strict=True)
    ]


@torch.no_grad()
def _decode(
    network: PretrainedNetwork,
    vocabulary: Vocabulary,
    layout: Layout,
    requests: Sequence[Request],
    max_answer_tokens: int,
    generator_inputs: Tensor | None = None,
) -> list[tuple[np.ndarray, tuple[float, ...]]]:
    """Return the trace of each request, [steps, F], and the masses of its choices at the first step."""
    device = network.decoder.start.device
    windows = [layout.windows(r.question_tokens, r.choice_tokens, r.context_tokens) for r in requests]
    inputs = reader_inputs(requests, windows, allowed_sources(requests))
    inputs = type(inputs)(*(tensor.to(device) for tensor in inputs))
    encoded = network.encode(inputs)
    slots = slot_batch(network, vocabulary, layout, requests, inputs.c_mask_BC.shape[1], inputs.q_mask_BQ.shape[1])
    if generator_inputs is not None:
        slots = slots._replace(generator_inputs_VD=generator_inputs)
    step = GreedyStep(network.decoder, END_ID)
    most = 0 if all(request.choices for request in requests) else max_answer_tokens
    state = step.start(encoded, most + 1)
    first: list[LoopState] = []

    def take(*given: object) -> LoopState:
        after: LoopState = step(*given)
        first.append(after) if not first else None
        return after

    trace = greedy_trace(take, encoded, slots, state, most + 1)
    pointed_BQ = first[0].decoder.question_pointer_BQ.float().cpu().numpy()
    decoded = []
    for i, request in enumerate(requests):
        copied, behind = 1 - float(trace[i, 0, TraceField.GAMMA]), len(request.question_tokens)
        masses = tuple(float(mass) * copied for mass in pointed_BQ[i, behind : behind + len(request.choices)])
        decoded.append((trace[i], masses))
    return decoded


def _decided(
    request: Request, trace: np.ndarray, masses: tuple[float, ...], vocabulary: Vocabulary, max_answer_tokens: int
) -> Decided:
    refusal = float(trace[0, TraceField.REFUSAL])
    if request.choices:
        return Decided(None, refusal > max(masses), refusal, masses)
    is_refusal = trace[0, TraceField.SLOT] < 0 and int(trace[0, TraceField.PIECE]) == REFUSAL_ID
    answer = None if is_refusal else attribute(trace, request, vocabulary, max_answer_tokens)
    return Decided(answer, is_refusal, refusal, ())


def slot_batch(
    network: PretrainedNetwork,
    vocabulary: Vocabulary,
    layout: Layout,
    requests: Sequence[Request],
    num_context: int,
    num_question: int,
) -> SlotBatch:
    """Return the slots of requests, padded with a slot that no request has, and the decoder's inputs of words."""
    device = network.decoder.start.device
    num_slots = max(len(request.slots.pieces) for request in requests) + 1  # the last one is padding's
    c_slots = np.full((len(requests), num_context), num_slots - 1)
    q_slots = np.full((len(requests), num_question), num_slots - 1)
    ids = np.full((len(requests), num_slots), vocabulary.num_generated)
    pieces = np.zeros((len(requests), num_slots, word_ids(layout.word_pieces, [""]).shape[1]), np.int64)
    for row, request in enumerate(requests):
        slots = request.slots
        c_slots[row, : len(slots.context)] = slots.context
        q_slots[row, : len(slots.question)] = slots.question
        ids[row, : len(slots.pieces)] = slots.generator_ids
        pieces[row, : len(slots.pieces)] = word_ids(layout.word_pieces, slots.pieces)
    project = network.decoder.project
    generated = word_ids(layout.word_pieces, vocabulary.pieces)
    return SlotBatch(
        torch.from_numpy(c_slots).to(device),
        torch.from_numpy(q_slots).to(device),
        torch.from_numpy(ids).to(device),
        project(network.word_vectors(torch.from_numpy(pieces).to(device))),
        project(network.word_vectors(torch.from_numpy(generated).to(device))),
    )


def score_examples(
    network: PretrainedNetwork,
    vocabulary: Vocabulary,
    layout: Layout,
    examples: Sequence[Example],
    max_answer_tokens: int,
) -> Mapping[str, float]:
    """Return exact match and F1 of examples, normalised, in per cent; a refusal is right where there is no answer.

    With ``multiple`` the labels above one half are the answer.
    """
    requests = [read_request(vocabulary, e.context, e.question, e.choices) for e in examples]
    order = sorted(range(len(examples)), key=lambda i: (bool(requests[i].choices), requests[i].num_context_tokens))
    exact, f1 = [], []
    batch: list[int] = []
    for place, i in enumerate(order):
        batch.append(i)
        tokens = sum(requests[j].num_context_tokens for j in batch)
        is_full = len(batch) == _BATCH or tokens >= _MOST_TOKENS or place + 1 == len(order)
        if not is_full and bool(requests[order[place + 1]].choices) == bool(requests[i].choices):
            continue
        for j, decided in zip(
            batch, decide(network, vocabulary, layout, [requests[j] for j in batch], max_answer_tokens), strict=True
        ):
            pair = _score(examples[j], decided)
            exact.append(pair[0])
            f1.append(pair[1])
        batch = []
    return {"em": 100 * float(np.mean(exact)), "nf1": 100 * float(np.mean(f1))}


def _score(example: Example, decided: Decided) -> tuple[float, float]:
    if example.multiple:
        chosen = {
            choice.label
            for choice, mass in zip(example.choices, decided.choices, strict=True)
            if mass > decided.refusal
        }
        right = set(example.answers)
        together = len(chosen & right)
        return float(chosen == right), 2 * together / (len(chosen) + len(right)) if chosen or right else 1.0
    if decided.is_refusal or not example.answers:
        both = float(decided.is_refusal and not example.answers)
        return both, both
    if example.choices:
        label = example.choices[int(np.argmax(decided.choices))].label
        return (float(label in example.answers),) * 2
    text = decided.answer.text if decided.answer is not None else ""
    return (
        max(normalized_exact_match(text, gold) for gold in example.answers),
        max(normalized_f1(text, gold) for gold in example.answers),
    )
