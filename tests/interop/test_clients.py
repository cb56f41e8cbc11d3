"""Real clients of other formats get right answers from a server of the default model."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Ask = Callable[..., Any]


def test_the_conformance_test_of_system_one(
    interpreter: Callable[[str], Path], run: Callable[..., str], locked_server: tuple[Any, str], tmp_path: Path
) -> None:
    server, key = locked_server
    found = tmp_path / "found.json"
    command = interpreter("jevcompat").parent / "jevcompat"
    print(run([command, "test", server.rest, "--key", key, "--json", found], tmp_path))
    results = json.loads(found.read_text())["results"]
    statuses = {result["id"]: result["status"] for result in results}
    assert len(statuses) == 48
    # With a key it cannot see what holds without one; the clients below send keys that nobody asked for.
    assert {name for name, status in statuses.items() if status != "pass"} == {"auth.ignored-when-off"}


def test_typesafes_client(ask: Ask, server: Any) -> None:
    told = ask("typesafe-sdk", "typesafe_client.py", server.rest)
    assert (told["team"], told["models"]) == ("billing", ["mqan-default", "jev-latest"])
    assert told["twice"] > 0.5
    assert 0 <= told["haste"] <= 1


def test_openais_client(ask: Ask, server: Any) -> None:
    told = ask("openai", "openai_client.py", server.rest)
    assert (told["team"], told["models"]) == ("billing", ["mqan-default"])
    assert told["twice"] > 0.5
    assert told["evidence"][0]["source"] == "context"


def test_clients_of_node(node: str, run: Callable[..., str], server: Any) -> None:
    told = json.loads(run([node, "clients_of_node.mjs", server.rest]))
    assert told["openai"] == told["aiSdk"]["team"] == "billing"
    assert told["aiSdk"]["twice"] > 0.5
    assert 0 <= told["aiSdk"]["haste"] <= 1


def test_openais_client_in_a_page(
    node: str, run: Callable[..., str], start_server: Callable[..., Any], default_bundle: Path
) -> None:
    origin = "https://app.example"
    server = start_server("local", bundle=default_bundle, cors_origins=origin)
    told = json.loads(run([node, "openai_in_a_page.mjs", server.rest, origin]))
    assert told["team"] == "billing"
    assert [name for name in told["sent"] if name.startswith("x-stainless-")]


def test_tritons_client(ask: Ask, locked_server: tuple[Any, str]) -> None:
    server, key = locked_server
    told = ask("tritonclient", "triton_client.py", server.rest.removeprefix("http://"), key)
    assert told == {
        "live": True,
        "ready": True,
        "model_ready": True,
        "server": "mqan",
        "inputs": ["context", "question", "choices"],
        "answers": ["330 m", "1889"],
        "spans": [
            [{"source": "context", "start": 21, "end": 26, "text": "330 m"}],
            [{"source": "context", "start": 52, "end": 56, "text": "1889"}],
        ],
        "chosen": "billing",
        "unwanted": True,
        "without a key": "401",
        "another model": "404",
        "another version": "404",
        "no question": "422",
        "unknown parameter": "422",
    }
