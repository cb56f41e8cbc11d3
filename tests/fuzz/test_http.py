"""Raw HTTP/1.1 and HTTP/2 under fuzzing: whatever a peer sends, the server stays well and others are answered.

MQAN_FUZZ_CASES=1000 pytest -s tests/fuzz/test_http.py
"""

import asyncio
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import grpc
import pytest

from mqan.v1 import answer_pb2
from mqan_serving.rpc.methods import SERVICE_NAME
from tests import http2
from tests.fuzz.conftest import Target, damaged
from tests.peer import Peer

_RAW_FOR_EACH_CASE = 10
_AT_ONCE = 20
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_BODY = json.dumps({"context": "the old harbour was closed", "question": "what ?", "max_answer_tokens": 2}).encode()
_HEAD = b"POST /v1/answer HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
SEEDS = (
    _HEAD + b"content-length: %d\r\n\r\n%s" % (len(_BODY), _BODY),
    _HEAD + b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(_BODY), _BODY),
    _HEAD + b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n%s" % (len(_BODY), _BODY),
    b"GET /health/ready HTTP/1.1\r\nhost: x\r\n\r\n" * 3,
    b"GET /v1/model HTTP/1.0\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
)
SCRAPS = (
    *(
        b"\r\n",
        b"\n",
        b"\0",
        b" ",
        b":",
        b"\r\n\r\n",
        b"\xff\xfe",
        b"%00",
        b"..;/",
        b"\t",
        b"x" * 9000,
        b"x: y\r\n" * 300,
    ),
    b"transfer-encoding: chunked\r\n",
    b"transfer-encoding: gzip, chunked\r\n",
    b"content-length: 5\r\n",
    b"content-length: -1\r\n",
    b"content-length: 99999999999999999999\r\n",
    b"host: y\r\n",
    b"connection: close, upgrade\r\n",
    b"FFFFFFFFFFFFFFFFF\r\n",
    b"0\r\nx: y\r\n\r\n",
    b"HTTP/9.9",
    b"http://evil.example/",
    http2.PREFACE,
)


async def send_raw(target: Target, data: bytes, chance: random.Random) -> None:
    """Send bytes in up to three pieces and say that no more come; what is answered must be no fault of the server."""
    peer = await Peer.connect(int(target.rest.rpartition(":")[2]))
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    await peer.send([data[: cuts[0]], data[cuts[0] : cuts[1]], data[cuts[1] :]])
    if peer.writer.can_write_eof() and not peer.writer.is_closing():
        with suppress(OSError):
            peer.writer.write_eof()
    received = await peer.rest()
    for status in _STATUS.findall(received):
        assert status < b"500", (data, received)
        target.note(status.decode(), "" if status < b"300" else received.decode("latin1"))


async def test_raw_bytes(target: Target, num_cases: int) -> None:
    chance = random.Random(23)
    left = [damaged(chance.choice(SEEDS), chance, SCRAPS) for _ in range(_RAW_FOR_EACH_CASE * num_cases)]

    async def work() -> None:
        while left:
            await send_raw(target, left.pop(), chance)

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))
    await send_raw(target, SEEDS[0], random.Random(1))
    assert target.replies["200"]
    assert target.replies["400"]


ANSWER = f"/{SERVICE_NAME}/Answer".encode()
MESSAGE = answer_pb2.AnswerRequest(
    context="the old harbour", question="what ?", max_answer_tokens=2
).SerializeToString()
_INITIAL_WINDOW = (4).to_bytes(2, "big")


def _continuation() -> Iterator[bytes]:
    yield http2.frame(http2.HEADERS, 0, 1, http2.call_headers(ANSWER))
    for _ in range(1_000):
        yield http2.frame(http2.CONTINUATION, 0, 1, http2.literal(b"x", b"y" * 100)) * 10


def _settings() -> Iterator[bytes]:
    for number in range(500):
        yield http2.frame(http2.SETTINGS, 0, 0, _INITIAL_WINDOW + (number % 1000).to_bytes(4, "big")) * 10


def _pings() -> Iterator[bytes]:
    for number in range(500):
        yield http2.frame(http2.PING, 0, 0, number.to_bytes(8, "big")) * 10


def _calls(begin: int, number: int) -> Iterator[bytes]:
    for stream in range(begin, begin + 2 * number, 2):
        head = http2.frame(http2.HEADERS, http2.END_HEADERS, stream, http2.call_headers(ANSWER))
        yield head + http2.frame(http2.DATA, http2.END_STREAM, stream, http2.message(MESSAGE))


def _unread() -> Iterator[bytes]:
    yield http2.frame(http2.SETTINGS, 0, 0, _INITIAL_WINDOW + bytes(4))  # no byte of a response may be sent
    yield from _calls(1, 300)


def _half_open() -> Iterator[bytes]:
    for stream in range(1, 1001, 2):
        yield http2.frame(http2.HEADERS, http2.END_HEADERS, stream, http2.call_headers(ANSWER))


def _windows() -> Iterator[bytes]:
    yield from _calls(1, 10)
    for _ in range(500):
        yield http2.frame(http2.WINDOW_UPDATE, 0, 0, (0x7FFFFFFF).to_bytes(4, "big")) * 10


def _noise() -> Iterator[bytes]:
    chance = random.Random(31)
    for _ in range(2_000):
        kind, flags, stream = chance.randrange(12), chance.randrange(256), chance.randrange(20)
        yield http2.frame(kind, flags, stream, chance.randbytes(chance.randrange(60)))


ATTACKS: dict[str, Callable[[], Iterator[bytes]]] = {
    "resets": lambda: http2.resets(ANSWER, MESSAGE, 3000),
    "resets without messages": lambda: http2.resets(ANSWER, None, 3000),
    "CONTINUATION": _continuation,
    "SETTINGS": _settings,
    "PING": _pings,
    "zero windows": _unread,
    "half-open calls": _half_open,
    "WINDOW_UPDATE": _windows,
    "noise": _noise,
}


def attack(port: int, kind: str, paces_s: float) -> None:
    """Send all of an attack, or what is taken of it."""
    try:
        with http2.connect(port) as peer:
            for pieces in ATTACKS[kind]():
                peer.sendall(pieces)
                http2.drain(peer)
                time.sleep(paces_s)  # a pace that a process of one core keeps up with beside its answers
    except OSError:  # it has been shown the door
        return


@pytest.mark.parametrize("kind", ATTACKS)
async def test_attacks_by_http2_lose_nobodys_calls(target: Target, kind: str) -> None:
    port = int(target.grpc.rpartition(":")[2])
    attacks = [asyncio.create_task(asyncio.to_thread(attack, port, kind, 0.005)) for _ in range(2)]
    seen: Counter[str] = Counter()
    async with grpc.aio.insecure_channel(target.grpc) as channel:
        call: Any = channel.unary_unary(ANSWER.decode())
        while not all(task.done() for task in attacks) or seen["OK"] < 5:
            try:
                await call(MESSAGE, timeout=30)
                seen["OK"] += 1
            except grpc.aio.AioRpcError as error:
                trailing: Any = error.trailing_metadata()
                seen[f"{error.code().name} {dict(trailing or ()).get('mqan-code')}"] += 1
            await asyncio.sleep(0.002)
    await asyncio.gather(*attacks)
    print(f"\n{kind}: {dict(seen)}")
    assert set(seen) <= {"OK", "RESOURCE_EXHAUSTED overloaded"}, seen
