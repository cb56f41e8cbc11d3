"""The bundle of the paper's network, format 7: a folder of hashed files and a manifest that is written last.

    manifest.json          what is here, with sizes and SHA-256; limits; scores. Its presence means the bundle is whole
    encoder.onnx           contexts and questions -> everything the decoder reads (weights inside)
    decoder_step.onnx      one step of greedy decoding (weights inside)
    vocab.json             generator pieces and words
    vectors.safetensors    word vectors (int8 rows, scales) and n-gram table
    README.md              model card

Opening a bundle reads every listed file once, checks its hash and hands out those very bytes, so nothing that was not
hashed is ever used. Links, names with a path in them, and files beyond the size limit are refused.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pydantic_core import from_json
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors

from mqan_core.errors import BundleError
from mqan_core.manifest import (
    DECODER_STEP,
    ENCODER,
    FILES,
    FORMAT_VERSION,
    MANIFEST,
    MAX_FILE_BYTES,
    MAX_MANIFEST_BYTES,
    MODEL_CARD,
    VECTORS,
    VOCABULARY,
    Dimensions,
    FileEntry,
    Manifest,
    ManifestT,
    parse_manifest,
    write_manifest,
)
from mqan_core.text.vectors import FloatArray, WordVectors
from mqan_core.text.vocab import Vocabulary

__all__ = [
    "DECODER_STEP", "ENCODER", "FILES", "FORMAT_VERSION", "MANIFEST", "MODEL_CARD", "VECTORS", "VOCABULARY", "Bundle",
    "Dimensions", "FileEntry", "Manifest", "describe_files", "open_bundle", "write_manifest",
]  # fmt: skip

_MAX_WORD = 1000  # characters of a word of the vocabulary
# What reading a document of the wrong form raises.
MALFORMED: Final = (AttributeError, KeyError, RecursionError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Bundle:
    """An opened and verified bundle.

    ``sha256`` is the hash of the manifest, which covers every other file: the identity of the model. The graphs are
    bytes of ONNX.
    """

    manifest: Manifest
    sha256: str
    encoder: bytes
    decoder_step: bytes
    vocabulary: Vocabulary
    vectors: WordVectors


def open_bundle(folder: Path) -> Bundle:
    """Open and verify a bundle.

    Raises:
        BundleError: a file is missing, is a link, has another size or hash than the manifest says, or is malformed;
            or the bundle's format version is unknown.
    """
    manifest, sha256 = read_manifest(folder, Manifest)
    contents = {name: read_verified(folder, name, entry) for name, entry in manifest.files.items()}
    try:
        lists = from_json(contents[VOCABULARY])  # refuses lone surrogates, which no response could hold
        vocabulary = Vocabulary(strings(lists["pieces"]), strings(lists["words"]))
        tensors = load_safetensors(contents.pop(VECTORS))
        vectors = WordVectors(vocabulary, tensors["rows"], _floats(tensors, "scales"), _floats(tensors, "ngrams"))
    except (*MALFORMED, SafetensorError) as error:
        raise BundleError(f"bundle {folder}: {VOCABULARY} or {VECTORS} is malformed: {error}") from error
    dimensions = manifest.dimensions
    if (vectors.width, vocabulary.num_generated) != (dimensions.vector_width, dimensions.num_generated):
        raise BundleError(f"bundle {folder}: {VOCABULARY} and {VECTORS} do not have the sizes that {MANIFEST} states")
    return Bundle(manifest, sha256, contents[ENCODER], contents[DECODER_STEP], vocabulary, vectors)


def read_manifest(folder: Path, kind: type[ManifestT]) -> tuple[ManifestT, str]:
    """Read the manifest of a bundle; return it and its hash.

    Raises:
        BundleError: it is missing, is a link, or is not what it must be.
    """
    content = read_file(folder, MANIFEST, MAX_MANIFEST_BYTES)
    return parse_manifest(kind, content), hashlib.sha256(content).hexdigest()


def describe_files(folder: Path, names: Iterable[str] = FILES) -> dict[str, FileEntry]:
    """Hash the files of a bundle that is being written."""
    contents = {name: read_file(folder, name, MAX_FILE_BYTES) for name in sorted(names)}
    return {name: FileEntry(len(some), hashlib.sha256(some).hexdigest()) for name, some in contents.items()}


def strings(values: object) -> list[str]:
    """Return what a document holds as a list of words.

    Raises:
        TypeError, ValueError: it is no list of strings, or a word is too long.
    """
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("expected a list of strings")
    if any(len(value) > _MAX_WORD for value in values):
        raise ValueError(f"a word has more than {_MAX_WORD} characters")
    return values


def _floats(tensors: Mapping[str, npt.NDArray[Any]], name: str) -> FloatArray:
    values = tensors[name]
    if values.dtype not in (np.float16, np.float32):
        raise ValueError(f"{name} is {values.dtype}, expected float16 or float32")
    return values.astype(np.float32, copy=False)


def read_verified(folder: Path, name: str, entry: FileEntry) -> bytes:
    """Read a file of a bundle once, and check its size and hash.

    Raises:
        BundleError: it cannot be read, is a link, or is not what the entry says.
    """
    content = read_file(folder, name, MAX_FILE_BYTES)
    if len(content) != entry.num_bytes:
        raise BundleError(f"bundle {folder}: {name} has {len(content)} bytes, the manifest says {entry.num_bytes}")
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        raise BundleError(f"bundle {folder}: {name} does not have the SHA-256 that the manifest states")
    return content


def read_file(folder: Path, name: str, max_bytes: int) -> bytes:
    """Read a plain file of a bundle.

    Raises:
        BundleError: it is missing, is a link, or has more bytes.
    """
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
