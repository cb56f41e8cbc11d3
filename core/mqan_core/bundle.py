"""The served artefact: a folder of hashed files and a manifest that is written last.

    manifest.json          what is here, with sizes and SHA-256; limits; scores. Its presence means the bundle is whole
    encoder.onnx           contexts and questions -> everything the decoder reads (weights inside)
    decoder_step.onnx      one step of greedy decoding (weights inside)
    contextual.onnx        windows of words -> what is added to the projected words; only of a model that reads so
    vocab.json             generator pieces and words, and the word pieces of the contextual encoder
    vectors.safetensors    word vectors (int8 rows, scales) and n-gram table, and the vectors of word pieces
    input_ranges.safetensors   what products and LSTMs read lies in these, feature by feature: for 8-bit on a CPU
    README.md              model card

Opening a bundle reads every listed file once, checks its hash and hands out those very bytes, so nothing that was not
hashed is ever used. Links, names with a path in them, and files beyond the size limit are refused.
"""

import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save_file as save_safetensors

from mqan_core.answer import Source
from mqan_core.calibration import Calibration
from mqan_core.errors import BundleError
from mqan_core.vectors import FloatArray, WordVectors
from mqan_core.vocab import Vocabulary
from mqan_core.word_pieces import PieceVectors, WordPieces

FORMAT_VERSION = 5
_READ_VERSIONS = (4, 5)  # 4 knows of no contextual encoder
MANIFEST = "manifest.json"
ENCODER = "encoder.onnx"
DECODER_STEP = "decoder_step.onnx"
CONTEXTUAL = "contextual.onnx"
VOCABULARY = "vocab.json"
VECTORS = "vectors.safetensors"
INPUT_RANGES = "input_ranges.safetensors"
MODEL_CARD = "README.md"
FILES = (ENCODER, DECODER_STEP, VOCABULARY, VECTORS, INPUT_RANGES, MODEL_CARD)  # of every bundle

_MAX_FILE_BYTES = 512 * 1024 * 1024
_MAX_MANIFEST_BYTES = 1024 * 1024
_MAX_LAYERS = 64
_LEAST_RANGE, _MAX_RANGE = 1e-6, 1e6
# What reading a document of the wrong form raises; RecursionError comes from JSON nested too deep.
_MALFORMED = (AttributeError, KeyError, RecursionError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Size and hash of one file of a bundle."""

    num_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Dimensions:
    """Sizes that the decoding loop needs to allocate its buffers; the letters are those of the model's code."""

    width: int  # D
    num_layers: int  # L
    num_heads: int  # H
    head_width: int  # W
    num_generated: int  # V
    vector_width: int  # E
    joined: bool = False  # the decoder attends to context and question as one sequence: J = C + Q, not C
    moves_pointer: bool = False  # a step reads where the last one pointed in the context
    keeps_coverage: bool = False  # a step reads where all before it pointed in the context
    contextual_width: int = 0  # M, of the words that a contextual encoder reads; 0: there is none


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a bundle says about itself.

    Attributes:
        name: name of the model.
        version: version of the model.
        dimensions: sizes of the graphs.
        max_positions: most answer tokens the decoder has positions for.
        files: name -> size and hash.
        scores: task -> {metric: value}, as measured on the bundle.
        training: provenance, free-form (recipe, steps, data).
        calibration: source of an answer's first word -> map of the answer's probability.
    """

    name: str
    version: str
    dimensions: Dimensions
    max_positions: int
    files: Mapping[str, FileEntry]
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    calibration: Mapping[str, Calibration] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Contextual:
    """A bundle's contextual encoder.

    Attributes:
        graph: bytes of its graph.
        pieces: the vectors of word pieces that it reads.
    """

    graph: bytes
    pieces: PieceVectors


@dataclass(frozen=True, slots=True)
class Bundle:
    """An opened and verified bundle.

    Attributes:
        manifest: its manifest.
        sha256: hash of the manifest, which covers every other file: the identity of the model.
        encoder: bytes of the encoder graph.
        decoder_step: bytes of the decoding step graph.
        vocabulary: words and generator pieces.
        vectors: input vectors of words.
        input_ranges: name of each graph's file -> name of a tensor in it -> largest absolute value of each feature.
        contextual: the contextual encoder, if the model has one.
    """

    manifest: Manifest
    sha256: str
    encoder: bytes
    decoder_step: bytes
    vocabulary: Vocabulary
    vectors: WordVectors
    input_ranges: Mapping[str, Mapping[str, FloatArray]]
    contextual: Contextual | None = None


def open_bundle(folder: Path) -> Bundle:
    """Open and verify a bundle.

    Raises:
        BundleError: a file is missing, is a link, has another size or hash than the manifest says, or is malformed;
            or the bundle's format version is unknown.
    """
    manifest_bytes = _read_file(folder, MANIFEST, _MAX_MANIFEST_BYTES)
    manifest = _parse_manifest(manifest_bytes)
    contents = {name: _read_verified(folder, name, entry) for name, entry in manifest.files.items()}
    try:
        lists = json.loads(contents[VOCABULARY])
        vocabulary = Vocabulary(_strings(lists["pieces"]), _strings(lists["words"]))
        tensors = load_safetensors(contents.pop(VECTORS))
        vectors = WordVectors(vocabulary, tensors["rows"], tensors["scales"], tensors["ngrams"].astype(np.float32))
        contextual = None
        if CONTEXTUAL in contents:
            word_pieces = WordPieces(_strings(lists["word_pieces"]))
            pieces = PieceVectors(word_pieces, tensors["piece_rows"], tensors["piece_scales"])
            contextual = Contextual(contents[CONTEXTUAL], pieces)
    except (*_MALFORMED, SafetensorError) as error:
        raise BundleError(f"bundle {folder}: {VOCABULARY} or {VECTORS} is malformed: {error}") from error
    try:
        input_ranges = _parse_ranges(contents[INPUT_RANGES])
    except (*_MALFORMED, SafetensorError) as error:
        raise BundleError(f"bundle {folder}: {INPUT_RANGES} is malformed: {error}") from error
    dimensions = manifest.dimensions
    if (contextual.pieces.width if contextual is not None else 0) != dimensions.contextual_width:
        raise BundleError(f"bundle {folder}: word pieces do not have the width that {MANIFEST} states")
    if (vectors.width, vocabulary.num_generated) != (dimensions.vector_width, dimensions.num_generated):
        raise BundleError(f"bundle {folder}: {VOCABULARY} and {VECTORS} do not have the sizes that {MANIFEST} states")
    return Bundle(
        manifest,
        hashlib.sha256(manifest_bytes).hexdigest(),
        contents[ENCODER],
        contents[DECODER_STEP],
        vocabulary,
        vectors,
        input_ranges,
        contextual,
    )


def write_ranges(folder: Path, ranges: Mapping[str, Mapping[str, FloatArray]]) -> None:
    """Write a bundle's input ranges: name of each graph's file -> name of a tensor in it -> its ranges."""
    tensors = {f"{graph}/{name}": values for graph, named in ranges.items() for name, values in named.items()}
    save_safetensors(tensors, folder / INPUT_RANGES)


def _parse_ranges(content: bytes) -> dict[str, dict[str, FloatArray]]:
    ranges: dict[str, dict[str, FloatArray]] = {ENCODER: {}, DECODER_STEP: {}}
    for path, values in load_safetensors(content).items():
        graph, _, name = path.partition("/")
        if graph not in (ENCODER, DECODER_STEP, CONTEXTUAL):
            raise ValueError(f"{path} must begin with {ENCODER}/, {DECODER_STEP}/ or {CONTEXTUAL}/")
        if values.dtype != np.float32 or not ((values >= _LEAST_RANGE) & (values <= _MAX_RANGE)).all():
            raise ValueError(f"{path} must be float32 numbers from {_LEAST_RANGE:g} to {_MAX_RANGE:g}")
        ranges.setdefault(graph, {})[name] = values
    return ranges


def describe_files(folder: Path) -> dict[str, FileEntry]:
    """Hash the files of a bundle that is being written."""
    entries = {}
    names = (*FILES, CONTEXTUAL) if (folder / CONTEXTUAL).exists() else FILES
    for name in names:
        content = _read_file(folder, name, _MAX_FILE_BYTES)
        entries[name] = FileEntry(len(content), hashlib.sha256(content).hexdigest())
    return entries


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, atomically and last: the bundle is whole from here on."""
    document = {"format_version": FORMAT_VERSION, **asdict(manifest)}
    temporary = folder / (MANIFEST + ".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(document, file, indent=2, sort_keys=True)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / MANIFEST)


def _parse_manifest(content: bytes) -> Manifest:
    try:
        document = json.loads(content)
        version = document.pop("format_version")
        if version not in _READ_VERSIONS:
            raise BundleError(
                f"{MANIFEST}: format version {version!r} is unknown to this release, which reads {_READ_VERSIONS}; "
                "export the checkpoint again"
            )
        files = {name: FileEntry(**entry) for name, entry in document.pop("files").items()}
        dimensions = Dimensions(**document.pop("dimensions"))
        calibration = {Source(name).value: Calibration(**m) for name, m in document.pop("calibration", {}).items()}
        manifest = Manifest(files=files, dimensions=dimensions, calibration=calibration, **document)
        if not all(_is_finite(m.scale) and m.scale > 0 and _is_finite(m.offset) for m in calibration.values()):
            raise ValueError("calibration: scale and offset must be finite numbers, scale over 0")
        if not isinstance(manifest.training, dict):
            raise TypeError("training is not a mapping")
        for task, scores in manifest.scores.items():
            if not all(isinstance(score, int | float) for score in scores.values()):
                raise TypeError(f"a score of {task} is not a number")
    except _MALFORMED as error:
        raise BundleError(f"{MANIFEST}: malformed: {error}") from error
    expected = {*FILES, CONTEXTUAL} if dimensions.contextual_width else set(FILES)
    if set(manifest.files) != expected:
        raise BundleError(f"{MANIFEST}: lists the files {sorted(manifest.files)}, expected {sorted(expected)}")
    sizes = {**asdict(dimensions), "max_positions": manifest.max_positions}
    num_layers, contextual_width = sizes.pop("num_layers"), sizes.pop("contextual_width")
    for name in ("joined", "moves_pointer", "keeps_coverage"):
        if not isinstance(value := sizes.pop(name), bool):
            raise BundleError(f"{MANIFEST}: dimensions: {name} must be true or false, found {value!r}")
    if not all(type(size) is int and 0 < size < 2**31 for size in sizes.values()):
        raise BundleError(f"{MANIFEST}: dimensions and max_positions must be positive integers")
    if type(contextual_width) is not int or not 0 <= contextual_width < 2**31:
        raise BundleError(f"{MANIFEST}: dimensions: contextual_width is {contextual_width!r}, expected 0 or a width")
    if type(num_layers) is not int or not 0 <= num_layers <= _MAX_LAYERS:
        raise BundleError(f"{MANIFEST}: {num_layers} layers, 0 to {_MAX_LAYERS} are allowed")
    if not (isinstance(manifest.name, str) and isinstance(manifest.version, str)):
        raise BundleError(f"{MANIFEST}: name and version must be strings")
    return manifest


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _strings(values: object) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("expected a list of strings")
    return values


def _read_verified(folder: Path, name: str, entry: FileEntry) -> bytes:
    content = _read_file(folder, name, _MAX_FILE_BYTES)
    if len(content) != entry.num_bytes:
        raise BundleError(f"bundle {folder}: {name} has {len(content)} bytes, the manifest says {entry.num_bytes}")
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        raise BundleError(f"bundle {folder}: {name} does not have the SHA-256 that the manifest states")
    return content


def _read_file(folder: Path, name: str, max_bytes: int) -> bytes:
    try:
        # Not blocking, so that a pipe in place of a file is refused below and not waited for.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        with open(folder / name, "rb", opener=lambda path, _: os.open(path, flags)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
                raise BundleError(f"bundle {folder}: {name} is not a plain file of its own (links are refused)")
            if status.st_size > max_bytes:
                raise BundleError(
                    f"bundle {folder}: {name} has {status.st_size} bytes, at most {max_bytes} are allowed"
                )
            return file.read(max_bytes + 1)
    except OSError as error:
        hint = "; a bundle without it is incomplete" if name == MANIFEST else ""
        raise BundleError(f"bundle {folder}: cannot read {name}: {error.strerror}{hint}") from error
