"""Configuration of the model and of a training run: frozen dataclasses, read from YAML, unknown keys refused."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from mqan_data.settings import parse, read_settings

_LEAST = {  # values of a run that have one
    "steps": 1,
    "num_generated": 1,  # the end of the answer alone: all else is copied
    "batch_tokens": 1,
    "validate_every": 1,
    "validate_examples": 0,  # none: a run without scores
    "checkpoint_every": 1,
    "log_every": 1,
}


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Sizes and variants of MQAN; the defaults are the paper's unless said otherwise."""

    reader: Literal["mqan", "pretrained"] = "mqan"  # equations 15 to 27, or a BERT that was pretrained
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


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """One task of a recipe.

    A task is trained on in proportion to ``weight``; the order of tasks within a round is fixed, so a run is a plain
    weighted round robin.
    """

    name: str
    weight: int = 1  # batches a round


@dataclass(frozen=True, slots=True)
class PhaseConfig:
    """A stretch of training with its own task weights (a curriculum is a list of these)."""

    steps: int
    weights: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class OptimConfig:
    """The optimiser and its schedule (appendix B: Adam)."""

    peak_rate: float = 2.5e-3
    warmup_steps: int = 800
    schedule: Literal["inverse_sqrt", "linear", "constant"] = "inverse_sqrt"
    cooldown_steps: int = 0  # steps at the end over which `constant` falls to 0
    betas: tuple[float, float] = (0.9, 0.98)
    epsilon: float = 1e-9
    grad_clip: float = 1.0
    weight_decay: float = 0.0
    average_decay: float = 0.0  # exponential moving average of the weights; 0 switches it off

    def __post_init__(self) -> None:
        if not self.grad_clip > 0:  # infinite where nothing is to be clipped
            raise ValueError(f"grad_clip is {self.grad_clip}; it must be above 0")
        for name in ("peak_rate", "epsilon"):
            if not 0 < (value := getattr(self, name)) < math.inf:
                raise ValueError(f"{name} is {value}; it must be a finite number above 0")
        for name in ("warmup_steps", "cooldown_steps", "weight_decay"):
            if not 0 <= (value := getattr(self, name)) < math.inf:
                raise ValueError(f"{name} is {value}; it must be a finite number and at least 0")
        for name, value in (("betas", self.betas[0]), ("betas", self.betas[1]), ("average_decay", self.average_decay)):
            if not 0 <= value < 1:
                raise ValueError(f"{name} has {value}; it must be at least 0 and below 1")


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """A training run: what a recipe file holds."""

    name: str
    tasks: tuple[TaskConfig, ...]
    steps: int
    vectors: str  # file made by `mqan embed`, which also makes one of GloVe's text (--glove)
    model: ModelConfig = field(default_factory=ModelConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    phases: tuple[PhaseConfig, ...] = ()  # before the weights of `tasks` hold
    num_generated: int = 8_000  # v
    batch_tokens: int = 10_000  # context + question + 5 * answer tokens of a batch
    max_context_tokens: int = 400  # longer training contexts are dropped, or cut for tasks that say so
    max_answer_tokens: int = 50
    validate_every: int = 500
    validate_examples: int = 300  # a task
    checkpoint_every: int = 100
    log_every: int = 20
    autocast: Literal["none", "bfloat16"] = "none"
    seed: int = 123

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if (value := getattr(self, name)) < least:
                instead = " (more than steps: not before the last step)" if name.endswith("_every") else ""
                raise ValueError(f"{name} is {value}; it must be at least {least}{instead}")
        names = [task.name for task in self.tasks]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"tasks: {', '.join(twice)} named twice")


def load_config(path: Path, overrides: Mapping[str, str] | None = None) -> TrainConfig:
    """Read a recipe, with overrides as of ``read_settings``.

    Raises:
        ValueError: the file is not YAML, a key or a task is unknown, a value has the wrong type or is too small, or a
            key is missing.
    """
    return parse(TrainConfig, read_settings(path, overrides), str(path))


def to_document(config: TrainConfig) -> dict[str, Any]:
    """Return the configuration as plain JSON types; ``parse`` reads it back."""
    return asdict(config)
