"""The recipe of a pretrained reader: what a file such as ``recipes/default.yaml`` holds; unknown keys are refused."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from mqan_data.settings import read_settings, read_yaml, validated
from mqan_training.config import ModelConfig


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DecoderConfig(_Part):
    """Sizes of the decoder over a pretrained reader."""

    width: int = Field(256, ge=2)  # D
    num_layers: int = Field(1, ge=0)
    num_heads: int = Field(4, ge=1)
    head_width: int = Field(64, ge=1)
    ffn_width: int = Field(512, ge=1)
    dropout: float = Field(0.1, ge=0, lt=1)
    max_positions: int = Field(128, ge=2, le=4096)  # most steps

    def model_config_of(self) -> ModelConfig:
        """Return the same sizes as the model's code takes them."""
        return ModelConfig(reader="pretrained", attention_dropout=0.0, **self.model_dump())


class Recipe(_Part):
    """A training run on a mixture of sources.

    A source's share of the examples is proportional to its weight times its size to the power ``1 / temperature``.
    """

    name: str = Field(min_length=1, max_length=100)
    sources: Mapping[str, float]  # name -> weight
    temperature: float = Field(2.0, ge=1)
    noise_rate: float = Field(0.0, ge=0, le=1)  # share of examples that noise is added to
    steps: int = Field(ge=1)
    warmup_steps: int = Field(200, ge=1)
    cooldown_steps: int = Field(0, ge=0)  # last steps, over which the rates fall to 0; constant before
    reader_rate: float = Field(1e-4, gt=0)
    decoder_rate: float = Field(1e-3, gt=0)
    weight_decay: float = Field(0.01, ge=0)
    reader_dropout: float = Field(0.1, ge=0, lt=1)
    grad_clip: float = Field(1.0, gt=0)
    span_weight: float = Field(1.0, ge=0)  # of the loss of first and last word
    similarity_weight: float = Field(
        1.0, ge=0
    )  # of the loss of the vectors of texts and choices; 0 for a BERT that is no sentence encoder
    evidence_weight: float = Field(1.0, ge=0)  # of the loss of the words that decide
    average_decay: float = Field(0.998, ge=0, lt=1)
    start_share: float = Field(
        0.0, ge=0, lt=1
    )  # of the weights that `--from` gives in those of the last checkpoint (WiSE-FT, Wortsman et al. 2022)
    batch_pieces: int = Field(2500, ge=64)
    max_answer_tokens: int = Field(60, ge=1)
    num_generated: int = Field(6000, ge=2)  # V, end and refusal included
    validate_every: int = Field(1000, ge=1)
    validate_examples: int = Field(200, ge=0)  # a source
    validate_sources: tuple[str, ...] = ()
    checkpoint_every: int = Field(200, ge=1)
    log_every: int = Field(20, ge=1)
    autocast: bool = True  # products in bfloat16 where the processor has them
    seed: int = Field(1, ge=0)
    encoder: str = ""  # folder of a BERT; "" for the packaged sentence encoder
    decoder: DecoderConfig = DecoderConfig()

    @field_validator("sources")
    @classmethod
    def _weighed(cls, weights: Mapping[str, float]) -> Mapping[str, float]:
        for name, weight in weights.items():
            if not (math.isfinite(weight) and weight >= 0):
                raise ValueError(f"the weight of {name} is {weight}; it must be a number that is not negative")
        if not any(weights.values()):
            raise ValueError("there must be a source with a weight above 0")
        return weights


def load_recipe(path: Path, overrides: Mapping[str, str] | None = None) -> Recipe:
    """Read a recipe, with dotted overrides such as ``{"decoder.width": "128"}``.

    Raises:
        ValueError: the file is not YAML, or a key or value is wrong; the message names it.
    """
    return parse_recipe(read_settings(path, overrides), str(path))


def is_mixture(path: Path) -> bool:
    """Return whether a file holds a recipe of a pretrained reader, and not one of the paper's reader.

    Raises:
        ValueError: it is not YAML.
    """
    document = read_yaml(path)
    return isinstance(document, dict) and "sources" in document


def parse_recipe(document: Any, where: str) -> Recipe:
    """Build a recipe from plain types.

    Raises:
        ValueError: a key or value is wrong; the message names it.
    """
    return validated(Recipe.model_validate, document, where, "recipe")
