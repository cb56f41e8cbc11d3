"""An adapter: a small model, made from a few labelled rows, on what a bundle already computes for a request.

Of a text it reads the vector that the reader gives it, and the model's own log probabilities of the labels. It adds a
number to each of these, which are its prior; nothing else of the answer changes. Its features are centred over the
rows, so that it leaves the shares of the labels as the model has them, but where the rows say how common each label is.

It is a file of safetensors: its tensors, and a document of what it answers. No text of a row is in it.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field, TypeAdapter
from safetensors import SafetensorError
from safetensors.numpy import load, save

from mqan_core.answer.types import AdapterVersion
from mqan_core.errors import MqanError
from mqan_core.example import Choice

ENDING: Final = ".safetensors"
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
MAX_BYTES: Final = 8 * 1024 * 1024
_FORMAT: Final = 1
_FIELD: Final = "adapter"  # of the file's metadata
_OF_LOGS: Final = 0.3  # how much the labels' probabilities count beside the vector, whose length is 1
_LEAST: Final = 1e-9  # probabilities are held above it

Floats = npt.NDArray[np.floating[Any]]
_Text = Annotated[str, Field(max_length=10_000)]


class AdapterError(MqanError):
    """An adapter cannot be used; the message says why, and what makes one that can."""


@dataclass(frozen=True, slots=True)
class AdapterHead:
    """What an adapter answers, and of which model and how many rows it was made."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    question: _Text
    choices: Annotated[tuple[Choice, ...], Field(min_length=2, max_length=255)]
    bundle: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    rows: Annotated[int, Field(ge=1)]
    multiple: bool = False
    is_scale: bool = False
    none: bool = False  # rows without a label were among them
    weight: Annotated[float, Field(ge=0, le=100)] = 1.0  # of the model's own log probabilities
    sharpness: Annotated[float, Field(gt=0, le=100)] = 1.0  # of the probabilities in the end: their calibration
    shares: bool = False  # the rows say how common each label is
    format: Annotated[int, Field(ge=_FORMAT, le=_FORMAT)] = _FORMAT


@dataclass(frozen=True, slots=True, eq=False)
class Adapter:
    """An adapter that is ready to be asked with.

    Its outcomes are the labels in the order in which they are read, and no label, where rows without one were given.
    """

    version: AdapterVersion
    head: AdapterHead
    center_F: Floats  # the mean features of the rows
    weights_FK: Floats  # what each feature adds to each outcome

    def masses(self, prior: Sequence[float], vector: Floats) -> tuple[list[float], float]:
        """Return the masses of labels and of the refusal, of which the model has said ``prior``, the refusal last.

        Of several labels the prior of each is a probability by itself, without a refusal.
        """
        own = logs_of(np.array([prior]), self.head.multiple)
        logits = adapted_logits(self.head, self.center_F, self.weights_FK, own, vector[None])
        found = probabilities(self.head.sharpness * logits, self.head.multiple)[0].tolist()
        if not self.head.multiple:
            return found[:-1], found[-1]
        odds = [one / max(1 - one, _LEAST) for one in found]
        total = 1 + sum(odds)
        return [one / total for one in odds], 1 / total


def logs_of(prior: Floats, multiple: bool) -> Floats:
    """Return what the model has said, [rows, outcomes], as logits."""
    held: Floats = np.clip(prior.astype(np.float64), _LEAST, 1 - _LEAST if multiple else 1.0)
    logs: Floats = np.log(held)
    return logs - np.log1p(-held) if multiple else logs


def features_of(own: Floats, vectors: Floats, head: AdapterHead) -> Floats:
    """Return the features of rows before they are centred, [rows, F]: the vector, the labels, and room for a one."""
    labels = own[:, : len(head.choices)]
    if not head.multiple:
        labels = labels - np.log(np.exp(labels).sum(axis=1, keepdims=True))
    scale = _OF_LOGS / np.sqrt(labels.shape[1])
    return np.hstack([vectors.astype(np.float64), scale * labels, np.zeros((len(labels), 1))])


def adapted_logits(head: AdapterHead, center_F: Floats, weights_FK: Floats, own: Floats, vectors: Floats) -> Floats:
    """Return the logits of rows, [rows, outcomes], before they are sharpened."""
    features = features_of(own, vectors, head) - center_F
    features[:, -1] = 1.0
    added = features @ weights_FK
    logits = head.weight * own
    logits[:, : added.shape[1]] += added
    return logits


def probabilities(logits: Floats, multiple: bool) -> Floats:
    """Return the probabilities of outcomes of which one is right, or of each by itself, [rows, outcomes]."""
    if multiple:
        each: Floats = 1 / (1 + np.exp(-np.clip(logits, -50, 50)))
        return each
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares


def adapter_file(head: AdapterHead, center_F: Floats, weights_FK: Floats) -> bytes:
    tensors = {"center": center_F.astype(np.float32), "weights": weights_FK.astype(np.float32)}
    return save(tensors, {_FIELD: json.dumps(asdict(head), ensure_ascii=False)})


def write_adapter(path: Path, head: AdapterHead, center_F: Floats, weights_FK: Floats) -> None:
    """Write an adapter, whole or not at all."""
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(adapter_file(head, center_F, weights_FK))
    temporary.replace(path)


def read_adapter(path: Path, bundle: str, width: int) -> Adapter:
    """Read an adapter of a bundle, named by its hash, whose vectors have a width.

    AdapterError: it is damaged, or of another bundle; OSError: the file cannot be read.
    """
    content = path.read_bytes()
    version = AdapterVersion(path.stem, hashlib.sha256(content).hexdigest())
    try:
        if len(content) > MAX_BYTES:
            raise ValueError(f"it has {len(content)} bytes, at most {MAX_BYTES} are allowed")
        tensors = load(content)
        center_F, weights_FK = tensors["center"], tensors["weights"]
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        head = TypeAdapter(AdapterHead).validate_json(header["__metadata__"][_FIELD])
    except (SafetensorError, KeyError, ValueError) as error:
        raise AdapterError(f"{path} is no adapter: {str(error).splitlines()[0]}") from None
    if head.bundle != bundle:
        labels = "--label COLUMN --scale LEVELS" if head.is_scale else "--label COLUMN"
        again = f"mqan adapt ROWS --text COLUMN {labels} --name {path.stem} -o {path.parent}"
        raise AdapterError(f"The adapter {path.stem} is of another model. Make it anew: {again}")
    shape = (width + len(head.choices) + 1, len(head.choices) + head.none)
    is_finite = np.isfinite(weights_FK).all() and np.isfinite(center_F).all()
    if weights_FK.shape != shape or center_F.shape != shape[:1] or not is_finite:
        raise AdapterError(f"{path} is no adapter: its tensors have not the shapes that its document states")
    return Adapter(version, head, center_F, weights_FK)
