"""MQAN's decoder over a pretrained reader: forward and step are one function, labels have no order."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from mqan_core.answer.types import Answer
from mqan_core.ask.request import Request, read_request
from mqan_core.example import Choice, Example
from mqan_core.text.layout import Layout
from mqan_core.text.vocab import END_ID, REFUSAL_ID, Vocabulary
from mqan_core.text.word_pieces import WordPieces
from mqan_training.losses import piece_losses, value_of
from mqan_training.model.bert import Bert, BertConfig
from mqan_training.model.greedy import GreedyStep
from mqan_training.model.pretrained import PretrainedNetwork
from mqan_training.piece_batches import allowed_sources, collate_pieces, reader_inputs
from mqan_training.piece_examples import NO_SLOT, PieceExample, prepare_pieces
from mqan_training.recipe import ModelConfig
from mqan_training.start import Trained
from mqan_training.torch_answers import answer_batch, score_examples, slot_batch

WORDS = "ann bob met red green blue until the a who what is it ? , . yes no one two ; : area south".split()  # noqa: SIM905
LAYOUT = Layout(WordPieces(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, "##s"]))
VOCABULARY = Vocabulary([" yes ", " no ", " area ", ": ", "; "], refuses=True)
CONFIG = ModelConfig(
    width=12,
    num_heads=2,
    head_width=6,
    num_layers=1,
    ffn_width=16,
    dropout=0.0,
    attention_dropout=0,
)
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def network() -> PretrainedNetwork:
    torch.manual_seed(0)
    sizes = BertConfig(
        vocab_size=len(LAYOUT.word_pieces.pieces),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
    )
    built = PretrainedNetwork(CONFIG, Bert(sizes, 0.0), VOCABULARY.num_generated)
    for parameter in built.parameters():  # far from how it begins, so that every term counts
        torch.nn.init.normal_(parameter, std=0.3) if parameter.dim() > 1 else None
    return built.eval()


def ask(context: str, question: str, *labels: str) -> Request:
    return read_request(VOCABULARY, context, question, [Choice(label) for label in labels])


def example(context: str, answers: Sequence[str], *labels: str, start: int | None = None) -> Example:
    return Example("t", "1", context, "Who is it?", tuple(answers), start, choices=tuple(map(Choice, labels)))


def prepared(given: Example) -> PieceExample:
    found = prepare_pieces(given, VOCABULARY, LAYOUT, 10, RNG)
    assert found is not None
    return found


@torch.no_grad()
def test_steps_compute_what_teacher_forcing_does(network: PretrainedNetwork) -> None:
    examples = [
        prepared(example("Ann met Bob until Ann met the blue one.", ["met the blue"])),
        prepared(example("south, red", ["area: south"])),
    ]
    batch = collate_pieces(examples, LAYOUT, VOCABULARY.num_generated)
    previous = torch.nn.functional.pad(batch.target_slots[:, :-1], (1, 0), value=-3)
    is_word = (
        previous[:, :, None] == batch.context_slots[:, None],
        previous[:, :, None] == batch.question_slots[:, None],
    )
    encoded, expected = network(batch.inputs, batch.answer_pieces, is_word)
    state = network.decoder.initial_state(encoded, batch.target_slots.shape[1])
    projected = network.decoder.project(network.word_vectors(batch.answer_pieces))
    projected[:, 0] = network.decoder.start
    for t in range(batch.target_slots.shape[1]):
        words = is_word[0][:, t], is_word[1][:, t]
        position = torch.full((len(examples),), t)
        mixture, state = network.decoder.step(projected[:, t], position, state, encoded, words)
        for name, found, wanted in zip(mixture._fields, mixture, expected, strict=True):
            torch.testing.assert_close(found, wanted[:, t], msg=f"{name} at step {t}")
    totals = expected.gamma_BA * expected.p_vocab_BAV.sum(-1) + (1 - expected.gamma_BA) * (
        expected.lambda_BA * expected.p_context_BAC.sum(-1) + (1 - expected.lambda_BA) * expected.p_question_BAQ.sum(-1)
    )
    torch.testing.assert_close(totals, torch.ones_like(totals))  # (13) is a distribution


def of(network: PretrainedNetwork) -> Trained:
    return Trained(network, VOCABULARY, LAYOUT)


def masses(answer: Answer) -> list[float]:
    return [choice.probability for choice in answer.choices]


@torch.no_grad()
def test_only_allowed_sources_are_used(network: PretrainedNetwork) -> None:
    requests = [ask("Ann met Bob until two.", "Who is it?")] * 3
    windows = [LAYOUT.windows(r.question_tokens, r.choice_tokens, r.context_tokens) for r in requests]
    allowed = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
    assert allowed_sources(requests).tolist() == [[1, 1, 1]] * 3
    inputs = reader_inputs(requests, windows, allowed)
    encoded = network.encode(inputs)
    slots = slot_batch(of(network), requests, inputs.c_mask_BC.shape[1], inputs.q_mask_BQ.shape[1])
    step = GreedyStep(network.decoder)
    state = step.start(encoded, 4)
    words = torch.zeros_like(inputs.c_mask_BC), torch.zeros_like(inputs.q_mask_BQ)
    mixture, _ = network.decoder.step(state.input_BD, state.position_B, state.decoder, encoded, words)
    context = (1 - mixture.gamma_BA) * mixture.lambda_BA
    question = (1 - mixture.gamma_BA) * (1 - mixture.lambda_BA)
    written = mixture.gamma_BA * mixture.p_vocab_BAV[:, REFUSAL_ID + 1 :].sum(-1)
    for row, kept in enumerate((context, question, written)):
        for masses in (context, question, written):
            assert (float(masses[row]) > 1e-6) == (masses is kept)
    assert slots.c_slots_BC.shape == inputs.c_mask_BC.shape


def test_a_choice_is_one_step_at_its_separator() -> None:
    found = prepared(example("Ann met Bob.", ["green blue"], "red", "green blue"))
    num_question = len(found.request.question_tokens)
    assert found.slots.tolist() == [found.request.slots.question[num_question + 1]]
    assert found.starts == (num_question + 1,)
    refused = prepared(example("Ann met Bob.", [], "red", "green blue"))
    assert refused.is_refusal
    assert refused.ids.tolist() == [REFUSAL_ID]


def test_an_answer_is_learnt_at_the_place_that_the_dataset_says() -> None:
    found = prepared(example("Ann met Ann", ["Ann"], start=8))
    assert found.starts == (len(found.request.slots.question) + 2,)
    anywhere = prepared(example("Ann met Ann", ["Ann"]))
    assert len(anywhere.starts) == 1 + (anywhere.slots[0] == anywhere.request.slots.context[0])
    assert not anywhere.is_written


def test_what_is_no_quotation_is_written_and_what_is_out_of_reach_is_left_out() -> None:
    found = prepared(example("south, red", ["area: south"]))
    assert found.is_written
    assert (found.slots[0], found.slots[-1], found.ids[-1]) == (NO_SLOT, NO_SLOT, END_ID)
    assert prepare_pieces(example("red", ["unheard of"]), VOCABULARY, LAYOUT, 10, RNG) is None
    assert prepare_pieces(example("red", ["red " * 11]), VOCABULARY, LAYOUT, 10, RNG) is None


def test_of_a_long_text_whose_file_tells_no_place_a_window_with_the_answer_is_kept() -> None:
    for start, context in ((0, "bob " + "red " * 2000), (8000, "red " * 2000 + "bob")):
        found = prepared(example(context, ["Bob"]))
        assert [token.word.lower() for token in found.request.context_tokens].count("bob") == 1
        assert found.request.context_tokens[0].start <= start <= found.request.context_tokens[-1].end
    behind = example("red " * 2000 + "bob", ["Bob"], "Bob", "Ann")
    assert prepare_pieces(behind, VOCABULARY, LAYOUT, 10, RNG) is None, "choices are read with the first window"
    assert prepared(example("red " * 2000, ["Bob"], "Bob", "Ann")).request.context_tokens[0].start == 0


@pytest.mark.parametrize("question", ["Is it ?", "Is it, yes or no ?"])
def test_a_verdict_is_no_quotation_of_the_text(question: str) -> None:
    given = replace(example("no one met Ann", ["no"]), question=question)
    found = prepared(given)
    places = [found.request.slots.question.tolist().index(found.slots[0])] if "no" in question else []
    assert list(found.starts) == places
    assert found.ids[0] == VOCABULARY.piece_id(" no ")
    assert (found.slots[0] == NO_SLOT) == ("no" not in question)
    assert prepared(replace(given, answers=("no one",))).starts


def test_the_place_of_a_long_answer_is_in_the_window_or_the_row_is_left_out() -> None:
    words = [f"{word}s" for word in ("red", "green", "blue")] * 100  # of two pieces each
    context, num_left_out = " ".join(words), 0
    for first in range(0, 250, 5):
        start = len(" ".join(words[:first])) + bool(first)
        answer = " ".join(words[first : first + 50])
        found = prepare_pieces(example(context, [answer], start=start), VOCABULARY, LAYOUT, 60, RNG)
        if found is None:
            num_left_out += 1
            continue
        [begin], [end] = found.starts, found.ends
        row = [*found.request.slots.question, *found.request.slots.context]
        assert row[begin : end + 1] == found.slots[:-1].tolist()
        assert found.request.context_tokens[begin - len(found.request.slots.question)].start == start
    assert 0 < num_left_out < 25  # windows of 184 words share 32


@pytest.mark.parametrize("change", [{"question": "Who " * 300}, {"choices": (Choice("red"), Choice(" "))}])
def test_what_would_be_refused_is_not_trained_on_and_counts_as_wrong(
    network: PretrainedNetwork, change: dict[str, Any]
) -> None:
    refused = replace(example("red", ["red"]), **change)
    assert prepare_pieces(refused, VOCABULARY, LAYOUT, 10, RNG) is None
    given = example("Ann met Bob.", ["red"], "red")
    assert score_examples(of(network), [given], 10) == {"em": 100, "nf1": 100}
    assert score_examples(of(network), [refused, given], 10) == {"em": 50, "nf1": 50}
    assert score_examples(of(network), [refused], 10) == {"em": 0, "nf1": 0}


def test_a_question_asked_in_two_ways_learns_to_agree(network: PretrainedNetwork) -> None:
    """The divergence is that of the two decisions, and falling it brings them together without any answer."""
    labels, merged = (Choice("red"), Choice("blue"), Choice("green")), (Choice("red or blue"), Choice("green"))
    first = replace(example("Ann met Bob.", ["red"]), choices=labels, outcomes=(0, 0, 1))
    twin = replace(example("Ann met Bob.", ["red or blue"]), choices=merged, outcomes=(0, 1))
    pair = [prepared(replace(first, twin=twin)), prepared(twin)]
    alone = prepared(replace(example("Bob met Ann.", ["red"]), choices=labels))
    batch = collate_pieces([alone, *pair], LAYOUT, VOCABULARY.num_generated)
    assert batch.is_twin.tolist() == [False, False, True]
    elsewhere = collate_pieces([pair[1], alone], LAYOUT, VOCABULARY.num_generated)
    assert not elsewhere.is_twin.any()
    learner = copy.deepcopy(network)

    def outcomes() -> list[list[float]]:
        requests = [read_request(VOCABULARY, e.context, e.question, e.choices) for e in (first, twin)]
        answers = answer_batch(of(learner.eval()), requests, 8)
        (red, blue, green), (both, other) = (masses(answer) for answer in answers)
        return [[red + blue, green, answers[0].refusal], [both, other, answers[1].refusal]]

    p, q = np.array(outcomes())
    p, q = p / p.sum(), q / q.sum()
    by_hand = ((p - q) * np.log(p / q)).sum() / 2
    [loss] = piece_losses(learner, batch)["consistency"]
    assert int(loss.number) == 1
    assert loss.value.item() == pytest.approx(by_hand, rel=0.02)
    assert by_hand > 0.005
    optimizer = torch.optim.Adam(learner.parameters(), 1e-3)
    for _ in range(60):
        value_of(piece_losses(learner, batch)["consistency"]).backward()
        optimizer.step()
        optimizer.zero_grad()
    p, q = np.array(outcomes())
    assert np.abs(p - q).max() < 0.02


def test_it_learns_to_quote_to_choose_and_to_refuse() -> None:
    """A few steps on four examples: every kind of answer comes out as trained, through greedy decoding."""
    torch.manual_seed(1)
    sizes = BertConfig(
        vocab_size=len(LAYOUT.word_pieces.pieces),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=48,
    )
    learner = PretrainedNetwork(replace(CONFIG, width=24, head_width=12), Bert(sizes, 0.0), VOCABULARY.num_generated)
    given = [
        example("Ann met the blue one until two.", ["the blue one"], start=8),
        example("south, red.", ["area: south"]),
        example("Bob met Ann.", ["green blue"], "red", "green blue"),
        replace(example("yes, one.", []), question="What is it?"),
        replace(example("Bob, Ann", ["ann", "two"], "ann", "red", "two"), multiple=True),
    ]
    batch = collate_pieces([prepared(e) for e in given], LAYOUT, VOCABULARY.num_generated)
    optimizer = torch.optim.Adam(learner.parameters(), 3e-3)
    for _ in range(150):
        losses = piece_losses(learner, batch)
        value_of((*losses["answer"], *losses["span"])).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert value_of(losses["answer"]).item() < 0.1
    requests = [read_request(VOCABULARY, e.context, e.question, e.choices) for e in given]
    quoted, written, chosen, refused, several = answer_batch(of(learner.eval()), requests, 8)
    assert quoted.text == "the blue one"
    assert [(s.start, s.end) for s in quoted.spans] == [(8, 20)]
    assert written.text == "area: south"
    assert masses(chosen)[1] > 0.8
    assert not refused.answered
    assert refused.refusal > 0.8
    assert [mass > several.refusal for mass in masses(several)] == [True, False, True]
