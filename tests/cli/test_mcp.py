"""``mqan mcp`` as clients meet it: the real command with the shipped model, asked with the SDK's own client."""

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import TextContent
from packaging.requirements import Requirement
from typer.testing import CliRunner

import mqan_core
from mqan_cli.main import app
from mqan_cli.mcp import command, serving
from mqan_cli.mcp.tools import create_server

CONTEXT = "📎 Invoice 2024-117 from Müller GmbH, dated 12 May 2024. 🚀 Total: 1,250.50 EUR, due within 30 days."
ASKED = {"total": "What is the total?", "from": "Who is the invoice from?", "email": "What is the email address?"}
PROGRAM = [sys.executable, "-m", "mqan_cli.main", "mcp"]
HANDSHAKES = ["legacy", "auto"]  # of the protocol until 2025 and since
START_S = 60.0

runner = CliRunner()


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MQAN_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@asynccontextmanager
async def started(*arguments: str, mode: str = "auto") -> AsyncIterator[Client]:
    """Start the command as a client does, and speak to it on its standard input and output."""
    parameters = StdioServerParameters(command=PROGRAM[0], args=[*PROGRAM[1:], *arguments], env=dict(os.environ))
    async with Client(stdio_client(parameters), mode=mode) as client:
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> tuple[Any, str]:
    """Call a tool that answers; return its document and its text."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert not result.is_error, content.text
    return result.structured_content, content.text


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that fails; return what it says."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert (result.is_error, result.structured_content) == (True, None)
    return content.text


@pytest.mark.parametrize("mode", HANDSHAKES)
async def test_the_tools_are_listed_with_schemas(mode: str) -> None:
    async with started(mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("mqan", mqan_core.__version__)
    required = {name: tool.input_schema["required"] for name, tool in tools.items()}
    assert required == {
        "answer": ["context", "question"],
        "decide": ["context", "question", "choices"],
        "extract": ["context", "fields"],
    }
    assert all(tool.description and tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
    outputs = {name: set((tool.output_schema or {})["properties"]) for name, tool in tools.items()}
    assert outputs == {
        "answer": {"text", "answered", "probability", "quotations", "words"},
        "decide": {"chosen", "answered", "probability", "none", "choices"},
        "extract": {"fields"},
    }


async def test_each_tool_answers_with_exact_places() -> None:
    async with started() as client:
        answer, told = await call(client, "answer", context=CONTEXT, question="What is the total?")
        assert (answer["text"], answer["answered"]) == ("1,250.50 EUR", True)
        assert 0.5 < answer["probability"] <= 1
        assert answer["quotations"] == [{"source": "context", "start": 65, "end": 77, "text": "1,250.50 EUR"}]
        assert CONTEXT[65:77] == "1,250.50 EUR"
        for word in answer["words"]:
            assert word["source"] == "context"
            assert word["text"] == CONTEXT[word["start"] : word["end"]]
        assert told.startswith("1,250.50 EUR\n")
        assert '"1,250.50 EUR" (context, 65-77)' in told

        choices = ["shipping", {"label": "billing", "description": "invoices, payments"}]
        question = "Which team should take this?"
        decided, told = await call(client, "decide", context=CONTEXT, question=question, choices=choices)
        assert (decided["chosen"], decided["answered"]) == (["billing"], True)
        assert [choice["label"] for choice in decided["choices"]] == ["shipping", "billing"]
        shares = [choice["probability"] for choice in decided["choices"]]
        assert sum(shares) == pytest.approx(1, abs=1e-5)
        assert decided["probability"] == pytest.approx(shares[1])
        assert shares[1] > 0.5
        assert 0 < decided["none"] < 1
        for quotation in decided["choices"][1]["evidence"]:
            assert quotation["text"] == CONTEXT[quotation["start"] : quotation["end"]]
        assert told.startswith("billing (probability ")

        extracted, told = await call(client, "extract", context=CONTEXT, fields=ASKED)
        assert list(extracted["fields"]) == list(ASKED)
        values = {name: field["value"] for name, field in extracted["fields"].items()}
        assert values == {"total": "1,250.50 EUR", "from": "Müller GmbH", "email": None}
        for field in extracted["fields"].values():
            assert field["answered"] == (field["value"] is not None)
            if field["answered"]:
                assert field["value"] == CONTEXT[field["start"] : field["end"]]
        assert 'from: "Müller GmbH" (24-35, ' in told
        assert "email: the context does not say" in told


async def test_what_the_text_does_not_say_is_refused() -> None:
    async with started() as client:
        answer, told = await call(client, "answer", context=CONTEXT, question="What is the email address?")
        assert (answer["text"], answer["answered"], answer["words"]) == ("", False, [])
        assert told.startswith("The context does not say")
        asked: dict[str, Any] = {"question": "Which colour is the car?", "choices": ["red", "blue"]}
        none, told = await call(client, "decide", context=CONTEXT, **asked, none=True)
        assert (none["chosen"], none["answered"], none["probability"]) == ([], False, none["none"])
        assert told.startswith("None of the choices is right")
        assert (await call(client, "decide", context=CONTEXT, **asked))[0]["answered"]
        several, _ = await call(
            client,
            "decide",
            context=CONTEXT,
            question="Which of these is it about?",
            choices=["money", "football"],
            multiple=True,
        )
        assert several["chosen"] == ["money"]


async def test_bad_input_is_explained_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQAN_MAX_CONTEXT_TOKENS", "100")
    async with started() as client:
        assert await refusal(client, "answer", context=" ", question="Who?") == (
            "The context is white space only. Send the text that the question is about."
        )
        too_long = await refusal(client, "answer", context="word " * 101, question="Who?")
        assert too_long.startswith("The context has 101 tokens; at most 100 are accepted.")
        assert (await refusal(client, "answer", question="Who?")).startswith("The argument context is missing.")
        secret = {"secret": 5}
        wrong = await refusal(client, "answer", context="A text.", question=secret)
        assert wrong.startswith("The argument question is wrong (question: Input should be a valid string)")
        assert "secret" not in wrong
        assert await refusal(client, "answer", context="A text.", question="Who?", choice=["a"]) == (
            "The argument choice is unknown. Known are context, question."
        )
        asked = {"context": CONTEXT, "question": "Which?"}
        assert "has the label 'a' twice" in await refusal(client, "decide", **asked, choices=["a", "a"])
        assert "at least 1 item" in await refusal(client, "decide", **asked, choices=[])
        assert "labels: Extra inputs" in await refusal(client, "decide", **asked, choices=["a", {"labels": "b"}])
        assert "valid boolean" in await refusal(client, "decide", **asked, choices=["a"], multiple="perhaps")
        assert "at least 1 item" in await refusal(client, "extract", context=CONTEXT, fields={})
        assert await refusal(client, "extract", context=CONTEXT, fields={**ASKED, "due": ""}) == (
            "The question of the field due is empty. Send a question in natural language."
        )
        unread = await refusal(client, "extract", context=CONTEXT, fields={**ASKED, "due": "\u200b"})
        assert unread.startswith("The field due cannot be asked for: The question is invisible characters only.")
        assert "Unknown tool: translate" in await refusal(client, "translate")
        answer, _ = await call(client, "answer", context=CONTEXT, question="What is the total?")
        assert answer["text"] == "1,250.50 EUR"


async def test_a_call_ends_though_its_fields_do_not() -> None:
    class Slow:
        async def fill(self, *_: Any) -> Any:
            await asyncio.sleep(60)

    server = create_server(cast("Any", Slow()), 0.05)
    fields = {f"field {i}": "What is it?" for i in range(20)}
    with pytest.raises(ToolError, match=r"The call took longer than 0\.05 s: send fewer fields, or a shorter text\."):
        await server.call_tool("extract", {"context": CONTEXT, "fields": fields})


async def test_a_running_server_answers_the_same(default_server: Any) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("answer", {"question": "What is the total?"}),
        ("decide", {"question": "Which team should take this?", "choices": ["shipping", "billing"]}),
        ("decide", {"question": "What is it about?", "choices": ["money", "football"], "multiple": True}),
        ("extract", {"fields": ASKED}),
    ]
    async with started() as local:
        expected = [await call(local, tool, context=CONTEXT, **arguments) for tool, arguments in calls]
    for url in (default_server.rest, f"grpc://{default_server.rpc}"):
        async with started("--server", url) as remote:
            for (tool, arguments), (document, text) in zip(calls, expected, strict=True):
                found, told = await call(remote, tool, context=CONTEXT, **arguments)
                assert (rounded(found), told) == (rounded(document), text)
            assert await refusal(remote, "answer", context=CONTEXT, question="") == (
                "The question is empty. Send a question in natural language."
            )


def rounded(document: Any) -> Any:
    """Return a document with its floats as gRPC's 32 bits keep them."""
    return json.loads(json.dumps(document), parse_float=lambda number: round(float(number), 4))


async def test_a_server_that_is_not_there_is_told_by_the_tool(free_ports: Callable[[int], list[int]]) -> None:
    (port,) = free_ports(1)
    async with started("--server", f"http://127.0.0.1:{port}") as client:
        told = await refusal(client, "answer", context=CONTEXT, question="What is the total?")
    assert told.startswith(f"no answer from http://127.0.0.1:{port} (")
    assert "Start one with `mqan serve`" in told


@contextmanager
def listening(port: int, log: Path, **environment: str) -> Iterator[str]:
    """Start the command on a port; at its end it must end by SIGTERM, well."""
    arguments = ["--transport", "http", "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen([*PROGRAM, *arguments], env=os.environ | environment, stdout=output, stderr=output)
    try:
        end = time.monotonic() + START_S
        while "mqan is ready" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
        process.send_signal(signal.SIGTERM)
        assert process.wait(START_S) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


async def test_streamable_http(free_ports: Callable[[int], list[int]], tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with listening(port, tmp_path / "log") as url:
        for mode in HANDSHAKES:
            async with Client(url, mode=mode) as client:
                answer, _ = await call(client, "answer", context=CONTEXT, question="What is the total?")
                assert answer["quotations"] == [{"source": "context", "start": 65, "end": 77, "text": "1,250.50 EUR"}]
        accept = {"accept": "application/json, text/event-stream"}
        for forged in ({"host": "evil.example"}, {"origin": "https://evil.example"}, {"origin": "null"}):
            refused = httpx2.post(url, json={}, headers=accept | forged)
            assert (refused.status_code, refused.json()["code"]) == (421, "unknown_host"), "as DNS rebinding would ask"
        listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        for host in ("localhost", "127.0.0.1", f"LOCALHOST:{port}", f"localhost.:{port}", f"[::1]:{port}"):
            assert httpx2.post(url, json=listed, headers=accept | {"host": host}).status_code == 200
        assert httpx2.post(url, json=listed, headers=accept | {"origin": f"http://localhost:{port}"}).status_code == 200
        for method in ("GET", "HEAD", "DELETE"):  # GET would open a stream that nothing ends
            refused = httpx2.request(method, url, headers=accept, timeout=30)
            assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
        slash = httpx2.post(f"{url}/", json=listed, headers=accept)
        assert (slash.status_code, slash.json()["code"]) == (404, "not_found"), "no redirect, which would copy Host"
        listen = {**listed, "method": "subscriptions/listen", "params": {"notifications": {"toolsListChanged": True}}}
        heard = httpx2.post(url, json=listen, headers=accept | {"mcp-protocol-version": "2026-07-28"}, timeout=30)
        assert "event-stream" not in heard.headers["content-type"]
        taken = subprocess.run(
            [*PROGRAM, "--transport", "http", "--port", str(port)], capture_output=True, text=True, timeout=START_S
        )
    assert (taken.returncode, taken.stdout) == (1, "")
    told = f"mqan: cannot listen on 127.0.0.1:{port}: Address already in use; give another --host or --port\n"
    assert taken.stderr == told
    assert (tmp_path / "log").read_text() == f"mqan is ready: MCP on {url}\n", "callers' texts are not logged"


async def test_http_asks_for_keys_where_a_server_would(free_ports: Callable[[int], list[int]], tmp_path: Path) -> None:
    key = runner.invoke(app, ["key", "alice", "--file", str(tmp_path / "keys")]).stdout.strip()
    (port,) = free_ports(1)
    settings = {"MQAN_API_KEY_FILE": str(tmp_path / "keys"), "MQAN_ALLOWED_HOSTS": "answers.example"}
    with listening(port, tmp_path / "log", **settings) as url:
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        headers = {"accept": "application/json, text/event-stream"}
        for given in ({}, {"authorization": "Bearer mqan_of_another"}):
            refused = httpx2.post(url, json=asked, headers=headers | given)
            assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
        headers["authorization"] = f"Bearer {key}"
        elsewhere = httpx2.post(url, json=asked, headers=headers | {"host": "evil.example"})
        assert (elsewhere.status_code, elsewhere.json()["code"]) == (421, "unknown_host")
        allowed = httpx2.post(url, json=asked, headers=headers | {"host": "answers.example"})
        assert allowed.status_code == 200
        assert [tool["name"] for tool in allowed.json()["result"]["tools"]] == ["answer", "decide", "extract"]


async def test_documented_configurations_work(repository: Path) -> None:
    blocks = re.findall(r"```json\n(.*?)```", (repository / "docs" / "mcp.md").read_text(), re.DOTALL)
    entries = [entry["mqan"] for block in blocks for entry in json.loads(block).values()]
    assert [entry.get("type") for entry in entries] == [None, "stdio", "http"]
    for entry in entries[:2]:
        assert Path(entry["command"]).name == "mqan"
        verb, *arguments = entry["args"]
        assert verb == "mcp"
        async with started(*arguments) as client:
            assert len((await client.list_tools()).tools) == 3
    assert entries[2]["url"] == f"http://{command._HOST}:{command._PORT}{serving._PATH}"


def test_without_the_extra_it_says_what_to_install() -> None:
    program = "import sys; sys.modules['mcp'] = None; from mqan_cli.main import app; app()"
    result = subprocess.run([sys.executable, "-c", program, "mcp"], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout) == (1, "")
    [said] = result.stderr.splitlines()
    _, told, command = said.split(": ")
    assert told == "mcp.server is not installed"
    python, *arguments, needed = shlex.split(command)
    assert (python, arguments) == (sys.executable, ["-m", "pip", "install"])
    assert Requirement(needed).specifier.contains(version("mcp"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--port", "8001"],
        ["--host", "::1"],
        ["--server", "grpc://host", "--bundle", "folder"],
        ["--transport", "sse"],
        ["--server", "host"],
    ],
)
def test_wrong_usage_is_status_2(arguments: list[str]) -> None:
    result = runner.invoke(app, ["mcp", *arguments])
    assert (result.exit_code, result.stdout) == (2, "")


def test_a_folder_that_is_no_bundle_is_named(tmp_path: Path) -> None:
    result = subprocess.run(
        [*PROGRAM, "--bundle", str(tmp_path)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert f"{tmp_path} has no manifest.json" in result.stderr
    assert len(result.stderr.splitlines()) == 1
