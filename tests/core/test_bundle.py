"""A bundle opens only when it is whole and unchanged."""

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save as save_safetensors

from mqan_core import bundle
from mqan_core.bundle import open_bundle, verify_files, write_manifest
from mqan_core.errors import BundleError
from mqan_core.manifest import MANIFEST, Graphs, Manifest, Sizes

SIZES = Sizes(width=8, reader_width=5, num_layers=2, num_heads=2, head_width=4, num_generated=3)
GRAPHS = Graphs("float32", "encoder.onnx", "decoder_step.onnx")
WORDS = Manifest("tiny", "1", "words", SIZES, 16, {"cpu": GRAPHS, "cuda": GRAPHS}, scores={"sst": {"em": 80.5}})
FILES = sorted(WORDS.expected_files)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_bundle(tmp_path)


def make_bundle(folder: Path, **replaced: bytes) -> Path:
    tensors: dict[str, npt.NDArray[Any]] = {
        "rows": np.ones((2, 3), np.int8),
        "scales": np.ones(2, np.float32),
        "ngrams": np.ones((7, 2), np.float16),
    }
    contents = {
        "encoder": b"encoder graph",
        "decoder_step": b"step graph",
        "vocab": json.dumps({"pieces": [" yes ", " no "], "words": ["yes", "no"]}).encode(),
        "vectors": save_safetensors(tensors),
        "README": b"# card\n",
        **replaced,
    }
    for name in FILES:
        (folder / name).write_bytes(contents[Path(name).stem])
    write_manifest(folder, WORDS)
    return folder


def edit_manifest(folder: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads((folder / MANIFEST).read_text())
    edit(document)
    (folder / MANIFEST).write_text(json.dumps(document))


def test_opens_what_was_written(folder: Path) -> None:
    opened = open_bundle(folder)
    assert [opened.read_graph(name) for name in FILES[1:3]] == [b"step graph", b"encoder graph"]
    assert opened.manifest.sizes == SIZES
    assert opened.manifest.scores == {"sst": {"em": 80.5}}
    assert opened.vocabulary.words == ("yes", "no")
    assert opened.vectors is not None
    assert opened.vectors.lookup(["yes", "never"]).tolist() == [[1, 1, 1, 1, 1], [0, 0, 0, 1, 1]]
    assert opened.sha256 == hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
    assert sorted(path.name for path in folder.iterdir()) == sorted([*FILES, MANIFEST])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(name=st.sampled_from(FILES), place=st.integers(0), bit=st.integers(0, 7))
def test_a_flipped_bit_is_refused(folder: Path, name: str, place: int, bit: int) -> None:
    content = (folder / name).read_bytes()
    flipped = bytearray(content)
    flipped[place % len(content)] ^= 1 << bit
    (folder / name).write_bytes(flipped)
    with pytest.raises(BundleError, match="SHA-256"):
        verify_files(folder)
    (folder / name).write_bytes(content)
    verify_files(folder)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", ["truncated", "longer", "empty"])
def test_another_size_is_refused(folder: Path, name: str, change: str) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes({"truncated": content[:-1], "longer": content + b"\0", "empty": b""}[change])
    with pytest.raises(BundleError, match=f"{name} has .* bytes"):
        verify_files(folder)


@pytest.mark.parametrize("name", [*FILES, MANIFEST])
@pytest.mark.parametrize("kind", ["missing", "symlink", "hard link", "folder", "pipe"])
def test_only_plain_files_are_read(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, name: str, kind: str
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / name
    (folder / name).rename(elsewhere)
    match kind:
        case "symlink":
            (folder / name).symlink_to(elsewhere)
        case "hard link":
            os.link(elsewhere, folder / name)
        case "folder":
            (folder / name).mkdir()
        case "pipe":
            os.mkfifo(folder / name)
    with pytest.raises(BundleError, match=name):
        verify_files(folder)


def older(document: dict[str, Any]) -> None:
    """Give a manifest the form of format 7."""
    sizes = document.pop("sizes")
    for name in ("evidence_width", "num_word_pieces"):
        del sizes[name]
    for name in ("calibration", "graphs", "reader", "refusal_offset"):
        del document[name]
    sizes["vector_width"] = sizes.pop("reader_width")
    document.update(format_version=7, dimensions={**sizes, "joined": False})


def test_a_manifest_of_an_older_format_is_given_the_present_form(folder: Path) -> None:
    before = open_bundle(folder).manifest
    edit_manifest(folder, older)
    assert open_bundle(folder).manifest == before


@pytest.mark.parametrize(
    "edit",
    [
        lambda document: document["dimensions"].update(joined=True),
        lambda document: document["dimensions"].pop("vector_width"),
        lambda document: document.update(dimensions=None),
        lambda document: document.update(kind="question-answering"),
        lambda document: document["training"].update(seconds=float("nan")),
    ],
)
def test_a_malformed_manifest_of_an_older_format_is_refused(
    folder: Path, edit: Callable[[dict[str, Any]], None]
) -> None:
    edit_manifest(folder, older)
    edit_manifest(folder, edit)
    with pytest.raises(BundleError):
        open_bundle(folder)


def test_a_bundle_without_its_manifest_is_incomplete(folder: Path) -> None:
    (folder / MANIFEST).unlink()
    with pytest.raises(BundleError, match="incomplete"):
        open_bundle(folder)


def test_files_beyond_the_limit_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "MAX_FILE_BYTES", 12)
    with pytest.raises(BundleError, match="at most 12"):
        open_bundle(folder)


@pytest.mark.parametrize("version", [0, 3, 4, 5, 8, 10, "9", None])
def test_an_unknown_version_is_refused(folder: Path, version: object) -> None:
    edit_manifest(folder, lambda document: document.update(format_version=version))
    with pytest.raises(BundleError, match="unknown to this release, .*; export the checkpoint again"):
        open_bundle(folder)


@pytest.mark.parametrize(
    "edit",
    [
        lambda document: document.pop("format_version"),
        lambda document: document.pop("name"),
        lambda document: document.pop("files"),
        lambda document: document.update(unknown=1),
        lambda document: document.update(name=7),
        lambda document: document.update(files=[]),
        lambda document: document.update(scores={"sst": {"em": "high"}}),
        lambda document: document.update(scores=[1]),
        lambda document: document.update(max_positions=0),
        lambda document: document.update(max_positions="16"),
        lambda document: document["sizes"].update(width=-1),
        lambda document: document["sizes"].pop("width"),
        lambda document: document["sizes"].update(moves_pointer=1),
        lambda document: document.update(reader="letters"),
        lambda document: document["graphs"]["cpu"].update(reader="../encoder.onnx"),
        lambda document: document["files"]["README.md"].pop("sha256"),
        lambda document: document["files"]["README.md"].update(num_bytes="7"),
        lambda document: document["sizes"].update(num_generated=4),
        lambda document: document["sizes"].update(reader_width=4),
    ],
)
def test_a_malformed_manifest_is_refused(folder: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    edit_manifest(folder, edit)
    with pytest.raises(BundleError):
        open_bundle(folder)


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"[]", b"null", b"7", b"{", b"\xff", b"[" * 100_000, b'{"format_version":1}'),
        *(b'{"format_version": ' + b"9" * 5000, b" " * 2**21),
    ],
)
def test_a_manifest_that_is_no_manifest_is_refused(folder: Path, content: bytes) -> None:
    (folder / MANIFEST).write_bytes(content)
    with pytest.raises(BundleError, match=r"manifest\.json"):
        open_bundle(folder)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b"[" * 100_000, b'{"pieces": "ab", "words": []}', b'{"pieces": [1], "words": ["yes", "no"]}'],
)
def test_a_malformed_vocabulary_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BundleError, match="malformed"):
        open_bundle(make_bundle(tmp_path, vocab=content))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x08\0\0\0\0\0\0\0{}      ",
        save_safetensors({"rows": np.ones(2, np.int8), "scales": np.ones(2), "ngrams": np.ones((7, 2))}),
        save_safetensors({"rows": np.ones((2, 3), np.int8), "scales": np.ones(2), "ngrams": np.ones(7)}),
    ],
)
def test_malformed_vectors_are_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BundleError, match="malformed"):
        open_bundle(make_bundle(tmp_path, vectors=content))


def test_the_manifest_is_replaced_whole(folder: Path) -> None:
    manifest = open_bundle(folder).manifest
    write_manifest(folder, dataclasses.replace(manifest, version="2"))
    assert open_bundle(folder).manifest.version == "2"
    assert not list(folder.glob("*.tmp"))


def test_links_are_not_described(folder: Path) -> None:
    os.link(folder / "encoder.onnx", folder.parent / "copy.onnx")
    with pytest.raises(BundleError, match="links are refused"):
        write_manifest(folder, WORDS)
