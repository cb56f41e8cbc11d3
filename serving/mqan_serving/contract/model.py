"""The served model, its limits, the server's health and its errors, as callers are told."""

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from mqan_core import __version__


class Document(BaseModel):
    """A JSON document of the server's: its form, for the API's description."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Named(Protocol):
    """A model, as answers name it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def version(self) -> str:
        """Its version."""


class ModelVersionDocument(Document):
    """Identity of a model."""

    name: str = Field(examples=["mqan-default"])
    version: str = Field(examples=["2.0.0-rc5"])


class LimitsDocument(Document):
    """Limits that hold for requests; more is refused, never cut."""

    max_request_bytes: int = Field(description="Bytes of a request.", examples=[1048576])
    max_context_tokens: int = Field(description="Tokens of a context.", examples=[4000])
    max_question_tokens: int = Field(description="Tokens of a question.", examples=[256])
    max_answer_tokens: int = Field(description="Tokens of an answer.", examples=[100])
    max_word_length: int = Field(description="Characters of one token.", examples=[1000])
    max_metadata_bytes: int = Field(
        description="Bytes of HTTP headers: names and values, and 32 for each pair, as HTTP/2 counts them.",
        examples=[8192],
    )
    max_timeout_ms: int = Field(
        description="Milliseconds that a request may take; longer deadlines are cut to it.", examples=[30000]
    )
    max_concurrent_requests: int = Field(
        description="Requests inside one replica, those that wait included.", examples=[260]
    )
    max_queued_requests: int = Field(description="Those of them that wait.", examples=[256])


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


class AcceptedQuestionDocument(Document):
    """A question that a model of fixed tasks takes."""  # part of the contract; no such model is served

    task: str = Field(description="Its task.", examples=["rte"])
    question: str = Field(
        description="Its words; in the places of {first} and {second} stand texts of the caller.",
        examples=["Does the hypothesis follow from the premise?"],
    )
    context: str = Field(
        description="The form of its context, likewise.", examples=["Premise: {first}\nHypothesis: {second}"]
    )
    labels: list[str] = Field(description="Its classes.", examples=[["entailment", "not entailment"]])


class AdapterVersionDocument(Document):
    """Identity of an adapter."""

    name: str = Field(examples=["support-teams"])
    sha256: str = Field(description="SHA-256 of its file.", examples=["5f0c" * 16])


class AdapterDocument(AdapterVersionDocument):
    """An adapter that may be named as the choices of a question."""

    question: str = Field(description="What it answers.", examples=["Which team?"])
    labels: list[str] = Field(description="What it decides between.", examples=[["billing", "shipping"]])
    multiple: bool = Field(description="Whether several labels can be right.")
    scale: bool = Field(description="Whether the labels are levels, low to high.")
    rows: int = Field(description="Rows that it was made of.", examples=[160])


class ModelDocument(Document):
    """The served model and its limits."""

    model: ModelVersionDocument
    sha256: str = Field(
        description="SHA-256 of the bundle's manifest, which covers every file of the model.", examples=["5f0c" * 16]
    )
    provider: str = Field(description="Execution provider that runs the model.", examples=["CPUExecutionProvider"])
    limits: LimitsDocument
    num_generated: int = Field(description="Pieces that the model can generate.", examples=[9000])
    num_words: int = Field(
        description="Words that have a pretrained vector; others are read by their characters.", examples=[48734]
    )
    scores: list[ScoreDocument]
    questions: list[AcceptedQuestionDocument] = Field(
        description="The questions that a model of fixed tasks takes; empty of a model that takes any question."
    )
    adapters: list[AdapterDocument] = Field(description="Adapters that can be used now.")
    server_version: str = Field(
        description="Version of the server's software; the model's own is in `model`.", examples=[__version__]
    )


class HealthDocument(Document):
    """Health of the server."""

    status: Literal["live", "ready"]


class ItemErrorDocument(Document):
    """Why a question of a call was not answered."""

    code: str = Field(description="Stable, machine-readable.", examples=["empty_question"])
    message: str = Field(description="What is wrong, and where.", examples=["The question is empty."])
    hint: str = Field(description="How to fix it.", examples=["Send a question in natural language."])


class ErrorDocument(ItemErrorDocument):
    """Why a request was not answered."""

    request_id: str = Field(description="Names this request in the server's log.", examples=["5f0c1d2e3a4b5c6d"])


def version_of(model: Named) -> dict[str, str]:
    """Return the document of a model's identity."""
    return {"name": model.name, "version": model.version}


def model_document(model: Model, adapters: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the document of ``ModelDocument``."""
    return {
        "model": version_of(model),
        "sha256": model.sha256,
        "provider": model.provider,
        "limits": model.limits.model_dump(),
        "num_generated": model.num_generated,
        "num_words": model.num_words,
        "scores": [score.model_dump() for score in model.scores],
        "questions": [],
        "adapters": adapters,
        "server_version": __version__,
    }
