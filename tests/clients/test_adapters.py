"""An adapter of a server, asked by name over REST and gRPC while its file changes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from mqan_client import Answer, Client, InvalidRequestError
from mqan_core.bundle import open_bundle
from tests.serving.test_adapters import LABELS, write


def test_a_server_answers_by_an_adapter(start_server: Callable[..., Any], small_bundle: Path, tmp_path: Path) -> None:
    bundle = open_bundle(small_bundle)
    given = tmp_path, bundle.sha256, bundle.manifest.sizes.reader_width
    write(*given, "notes")
    server = start_server("local", bundle=small_bundle, adapters=tmp_path)
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
