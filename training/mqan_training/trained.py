"""A trained network with a pretrained reader, out of a checkpoint."""

import json
from dataclasses import dataclass

from pydantic import ValidationError

from mqan_core.text.layout import Layout
from mqan_core.text.vocab import Vocabulary
from mqan_training.checkpoint import Checkpoint
from mqan_training.errors import CheckpointError
from mqan_training.mixture_run import ENCODER_CONFIG
from mqan_training.model.bert import Bert, BertConfig
from mqan_training.model.pretrained import PretrainedNetwork
from mqan_training.sentence_encoder import WORD_PIECES, read_word_pieces


@dataclass(frozen=True, slots=True)
class Trained:
    """A network in evaluation mode, and what it reads texts with."""

    network: PretrainedNetwork
    vocabulary: Vocabulary
    layout: Layout


def load_trained(checkpoint: Checkpoint) -> Trained:
    """Build the network of a checkpoint, with its averaged weights.

    Raises:
        CheckpointError: the reader is not a pretrained one, a file is missing, or the weights do not fit.
    """
    recipe, folder = checkpoint.recipe, checkpoint.folder
    try:
        sizes = BertConfig.model_validate(json.loads((folder / ENCODER_CONFIG).read_text(encoding="utf-8")))
        word_pieces = read_word_pieces(folder)
    except (OSError, ValueError, ValidationError) as error:
        raise CheckpointError(f"{folder}: {ENCODER_CONFIG} or {WORD_PIECES} cannot be read: {error}") from error
    vocabulary = Vocabulary(checkpoint.pieces, refuses=True)
    network = PretrainedNetwork(recipe.decoder.model_config_of(), Bert(sizes, 0.0), vocabulary.num_generated)
    weights = {**checkpoint.weights, **checkpoint.average}  # buffers are not averaged
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise CheckpointError(f"{folder}: the weights do not fit the model of the recipe: {error}") from error
    return Trained(network.eval(), vocabulary, Layout(word_pieces))
