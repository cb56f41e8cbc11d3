"""The manifests of bundles, and the one check of them: opening, ``mqan verify`` and writing all go through here.

Whoever made a bundle may mean ill. What a manifest holds reaches logs, metrics, responses and allocations: so names are
printable and short, numbers finite and bounded, and nothing is there that is not known.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from mqan_core.errors import BundleError

FORMAT_VERSION: Final = 7  # of the paper's network
ANSWERING_FORMAT: Final = 6  # of a model with a pretrained reader; see ``answering.py``
MANIFEST: Final = "manifest.json"
ENCODER: Final = "encoder.onnx"
DECODER_STEP: Final = "decoder_step.onnx"
VOCABULARY: Final = "vocab.json"
VECTORS: Final = "vectors.safetensors"
MODEL_CARD: Final = "README.md"
FILES: Final = (ENCODER, DECODER_STEP, VOCABULARY, VECTORS, MODEL_CARD)  # of a bundle of the paper's network
_KNOWN_FORMATS: Final = (ANSWERING_FORMAT, FORMAT_VERSION)

MAX_FILE_BYTES: Final = 512 * 1024 * 1024
MAX_MANIFEST_BYTES: Final = 1024 * 1024
_MAX_NAME, _MAX_LABEL, _MAX_TEXT = 100, 200, 1000  # characters of a name, of a task's, of a text
MAX_ENTRIES = 10_000  # of a mapping or list
_MAX_DEPTH = 8  # of what is free-form
_MAX_NUMBER = 1e15  # of what is free-form
_MAX_SHOWN = 200  # characters of what is wrong

STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("holds characters that cannot be printed")
    return text


def free_form(value: Any, depth: int = 0) -> Any:
    """Return a value of plain types if it is printable, bounded and not nested deeply.

    Raises:
        ValueError: it is not.
    """
    match value:
        case None | bool():
            pass
        case int() | float() if not -_MAX_NUMBER <= value <= _MAX_NUMBER:
            raise ValueError(f"numbers must be finite, and at most {_MAX_NUMBER:g}")
        case str() if len(value) > _MAX_TEXT or not value.isprintable():
            raise ValueError(f"texts must be printable, with at most {_MAX_TEXT} characters")
        case dict() | list() if depth == _MAX_DEPTH or len(value) > MAX_ENTRIES:
            raise ValueError(f"nested deeper than {_MAX_DEPTH} levels, or more than {MAX_ENTRIES} entries")
        case dict():
            for name, inner in value.items():
                free_form(name)
                free_form(inner, depth + 1)
        case list():
            for inner in value:
                free_form(inner, depth + 1)
    return value


Name = Annotated[str, Field(min_length=1, max_length=_MAX_NAME), AfterValidator(_printable)]
Label = Annotated[str, Field(min_length=1, max_length=_MAX_LABEL), AfterValidator(_printable)]
Width = Annotated[int, Field(ge=1, le=2**14)]
Score = Annotated[float, Field(ge=-1e6, le=1e6)]
Scores = Annotated[Mapping[Label, Mapping[Label, Score]], Field(max_length=MAX_ENTRIES)]
FreeForm = Annotated[Mapping[str, Any], AfterValidator(free_form)]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Size and hash of one file of a bundle."""

    __pydantic_config__ = STRICT

    num_bytes: Annotated[int, Field(ge=0, le=MAX_FILE_BYTES)]
    sha256: Annotated[str, Field(pattern=r"\A[0-9a-f]{64}\z")]


@dataclass(frozen=True, slots=True)
class Dimensions:
    """Sizes that the decoding loop needs to allocate its buffers; the letters are those of the model's code."""

    __pydantic_config__ = STRICT

    width: Width  # D
    num_layers: Annotated[int, Field(ge=0, le=64)]  # L
    num_heads: Annotated[int, Field(ge=1, le=256)]  # H
    head_width: Width  # W
    num_generated: Annotated[int, Field(ge=1, le=2**20)]  # V
    vector_width: Width  # E
    joined: Literal[False] = False  # true of bundles of table 2's ablations, which are no longer served


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a bundle.

    Attributes:
        max_positions: most answer tokens the decoder has positions for.
        scores: task -> {metric: value}, as measured on the bundle.
        training: provenance, free-form (recipe, steps, data).
        format_version: which files there are, and what is in them.
    """

    __pydantic_config__ = STRICT

    name: Name
    version: Name
    dimensions: Dimensions
    max_positions: Annotated[int, Field(ge=1, le=2**14)]
    files: Annotated[Mapping[str, FileEntry], Field(max_length=32)]
    scores: Scores = field(default_factory=dict)
    training: FreeForm = field(default_factory=dict)
    format_version: Literal[7] = FORMAT_VERSION
    FORMAT: ClassVar[int] = FORMAT_VERSION
    MODEL: ClassVar[str] = "the paper's network"

    @property
    def expected_files(self) -> set[str]:
        """The names of all files, but for the manifest."""
        return set(FILES)


class AnyManifest(Protocol):
    """The manifests of all formats: their version, whose they are, and which files they must list."""

    FORMAT: ClassVar[int]
    MODEL: ClassVar[str]

    @property
    def files(self) -> Mapping[str, FileEntry]:
        """Name -> size and hash."""

    @property
    def expected_files(self) -> set[str]:
        """The names of all files, but for the manifest."""


class _Header(BaseModel):
    """The version of a manifest, before anything else of it is looked at."""

    model_config = ConfigDict(strict=True, extra="ignore")

    format_version: Any


ManifestT = TypeVar("ManifestT", bound=AnyManifest)


def read_format(content: bytes) -> int:
    """Return the format version of a manifest.

    Raises:
        BundleError: it is malformed, or of a version that this release does not read.
    """
    try:
        version = _Header.model_validate_json(content).format_version
    except ValidationError as error:
        raise BundleError(f"{MANIFEST}: malformed: {_first_problem(error)}") from None
    if type(version) is not int or version not in _KNOWN_FORMATS:
        raise BundleError(
            f"{MANIFEST}: format version {_shown(version)} is unknown to this release, which reads "
            f"{list(_KNOWN_FORMATS)}; export the checkpoint again"
        )
    return version


def parse_manifest(kind: type[ManifestT], content: bytes) -> ManifestT:
    """Read and check a manifest of one kind.

    Raises:
        BundleError: it is of another version, or anything in it is not as it must be; the message is one line.
    """
    version = read_format(content)
    if version != kind.FORMAT:
        raise BundleError(f"{MANIFEST}: format version {version} is not that of {kind.MODEL}")
    try:
        manifest = TypeAdapter(kind).validate_json(content)
    except ValidationError as error:
        raise BundleError(f"{MANIFEST}: malformed: {_first_problem(error)}") from None
    if set(manifest.files) != manifest.expected_files:
        listed, expected = sorted(manifest.files), sorted(manifest.expected_files)
        raise BundleError(f"{MANIFEST}: lists the files {_shown(listed)}, expected {expected}")
    return manifest


def check_names(name: str, version: str) -> None:
    """Check what a bundle is to be called, before there is one.

    Raises:
        BundleError: no manifest may say so.
    """
    for what, text in (("name", name), ("version", version)):
        try:
            TypeAdapter(Name).validate_python(text)
        except ValidationError as error:
            raise BundleError(f"{what} of a bundle: {_first_problem(error)}") from None


def write_manifest(folder: Path, manifest: AnyManifest) -> None:
    """Write the manifest, atomically and last: the bundle is whole from here on.

    Raises:
        BundleError: it would be refused when the bundle is opened.
    """
    content = (json.dumps(asdict(cast(Any, manifest)), indent=2, sort_keys=True) + "\n").encode()
    parse_manifest(type(manifest), content)
    temporary = folder / (MANIFEST + ".tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / MANIFEST)


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(_shown(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def _shown(value: object) -> str:
    """Return a value of a manifest as a line can show it."""
    shown = value if isinstance(value, str) else repr(value)
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}..."
