"""The contextual encoder: a BERT's first layers over words, and learning to point at answers."""

import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mqan_core.request import read_request
from mqan_core.vocab import Vocabulary
from mqan_core.windows import MOST_QUESTION, WINDOW
from mqan_core.word_pieces import PieceVectors
from mqan_training.average import average
from mqan_training.batching import Batcher
from mqan_training.checkpoint import load_checkpoint
from mqan_training.config import ModelConfig, OptimConfig, load_config
from mqan_training.data.dataset import Item, PieceTable
from mqan_training.distributed import Processes
from mqan_training.model.contextual import NUM_MARKS, ContextualEncoder, answer_places
from mqan_training.model.embeddings import load_vectors
from mqan_training.model.network import Network
from mqan_training.optim import make_optimizer, set_rate
from mqan_training.sentence_encoder import first_layers, piece_vectors
from mqan_training.train import prepare, train
from mqan_training.transfer import Pretrained, adopt, network_of
from tests.conftest import make_network, make_pieces

WORDS = ["the", "film", "of", "two", "old", "friends", "dull", "?"]
CONFIG = ModelConfig(width=6, contextual_layers=2, contextual_heads=2, contextual_ffn_width=16)
MODEL: dict[str, Any] = {"contextual_layers": 2, "contextual_heads": 3, "contextual_ffn_width": 32}


@pytest.fixture(scope="module")
def bert(write_encoder: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("contextual") / "encoder", WORDS, num_layers=3)


def encoder_of(folder: Path) -> ContextualEncoder:
    encoder = ContextualEncoder(CONFIG, piece_vectors(folder))
    missing = encoder.load_state_dict(first_layers(folder, CONFIG), strict=False)
    assert set(missing.missing_keys) == {"output.weight", "span.weight", "span.bias"}
    assert not missing.unexpected_keys
    return encoder.eval()


def small_encoder() -> ContextualEncoder:
    torch.manual_seed(3)
    encoder = ContextualEncoder(replace(CONFIG, contextual_ffn_width=20), make_pieces()).eval()
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return encoder


def words_of(encoder: ContextualEncoder, words: list[str]) -> torch.Tensor:
    return torch.from_numpy(encoder.pieces.lookup(words))


# --- What it computes


@torch.no_grad()
def test_the_states_are_those_of_the_encoder(bert: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    question, context = ["two", "friends", "?"], ["the", "dull", "film", "of", "old", "friends"]
    tokenizer, model = AutoTokenizer.from_pretrained(bert), AutoModel.from_pretrained(bert).eval()
    encoded = tokenizer(" ".join(question), " ".join(context), return_tensors="pt")
    assert encoded["input_ids"].shape[1] == NUM_MARKS + len(question) + len(context)
    expected = model(**encoded, output_hidden_states=True).hidden_states[2][0]
    encoder = encoder_of(bert)
    given = words_of(encoder, context)[None], words_of(encoder, question)[None]
    states, mask = encoder.read(*given, torch.tensor([6]), torch.tensor([3]))
    order = [0, 4, 11, 1, 2, 3, 5, 6, 7, 8, 9, 10]  # marks first
    assert mask.all()
    torch.testing.assert_close(states[0], expected[order], atol=0.02, rtol=0)  # its word vectors are 8-bit here
    assert expected.std() > 0.5


@torch.no_grad()
def test_a_row_does_not_depend_on_those_beside_it() -> None:
    encoder = small_encoder()
    c_words, q_words = torch.randn(2, 9, 24), torch.randn(2, 5, 24)
    lengths = torch.tensor([9, 4]), torch.tensor([5, 2])
    c_added, q_added = encoder(c_words, q_words, *lengths)
    c_alone, q_alone = encoder(c_words[1:, :4], q_words[1:, :2], torch.tensor([4]), torch.tensor([2]))
    torch.testing.assert_close(c_added[1:, :4], c_alone)
    torch.testing.assert_close(q_added[1:, :2], q_alone)


@torch.no_grad()
def test_a_long_context_is_read_in_windows() -> None:
    encoder = small_encoder()
    length = WINDOW + 40
    c_words, q_words = torch.randn(1, length, 24), torch.randn(1, MOST_QUESTION + 7, 24)
    num_words = torch.tensor([length]), torch.tensor([MOST_QUESTION + 7])
    c_added, q_added = encoder(c_words, q_words, *num_words)
    assert c_added.shape == (1, length, 6)
    assert q_added.shape == (1, MOST_QUESTION + 7, 6)
    read = q_words[:, :MOST_QUESTION], torch.tensor([MOST_QUESTION])
    first, q_first = encoder(c_words[:, :WINDOW], read[0], torch.tensor([WINDOW]), read[1])
    second, _ = encoder(c_words[:, WINDOW:], read[0], torch.tensor([40]), read[1])
    torch.testing.assert_close(c_added, torch.cat([first, second], dim=1))
    torch.testing.assert_close(q_added[:, :MOST_QUESTION], q_first)
    assert not q_added[:, MOST_QUESTION:].any()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"contextual_layers": 4}, "has 3 layers with 2 heads and feed-forward networks of 16; .*contextual_layers 4"),
        ({"contextual_heads": 4}, "contextual_heads 4"),
        ({"contextual_ffn_width": 99}, "contextual_ffn_width 99"),
    ],
)
def test_layers_that_an_encoder_does_not_have_are_refused(bert: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        first_layers(bert, replace(CONFIG, **changes))


def test_a_network_needs_word_pieces_to_read(tiny_network: Network) -> None:
    with pytest.raises(ValueError, match="contextual_layers needs vectors with word pieces"):
        Network(ModelConfig(**MODEL), tiny_network.embedder.vectors, tiny_network.vocabulary)


@torch.no_grad()
def test_a_trained_network_answers_as_before_when_it_gains_one(tiny_network: Network) -> None:
    vectors = replace(tiny_network.embedder.vectors, pieces=make_pieces())
    model = replace(tiny_network.mqan.config, **MODEL)
    vocabulary = Vocabulary(tiny_network.vocabulary.pieces[1:], vectors.words)
    grown = Network(model, vectors, vocabulary)
    known = Pretrained("tiny", tiny_network.mqan.config, vocabulary.pieces[1:], vectors, tiny_network.state_dict())
    adopt(grown, known)
    request = read_request(vocabulary, "Storms had torn its walls apart in 1923.", "When was it?")
    before, after = (network.greedy_answers([request], 8)[0] for network in (tiny_network, grown))
    assert before == after
    assert grown.contextual is not None
    torch.nn.init.normal_(grown.contextual.output.weight)
    assert grown.greedy_answers([request], 8)[0].probability != before.probability
    again = network_of(Pretrained("grown", model, vocabulary.pieces[1:], vectors, grown.state_dict()))
    assert again.greedy_answers([request], 8) == grown.eval().greedy_answers([request], 8)


def test_networks_that_read_other_word_pieces_are_not_averaged() -> None:
    network = make_network(**MODEL)
    vectors = network.embedder.vectors
    one = Pretrained("one", network.mqan.config, network.vocabulary.pieces[1:], vectors, network.state_dict())
    mean = average([one, one])
    for name, tensor in mean.state_dict().items():
        torch.testing.assert_close(tensor, one.weights[name])
    assert vectors.pieces is not None
    louder = PieceVectors(vectors.pieces.word_pieces, vectors.pieces.rows, vectors.pieces.scales * 2)
    with pytest.raises(ValueError, match="louder reads other word pieces than one"):
        average([replace(one, source="louder", vectors=replace(vectors, pieces=louder)), one])


# --- Pointing at answers


def test_places_of_answers() -> None:
    question = torch.tensor([[1, 2, 3], [7, -1, -1], [5, 6, -1]])
    context = torch.tensor([[2, 3, 2, 3], [1, 2, 7, -1], [7, 8, 8, 9]])
    target = torch.tensor([[2, 3, -2], [9, -2, -1], [6, 7, -2]])
    begins, lengths = answer_places(target, question, context)
    assert lengths.tolist() == [2, 1, 2]
    assert begins[0].nonzero().flatten().tolist() == [1, 3, 5]
    assert not begins[1].any()
    assert not begins[2].any()  # the end of a question and the beginning of a context are no answer


def test_an_answer_in_two_places_has_both_probabilities() -> None:
    encoder = small_encoder()
    torch.nn.init.zeros_(encoder.span.weight)
    torch.nn.init.zeros_(encoder.span.bias)  # every place is as likely as any other
    c_words, q_words = torch.randn(3, 6, 24), torch.randn(3, 3, 24)
    lengths = torch.tensor([6, 6, 6]), torch.tensor([3, 3, 3])
    begins = torch.zeros(3, 9, dtype=torch.bool)
    begins[0, [4, 7]] = True
    matches = begins, torch.tensor([2, 1, 1]), torch.tensor([False, True, False])
    loss = encoder.span_loss(c_words, q_words, *lengths, matches)
    places = 1 + 9  # the first mark, question and context
    expected = (-math.log(2 / places**2) - math.log(1 / places**2)) / 2  # the third row does not count
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    nothing = encoder.span_loss(c_words, q_words, *lengths, (begins & False, matches[1], matches[2] & False))
    assert nothing.item() == 0
    nothing.backward()


def test_it_learns_to_point_at_the_one_word_of_a_kind() -> None:
    torch.manual_seed(4)
    encoder = ContextualEncoder(replace(CONFIG, contextual_ffn_width=20), make_pieces())
    optimizer = torch.optim.Adam(encoder.parameters(), 3e-3)
    table = torch.randn(40, 24)
    losses = []
    for _ in range(120):
        context = torch.randint(30, (32, 8))
        answer = torch.randint(30, 40, (32, 1))
        context.scatter_(1, torch.randint(8, (32, 1)), answer)
        question = torch.randint(30, (32, 3))
        begins, lengths = answer_places(answer, question, context)
        sizes = torch.full((32,), 8), torch.full((32,), 3)
        matches = begins, lengths, torch.zeros(32, dtype=torch.bool)
        loss = encoder.span_loss(table[context], table[question], *sizes, matches)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert np.mean(losses[:3]) > 4
    assert np.mean(losses[-3:]) < 1


def test_the_network_points_by_the_encoder_alone() -> None:
    network = make_network(**MODEL)
    table = PieceTable()
    numbers = [
        table.numbers([f" {word} " for word in text.split()]) for text in ("the old harbour", "or the", "harbour")
    ]
    batch = Batcher(table, network.vocabulary, network.embedder).collate("squad", [Item(*numbers)])
    loss = network(batch, points=True)
    assert loss.num_targets == 1
    loss.mean.backward()
    moved = {name.split(".")[0] for name, parameter in network.named_parameters() if parameter.grad is not None}
    assert moved == {"contextual"}
    with pytest.raises(ValueError, match="only a model with contextual_layers"):
        make_network()(batch, points=True)


# --- A run


@pytest.fixture(scope="module")
def runs(bert: Path, tiny_recipe: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs of six steps, of which four point alone: one whole, one cut at step three."""
    recipe, data = tiny_recipe
    overrides = {
        "steps": "6",
        "span_steps": "4",
        "checkpoint_every": "3",
        "encoder": str(bert),
        "model.contextual_layers": "2",
        "model.contextual_heads": "2",
        "model.contextual_ffn_width": "16",
        "optim.contextual_rate": "0.5",
    }
    config = load_config(recipe, overrides)
    whole, cut = (tmp_path_factory.mktemp("contextual-runs") / name for name in ("whole", "cut"))
    train(config, data, whole)
    train(config, data, cut)
    shutil.rmtree(cut / "step-0000006")
    train(config, data, cut, resume=True)
    return whole, cut


def test_the_encoder_learns_alone_first(
    runs: tuple[Path, Path], bert: Path, tiny_recipe: tuple[Path, Path], tmp_path: Path
) -> None:
    early, late = (load_checkpoint(runs[0] / f"step-000000{step}").weights for step in (3, 6))
    begun = first_layers(bert, replace(CONFIG, contextual_layers=2))
    assert not torch.equal(early["contextual.positions"], begun["positions"])
    assert not early["contextual.output.weight"].any()
    assert late["contextual.output.weight"].any()
    config = load_checkpoint(runs[0] / "step-0000003").train_config
    fresh = prepare(config, tiny_recipe[1], tmp_path, Processes(0, 1, torch.device("cpu"))).network.state_dict()
    for name, tensor in fresh.items():
        if name.startswith("mqan."):
            assert torch.equal(early[name], tensor), name
    name = "mqan.encoder.projection.weight"
    assert not torch.equal(late[name], fresh[name])


def test_a_run_that_was_cut_takes_the_same_steps(runs: tuple[Path, Path]) -> None:
    whole, cut = (load_checkpoint(folder / "step-0000006").weights for folder in runs)
    for name, tensor in whole.items():
        assert torch.equal(tensor, cut[name]), name


def test_a_checkpoint_holds_the_word_pieces(runs: tuple[Path, Path], bert: Path) -> None:
    vectors = load_vectors(load_checkpoint(runs[0] / "step-0000006").vectors_path)
    assert vectors.pieces is not None
    expected = piece_vectors(bert)
    assert vectors.pieces.word_pieces.pieces == expected.word_pieces.pieces
    np.testing.assert_array_equal(vectors.pieces.rows, expected.rows)


def test_the_encoders_rate_is_its_own() -> None:
    network = make_network(**MODEL)
    optimizer = make_optimizer(network, OptimConfig(contextual_rate=0.25))
    set_rate(optimizer, 0.02)
    rates = {id(parameter): group["lr"] for group in optimizer.param_groups for parameter in group["params"]}
    for name, parameter in network.named_parameters():
        assert rates[id(parameter)] == (0.005 if name.startswith("contextual.") else 0.02), name
