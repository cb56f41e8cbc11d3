"""The bundle of a model: a folder of hashed files and a manifest that is written last.

    manifest.json          what is here, with sizes and SHA-256; which graph is for what; limits; scores
    reader-*.onnx          word pieces, or words -> all that the decoder reads of them (weights inside)
    decoder_step-*.onnx    one step of greedy decoding (weights inside)
    embeddings.onnx        of a reader of word pieces: their ids -> their vectors, 8-bit; for every device
    vectors.safetensors    of a reader of words: their vectors (int8 rows, scales) and the n-gram table
    vocab.json             pieces of the generator; word pieces, or words with vectors, of the reader
    README.md              model card

The graphs run as they are hashed. A file that is used is read once, and what was hashed is what is used. Links, names
with a path in them, and files beyond the size limit are refused.
"""

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pydantic_core import from_json
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors

from mqan_core.errors import BundleError
from mqan_core.manifest import MANIFEST, MAX_FILE_BYTES, VECTORS, VOCABULARY, FileEntry, Manifest, parse_manifest
from mqan_core.text.vectors import FloatArray, WordVectors
from mqan_core.text.vocab import Vocabulary
from mqan_core.text.word_pieces import WordPieces

_MAX_MANIFEST_BYTES = 1024 * 1024
_MAX_WORD = 1000  # characters of a word of the vocabulary
# What reading a document of the wrong form raises.
_MALFORMED: Final = (AttributeError, KeyError, RecursionError, SafetensorError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Bundle:
    """An opened bundle, whose graphs are read, and checked, when they are asked for."""

    folder: Path
    manifest: Manifest
    sha256: str  # of the manifest, which covers every other file: the identity of the model
    vocabulary: Vocabulary
    word_pieces: WordPieces | None = None  # of a reader of word pieces
    vectors: WordVectors | None = None  # of a reader of words

    def read_graph(self, name: str) -> bytes:
        """Return the bytes of a graph; raise ``BundleError`` where they are not what the manifest says."""
        return read_verified(self.folder, name, self.manifest.files[name])


def open_bundle(folder: Path) -> Bundle:
    """Open a bundle, or raise ``BundleError`` where its manifest or a list of words is not what it must be."""
    manifest, sha256 = read_manifest(folder)
    sizes, reads_words = manifest.sizes, manifest.reader == "words"
    names = [VOCABULARY, VECTORS] if reads_words else [VOCABULARY]
    contents = [read_verified(folder, name, manifest.files[name]) for name in names]
    word_pieces = vectors = None
    try:
        lists = from_json(contents[0])  # refuses lone surrogates, which no response could hold
        pieces = _strings(lists["pieces"])
        if reads_words:
            vocabulary = Vocabulary(pieces, _strings(lists["words"]))
            tensors = load_safetensors(contents[1])
            vectors = WordVectors(vocabulary, tensors["rows"], _floats(tensors, "scales"), _floats(tensors, "ngrams"))
            found = vocabulary.num_generated, vectors.width
            stated = sizes.num_generated, sizes.reader_width
        else:
            vocabulary = Vocabulary(pieces, refuses=True)
            word_pieces = WordPieces(_strings(lists["word_pieces"]))
            found = vocabulary.num_generated, len(word_pieces.pieces)
            stated = sizes.num_generated, sizes.num_word_pieces
    except _MALFORMED as error:
        raise BundleError(f"bundle {folder}: {' or '.join(names)} is malformed: {error}") from error
    if found != stated:
        raise BundleError(f"bundle {folder}: {' and '.join(names)} do not have the sizes that {MANIFEST} states")
    return Bundle(folder, manifest, sha256, vocabulary, word_pieces, vectors)


def verify_files(folder: Path) -> Bundle:
    """Check every file of a bundle, also those that no engine here would read, or raise ``BundleError``; return it."""
    bundle = open_bundle(folder)
    for name, entry in bundle.manifest.files.items():
        read_verified(folder, name, entry)
    return bundle


def read_manifest(folder: Path) -> tuple[Manifest, str]:
    """Read the manifest of a bundle, or raise ``BundleError``; return it and its hash."""
    content = _read_file(folder, MANIFEST, _MAX_MANIFEST_BYTES)
    return parse_manifest(content), hashlib.sha256(content).hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> Manifest:
    """Write the manifest with the hashes of its files, atomically and last: the bundle is whole from here on.

    What would be refused when the bundle is opened raises ``BundleError`` here.
    """
    contents = {name: _read_file(folder, name, MAX_FILE_BYTES) for name in sorted(manifest.expected_files)}
    files = {name: FileEntry(len(some), hashlib.sha256(some).hexdigest()) for name, some in contents.items()}
    manifest = replace(manifest, files=files)
    content = (json.dumps(asdict(manifest), indent=2, sort_keys=True) + "\n").encode()
    parse_manifest(content)
    temporary = folder / (MANIFEST + ".tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / MANIFEST)
    return manifest


def _strings(values: object) -> list[str]:
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
    """Read a file once; raise ``BundleError`` where it is a link, or not of the size and hash that the entry says."""
    content = _read_file(folder, name, MAX_FILE_BYTES)
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
                message = f"bundle {folder}: {name} has {status.st_size} bytes, at most {max_bytes} are allowed"
                raise BundleError(message)
            return file.read(max_bytes + 1)
    except OSError as error:
        hint = "; a bundle without it is incomplete" if name == MANIFEST else ""
        raise BundleError(f"bundle {folder}: cannot read {name}: {error.strerror}{hint}") from error
