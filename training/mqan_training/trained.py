"""A trained network out of a checkpoint, in evaluation mode."""

import json
from dataclasses import dataclass

from pydantic import ValidationError
from torch import nn

from mqan_core.text.layout import Layout
from mqan_core.text.vocab import Vocabulary
from mqan_training.checkpoint import ENCODER_CONFIG, Checkpoint, CheckpointError
from mqan_training.model.bert import WORD_PIECES, Bert, BertConfig, read_word_pieces
from mqan_training.model.embeddings import load_vectors
from mqan_training.model.network import Network
from mqan_training.model.pretrained import PretrainedNetwork


@dataclass(frozen=True, slots=True)
class Trained:
    network: PretrainedNetwork
    vocabulary: Vocabulary
    layout: Layout


def load_trained(checkpoint: Checkpoint) -> Trained:
    config, folder = checkpoint.recipe.pieces, checkpoint.folder
    try:
        sizes = BertConfig.model_validate(json.loads((folder / ENCODER_CONFIG).read_text(encoding="utf-8")))
        word_pieces = read_word_pieces(folder)
    except (OSError, ValueError, ValidationError) as error:
        raise CheckpointError(f"{folder}: {ENCODER_CONFIG} or {WORD_PIECES} cannot be read: {error}") from error
    vocabulary = Vocabulary(checkpoint.tokens, refuses=True)
    network = PretrainedNetwork(config.decoder.model_config_of(), Bert(sizes, 0.0), vocabulary.num_generated)
    _load(network, checkpoint)
    return Trained(network, vocabulary, Layout(word_pieces))


def load_network(checkpoint: Checkpoint) -> Network:
    config, vectors = checkpoint.recipe.words, load_vectors(checkpoint.vectors_path)
    network = Network(config.model, vectors, Vocabulary(checkpoint.tokens, vectors.words))
    _load(network, checkpoint)
    return network


def _load(network: nn.Module, checkpoint: Checkpoint) -> None:
    try:
        network.load_state_dict({**checkpoint.weights, **checkpoint.average})  # buffers are not averaged
    except RuntimeError as error:
        raise CheckpointError(
            f"{checkpoint.folder}: the weights do not fit the model of the recipe: {error}"
        ) from error
    network.eval()
