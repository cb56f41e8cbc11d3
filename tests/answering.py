"""A small random network with a pretrained reader's layout, and its bundle."""

import random
from pathlib import Path

import torch

from mqan_core.example import Choice, Example
from mqan_core.layout import Layout
from mqan_core.vocab import Vocabulary
from mqan_core.word_pieces import WordPieces
from mqan_export.answering import write_bundle
from mqan_export.answering_parity import AnsweringParity
from mqan_training.config import ModelConfig
from mqan_training.model.bert import Bert, BertConfig
from mqan_training.model.pretrained import PretrainedNetwork
from mqan_training.trained import Trained

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
WORDS = "the old harbour was closed in 1923 because storms had torn its walls ada wrote notes who when yes no".split()  # noqa: SIM905
MARKS = list("?.,:;'()-$")
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *MARKS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
GENERATED = [" yes ", " no ", " notes ", ": ", "; "]
LABELS = ["negative", "positive", "the harbour", "who wrote notes", "1923", "storms had torn its walls", "no"]


def make_trained(seed: int = 0) -> Trained:
    """Make a network with large random weights, so that its answers differ from text to text."""
    torch.manual_seed(seed)
    config = ModelConfig(
        reader="pretrained",
        width=16,
        num_heads=2,
        head_width=8,
        num_layers=1,
        ffn_width=24,
        dropout=0.0,
        attention_dropout=0.0,
        max_positions=64,
    )
    layout, vocabulary = Layout(WordPieces(PIECES)), Vocabulary(GENERATED, refuses=True)
    sizes = BertConfig(
        vocab_size=len(PIECES), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48
    )
    network = PretrainedNetwork(config, Bert(sizes, 0.0), vocabulary.num_generated)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.3)
        tie = network.decoder.tie
        assert tie is not None
        for weight in (tie.null_weight, tie.written_weight, tie.start_weight):
            weight.fill_(0.5)
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


def write_small_bundle(folder: Path, trained: Trained) -> AnsweringParity:
    """Write the bundle of a network; return what the export says of it."""
    return write_bundle(
        trained, folder, make_examples(30), name="small", version="1", model_card="# small\n", training={"tasks": ["t"]}
    )
