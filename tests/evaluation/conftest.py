"""A tiny random network with a pretrained reader, as checkpoint and as what answers."""

from pathlib import Path

import pytest
import torch

from mqan_core.layout import Layout
from mqan_core.vocab import NUM_SPECIAL, Vocabulary
from mqan_core.word_pieces import WordPieces
from mqan_evaluation.answerers import TorchAnswerer
from mqan_training.checkpoint import save_checkpoint
from mqan_training.mixture_run import ENCODER_CONFIG, make_optimizer
from mqan_training.model.bert import Bert, BertConfig
from mqan_training.model.pretrained import PretrainedNetwork
from mqan_training.recipe import DecoderConfig, Recipe
from mqan_training.sentence_encoder import WORD_PIECES
from mqan_training.trained import Trained

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *_LETTERS, *(f"##{c}" for c in _LETTERS), *"?,.:;!'\"()-/"]
_WORDS = ["yes", "no", "joy", "fear", "anger", "the", "is", "it", "what", "choose", "from", "or"]

SIZES = BertConfig(
    vocab_size=len(_PIECES) + len(_WORDS),
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=24,
)
RECIPE = Recipe(
    name="tiny",
    sources={"clickbait": 1.0, "isear_like": 1.0},
    steps=1,
    max_answer_tokens=6,
    decoder=DecoderConfig(width=12, num_heads=2, head_width=6, ffn_width=16, dropout=0.0, max_positions=8),
)


@pytest.fixture(scope="session")
def tiny_trained() -> Trained:
    """A network that answers at random, the same way every time."""
    torch.manual_seed(0)
    vocabulary = Vocabulary([" yes ", " no ", " joy ", ", "], refuses=True)
    network = PretrainedNetwork(RECIPE.decoder.model_config_of(), Bert(SIZES, 0.0), vocabulary.num_generated)
    for parameter in network.parameters():  # far from how it begins, so that answers differ
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return Trained(network.eval(), vocabulary, Layout(WordPieces([*_PIECES, *_WORDS])))


@pytest.fixture(scope="session")
def tiny_answerer(tiny_trained: Trained) -> TorchAnswerer:
    """The network as what answers."""
    return TorchAnswerer(tiny_trained, RECIPE.max_answer_tokens, "tiny", ("clickbait",))


@pytest.fixture(scope="session")
def tiny_checkpoint(tiny_trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint whose averaged weights are the network's, and its last ones others."""
    folder = tmp_path_factory.mktemp("tiny")
    (folder / ENCODER_CONFIG).write_text(SIZES.model_dump_json(), encoding="utf-8")
    (folder / WORD_PIECES).write_text("\n".join([*_PIECES, *_WORDS]) + "\n", encoding="utf-8")
    network = tiny_trained.network
    last = PretrainedNetwork(RECIPE.decoder.model_config_of(), Bert(SIZES, 0.0), tiny_trained.vocabulary.num_generated)
    save_checkpoint(
        folder / "step-0000001",
        config=RECIPE,
        step=1,
        drawn={"pool": 0, "index": 0},
        pieces=tiny_trained.vocabulary.pieces[NUM_SPECIAL:],
        frozen={name: folder / name for name in (ENCODER_CONFIG, WORD_PIECES)},
        model=last,
        average={name: p.detach() for name, p in network.named_parameters()},
        optimizer=make_optimizer(last, RECIPE),
        training={"seconds": 0.0},
    )
    return folder / "step-0000001"
