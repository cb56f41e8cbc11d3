"""Adapters of a server: named by questions over REST and gRPC, listed, and read again when their files change."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from mqan_client import Answer, Client, InvalidRequestError
from mqan_core.answer.adapter import AdapterHead, write_adapter
from mqan_core.ask.options import choices_of
from mqan_core.bundle import open_bundle
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


def test_a_server_answers_by_an_adapter(start_server: Callable[..., Any], small_bundle: Path, tmp_path: Path) -> None:
    bundle = open_bundle(small_bundle)
    given = tmp_path, bundle.sha256, bundle.manifest.sizes.reader_width
    write(*given, "notes")
    server = start_server(bundle=small_bundle, adapters=tmp_path)
    [listed] = httpx2.get(f"{server.rest}/v1/model", trust_env=False).json()["adapters"]
    assert (listed["name"], listed["labels"], listed["rows"]) == ("desks", list(LABELS), 8)
    with Client(server.rest) as rest, Client(f"grpc://{server.rpc}") as rpc:
        answers = [client.answer("Ada wrote notes.", "", adapter="desks") for client in (rest, rpc)]
        assert answers[0] == answers[1]
        assert (answers[0].text, answers[0].choices[0].label) == ("notes", "harbour")
        assert answers[0].adapter is not None
        assert answers[0].adapter.sha256 == listed["sha256"]
        write(*given, "walls")
        asked: Any = [{"question": "", "adapter": "desks"}, {"question": "", "adapter": "teams"}, "Who wrote?"]
        for client in (rest, rpc):
            changed, unknown, plain = client.answer_questions("Ada wrote notes.", asked)
            assert isinstance(changed, Answer)
            assert changed.text == "walls"
            assert changed.adapter is not None
            assert changed.adapter.sha256 != listed["sha256"]
            assert isinstance(unknown, InvalidRequestError)
            assert isinstance(plain, Answer)
            assert plain.adapter is None
