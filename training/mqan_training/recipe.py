"""The recipe of a training run: what a file such as ``recipes/default.yaml`` holds; unknown keys are refused."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from mqan_data.settings import read_settings, validated


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Sizes and variants of MQAN; the defaults are the paper's unless said otherwise."""

    width: int = 200  # d
    ffn_width: int = 150  # f
    num_heads: int = 3  # p
    num_layers: int = 2  # self-attentive layers of the encoder and of the decoder; 0 for S2S of table 2
    head_width: int = 64  # width of a head; the paper's text says d, its published code d / p
    dropout: float = 0.2
    attention_dropout: float = 0.2  # of the attention weights; costs much time on a CPU
    ngram_buckets: int = 10_000  # rows of the trained character n-gram table
    ngram_width: int = 50
    norm: Literal["pre", "post"] = "pre"  # layer normalisation before each block (ours) or after it (the paper)
    input_residual: bool = True  # ours: add C_proj and Q_proj to the final encodings
    coattention: bool = True  # of two sequences; without it context and question are one (S2S and +SAtt of table 2)
    question_pointer: bool = True  # the third source; without it +CAtt of table 2
    coattention_residual: bool = True  # ours: coattention reads C_ind + C_proj and Q_ind + Q_proj
    decoder_start: Literal["zeros", "context"] = "context"  # state of the LSTM: zeros, or the normed mean of C_fin
    max_positions: int = 128  # most steps of the decoder

    __pydantic_config__ = ConfigDict(extra="forbid")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DecoderConfig(_Part):
    width: int = Field(256, ge=2)  # D
    num_layers: int = Field(1, ge=0)
    num_heads: int = Field(4, ge=1)
    head_width: int = Field(64, ge=1)
    ffn_width: int = Field(512, ge=1)
    dropout: float = Field(0.1, ge=0, lt=1)
    max_positions: int = Field(128, ge=2, le=4096)  # most steps

    def model_config_of(self) -> ModelConfig:
        return ModelConfig(attention_dropout=0.0, **self.model_dump())


class PiecesConfig(_Part):
    """A pretrained BERT that reads word pieces, and the decoder over it."""

    kind: Literal["pieces"] = "pieces"
    encoder: str = ""  # folder of a BERT; "" for the packaged sentence encoder
    dropout: float = Field(0.1, ge=0, lt=1)
    decoder: DecoderConfig = DecoderConfig()
    span_weight: float = Field(1.0, ge=0)  # of the loss of first and last word
    similarity_weight: float = Field(1.0, ge=0)  # of the vectors' loss; 0 for a BERT that is no sentence encoder
    evidence_weight: float = Field(1.0, ge=0)  # of the loss of the words that decide
    consistency_weight: float = Field(0.5, ge=0)  # of the loss of questions that are asked in two ways


class WordsConfig(_Part):
    kind: Literal["words"]
    vectors: str  # file made by `mqan embed`, which also makes one of GloVe's text (--glove)
    max_context_tokens: int = Field(400, ge=1)  # longer contexts are dropped, or cut for tasks that say so
    model: ModelConfig = ModelConfig()


class Phase(_Part):
    """A stretch of training with its own weights of the sources (a curriculum is a list of these)."""

    steps: int = Field(ge=1)
    weights: Mapping[str, float]


def _kind_of(reader: Any) -> Any:
    return reader.get("kind", "pieces") if isinstance(reader, Mapping) else getattr(reader, "kind", None)


class Recipe(_Part):
    """A training run on several sources.

    With the order ``mixed`` a batch holds examples of all sources; the share of each is proportional to its weight
    times its size to the power ``1 / temperature``. With ``by_task`` a batch holds examples of one source, and the
    sources take turns: the weight says how many batches one has in a round.
    """

    name: str = Field(min_length=1, max_length=100)
    reader: Annotated[
        Annotated[PiecesConfig, Tag("pieces")] | Annotated[WordsConfig, Tag("words")], Discriminator(_kind_of)
    ] = PiecesConfig()
    sources: Mapping[str, float]  # name -> weight
    order: Literal["mixed", "by_task"] = "mixed"
    temperature: float = Field(2.0, ge=1)
    phases: tuple[Phase, ...] = ()  # before the weights of `sources` hold
    noise_rate: float = Field(0.0, ge=0, le=1)  # share of examples that noise is added to
    steps: int = Field(ge=1)
    schedule: Literal["constant", "linear", "inverse_sqrt"] = "constant"  # of the rates after the warm-up
    warmup_steps: int = Field(200, ge=1)
    cooldown_steps: int = Field(0, ge=0)  # last steps, over which a constant rate falls to 0
    reader_rate: float = Field(1e-4, gt=0, allow_inf_nan=False)
    decoder_rate: float = Field(1e-3, gt=0, allow_inf_nan=False)
    epsilon: float = Field(1e-8, gt=0, allow_inf_nan=False)  # of Adam
    weight_decay: float = Field(0.01, ge=0, allow_inf_nan=False)
    grad_clip: float = Field(1.0, gt=0)
    average_decay: float = Field(0.998, ge=0, lt=1)  # of the moving average of the weights; 0 for none
    # of the weights that `--from` gives, in those of the last checkpoint (WiSE-FT, Wortsman et al. 2022)
    start_share: float = Field(0.0, ge=0, lt=1)
    pool_size: int = Field(16_384, ge=1)  # examples that are drawn together, and cut into batches by length
    batch_size: int = Field(2500, ge=1)  # pieces or tokens of a batch; each step of an answer counts as five
    max_answer_tokens: int = Field(60, ge=1)
    num_generated: int = Field(6000, ge=2)  # V, end and refusal included
    validate_every: int = Field(1000, ge=1)
    validate_examples: int = Field(200, ge=0)  # a source
    validate_sources: tuple[str, ...] = ()
    checkpoint_every: int = Field(200, ge=1)
    log_every: int = Field(20, ge=1)
    autocast: bool = True  # products in bfloat16 where the processor has them
    seed: int = Field(1, ge=0)

    @field_validator("sources")
    @classmethod
    def _weighed(cls, weights: Mapping[str, float]) -> Mapping[str, float]:
        for name, weight in weights.items():
            if not (math.isfinite(weight) and weight >= 0):
                raise ValueError(f"the weight of {name} is {weight}; it must be a number that is not negative")
        if not any(weights.values()):
            raise ValueError("there must be a source with a weight above 0")
        return weights

    @model_validator(mode="after")
    def _fitting(self) -> "Recipe":
        for phase in self.phases:
            self._weighed(phase.weights)
            if unknown := [name for name in phase.weights if name not in self.sources]:
                raise ValueError(f"phases: {', '.join(unknown)} not among the sources")
        weights = [self.sources, *(phase.weights for phase in self.phases)]
        if self.order == "by_task" and any(w != int(w) for some in weights for w in some.values()):
            raise ValueError("with the order by_task a weight is a number of batches")
        if (total := sum(phase.steps for phase in self.phases)) > self.steps:
            raise ValueError(f"phases: take {total} steps, the run has {self.steps}")
        return self

    def phase_after(self, step: int) -> int:
        """Return the number of the phase, from 1, that the step after so many belongs to; 0 after all of them."""
        end = 0
        for number, phase in enumerate(self.phases, 1):
            end += phase.steps
            if step < end:
                return number
        return 0

    def weights_of(self, phase: int) -> Mapping[str, float]:
        return self.phases[phase - 1].weights if phase else self.sources

    @property
    def pieces(self) -> PiecesConfig:
        if not isinstance(self.reader, PiecesConfig):
            raise ValueError(f"{self.name} has the paper's reader; this needs one of word pieces")
        return self.reader

    @property
    def words(self) -> WordsConfig:
        if not isinstance(self.reader, WordsConfig):
            raise ValueError(f"{self.name} has a pretrained reader; this needs the paper's, of words")
        return self.reader


def load_recipe(path: Path, overrides: Mapping[str, str] | None = None) -> Recipe:
    """Read a recipe, with dotted overrides such as ``{"reader.decoder.width": "128"}``."""
    return parse_recipe(read_settings(path, overrides), str(path))


def parse_recipe(document: Any, where: str) -> Recipe:
    return validated(Recipe.model_validate, document, where, "recipe", tags=("pieces", "words"))
