"""Vectors of texts and choices: what they are held close to, and what their cosine does to the scores."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
import torch

from mqan_core.ask.request import Request, read_request
from mqan_core.example import Choice, Example
from mqan_core.text.layout import Layout
from mqan_core.text.vocab import Vocabulary
from mqan_training.losses import piece_losses, sentence_vectors, value_of
from mqan_training.model.bert import Bert, packaged_encoder, read_word_pieces
from mqan_training.model.heads import Alike, are_choices
from mqan_training.model.pretrained import PretrainedNetwork
from mqan_training.piece_batches import PieceBatch, allowed_sources, collate_pieces, reader_inputs
from mqan_training.piece_examples import prepare_pieces
from mqan_training.recipe import ModelConfig

LAYOUT = Layout(read_word_pieces(packaged_encoder()))
VOCABULARY = Vocabulary([" yes ", " no "], refuses=True)
SPORT, MONEY = "The referee gave two penalties before half-time.", "The bank raised its rates again."
LABELS = ("sport", "finance and money", "cooking")


@pytest.fixture(scope="module")
def teacher() -> Bert:
    return Bert.from_folder(packaged_encoder(), 0.0).eval()


@pytest.fixture
def network() -> PretrainedNetwork:
    torch.manual_seed(0)
    config = ModelConfig(width=32, num_heads=2, head_width=8, num_layers=1, ffn_width=16)
    return PretrainedNetwork(config, Bert.from_folder(packaged_encoder(), 0.0), VOCABULARY.num_generated).eval()


def batch_of(*examples: Example) -> PieceBatch:
    found = [prepare_pieces(example, VOCABULARY, LAYOUT, 10, np.random.default_rng(0)) for example in examples]
    assert None not in found
    return collate_pieces([e for e in found if e is not None], LAYOUT, VOCABULARY.num_generated)


def topic(text: str, answer: str) -> Example:
    return Example("t", "1", text, "What is it about?", (answer,), choices=tuple(map(Choice, LABELS)))


def test_texts_and_choices_are_laid_out_once_and_alone() -> None:
    free = Example("t", "2", SPORT, "Who gave penalties?", ("referee",))
    batch = batch_of(topic(SPORT, "sport"), free, topic(MONEY, "finance and money"), topic(SPORT, "sport"))
    assert batch.text_of.tolist() == [0, -1, 1, 0]
    assert int(batch.choice_pieces.any(dim=1).sum()) == len(LABELS)  # the other rows are padding
    places = batch.choice_of[0][batch.choice_of[0] >= 0].tolist()
    assert places == [0, 1, 2]
    assert (batch.choice_of[1] == -1).all()
    pieces = LAYOUT.word_pieces.pieces
    alone = [" ".join(pieces[i] for i in row if i) for row in (*batch.text_pieces[:1], *batch.choice_pieces[1:2])]
    assert alone == [
        "[CLS] the referee gave two penalties before half - time . [SEP]",
        "[CLS] finance and money [SEP]",
    ]


def test_the_teacher_gives_the_vectors_of_the_sentence_encoder(teacher: Bert) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the extra embed")
    kinds = transformers.AutoTokenizer, transformers.AutoModel
    tokenizer, model = (kind.from_pretrained(str(packaged_encoder()), local_files_only=True) for kind in kinds)
    texts = [SPORT, MONEY, *LABELS]
    read = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        states = model(**read).last_hidden_state
    mask = read["attention_mask"][..., None]
    expected = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)
    torch.testing.assert_close(sentence_vectors(teacher, read["input_ids"]), expected, atol=1e-5, rtol=0)


class Added(NamedTuple):
    scores_BQ: torch.Tensor
    is_choice_BQ: torch.Tensor
    window_BQ: torch.Tensor
    num_windows: int
    alike: Alike


def added(network: PretrainedNetwork, *requests: Request) -> Added:
    windows = [LAYOUT.windows(r.question_tokens, r.choice_tokens, r.context_tokens) for r in requests]
    inputs = reader_inputs(requests, windows, allowed_sources(requests))
    with torch.no_grad():
        encoded = network.encode(inputs)
        network.similarity.weight.zero_()
        without = network.encode(inputs)
    assert encoded.span is not None
    assert without.span is not None
    assert encoded.alike is not None
    return Added(
        encoded.span.start_BQ - without.span.start_BQ,
        are_choices(inputs.groups_NS, inputs.q_places_BQ),
        inputs.q_places_BQ // inputs.pieces_NS.shape[1],
        sum(map(len, windows)),
        encoded.alike,
    )


def about(text: str, labels: Sequence[str] = LABELS) -> Request:
    return read_request(VOCABULARY, text, "What is it about?", tuple(map(Choice, labels)))


def test_the_cosine_is_a_term_of_the_scores_of_choices_alone(network: PretrainedNetwork) -> None:
    found = added(network, about(SPORT), read_request(VOCABULARY, SPORT, "Who gave penalties to whom?", ()))
    is_choice_BQ = found.is_choice_BQ
    assert is_choice_BQ.sum(dim=1).tolist() == [len(LABELS), 0]
    cosines_Q = found.alike.choice_BQM[0] @ found.alike.text_NM[0]
    torch.testing.assert_close(found.scores_BQ[0][is_choice_BQ[0]], 16 * cosines_Q[is_choice_BQ[0]], atol=1e-4, rtol=0)
    assert (found.scores_BQ[~is_choice_BQ] == 0).all()


def test_each_group_of_many_choices_counts_by_its_own_window(network: PretrainedNetwork) -> None:
    labels = [f"{label} of kind {i}" for i in range(90) for label in LABELS]
    found = added(network, about(SPORT, labels))
    assert found.num_windows > 1
    is_choice_Q = found.is_choice_BQ[0]
    assert int(is_choice_Q.sum()) == len(labels)
    window_Q = found.window_BQ[0][is_choice_Q]
    assert set(window_Q.tolist()) == set(range(found.num_windows))
    expected_Q = 16 * (found.alike.choice_BQM[0][is_choice_Q] * found.alike.text_NM[window_Q]).sum(-1)
    torch.testing.assert_close(found.scores_BQ[0][is_choice_Q], expected_Q, atol=1e-4, rtol=0)


def test_the_loss_brings_the_vectors_to_the_teachers(network: PretrainedNetwork, teacher: Bert) -> None:
    batch = batch_of(topic(SPORT, "sport"), topic(MONEY, "finance and money"))
    before = value_of(piece_losses(network, batch, teacher)["similarity"]).item()
    optimizer = torch.optim.Adam(network.similarity.parameters(), 1e-2)
    for _ in range(40):
        loss = value_of(piece_losses(network, batch, teacher)["similarity"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.2 * before
    assert value_of(piece_losses(network, batch)["similarity"]).item() == 0.0
