"""The default model in a run: its network, its batches, its losses and its scores."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import torch

from mqan_core.example import Example
from mqan_core.text.layout import Layout
from mqan_core.text.vocab import NUM_SPECIAL, Vocabulary
from mqan_training.checkpoint import ENCODER_CONFIG, Checkpoint
from mqan_training.losses import Losses, piece_losses
from mqan_training.model.bert import WORD_PIECES, Bert, encoder_folder, read_word_pieces
from mqan_training.model.pretrained import PretrainedNetwork
from mqan_training.piece_batches import PieceBatch, collate_pieces
from mqan_training.piece_examples import PieceExample, prepare_pieces
from mqan_training.recipe import Recipe
from mqan_training.start import Start
from mqan_training.torch_answers import score_examples


class PieceReader:
    """A pretrained encoder, and the tied decoder over it."""

    batch = PieceBatch
    unit = "pieces"
    num_special: Final = NUM_SPECIAL
    question_pointer = True
    of_reader = ("bert.",)  # what the names of its weights begin with
    has_unused_weights = True  # in a batch of answers of one step, or without choices

    def __init__(self, recipe: Recipe, checkpoint: Checkpoint | None, start: Start | None) -> None:
        if start is not None and start.words is not None:
            raise ValueError(f"{start.origin} is of the paper's network; this recipe has a pretrained reader")
        self._recipe = recipe
        self._encoder = encoder_folder(recipe.pieces.encoder)
        self.layout = Layout(read_word_pieces(self._encoder))
        self.vocabulary = Vocabulary(())
        if checkpoint is not None:
            _refuse_other_encoder(checkpoint, self._encoder)

    @property
    def frozen(self) -> Mapping[str, Path]:
        return {ENCODER_CONFIG: self._encoder / "config.json", WORD_PIECES: self._encoder / WORD_PIECES}

    @property
    def loss_weights(self) -> Mapping[str, float]:
        config = self._recipe.pieces
        return {
            "answer": 1.0,
            "span": config.span_weight,
            "similarity": config.similarity_weight,
            "evidence": config.evidence_weight,
            "consistency": config.consistency_weight,
        }

    def build(self, tokens: Sequence[str]) -> PretrainedNetwork:
        config = self._recipe.pieces
        self.vocabulary = Vocabulary(tokens, refuses=True)
        bert = Bert.from_folder(self._encoder, config.dropout)
        return PretrainedNetwork(config.decoder.model_config_of(), bert, self.vocabulary.num_generated)

    def losses_on(self, network: PretrainedNetwork, device: torch.device) -> Callable[..., Losses]:
        """Return what computes losses of the network on a device; its parts are compiled if that is a GPU."""
        teacher = Bert.from_folder(self._encoder).to(device).eval() if self._recipe.pieces.similarity_weight else None
        if device.type == "cuda" and shutil.which(os.environ.get("CC", "gcc")):
            _compile(network)
        return partial(piece_losses, teacher=teacher)

    def prepare(self, example: Example, rng: np.random.Generator) -> PieceExample | None:
        return prepare_pieces(example, self.vocabulary, self.layout, self._recipe.max_answer_tokens, rng)

    def collate(self, examples: Sequence[PieceExample]) -> PieceBatch:
        return collate_pieces(examples, self.layout, self.vocabulary.num_generated)

    def score(self, network: PretrainedNetwork, name: str, examples: Sequence[Example]) -> Mapping[str, float]:
        return score_examples(network, self.vocabulary, self.layout, examples, self._recipe.max_answer_tokens)


def _compile(network: PretrainedNetwork) -> None:
    """Compile what is launched most often: small kernels keep a GPU waiting; a step takes four fifths of the time."""
    network.decoder.taught_step = torch.compile(network.decoder.taught_step, dynamic=True)  # type: ignore[method-assign]
    for layer in network.bert.layers:
        layer.compile(dynamic=True)


def _refuse_other_encoder(checkpoint: Checkpoint, encoder: Path) -> None:
    for kept, name in ((WORD_PIECES, WORD_PIECES), (ENCODER_CONFIG, "config.json")):
        if (checkpoint.folder / kept).read_bytes() != (encoder / name).read_bytes():
            raise ValueError(
                f"{encoder / name} is not that of the encoder that the run in {checkpoint.folder} began with; "
                "give its folder as `reader.encoder`"
            )
