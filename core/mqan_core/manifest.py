"""The manifest of a bundle, and the one check of it: opening, ``mqan verify`` and writing all go through here.

Whoever made a bundle may mean ill. What a manifest holds reaches logs, metrics, responses and allocations: so names are
printable and short, numbers finite and bounded, and nothing is there that is not known.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from mqan_core.answer.calibration import Calibration
from mqan_core.errors import BundleError

FORMAT: Final = 9
_PIECES_FORMAT: Final = 6  # older: of a reader of word pieces
_WORDS_FORMAT: Final = 7  # older: of a reader of words
_KNOWN_FORMATS: Final = (_PIECES_FORMAT, _WORDS_FORMAT, FORMAT)

MANIFEST: Final = "manifest.json"
VOCABULARY: Final = "vocab.json"
MODEL_CARD: Final = "README.md"
EMBEDDINGS: Final = "embeddings.onnx"
VECTORS: Final = "vectors.safetensors"

MAX_FILE_BYTES: Final = 512 * 1024 * 1024
MAX_OFFSET: Final = 20.0  # of a refusal's score, in logits
_MAX_NAME, _MAX_LABEL, _MAX_TEXT = 100, 200, 1000  # characters of a name, of a task's, of a text
_MAX_ENTRIES = 10_000  # of a mapping or list
_MAX_DEPTH = 8  # of what is free-form
_MAX_NUMBER = 1e15  # of what is free-form
_MAX_SHOWN = 200  # characters of what is wrong

_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("holds characters that cannot be printed")
    return text


def _free_form(value: Any, depth: int = 0) -> Any:
    match value:
        case None | bool():
            pass
        case int() | float() if not -_MAX_NUMBER <= value <= _MAX_NUMBER:
            raise ValueError(f"numbers must be finite, and at most {_MAX_NUMBER:g}")
        case str() if len(value) > _MAX_TEXT or not value.isprintable():
            raise ValueError(f"texts must be printable, with at most {_MAX_TEXT} characters")
        case dict() | list() if depth == _MAX_DEPTH or len(value) > _MAX_ENTRIES:
            raise ValueError(f"nested deeper than {_MAX_DEPTH} levels, or more than {_MAX_ENTRIES} entries")
        case dict():
            for name, inner in value.items():
                _free_form(name)
                _free_form(inner, depth + 1)
        case list():
            for inner in value:
                _free_form(inner, depth + 1)
    return value


Name = Annotated[str, Field(min_length=1, max_length=_MAX_NAME), AfterValidator(_printable)]
Label = Annotated[str, Field(min_length=1, max_length=_MAX_LABEL), AfterValidator(_printable)]
Width = Annotated[int, Field(ge=1, le=2**14)]
Score = Annotated[float, Field(ge=-1e6, le=1e6)]
Scores = Annotated[Mapping[Label, Mapping[Label, Score]], Field(max_length=_MAX_ENTRIES)]
FreeForm = Annotated[Mapping[str, Any], AfterValidator(_free_form)]
GraphName = Annotated[str, Field(pattern=r"\A((reader|decoder_step)-[a-z0-9]{1,20}|encoder|decoder_step)\.onnx\z")]
Device = Literal["cpu", "cuda"]
Reader = Literal["pieces", "words"]


@dataclass(frozen=True, slots=True)
class FileEntry:
    __pydantic_config__ = _STRICT

    num_bytes: Annotated[int, Field(ge=0, le=MAX_FILE_BYTES)]
    sha256: Annotated[str, Field(pattern=r"\A[0-9a-f]{64}\z")]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of the graphs; the letters are those of the model's code."""

    __pydantic_config__ = _STRICT

    width: Width  # D, of the decoder
    reader_width: Width  # M of a reader of word pieces, E (the vectors' width) of a reader of words
    num_layers: Annotated[int, Field(ge=0, le=64)]  # L, of the decoder
    num_heads: Annotated[int, Field(ge=1, le=256)]  # H, of the decoder
    head_width: Width  # W
    num_generated: Annotated[int, Field(ge=1, le=2**20)]  # V
    num_word_pieces: Annotated[int, Field(ge=0, le=2**20)] = 0  # 0 of a reader of words
    evidence_width: Annotated[int, Field(ge=0, le=4096)] = 0  # E; 0 of a model that does not point at evidence


@dataclass(frozen=True, slots=True)
class Graphs:
    """The graphs for a kind of device: the precision of their products, and the names of their files."""

    __pydantic_config__ = _STRICT

    precision: Literal["int8", "float16", "float32"]
    reader: GraphName
    decoder_step: GraphName


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a bundle."""

    __pydantic_config__ = _STRICT

    name: Name
    version: Name
    reader: Reader  # word pieces (a pretrained reader) or words (the paper's network)
    sizes: Sizes
    max_positions: Annotated[int, Field(ge=1, le=2**14)]  # steps of an answer, its end included
    graphs: Annotated[Mapping[Device, Graphs], Field(min_length=1)]
    files: Annotated[Mapping[str, FileEntry], Field(max_length=32)] = field(default_factory=dict)
    scores: Scores = field(default_factory=dict)  # task -> {metric: value}, as measured on the bundle
    training: FreeForm = field(default_factory=dict)  # provenance: recipe, steps, data
    calibration: Annotated[Mapping[Label, Calibration], Field(max_length=_MAX_ENTRIES)] = field(default_factory=dict)
    has_text_vector: bool = False  # the reader says what a text is about, as a vector
    refusal_offset: Annotated[float, Field(ge=-MAX_OFFSET, le=MAX_OFFSET)] = 0.0  # in logits, of free answers
    format_version: Literal[9] = FORMAT

    @property
    def text_width(self) -> int:
        """The length of the vector that the reader gives a text, which adapters read; 0 without one."""
        if self.reader == "words":
            return 0
        return self.sizes.reader_width if self.has_text_vector else self.sizes.width

    @property
    def expected_files(self) -> set[str]:
        named = {name for some in self.graphs.values() for name in (some.reader, some.decoder_step)}
        return {VECTORS if self.reader == "words" else EMBEDDINGS, VOCABULARY, MODEL_CARD, *named}


class _Header(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    format_version: Any


def parse_manifest(content: bytes) -> Manifest:
    """Read and check a manifest, or raise ``BundleError``; one of an older format is given the present form."""
    try:
        version = _Header.model_validate_json(content).format_version
        if type(version) is not int or version not in _KNOWN_FORMATS:
            raise BundleError(
                f"{MANIFEST}: format version {_shown(version)} is unknown to this release, which reads "
                f"{list(_KNOWN_FORMATS)}; export the checkpoint again"
            )
        manifest = TypeAdapter(Manifest).validate_json(content if version == FORMAT else _upgraded(content, version))
    except ValidationError as error:
        raise BundleError(f"{MANIFEST}: malformed: {_first_problem(error)}") from None
    except ValueError as error:
        raise BundleError(f"{MANIFEST}: malformed: {_shown(str(error))}") from None
    if set(manifest.files) != manifest.expected_files:
        listed, expected = sorted(manifest.files), sorted(manifest.expected_files)
        raise BundleError(f"{MANIFEST}: lists the files {_shown(listed)}, expected {expected}")
    return manifest


def _upgraded(content: bytes, version: int) -> bytes:
    """Return a manifest of an older format in the present one; what does not belong there is left, to be refused."""
    document = from_json(content, allow_inf_nan=False)
    document["format_version"] = FORMAT
    if version == _PIECES_FORMAT:
        document["reader"] = "pieces"
        if document.get("kind") == "question-answering":
            del document["kind"]
    else:
        graphs = Graphs("float32", "encoder.onnx", "decoder_step.onnx")
        document |= {"reader": "words", "graphs": {"cpu": asdict(graphs), "cuda": asdict(graphs)}}
        document["sizes"] = sizes = document.pop("dimensions", None)
        if isinstance(sizes, dict):
            sizes["reader_width"] = sizes.pop("vector_width", None)
            if sizes.get("joined") is False:  # true of bundles of table 2's ablations, which are no longer served
                del sizes["joined"]
    return json.dumps(document).encode()


def check_names(name: str, version: str) -> None:
    """Check what a bundle is to be called, before there is one; raise ``BundleError`` where no manifest may say so."""
    for what, text in (("name", name), ("version", version)):
        try:
            TypeAdapter(Name).validate_python(text)
        except ValidationError as error:
            raise BundleError(f"{what} of a bundle: {_first_problem(error)}") from None


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(_shown(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def _shown(value: object) -> str:
    shown = value if isinstance(value, str) else repr(value)
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}..."
