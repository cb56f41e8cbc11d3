"""Answers of a network with a pretrained reader, in torch: the reference for every other way to run it."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from mqan_core.answer.decide import decide
from mqan_core.answer.finish import HOLDS
from mqan_core.answer.trace import TraceField
from mqan_core.answer.types import Answer
from mqan_core.ask.options import Options
from mqan_core.ask.request import Request, read_request
from mqan_core.errors import InputError
from mqan_core.example import Example
from mqan_data.metrics import exact_and_f1
from mqan_training.batch import pad, sorted_batches
from mqan_training.model.greedy import GreedyStep, LoopState, SlotBatch, greedy_trace
from mqan_training.piece_batches import MOST_PIECES, allowed_sources, reader_inputs, word_ids
from mqan_training.start import Trained

_BATCH = 16


@torch.no_grad()
def answer_batch(
    trained: Trained, requests: Sequence[Request], max_answer_tokens: int, words_VD: Tensor | None = None
) -> list[Answer]:
    """Answer a batch of requests as a bundle of the network does; ``words_VD`` are its ``generator_inputs``, if known.

    The network must be in evaluation mode.
    """
    network, device = trained.network, trained.network.decoder.start.device
    windows = [trained.layout.windows(r.question_tokens, r.choice_tokens, r.context_tokens) for r in requests]
    inputs = reader_inputs(requests, windows, allowed_sources(requests))
    inputs = type(inputs)(*(tensor.to(device) for tensor in inputs))
    encoded = network.encode(inputs)
    num_context, num_question = inputs.c_mask_BC.shape[1], inputs.q_mask_BQ.shape[1]
    slots = slot_batch(trained, requests, num_context, num_question, words_VD)
    step = GreedyStep(network.decoder)
    most = 0 if all(request.choices for request in requests) else max_answer_tokens
    first: LoopState = step(encoded, slots, step.start(encoded, most + 1))
    trace = greedy_trace(step, encoded, slots, first, most + 1)
    pointed_BQ = first.decoder.last.question_pointer_BQ.float().cpu().numpy()
    answers = []
    for i, request in enumerate(requests):
        copied, behind = 1 - float(trace[i, 0, TraceField.GAMMA]), len(request.question_tokens)
        masses = tuple(float(mass) * copied for mass in pointed_BQ[i, behind : behind + len(request.choices)])
        may_be_none = Options(request.choices).may_be_none
        given = (trace[i], masses, request, trained.vocabulary, max_answer_tokens)
        answers.append(decide(*given, may_be_none=may_be_none))
    return answers


def slot_batch(
    trained: Trained, requests: Sequence[Request], num_context: int, num_question: int, words_VD: Tensor | None = None
) -> SlotBatch:
    """Return the slots of requests, padded with a slot that no request has, and the decoder's inputs of words."""
    network, word_pieces = trained.network, trained.layout.word_pieces
    num_slots = max(len(request.slots.pieces) for request in requests) + 1  # the last one is padding's
    pieces = np.zeros((len(requests), num_slots, MOST_PIECES), np.int64)
    for row, request in enumerate(requests):
        pieces[row, : len(request.slots.pieces)] = word_ids(word_pieces, request.slots.pieces)
    arrays = (
        pad([request.slots.context for request in requests], num_slots - 1, num_context),
        pad([request.slots.question for request in requests], num_slots - 1, num_question),
        pad([request.slots.generator_ids for request in requests], trained.vocabulary.num_generated, num_slots),
        pieces,
    )
    c_slots, q_slots, ids, words = (torch.from_numpy(array).to(network.decoder.start.device) for array in arrays)
    words_VD = generator_inputs(trained) if words_VD is None else words_VD
    return SlotBatch(c_slots, q_slots, ids, network.decoder.project(network.word_vectors(words)), words_VD)


def generator_inputs(trained: Trained) -> Tensor:
    network, pieces = trained.network, word_ids(trained.layout.word_pieces, trained.vocabulary.pieces)
    return network.decoder.project(network.word_vectors(torch.from_numpy(pieces).to(network.decoder.start.device)))


def score_examples(trained: Trained, examples: Sequence[Example], max_answer_tokens: int) -> Mapping[str, float]:
    """Return exact match and F1 of examples, normalised, in per cent; what would be refused as too long is wrong."""
    read = {i: request for i, e in enumerate(examples) if (request := _read(trained, e)) is not None}
    pairs: list[tuple[float, float]] = [(0.0, 0.0)] * (len(examples) - len(read))
    for has_choices in (False, True):  # apart: labels take one step
        places = [i for i, request in read.items() if bool(request.choices) == has_choices]
        for chosen in sorted_batches([read[i].num_context_tokens for i in places], _BATCH):
            batch = [places[n] for n in chosen]
            answers = answer_batch(trained, [read[i] for i in batch], max_answer_tokens)
            for i, answer in zip(batch, answers, strict=True):
                labels = [choice.label for choice in answer.choices if choice.against_refusal > HOLDS]
                pairs.append(exact_and_f1(examples[i], answer.text if answer.answered else None, labels))
    exact, f1 = zip(*pairs, strict=True)
    return {"em": 100 * float(np.mean(exact)), "nf1": 100 * float(np.mean(f1))}


def _read(trained: Trained, example: Example) -> Request | None:
    try:
        request = read_request(trained.vocabulary, example.context, example.question, example.choices)
        trained.layout.windows(request.question_tokens, request.choice_tokens, request.context_tokens)
    except InputError:
        return None
    return request
