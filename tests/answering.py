"""A small random network with a pretrained reader's layout, its checkpoint and its bundle."""

import random
from pathlib import Path

import pytest
import torch

from mqan_core.answer.types import Answer
from mqan_core.example import Choice, Example
from mqan_core.text.layout import Layout
from mqan_core.text.vocab import NUM_SPECIAL, Vocabulary
from mqan_core.text.word_pieces import WordPieces
from mqan_export.bundle import export_bundle
from mqan_export.parity import Parity
from mqan_training.checkpoint import ENCODER_CONFIG, Checkpoint, load_checkpoint, save_checkpoint
from mqan_training.model.bert import WORD_PIECES, Bert, BertConfig
from mqan_training.model.pretrained import PretrainedNetwork
from mqan_training.optim import make_optimizer
from mqan_training.recipe import DecoderConfig, PiecesConfig, Recipe
from mqan_training.start import Trained

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
WORDS = "the old harbour was closed in 1923 because storms had torn its walls ada wrote notes who when yes no".split()  # noqa: SIM905
MARKS = list("?.,:;'()-$")
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *MARKS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
GENERATED = [" yes ", " no ", " notes ", ": ", "; "]
LABELS = ["negative", "positive", "the harbour", "who wrote notes", "1923", "storms had torn its walls", "no"]

SIZES = BertConfig(
    vocab_size=len(PIECES), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48
)
DECODER = DecoderConfig(width=16, num_heads=2, head_width=8, ffn_width=24, dropout=0.0, max_positions=64)
RECIPE = Recipe(
    name="tiny",
    sources={"clickbait": 1.0, "isear_like": 1.0},
    steps=1,
    max_answer_tokens=6,
    reader=PiecesConfig(decoder=DECODER),
)


def _make_network() -> PretrainedNetwork:
    return PretrainedNetwork(DECODER.model_config_of(), Bert(SIZES, 0.0), len(GENERATED) + NUM_SPECIAL)


def make_trained(seed: int = 0) -> Trained:
    """Make a network with large random weights, so that its answers differ from text to text."""
    torch.manual_seed(seed)
    layout, vocabulary = Layout(WordPieces(PIECES)), Vocabulary(GENERATED, refuses=True)
    network = _make_network()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.3)
        tie = network.decoder.tie
        assert tie is not None
        for weight in (tie.null_weight, tie.written_weight, tie.start_weight):
            weight.fill_(0.5)
        network.similarity.weight.fill_(0.02)  # little: random vectors are alike, and choices are refused, too
    return Trained(network.eval(), vocabulary, layout)


def make_text(rng: random.Random, num_words: int) -> str:
    """Make a text, some of its words unknown to any vocabulary."""
    words = (
        "".join(rng.choices("abcdefgh", k=rng.randint(1, 9))) if rng.random() < 0.2 else rng.choice(WORDS)
        for _ in range(num_words)
    )
    return "".join(word + rng.choice((" ", " ", ", ", ". ", "\n")) for word in words)


def make_examples(number: int, seed: int = 1) -> list[Example]:
    """Make examples: short and long texts, the longest of several windows; a third with choices."""
    rng = random.Random(seed)
    examples = []
    for i in range(number):
        context = make_text(rng, rng.choice((1, 5, 20, 60, 500 if i % 10 == 0 else 40)))
        labels = rng.sample(LABELS, rng.randint(1, len(LABELS))) if i % 3 == 0 else []
        choices = tuple(Choice(label, "a description" if rng.random() < 0.2 else "") for label in labels)
        examples.append(Example("t", str(i), context, make_text(rng, rng.randint(1, 9)), (), choices=choices))
    return examples


def write_small_checkpoint(folder: Path) -> None:
    """Write a checkpoint whose averaged weights are the network's, and its last ones others."""
    folder.parent.mkdir(exist_ok=True)
    (folder.parent / ENCODER_CONFIG).write_text(SIZES.model_dump_json(), encoding="utf-8")
    (folder.parent / WORD_PIECES).write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    trained, last = make_trained(), _make_network()
    tokens, weights = trained.vocabulary.pieces[NUM_SPECIAL:], last.state_dict()
    average = {name: p.detach() for name, p in trained.network.named_parameters()}
    checkpoint = Checkpoint(folder, RECIPE, 1, {"pool": 0, "index": 0}, tokens, weights, average, {"seconds": 0.0})
    frozen = {name: folder.parent / name for name in (ENCODER_CONFIG, WORD_PIECES)}
    save_checkpoint(checkpoint, frozen, make_optimizer(last, RECIPE, ("bert.",)))


def write_small_bundle(checkpoint: Path, folder: Path) -> Parity:
    """Write the bundle of a checkpoint; return what the export says of it."""
    loaded, examples = load_checkpoint(checkpoint), make_examples(30)
    return export_bundle(loaded, folder, examples, name="small", version="1", model_card="# small\n")


def check_same(answer: Answer, alone: Answer) -> None:
    """Check that an answer is the one that its request gets alone."""
    assert (answer.text, answer.spans, answer.truncated) == (alone.text, alone.spans, alone.truncated)
    assert answer.answered == alone.answered
    assert answer.probability == pytest.approx(alone.probability, abs=1e-5)
    assert answer.refusal == pytest.approx(alone.refusal, abs=1e-5)
    assert [c.probability for c in answer.choices] == pytest.approx([c.probability for c in alone.choices], abs=1e-5)
    assert [token.source for token in answer.tokens] == [token.source for token in alone.tokens]
