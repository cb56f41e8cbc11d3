"""Adapters: what they add to the model's own answer, and files that are refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from mqan_core.answer.adapter import Adapter, AdapterError, AdapterHead, read_adapter, write_adapter
from mqan_core.answer.types import AdapterVersion
from mqan_core.example import Choice

BUNDLE, WIDTH = "a" * 64, 3
VECTOR = np.array([1.0, 0.0, 0.0], np.float32)


def make(weights: Any = None, **given: Any) -> Adapter:
    head = AdapterHead("Which?", (Choice("a"), Choice("b")), BUNDLE, 8, **given)
    return Adapter(AdapterVersion("x", ""), head, np.zeros(6), np.zeros((6, 2)) if weights is None else weights)


def written(folder: Path, adapter: Adapter) -> Path:
    path = folder / "teams.safetensors"
    write_adapter(path, adapter.head, adapter.center_F, adapter.weights_FK)
    return path


def test_without_weights_the_model_s_own_answer_stays() -> None:
    masses, refusal = make().masses([0.5, 0.3, 0.2], VECTOR)
    assert [*masses, refusal] == pytest.approx([0.5, 0.3, 0.2])
    masses, refusal = make(multiple=True).masses([0.9, 0.3], VECTOR)
    assert [mass / (mass + refusal) for mass in masses] == pytest.approx([0.9, 0.3])


def test_what_is_learnt_decides_beside_the_refusal_too() -> None:
    weights = np.zeros((6, 2))
    weights[0] = -3.0, 3.0
    masses, refusal = make(weights).masses([0.3, 0.1, 0.6], VECTOR)
    assert masses[1] > refusal > masses[0]
    assert masses[1] / refusal == pytest.approx(np.exp(3) / 6)
    masses, refusal = make(weights, sharpness=0.5).masses([0.3, 0.1, 0.6], VECTOR)
    assert masses[1] / refusal == pytest.approx(np.sqrt(np.exp(3) / 6))


def test_a_file_gives_what_was_written(tmp_path: Path) -> None:
    adapter = make(np.arange(12.0).reshape(6, 2) / 10, weight=0.5, is_scale=True)
    read = read_adapter(written(tmp_path, adapter), BUNDLE, WIDTH)
    assert (read.head, read.version.name) == (adapter.head, "teams")
    masses, expected = (one.masses([0.5, 0.3, 0.2], VECTOR)[0] for one in (read, adapter))
    assert masses == pytest.approx(expected)


def test_an_adapter_of_another_model_is_refused_with_what_makes_it_anew(tmp_path: Path) -> None:
    path = written(tmp_path, make())
    with pytest.raises(AdapterError, match=f"another model.*mqan adapt ROWS.*--name teams -o {tmp_path}"):
        read_adapter(path, "b" * 64, WIDTH)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, make())
    with pytest.raises(AdapterError, match="shapes"):
        read_adapter(path, BUNDLE, WIDTH + 1)
    tensors = load_file(path)
    for content in (path.read_bytes()[:100], b"", b"\xff" * 64):
        path.write_bytes(content)
        with pytest.raises(AdapterError, match="is no adapter"):
            read_adapter(path, BUNDLE, WIDTH)
    for metadata in (None, {"adapter": "{}"}, {"adapter": '{"question": 3}'}):
        save_file(tensors, path, metadata)
        with pytest.raises(AdapterError, match="is no adapter"):
            read_adapter(path, BUNDLE, WIDTH)
