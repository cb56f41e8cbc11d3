"""What a peer may send on a connection, or leave unsent, of the port of REST and of the one of metrics."""

import asyncio
import json
from collections.abc import Callable
from itertools import chain, repeat
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mqan_serving.observability.log_writer import WRITER
from mqan_serving.observability.logs import set_up_logs
from mqan_serving.rest import http_server
from tests.peer import Peer
from tests.serving.conftest import StartServer, log_lines, until

_POST = b"POST /v1/answer HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
_CHUNKED = _POST + b"transfer-encoding: chunked\r\n\r\n"
ENDLESS = {
    "line": (b"GET /", b"a" * 65536),
    "method": (b"", b"A" * 65536),
    "name": (b"GET / HTTP/1.1\r\nhost: x\r\n", b"a" * 65536),
    "value": (b"GET / HTTP/1.1\r\nhost: x\r\nx: ", b"a" * 65536),
    "headers": (b"GET / HTTP/1.1\r\nhost: x\r\n", b"x: a\r\n" * 5000),
    "trailers": (_CHUNKED + b"2\r\n{}\r\n0\r\n", b"x: a\r\n" * 5000),
    "trailer": (_CHUNKED + b"2\r\n{}\r\n0\r\nx: ", b"a" * 65536),
    "extension": (_CHUNKED + b"1;", b"a" * 65536),
    "size": (_CHUNKED, b"0" * 65536),
    "blank lines": (b"", b"\r\n" * 32768),
}


async def counted(callers: Any, code: str) -> float:
    text = (await callers.rest.get("/metrics")).text
    samples = (s for family in text_string_to_metric_families(text) for s in family.samples)
    return sum(s.value for s in samples if s.name == "mqan_requests_total" and s.labels["code"] == code)


def document(response: bytes) -> Any:
    return json.loads(response.partition(b"\r\n\r\n")[2])


@pytest.mark.parametrize("kind", ENDLESS)
async def test_what_has_no_end_is_refused_soon(start_server: StartServer, kind: str) -> None:
    callers = await start_server()
    begin, more = ENDLESS[kind]
    peer = await Peer.connect(callers.http_port)
    sent = await peer.send(chain([begin], repeat(more, 800)))
    response = await peer.rest()
    assert sent < 16_000_000, "buffers of the kernel, and no more"
    if response != b"reset":  # a peer that never stops to send need not read
        assert response.split(b" ")[1] in (b"431", b"400")
        assert b"connection: close" in response
        assert document(response)["code"] in ("metadata_too_large", "malformed_request")
    assert await counted(callers, "metadata_too_large") + await counted(callers, "malformed_request") == 1
    assert callers.service.num_requests == 0


async def test_health_answers_beside_64_endless_requests(start_server: StartServer) -> None:
    callers = await start_server()
    await callers.rest.get("/health/ready")
    over, num_sent = asyncio.Event(), 0

    async def attack(begin: bytes, more: bytes) -> None:
        nonlocal num_sent
        while not over.is_set():
            peer = await Peer.connect(callers.http_port)
            await peer.send(chain([begin], repeat(more, 100)))
            peer.writer.close()
            num_sent += 1

    kinds = list(ENDLESS.values())
    attacks = [asyncio.create_task(attack(*kinds[number % len(kinds)])) for number in range(64)]
    most_sent = 0  # while one call of health waits
    for _ in range(20):
        before = num_sent
        assert (await callers.rest.get("/health/ready")).status_code == 200
        most_sent = max(most_sent, num_sent - before)
    over.set()
    await asyncio.gather(*attacks)
    assert num_sent > 64
    assert most_sent < 2_000


@pytest.mark.parametrize("where", ["target", "header"])
async def test_the_refusal_can_be_read(start_server: StartServer, where: str) -> None:
    callers = await start_server(max_metadata_bytes=2000)
    long = b"a" * 100_000
    sent = b"GET /" + (long if where == "target" else b" HTTP/1.1\r\nx: " + long) + b"\r\n\r\n"
    peer = await Peer.connect(callers.http_port)
    await peer.send([sent])
    response = await peer.rest()
    assert response.startswith(b"HTTP/1.1 431 ")
    assert document(response)["code"] == "metadata_too_large"
    assert (await callers.rest.get("/v1/model?" + "a" * 1000)).status_code == 200
    refused = await callers.rest.get("/v1/model?" + "a" * 2000)
    assert (refused.status_code, refused.json()["code"]) == (431, "metadata_too_large")


async def test_trailers_are_no_headers(start_server: StartServer) -> None:
    callers = await start_server()
    body = json.dumps(callers.body).encode()
    peer = await Peer.connect(callers.http_port)
    trailers = b"x-request-id: trailing\r\ncontent-encoding: gzip\r\n"
    await peer.send([_CHUNKED, b"%x\r\n%s\r\n0\r\n" % (len(body), body), trailers, b"connection: close\r\n\r\n"])
    response = await peer.reader.readuntil(b"\r\n\r\n")
    assert response.startswith(b"HTTP/1.1 200 ")
    assert b"trailing" not in response
    peer.writer.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"BREW / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nx y: z\r\n\r\n",
        b"CONNECT a:1 H\r\n",
    ],
    ids=["TLS", "method", "header", "CONNECT"],
)
async def test_what_is_no_http_is_refused_counted_and_logged(
    start_server: StartServer, capsys: pytest.CaptureFixture[str], sent: bytes
) -> None:
    set_up_logs("info")
    callers = await start_server()
    peer = await Peer.connect(callers.http_port)
    await peer.send([sent])
    response = await peer.rest()
    assert response.startswith(b"HTTP/1.1 400 ")
    body = document(response)
    assert body["code"] == "malformed_request"
    assert b"x-request-id: " + body["request_id"].encode() in response
    assert await counted(callers, "malformed_request") == 1
    lines = log_lines(capsys)
    assert [line["code"] for line in lines if line.get("request_id") == body["request_id"]] == ["malformed_request"]


async def test_a_body_that_breaks_off_ends_its_own_request(start_server: StartServer) -> None:
    callers = await start_server()
    peer = await Peer.connect(callers.http_port)
    await peer.send([_CHUNKED + b"1\r\n{\r\n"])
    await peer.send([b"no size\r\n"])
    response = await peer.rest()
    assert response.startswith(b"HTTP/1.1 400 ")
    assert document(response)["code"] == "malformed_request"
    assert await counted(callers, "malformed_request") == 1


async def test_slow_heads_are_told_and_idle_connections_closed(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "_HEAD_S", 1.0)
    monkeypatch.setattr(http_server, "_IDLE_S", 1.0)
    callers = await start_server()
    slow, silent, idle, blank = [await Peer.connect(callers.http_port) for _ in range(4)]
    await slow.send([b"GET /health/live HTTP/1.1\r\nx: "])
    await idle.send([b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n"])
    assert (await idle.reader.readuntil(b"}")).startswith(b"HTTP/1.1 200 ")

    async def keep_busy(peer: Peer, piece: bytes) -> None:
        while not peer.writer.is_closing():
            peer.writer.write(piece)
            await asyncio.sleep(0.01)

    dripping = [asyncio.create_task(keep_busy(slow, b"a")), asyncio.create_task(keep_busy(idle, b"\r\n"))]
    response = await slow.rest()
    assert response.startswith(b"HTTP/1.1 408 ")
    assert document(response)["code"] == "request_too_slow"
    assert [await peer.rest() for peer in (silent, blank)] == [b"", b""]
    assert (await idle.rest()).startswith(b"HTTP/1.1 408 "), "blank lines are no request"
    await asyncio.gather(*dripping, return_exceptions=True)
    assert await counted(callers, "request_too_slow") == 2


async def test_slow_bodies_are_told(start_server: StartServer) -> None:
    callers = await start_server(request_timeout_s=0.3)
    peer = await Peer.connect(callers.http_port)
    await peer.send([_POST + b"content-length: 100\r\n\r\n", b"{"])
    response = await peer.rest()
    assert response.startswith(b"HTTP/1.1 408 ")
    assert document(response)["code"] == "request_too_slow"
    assert await counted(callers, "request_too_slow") == 1


async def test_incomplete_bodies_have_a_bound_together(start_server: StartServer) -> None:
    callers = await start_server(max_request_bytes=10_000)
    peers = [await Peer.connect(callers.http_port) for _ in range(70)]
    for peer in peers:
        await peer.send([_POST + b"content-length: 9999\r\n\r\n" + b" " * 9998])
    told = [asyncio.ensure_future(peer.reader.readuntil(b"}")) for peer in peers]
    await until(lambda: sum(task.done() for task in told) >= 70 - 64)
    await asyncio.sleep(0.2)  # in which more would come
    refused = [task.result() for task in told if task.done()]
    assert len(refused) == 70 - 64
    for response in refused:
        assert response.startswith(b"HTTP/1.1 429 ")
        assert b"retry-after: 1" in response
    assert (await callers.post()).status_code == 200, "short ones find room"
    assert (await callers.post(context="a " * 1000)).status_code == 429
    for peer, task in zip(peers, told, strict=True):
        task.cancel()
        peer.writer.close()
    await until(lambda: len(_connections(callers)) <= 1)
    assert (await callers.post(context="a " * 1000)).status_code == 200


async def test_the_idlest_connection_makes_room(start_server: StartServer, engine: Any) -> None:
    callers = await start_server(max_connections=8)
    engine.may_answer.clear()
    working = asyncio.create_task(callers.post())
    await until(lambda: callers.service.num_requests == 1)
    silent = [await Peer.connect(callers.http_port) for _ in range(40)]
    await until(lambda: len(_connections(callers)) == 8)
    gone = await asyncio.gather(*(peer.rest() for peer in silent[:33]))
    assert set(gone) <= {b"", b"reset"}
    assert not silent[-1].reader.at_eof()
    for peer in silent:
        peer.writer.close()
    engine.may_answer.set()
    assert (await working).status_code == 200


async def test_a_server_full_of_working_connections_says_so(start_server: StartServer, engine: Any) -> None:
    callers = await start_server(max_connections=8)
    engine.may_answer.clear()
    body = json.dumps(callers.body).encode()
    working = [await Peer.connect(callers.http_port) for _ in range(8)]
    for peer in working:
        await peer.send([_POST + b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body)])
    await until(lambda: callers.service.num_requests == 8)
    response = await (await Peer.connect(callers.http_port)).rest()
    assert response.startswith(b"HTTP/1.1 429 ")
    assert b"retry-after: 1" in response
    engine.may_answer.set()
    assert {(await peer.rest())[:13] for peer in working} == {b"HTTP/1.1 200 "}


def _connections(callers: Any) -> set[Any]:
    found: set[Any] = callers.server._http.server_state.connections
    return found


async def test_an_upgrade_is_not_made_and_not_spoken_of(
    start_server: StartServer, capsys: pytest.CaptureFixture[str]
) -> None:
    callers = await start_server()
    upgrade = b"GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
    peer = await Peer.connect(callers.http_port)
    await peer.send([upgrade])
    assert (await peer.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    peer.writer.close()
    assert WRITER.flush(1.0)
    assert "pgrade" not in capsys.readouterr().err


async def test_metrics_port_has_the_same_bounds(
    start_server: StartServer, free_ports: Callable[[int], list[int]]
) -> None:
    (port,) = free_ports(1)
    callers = await start_server(metrics_port=port)
    peer = await Peer.connect(port)
    await peer.send([b"GET /metrics HTTP/1.1\r\nx: " + b"a" * 50_000])
    assert (await peer.rest()).startswith(b"HTTP/1.1 431 ")
    assert (await callers.rest.get(f"http://127.0.0.1:{port}/metrics")).status_code == 200


async def test_only_allowed_hosts_are_served(start_server: StartServer) -> None:
    callers = await start_server(allowed_hosts="answers.example, Other.Example")
    for host in ("answers.example", "ANSWERS.example:80", "other.example.", "localhost:1", "127.0.0.1", "[::1]:8000"):
        assert (await callers.rest.get("/v1/model", headers={"host": host})).status_code == 200, host
    for host in ("evil.example", "answers.example.evil.example", "xanswers.example", "", "answers.example:x", "::1:"):
        for path in ("/v1/model", "/", "/metrics"):
            response = await callers.rest.get(path, headers={"host": host})
            assert (response.status_code, response.json()["code"]) == (421, "unknown_host"), host
    peer = await Peer.connect(callers.http_port)
    await peer.send([b"GET / HTTP/1.1\r\nhost: answers.example\r\nhost: evil.example\r\nconnection: close\r\n\r\n"])
    assert (await peer.rest()).startswith(b"HTTP/1.1 421 ")
