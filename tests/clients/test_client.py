"""The Python client against a real server on loopback, over both transports, waiting and not."""

import asyncio
import copy
import math
import pickle
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mqan_client import (
    Answer,
    AsyncClient,
    Client,
    ClientError,
    DeadlineExceededError,
    InvalidRequestError,
    Limits,
    OverloadedError,
    Score,
    ServerError,
    Source,
    Span,
    UnauthenticatedError,
    UnavailableError,
    rpc,
)
from mqan_client.rest import RestTransport
from mqan_client.transport import Retries, split_url

QUICK = Retries(initial_s=0.01, max_s=0.05)

Ask = Callable[..., Any]


@pytest.fixture(params=["grpc", "rest"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sync", "async"])
def call(request: pytest.FixtureRequest) -> Ask:
    """Open a client at a URL, call one of its methods, close it."""

    def call_sync(url: str, method: str, *args: Any, retries: Retries = QUICK, **kwargs: Any) -> Any:
        with Client(url, retries=retries) as client:
            return getattr(client, method)(*args, **kwargs)

    def call_async(url: str, method: str, *args: Any, retries: Retries = QUICK, **kwargs: Any) -> Any:
        async def run() -> Any:
            async with AsyncClient(url, retries=retries) as client:
                return await getattr(client, method)(*args, **kwargs)

        return asyncio.run(run())

    return call_sync if request.param == "sync" else call_async


def test_answers(server: Any, transport: str, call: Ask) -> None:
    answer = call(server.urls[transport], "answer", "In Paris. 👩‍👧", "Where?", max_answer_tokens=3)
    assert isinstance(answer, Answer)
    assert (answer.text, answer.probability, answer.none, answer.truncated) == ("Paris yes", 0.5, 0.125, False)
    assert [token.source for token in answer.tokens] == [Source.CONTEXT, Source.VOCABULARY]
    assert [token.span for token in answer.tokens] == [Span(3, 8), None]
    assert answer.tokens[0].masses.context == 0.5
    assert (answer.spans[0].start, answer.spans[0].end, answer.spans[0].text) == (3, 8, "Paris")
    assert answer.model.name == "tiny"
    assert (answer.answered, answer.confidence, answer.windows, answer.choices) == (True, 0.5, 1, ())
    expected = {"context": "In Paris. 👩‍👧", "question": "Where?", "max_answer_tokens": 3}
    assert server.script.requests == [expected]


def test_describes_the_model(server: Any, transport: str, call: Ask) -> None:
    model = call(server.urls[transport], "get_model")
    assert (model.name, model.version, model.sha256) == ("tiny", "1", "ab" * 32)
    assert model.limits == Limits(1000, 100, 10, 5, 50, 2000, 3000, 8, 6)
    assert model.scores == (Score("sst", "em", 80.5),)
    assert model.server_version == "2.0.0"


def test_a_later_server_may_tell_more_limits(server: Any, call: Ask) -> None:
    server.script.more_limits = {"max_of_something_new": 1}
    assert call(server.urls["rest"], "get_model").limits.max_request_bytes == 1000


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (422, "empty_context", InvalidRequestError),
        (400, "malformed_request", InvalidRequestError),
        (401, "unauthenticated", UnauthenticatedError),
        (429, "overloaded", OverloadedError),
        (503, "unavailable", UnavailableError),
        (504, "deadline_exceeded", DeadlineExceededError),
        (500, "internal", ServerError),
    ],
)
def test_each_error_has_its_class(
    server: Any, transport: str, call: Ask, status: int, code: str, kind: type[ClientError]
) -> None:
    server.script.failures = [(status, code)] * 10
    with pytest.raises(kind, match=r"A message\. A hint\.") as caught:
        call(server.urls[transport], "answer", "a", "b")
    assert type(caught.value) is kind
    assert (caught.value.code, caught.value.request_id) == (code, "id-1")
    retried = kind in (OverloadedError, UnavailableError)
    assert len(server.script.requests) == (QUICK.max_attempts if retried else 1)


@pytest.mark.parametrize("status", [429, 503])
def test_asks_again_while_the_server_is_busy(server: Any, transport: str, call: Ask, status: int) -> None:
    server.script.failures = [(status, "busy"), (status, "busy")]
    assert call(server.urls[transport], "answer", "a", "b").text == "Paris yes"
    assert len(server.script.requests) == 3


def test_waits_as_long_as_the_server_asks(server: Any, transport: str, call: Ask) -> None:
    server.script.failures, server.script.retry_after_s = [(429, "overloaded")], 1
    patient = Retries(initial_s=0.01, max_s=1.5)
    start = time.monotonic()
    assert call(server.urls[transport], "answer", "a", "b", retries=patient).text == "Paris yes"
    assert time.monotonic() - start > 1


def test_waits_no_longer_than_it_wants(server: Any, transport: str, call: Ask) -> None:
    server.script.failures, server.script.retry_after_s = [(429, "overloaded")], 60
    assert call(server.urls[transport], "answer", "a", "b", timeout_s=20.0).text == "Paris yes"


def test_does_not_ask_again_when_told_not_to(server: Any, transport: str, call: Ask) -> None:
    server.script.failures = [(503, "unavailable")]
    with pytest.raises(UnavailableError):
        call(server.urls[transport], "answer", "a", "b", retries=Retries(max_attempts=1))
    assert len(server.script.requests) == 1


def test_no_time_is_no_answer(server: Any, transport: str, call: Ask) -> None:
    with pytest.raises(DeadlineExceededError):
        call(server.urls[transport], "answer", "a", "b", timeout_s=0)


def test_gives_up_in_time(server: Any, transport: str, call: Ask) -> None:
    server.script.delay_s = 8.0
    start = time.monotonic()
    with pytest.raises(DeadlineExceededError):
        call(server.urls[transport], "answer", "a", "b", timeout_s=0.1)
    assert time.monotonic() - start < 8


@pytest.mark.parametrize("timeout_s", [math.inf, 1e12])
def test_waits_as_long_as_it_takes(server: Any, transport: str, call: Ask, timeout_s: float) -> None:
    server.script.failures = [(503, "unavailable")]
    assert call(server.urls[transport], "answer", "a", "b", timeout_s=timeout_s).text == "Paris yes"
    assert len(server.script.requests) == 2
    assert all(0 < timeout_ms < 2**31 for timeout_ms in server.script.timeouts_ms)


def test_rest_tells_its_deadline(server: Any, call: Ask) -> None:
    server.script.failures = [(503, "unavailable")]
    call(server.urls["rest"], "answer", "a", "b", timeout_s=7.5)
    first, second = server.script.timeouts_ms
    assert 7500 >= first > second > 0


def test_a_deadline_covers_retries(server: Any, transport: str, call: Ask) -> None:
    server.script.failures = [(503, "unavailable")] * 10
    slow = Retries(initial_s=60.0, max_s=60.0)
    start = time.monotonic()
    with pytest.raises((UnavailableError, DeadlineExceededError)):
        call(server.urls[transport], "answer", "a", "b", timeout_s=0.3, retries=slow)
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_a_server_that_is_not_there(scheme: str, call: Ask) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(UnavailableError):
        call(f"{scheme}://127.0.0.1:{port}", "answer", "a", "b", timeout_s=5.0)


@pytest.mark.parametrize("context", ["\ud800", "a\udfffb"])
def test_text_that_cannot_be_sent(server: Any, transport: str, call: Ask, context: str) -> None:
    with pytest.raises(InvalidRequestError):
        call(server.urls[transport], "answer", context, "b")
    assert server.script.requests == []


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"choices": []}, "`choices` is empty; give a list of labels, or leave it out"),
        ({"scale": ()}, "`scale` is empty; give a list of levels"),
        ({"sources": []}, "`sources` is empty"),
        ({"choices": "tiny"}, "`choices` is 'tiny'; give a list of labels"),
        ({"scale": "low"}, "`scale` is 'low'; give a list of levels"),
        ({"sources": "context"}, "`sources` is 'context'; give a list"),
        ({"choices": {"a": "b"}}, "`choices` is {'a': 'b'}; give a list of labels"),
        ({"choices": 3}, "`choices` is 3; give a list of labels"),
    ],
)
def test_what_is_no_list_is_not_asked(server: Any, transport: str, call: Ask, asked: Any, told: str) -> None:
    url = server.urls[transport]
    for method, given, more in (
        ("answer", ("a", "b"), asked),
        ("answer_many", ([("a", "b")],), asked),
        ("answer_questions", ("a", [{"question": "b", **asked}]), {}),
    ):
        with pytest.raises(InvalidRequestError, match=re.escape(told)):
            call(url, method, *given, **more)
    assert server.script.requests == []


def test_lists_that_are_none_are_left_out(server: Any, transport: str, call: Ask) -> None:
    call(server.urls[transport], "answer", "a", "b", choices=None, scale=None, sources=None)
    assert server.script.requests == [{"context": "a", "question": "b"}]


@pytest.mark.parametrize(
    ("questions", "what"), [("How?", "one question"), ({"question": "How?"}, "one question"), (None, "None"), (5, "5")]
)
def test_one_question_is_not_several(server: Any, transport: str, call: Ask, questions: Any, what: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"is {what}; give a list of them, or call `answer`"):
        call(server.urls[transport], "answer_questions", "a", questions)


def test_an_iterator_of_labels_is_for_every_question(server: Any, call: Ask) -> None:
    pairs = [(f"{i}", "b") for i in range(3)]
    call(server.urls["rest"], "answer_many", pairs, choices=(label for label in ("good", "bad")))
    labels = [[choice["label"] for choice in request["choices"]] for request in server.script.requests]
    assert labels == [["good", "bad"]] * 3


@pytest.mark.parametrize("status", [500, 502, 504])
def test_a_proxy_whose_server_has_gone_is_asked_again(server: Any, call: Ask, status: int) -> None:
    server.script.failures = [(status, "no json")]
    assert call(server.urls["rest"], "answer", "a", "b").text == "Paris yes"
    assert len(server.script.requests) == 2


@pytest.mark.parametrize("status", [499, 500])
def test_a_call_that_ends_without_a_word_is_made_again(server: Any, call: Ask, status: int) -> None:
    """CANCELLED by a server that ends or drops calls, INTERNAL by Ray's proxy, whose replica has gone."""
    server.script.failures = [(status, "no json")]
    assert call(server.urls["grpc"], "answer", "a", "b").text == "Paris yes"
    assert len(server.script.requests) == 2


@pytest.mark.parametrize("how", ["closed", "reset"])
def test_a_connection_that_breaks_off_is_made_anew(server: Any, call: Ask, how: str) -> None:
    """As at the end of a server."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as threads:

        def forward() -> None:
            broken, _ = listener.accept()
            broken.recv(65536)
            if how == "reset":
                broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            broken.close()
            taken, _ = listener.accept()
            with taken, socket.create_connection(("127.0.0.1", int(server.urls["rest"].rpartition(":")[2]))) as onward:
                back = threads.submit(_pump, onward, taken)
                _pump(taken, onward)
                back.result()

        forwarding = threads.submit(forward)
        assert call(f"http://127.0.0.1:{listener.getsockname()[1]}", "answer", "a", "b").text == "Paris yes"
        forwarding.result()


def test_slow_requests_are_told_in_time(server: Any, call: Ask) -> None:
    server.script.failures = [(408, "request_too_slow")]
    with pytest.raises(DeadlineExceededError) as raised:
        call(server.urls["rest"], "answer", "a", "b")
    assert raised.value.code == "request_too_slow"


def test_a_connection_that_nobody_speaks_on_is_made_anew(
    server: Any, call: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [(name, 500 if name.endswith("backoff_ms") else value) for name, value in rpc._OPTIONS]
    monkeypatch.setattr(rpc, "_OPTIONS", tuple(options))  # gRPC itself waits 20 s
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as threads:
        address = ("127.0.0.1", int(server.urls["grpc"].rpartition(":")[2]))

        def forward() -> None:
            silent, _ = listener.accept()
            taken, _ = listener.accept()
            with silent, taken, socket.create_connection(address) as onward:
                back = threads.submit(_pump, onward, taken)
                _pump(taken, onward)
                back.result()

        forwarding = threads.submit(forward)
        started = time.monotonic()
        url = f"grpc://127.0.0.1:{listener.getsockname()[1]}"
        assert call(url, "answer", "a", "b", timeout_s=30.0).text == "Paris yes"
        assert time.monotonic() - started < 15
        forwarding.result(timeout=10)


async def test_a_response_that_trickles_is_given_up_in_time(call: Ask) -> None:
    gone = asyncio.Event()

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n")
        with suppress(OSError):
            for _ in range(1000):
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.05)
        writer.close()
        gone.set()

    server = await asyncio.start_server(trickle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    begun = time.monotonic()
    async with server:
        with pytest.raises(DeadlineExceededError):
            await asyncio.to_thread(call, f"http://127.0.0.1:{port}", "answer", "a", "b", timeout_s=0.5)
        assert time.monotonic() - begun < 25
        await asyncio.wait_for(gone.wait(), 60)


@pytest.mark.parametrize("parts", [0, 1, 1000])
async def test_a_stream_is_given_up_in_time(parts: int) -> None:
    """Whether nothing comes, headers and then nothing, or headers that do not end."""

    gone = asyncio.Event()

    async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        with suppress(OSError):
            if parts:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
            for i in range(parts):
                writer.write(b"\r\n" if parts == 1 else b"x-more-%d: 1\r\n" % i)
                await writer.drain()
                await asyncio.sleep(0.05)
            await reader.read()
        writer.close()
        gone.set()

    server = await asyncio.start_server(stall, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    begun = time.monotonic()
    async with server, AsyncClient(url, timeout_s=0.5) as client:
        with pytest.raises(DeadlineExceededError):
            async for _ in client.answer_stream("a", "b"):
                pass
        assert time.monotonic() - begun < 25
        await asyncio.wait_for(gone.wait(), 60)


def test_the_longest_wait_is_kept_however_often_it_failed() -> None:
    assert Retries(max_attempts=5000).longest_wait_s(4000) == 2.0


def test_a_time_that_is_no_number_is_refused(server: Any, transport: str, call: Ask) -> None:
    with pytest.raises(InvalidRequestError, match="timeout_s is not a number"):
        call(server.urls[transport], "answer", "a", "b", timeout_s=math.nan)


@pytest.mark.parametrize("password", ["se/cret", "se@cret", "secret", ""])
@pytest.mark.parametrize(("kind", "scheme", "api_key"), [(Client, "http", None), (AsyncClient, "grpc", "mqan_key")])
def test_a_url_with_a_password_is_refused_and_not_shown(
    kind: Any, scheme: str, password: str, api_key: str | None
) -> None:
    with pytest.raises(ValueError, match=f"'{scheme}://127.0.0.1:8000' ") as raised:
        kind(f"{scheme}://user:{password}@127.0.0.1:8000", api_key=api_key)
    assert not re.search("cret|user:", str(raised.value))


@pytest.mark.parametrize("host", ["a..b", ".a", "a" * 64])
def test_a_host_that_no_name_server_knows_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match="its host or port is none"):
        Client(f"http://{host}:8000")


def test_urls_with_ports_and_addresses_are_taken() -> None:
    assert split_url("grpc://example.org.:1") == ("grpc", "example.org.:1")
    assert split_url("http://[::1]:8000/base") == ("http", "[::1]:8000")
    assert split_url("grpc://127.0.0.1:0") == ("grpc", "127.0.0.1:0")


def _pump(source: socket.socket, sink: socket.socket) -> None:
    while data := source.recv(65536):
        sink.sendall(data)
    with suppress(OSError):  # it may have gone first
        sink.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize(
    ("status", "kind"), [(200, ServerError), (301, ServerError), (404, ServerError), (401, UnauthenticatedError)]
)
def test_what_is_no_mqan_server(server: Any, call: Ask, status: int, kind: type[ClientError]) -> None:
    server.script.failures, server.script.location = [(status, "no json")], "https://host/login"
    onward = "; it points to 'https://host/login'" if status == 301 else ""
    told = f"The server answered HTTP {status}. That is no document of a mqan server: check the URL{onward}."
    with pytest.raises(kind, match=f"^{re.escape(told)}$"):
        call(server.urls["rest"], "answer", "a", "b")


def test_a_proxy_is_not_taken_for_another_service(server: Any, call: Ask) -> None:
    server.script.failures = [(502, "no json")]
    with pytest.raises(UnavailableError, match=r"^The server answered HTTP 502\.$"):
        call(server.urls["rest"], "answer", "a", "b", retries=Retries(max_attempts=1))


def test_a_response_may_be_longer_than_grpc_takes_by_itself(server: Any, call: Ask) -> None:
    server.script.text = "a" * 5_000_000
    assert call(server.urls["grpc"], "answer", "a", "b").text == server.script.text


@pytest.mark.parametrize("url", ["127.0.0.1:9000", "ftp://host", "grpc://", "", "http:///path"])
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(ValueError, match="is not a server's URL"):
        Client(url)
    with pytest.raises(ValueError, match="is not a server's URL"):
        AsyncClient(url)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_what_cannot_be_opened_is_a_value_error(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for scheme in ("http", "grpc"):
        for url in (f"{scheme}://127.0.0.1:8000\r", f"{scheme}://ho st", f" {scheme}://host"):
            with pytest.raises(ValueError, match="it has characters that no URL has, such as a line end"):
                kind(url)
        with pytest.raises(ValueError, match="is not a server's URL") as refused:
            kind(f"{scheme}://ada:secret@host\n")
        assert "secret" not in str(refused.value)
    with pytest.raises(ValueError, match="is not a server's URL"):
        kind("http://1.2.3.999")
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    monkeypatch.setitem(sys.modules, "socksio", None)
    with pytest.raises(ValueError, match=r"the proxy in the environment \(ALL_PROXY"):
        kind("http://127.0.0.1:8000")


@pytest.mark.parametrize("url", ["https://host", "HTTPS://host"])
def test_tls_is_verified_however_the_scheme_is_written(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    verified = []

    def open_http(**given: Any) -> None:
        verified.append(given["verify"])

    monkeypatch.setattr(httpx2, "AsyncClient", open_http)
    RestTransport(url, QUICK, {})
    assert verified == [True]


@pytest.mark.parametrize("key", ["", "two words", "line\nbreak", "clé"])
def test_keys_that_are_none(key: str) -> None:
    with pytest.raises(ValueError, match="API key"):
        Client(api_key=key)
    with pytest.raises(ValueError, match="API key"):
        AsyncClient(api_key=key)


def test_a_client_may_be_shared_by_threads(server: Any, transport: str) -> None:
    num_before = threading.active_count()
    with Client(server.urls[transport], retries=QUICK) as client, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda i: client.answer(f"context {i}", "q").text, range(64)))
    assert answers == ["Paris yes"] * 64
    assert sorted(r["context"] for r in server.script.requests) == sorted(f"context {i}" for i in range(64))
    assert threading.active_count() < num_before + 20


async def test_an_async_client_asks_many_things_at_once(server: Any, transport: str) -> None:
    server.script.at_least = 9
    async with AsyncClient(server.urls[transport], retries=QUICK) as client:
        await asyncio.gather(*(client.answer(f"context {i}", "q") for i in range(32)))
    assert server.script.most_at_once > 8


_MANY = """
import signal
from mqan_client import Client
signal.signal(signal.SIGINT, signal.default_int_handler)
with Client({url!r}) as client:
    client.answer_many([("a", "b")] * 8, concurrency=4, timeout_s=60.0)
"""


def wait_until_asleep(process: int) -> None:
    """Wait until the main thread of a process waits for something, as it does for a tenth of a second.

    CPython may lose an interrupt, or fail on it, that comes while a thread starts or begins to wait.
    """
    deadline, asleep = time.monotonic() + 30, 0
    while asleep < 10:
        assert time.monotonic() < deadline
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if state == "S" else 0
        time.sleep(0.01)


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_ctrl_c_ends_many_questions_at_once(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        url = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}"
        program = subprocess.Popen([sys.executable, "-c", _MANY.format(url=url)], stderr=subprocess.PIPE, text=True)
        with silent.accept()[0]:  # its questions are on their way
            wait_until_asleep(program.pid)
            begun = time.monotonic()
            program.send_signal(signal.SIGINT)
            _, told = program.communicate(timeout=90)
        assert time.monotonic() - begun < 45
    assert program.returncode == -signal.SIGINT
    assert told.splitlines()[-1] == "KeyboardInterrupt"


def test_the_server_and_the_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQAN_SERVER", "nonsense://a")
    with pytest.raises(ValueError, match="nonsense://a"):
        Client()
    Client("http://127.0.0.1:8000").close()
    monkeypatch.setenv("MQAN_API_KEY", "not a key")
    with pytest.raises(ValueError, match="key"):
        Client("http://127.0.0.1:8000")
    Client("http://127.0.0.1:8000", api_key="mqan_key").close()


def test_a_mistyped_option_is_guessed() -> None:
    with Client("http://127.0.0.1:9") as client, pytest.raises(InvalidRequestError, match="did you mean yes_no"):
        client.answer("a", "b", yesno=True)  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", [ClientError, *ClientError.__subclasses__()])
def test_errors_come_back_from_another_process(kind: type[ClientError]) -> None:
    error = kind("A message.", code="a_code", request_id="id-1")
    error.add_note("A note.")
    for found in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(found) is kind
        assert (str(found), found.args) == ("A message.", ("A message.",))
        assert (found.message, found.code, found.request_id) == ("A message.", "a_code", "id-1")
        assert found.__notes__ == ["A note."]
