"""The served model, its limits, the server's health and its errors, as callers are told."""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field

from mqan_core import __version__
from mqan_core.manifest import Manifest


class Document(BaseModel, extra="forbid", frozen=True):
    """A JSON document of the server's: its form, for the API's description."""


def described(description: str, *examples: Any, **given: Any) -> Any:
    """Return a field that the API's description describes, with examples."""
    return Field(description=description, examples=list(examples) or None, **given)


class ModelVersionDocument(Document):
    """Identity of a model."""

    name: str = Field(examples=["mqan-default"])
    version: str = Field(examples=["2.0.0-rc5"])


class LimitsDocument(Document):
    """Limits that hold for requests; more is refused, never cut."""

    max_request_bytes: int = described("Bytes of a request.", 1048576)
    max_context_tokens: int = described("Tokens of a context.", 4000)
    max_question_tokens: int = described("Tokens of a question.", 256)
    max_answer_tokens: int = described("Tokens of an answer.", 100)
    max_word_length: int = described("Characters of one token.", 1000)
    max_metadata_bytes: int = described(
        "Bytes of HTTP headers: names and values, and 32 for each pair, as HTTP/2 counts them.", 8192
    )
    max_timeout_ms: int = described("Milliseconds that a request may take; longer deadlines are cut to it.", 30000)
    max_concurrent_requests: int = described("Requests inside one replica, those that wait included.", 260)
    max_queued_requests: int = described("Those of them that wait.", 256)


class ScoreDocument(Document):
    """A validation score of the model, as measured."""

    task: str = Field(examples=["squad"])
    metric: str = Field(examples=["nf1"])
    value: float = Field(examples=[68.8])


@dataclass(frozen=True, slots=True)
class Model:
    """The served model, and the limits of requests."""

    name: str
    version: str
    sha256: str
    provider: str
    limits: LimitsDocument
    num_generated: int
    num_words: int
    scores: tuple[ScoreDocument, ...]


class AdapterVersionDocument(Document):
    """Identity of an adapter."""

    name: str = Field(examples=["support-teams"])
    sha256: str = described("SHA-256 of its file.", "5f0c" * 16)


class AdapterDocument(AdapterVersionDocument):
    """An adapter that may be named as the choices of a question."""

    question: str = described("What it answers.", "Which team?")
    labels: list[str] = described("What it decides between.", ["billing", "shipping"])
    multiple: bool = described("Whether several labels can be right.")
    scale: bool = described("Whether the labels are levels, low to high.")
    rows: int = described("Rows that it was made of.", 160)


class ModelDocument(Document):
    """The served model and its limits."""

    model: ModelVersionDocument
    sha256: str = described("SHA-256 of the bundle's manifest, which covers every file of the model.", "5f0c" * 16)
    provider: str = described("Execution provider that runs the model.", "CPUExecutionProvider")
    limits: LimitsDocument
    num_generated: int = described("Pieces that the model can generate.", 9000)
    num_words: int = described("Words that have a pretrained vector; others are read by their characters.", 48734)
    scores: list[ScoreDocument]
    adapters: list[AdapterDocument] = described("Adapters that can be used now.")
    server_version: str = described("Version of the server's software; the model's own is in `model`.", __version__)


class HealthDocument(Document):
    """Health of the server."""

    status: Literal["live", "ready"]


class ItemErrorDocument(Document):
    """Why a question of a call was not answered."""

    code: str = described("Stable, machine-readable.", "empty_question")
    message: str = described("What is wrong, and where.", "The question is empty.")
    hint: str = described("How to fix it.", "Send a question in natural language.")


class ErrorDocument(ItemErrorDocument):
    """Why a request was not answered."""

    request_id: str = described("Names this request in the server's log.", "5f0c1d2e3a4b5c6d")


Named = Model | Manifest  # a model, as answers name it


def version_of(model: Named) -> dict[str, str]:
    return {"name": model.name, "version": model.version}


def model_document(model: Model, adapters: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "model": version_of(model),
        "sha256": model.sha256,
        "provider": model.provider,
        "limits": model.limits.model_dump(),
        "num_generated": model.num_generated,
        "num_words": model.num_words,
        "scores": [score.model_dump() for score in model.scores],
        "adapters": adapters,
        "server_version": __version__,
    }
