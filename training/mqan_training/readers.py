"""The two models in a run: their networks, batches, losses and scores."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import torch

from mqan_core.ask.request import read_request
from mqan_core.example import Example
from mqan_core.text.layout import Layout
from mqan_core.text.vocab import NUM_SPECIAL, Vocabulary
from mqan_data.metrics import score
from mqan_training.batch import common_shape, sorted_batches
from mqan_training.checkpoint import ENCODER_CONFIG, VECTORS, Checkpoint
from mqan_training.losses import Losses, piece_losses, word_losses
from mqan_training.model.bert import WORD_PIECES, Bert, encoder_folder, read_word_pieces
from mqan_training.model.embeddings import load_vectors
from mqan_training.model.network import Network
from mqan_training.model.pretrained import PretrainedNetwork
from mqan_training.piece_batches import PieceBatch, collate_pieces
from mqan_training.piece_examples import PieceExample, prepare_pieces
from mqan_training.recipe import Recipe
from mqan_training.runlog import console
from mqan_training.start import Start, Trained
from mqan_training.tasks import metric_of
from mqan_training.torch_answers import score_examples
from mqan_training.words import WordBatch, WordCollator, WordExample, prepare_words


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
        self.frozen = {ENCODER_CONFIG: self._encoder / "config.json", WORD_PIECES: self._encoder / WORD_PIECES}
        others = ("span", "similarity", "evidence", "consistency")
        self.loss_weights = {"answer": 1.0, **{name: getattr(recipe.pieces, f"{name}_weight") for name in others}}
        for kept, given in self.frozen.items():
            if checkpoint is not None and (checkpoint.folder / kept).read_bytes() != given.read_bytes():
                raise ValueError(
                    f"{given} is not that of the encoder that the run in {checkpoint.folder} began with; "
                    "give its folder as `reader.encoder`"
                )

    def build(self, tokens: Sequence[str]) -> PretrainedNetwork:
        config = self._recipe.pieces
        self.vocabulary = Vocabulary(tokens, refuses=True)
        bert = Bert.from_folder(self._encoder, config.dropout)
        return PretrainedNetwork(config.decoder.model_config_of(), bert, self.vocabulary.num_generated)

    def losses_on(self, network: PretrainedNetwork, device: torch.device) -> Callable[..., Losses]:
        """Return what computes losses of the network on a device; its parts are compiled if that is a GPU."""
        teacher = Bert.from_folder(self._encoder).to(device).eval() if self._recipe.pieces.similarity_weight else None
        if device.type == "cuda" and shutil.which(os.environ.get("CC", "gcc")):
            # what is launched most often: small kernels keep a GPU waiting; a step takes four fifths of the time
            network.decoder.taught_step = torch.compile(network.decoder.taught_step, dynamic=True)  # type: ignore[method-assign]
            for layer in network.bert.layers:
                layer.compile(dynamic=True)
        return partial(piece_losses, teacher=teacher)

    def prepare(self, example: Example, rng: np.random.Generator) -> PieceExample | None:
        return prepare_pieces(example, self.vocabulary, self.layout, self._recipe.max_answer_tokens, rng)

    def collate(self, examples: Sequence[PieceExample]) -> PieceBatch:
        return collate_pieces(examples, self.layout, self.vocabulary.num_generated)

    def score(self, network: PretrainedNetwork, name: str, examples: Sequence[Example]) -> Mapping[str, float]:
        trained = Trained(network, self.vocabulary, self.layout)
        return score_examples(trained, examples, self._recipe.max_answer_tokens)


_BATCH = 32
_SAMPLES_SHOWN = 3
_MAY_DIFFER: Final = frozenset({"dropout", "attention_dropout"})  # not in any weight


class WordReader:
    """Frozen word vectors, and the paper's encoder and decoder over them."""

    batch = WordBatch
    unit = "tokens"
    num_special: Final = 1  # the end of the answer
    of_reader = ("embedder.", "mqan.encoder.")
    has_unused_weights = False

    def __init__(self, recipe: Recipe, checkpoint: Checkpoint | None, start: Start | None) -> None:
        config = recipe.words
        num_steps = common_shape(recipe.max_answer_tokens + 1, least=1, bits=3)
        if num_steps > config.model.max_positions:
            raise ValueError(
                f"max_answer_tokens {recipe.max_answer_tokens} takes {num_steps} steps of the decoder, "
                f"reader.model.max_positions is {config.model.max_positions}: lower the one or raise the other"
            )
        self._recipe = recipe
        self._path = Path(config.vectors)
        if checkpoint is not None:
            self._path = checkpoint.vectors_path
        elif start is not None:
            self._path = _vectors_of(start, recipe)
        self.frozen, self._vectors = {VECTORS: self._path}, load_vectors(self._path)
        self.question_pointer, self.loss_weights = config.model.question_pointer, {"answer": 1.0}
        self._collator = WordCollator(Vocabulary(()), 1)

    def build(self, tokens: Sequence[str]) -> Network:
        config, vocabulary = self._recipe.words.model, Vocabulary(tokens, self._vectors.words)
        self._collator = WordCollator(vocabulary, config.ngram_buckets)
        return Network(config, self._vectors, vocabulary)

    def losses_on(self, network: Network, device: torch.device) -> Callable[..., Losses]:
        return word_losses

    def prepare(self, example: Example, rng: np.random.Generator) -> WordExample | None:
        return prepare_words(example, self._recipe.words.max_context_tokens, self._recipe.max_answer_tokens)

    def collate(self, examples: Sequence[WordExample]) -> WordBatch:
        return self._collator.collate(examples)

    def score(self, network: Network, name: str, examples: Sequence[Example]) -> Mapping[str, float]:
        """Score examples of a source with free answers by its own metric, and show the first answers."""
        examples = [example for example in examples if example.answers and not example.choices]
        if not examples:
            return {metric_of(name): 0.0}
        requests = [read_request(network.vocabulary, example.context, example.question) for example in examples]
        answers: dict[int, str] = {}
        for chosen in sorted_batches([request.num_context_tokens for request in requests], _BATCH):
            batch = network.greedy_answers([requests[i] for i in chosen], self._recipe.max_answer_tokens)
            answers.update(zip(chosen, (answer.text for answer in batch), strict=True))
        for i, example in enumerate(examples[:_SAMPLES_SHOWN]):
            console.print(f"    {example.question[:80]!r} -> {answers[i]!r}, gold {example.answers[:1]}", markup=False)
        return score(metric_of(name), [answers[i] for i in range(len(examples))], examples)


def _vectors_of(start: Start, recipe: Recipe) -> Path:
    if start.words is None or start.vectors is None:
        raise ValueError(f"{start.origin} has a pretrained reader; this recipe is of the paper's network")
    given, expected = asdict(start.words.model), asdict(recipe.words.model)
    differing = [key for key in expected if key not in _MAY_DIFFER and given[key] != expected[key]]
    if differing:
        pairs = ", ".join(f"{key} is {given[key]}, the recipe says {expected[key]}" for key in differing)
        raise ValueError(f"{start.origin} is another model: {pairs}")
    return start.vectors
