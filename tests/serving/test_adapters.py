"""Adapters of a server: named by questions over REST and gRPC, listed, and read again when their files change."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqan_core.answer.adapter import AdapterHead, write_adapter
from mqan_core.ask.options import choices_of
from mqan_core.errors import InputError
from mqan_serving.contract.errors import SettingsError
from mqan_serving.contract.questions import AdapterField, Question
from mqan_serving.service.adapters import Adapters

LABELS = ("harbour", "notes", "walls")
WIDTH = 4
QUESTION = Question(context="Ada wrote notes.", question="", choices=AdapterField(adapter="desks"))


def write(folder: Path, bundle: str, width: int, chosen: str, **given: Any) -> None:
    """Write an adapter that gives every text the same label."""
    head = AdapterHead("Which desk?", choices_of(LABELS), bundle, 8, shares=True, **given)
    weights = np.zeros((width + len(LABELS) + 1, len(LABELS)))
    weights[-1, LABELS.index(chosen)] = 50
    write_adapter(folder / "desks.safetensors", head, np.zeros(len(weights)), weights)


def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    adapters = Adapters(tmp_path, "a" * 64, WIDTH)
    with pytest.raises(InputError, match="There is no adapter 'desks' here; there are: none") as found:
        adapters.adapt(QUESTION)
    assert found.value.code == "unknown_adapter"
    write(tmp_path, "a" * 64, WIDTH, "notes")
    options = adapters.adapt(QUESTION).options
    assert [choice.label for choice in options.choices] == list(LABELS)
    assert options.adapter is not None
    assert adapters.adapt(QUESTION).options.adapter is options.adapter
    write(tmp_path, "a" * 64, WIDTH, "walls", is_scale=True)
    changed = adapters.adapt(QUESTION)
    assert (changed.question, changed.options.is_scale) == ("Which desk?", True)
    assert changed.options.adapter is not None
    assert changed.options.adapter is not options.adapter
    assert [one["sha256"] for one in adapters.documents()] == [changed.options.adapter.version.sha256]
    write(tmp_path, "b" * 64, WIDTH, "walls")
    with pytest.raises(InputError, match="of another model. Make it anew: mqan adapt"):
        adapters.adapt(QUESTION)
    assert adapters.documents() == []
    (tmp_path / "desks.safetensors").unlink()
    with pytest.raises(InputError, match="there are: none"):
        adapters.adapt(QUESTION)


@pytest.mark.parametrize("name", ["../desks", "", ".", "a/b", "x" * 65])
def test_a_name_leads_to_no_other_folder(name: str, tmp_path: Path) -> None:
    write(tmp_path, "a" * 64, WIDTH, "notes")
    (tmp_path / "inner").mkdir()
    with pytest.raises(InputError, match="There is no adapter"):
        Adapters(tmp_path / "inner", "a" * 64, WIDTH).named(name)


def test_a_folder_that_is_none_is_a_wrong_setting(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="MQAN_ADAPTERS"):
        Adapters(tmp_path / "none", "a" * 64, WIDTH)
    assert Adapters(None, "a" * 64, WIDTH).documents() == []
