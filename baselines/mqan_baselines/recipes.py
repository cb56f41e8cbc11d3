"""Recipes of the baselines: YAML files, one a system and set of tasks; unknown keys are refused."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    TypeAdapter,
    field_validator,
)

from mqan_baselines.tasks import baseline_task
from mqan_data.settings import read_settings, validated

Architecture = Literal["lstm", "me-lstm", "arc-i", "arc-ii"]


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Recipe(Settings):
    name: str
    tasks: tuple[str, ...] = Field(min_length=1)
    most_rows: NonNegativeInt = 0  # of each split of each task, drawn by the seed; 0: all
    seed: int = 1

    @field_validator("tasks")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            baseline_task(name)
        if len(set(names)) != len(names):
            raise ValueError("a task is named twice")
        return names


def _of_form(form: str, names: tuple[str, ...], why: str) -> tuple[str, ...]:
    if wrong := [name for name in names if baseline_task(name).form != form]:
        raise ValueError(f"{', '.join(wrong)}: {why}")
    return names


class SharedMemoryRecipe(_Recipe):
    """Shared-memory LSTMs; the defaults are those of the paper's table 2 for movie reviews and of section 5.3."""

    kind: Literal["shared-memory"]
    architecture: Architecture = "arc-ii"
    vectors: str = ""  # file made by `mqan_baselines embed`; "": word vectors are trained from scratch
    embedding_width: PositiveInt = 100  # D
    hidden_width: PositiveInt = 100  # H
    segments: PositiveInt = 50  # K
    segment_width: PositiveInt = 20  # M
    rate: PositiveFloat = 0.01
    l2: NonNegativeFloat = 0.0  # of all but word vectors
    batch: PositiveInt = 16
    steps: PositiveInt  # of joint training, all tasks together; a task that is trained alone gets its share
    fine_tune_steps: NonNegativeInt = 0  # of each task alone, after joint training
    tune_every: PositiveInt = 500  # steps between two looks at the tuning split
    most_words: PositiveInt = 400  # of a text; what is longer is cut
    least_count: PositiveInt = 2  # how often a word stands in training texts to get a vector of its own

    @field_validator("tasks")
    @classmethod
    def _classes(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return _of_form("sentence", names, "shared-memory LSTMs classify single texts")


class Adaptation(Settings):
    """Domain adaptation (MT-DNN, section 4.5): new tasks, learnt from so many of their training rows."""

    tasks: tuple[str, ...] = Field(min_length=1)
    shares: tuple[Annotated[float, Field(gt=0, le=1)], ...] = (0.001, 0.01, 0.1, 1.0)  # of the rows at hand
    epochs: PositiveInt = 5
    least_steps: PositiveInt = 50  # a share of a few rows is seen as often as this takes

    @field_validator("tasks")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return _of_form("pair", names, "domains are adapted to on pairs of texts")


class MtDnnRecipe(_Recipe):
    """MT-DNN; the defaults are those of the paper's section 4.2 unless said otherwise."""

    kind: Literal["mt-dnn"]
    encoder: str = ""  # folder of a BERT with config.json, vocab.txt and model.safetensors; "": the packaged one
    joint: bool = True  # multi-task training first; without it each task is trained alone (ST-DNN)
    pair_head: Literal["san", "linear"] = "san"
    san_steps: PositiveInt = 5  # K
    prediction_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1  # of the encoder and of what the output layers read
    rate: PositiveFloat = 5e-5
    warmup: Annotated[float, Field(ge=0, le=1)] = 0.1  # share of the steps
    clip: PositiveFloat = 1.0
    batch: PositiveInt = 32  # rows; of a ranking, questions
    candidates: Annotated[int, Field(ge=2)] = 2  # |A| in training, the right one included; all in evaluation
    epochs: PositiveInt = 5
    fine_tune_epochs: NonNegativeInt = 0  # of each task alone, after joint training
    most_pieces: Annotated[int, Field(ge=8, le=512)] = 512  # of a sequence; what is longer is cut
    adaptation: Adaptation | None = None


RecipeT = TypeVar("RecipeT", SharedMemoryRecipe, MtDnnRecipe)
Recipe = Annotated[SharedMemoryRecipe | MtDnnRecipe, Field(discriminator="kind")]
_ADAPTER: TypeAdapter[SharedMemoryRecipe | MtDnnRecipe] = TypeAdapter(Recipe)


def load_recipe(path: Path, overrides: Mapping[str, str] | None = None) -> SharedMemoryRecipe | MtDnnRecipe:
    """Read a recipe, with overrides such as ``{"steps": "100"}``, whose values are YAML."""
    return parse_recipe(read_settings(path, overrides), str(path))


def parse_recipe(document: Mapping[str, Any], where: str) -> SharedMemoryRecipe | MtDnnRecipe:
    return validated(_ADAPTER.validate_python, document, where, "kind", ("shared-memory", "mt-dnn"))
