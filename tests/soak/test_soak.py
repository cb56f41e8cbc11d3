"""A long mixed load: a server's memory does not grow, and it always has the same threads and files.

Bounded in the test suite; in full, printing its figures:

    MQAN_SOAK_SECONDS=3600 pytest -s --session-timeout 9000 tests/soak
"""

import itertools
import json
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import grpc
import httpx2
import pytest

from mqan.v1 import answer_pb2, answer_pb2_grpc
from tests.load.test_load import Case, document, make_cases
from tests.processes import PROXY, REPLICA, Held, descendants, held_by

SECONDS = float(os.environ.get("MQAN_SOAK_SECONDS", "12"))  # of load
_SHORT_S = 300.0  # in a shorter load buffers still fill that are used once: 6 % was seen
_MOST_GROWTH = 0.01 if SECONDS >= _SHORT_S else 0.2  # of memory, in the second half
_KINDS = ["local", "ray"] if SECONDS >= _SHORT_S else ["local"]
_NUM_SAMPLES = 200
_LOOKS_ALIKE = 10  # a second apart
_PAUSE_S = 0.05  # of those who do not ask for an answer
_SLACK = 3  # files: connections come and go
_CASES = make_cases(48)
pytestmark = pytest.mark.timeout(SECONDS + 300)

Act = Callable[[Case], str]  # does something to the server; returns how that ended
Actor = Callable[[Any], AbstractContextManager[Act]]


@contextmanager
def asks_by_rest(server: Any) -> Iterator[Act]:
    """Ask a good question."""
    with httpx2.Client(base_url=server.rest, trust_env=False, timeout=60) as client:

        def act(case: Case) -> str:
            return f"REST {client.post('/v1/answer', json=document(case)).status_code}"

        yield act


@contextmanager
def asks_by_rpc(server: Any) -> Iterator[Act]:
    """Ask a good question; every third time without the time for it."""
    number = itertools.count()
    with grpc.insecure_channel(server.rpc, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        stub = answer_pb2_grpc.QuestionAnsweringStub(channel)

        def act(case: Case) -> str:
            timeout_s = 0.004 if next(number) % 3 == 0 else 60
            try:
                stub.Answer(answer_pb2.AnswerRequest(**document(case)), timeout=timeout_s)
            except grpc.RpcError as error:
                return f"gRPC {error.code().name}"
            return "gRPC OK"

        yield act


@contextmanager
def asks_badly(server: Any) -> Iterator[Act]:
    """Ask what is refused."""
    bodies: Iterator[bytes] = itertools.cycle(
        [b"{", b'{"context": "c"}', json.dumps({"context": "x " * 9000, "question": "q"}).encode(), b"x" * (2**20 + 1)]
    )
    with httpx2.Client(base_url=server.rest, trust_env=False, timeout=60) as client:

        def act(_: Case) -> str:
            time.sleep(_PAUSE_S)
            headers = {"content-type": "application/json"}
            return f"REST {client.post('/v1/answer', content=next(bodies), headers=headers).status_code}"

        yield act


@contextmanager
def goes_away(server: Any) -> Iterator[Act]:
    """Ask, and do not wait for the answer."""
    host, port = server.rest.removeprefix("http://").split(":")

    def act(case: Case) -> str:
        body = json.dumps(document(case)).encode()
        head = f"POST /v1/answer HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(head.encode() + b"\r\n\r\n" + body)
            time.sleep(_PAUSE_S / 10)
        time.sleep(_PAUSE_S)
        return "went away"

    yield act


@contextmanager
def looks_around(server: Any) -> Iterator[Act]:
    """Read metrics, the model, health, and what there is not."""
    paths = itertools.cycle(["/metrics", "/v1/model", "/health/ready", "/nothing"])
    with httpx2.Client(base_url=server.rest, trust_env=False, timeout=60) as client:

        def act(_: Case) -> str:
            time.sleep(_PAUSE_S)
            return f"GET {client.get(next(paths)).status_code}"

        yield act


_ACTORS: tuple[Actor, ...] = (asks_by_rest, asks_by_rest, asks_by_rpc, asks_by_rpc, asks_badly, goes_away, looks_around)
_EXPECTED = {
    *("REST 200", "REST 400", "REST 413", "REST 422", "gRPC OK", "gRPC DEADLINE_EXCEEDED", "went away"),
    *("GET 200", "GET 404"),
}


def find_processes(server: Any) -> dict[str, int]:
    """Return a server's processes by name, once the proxy that Ray has just replaced by another has ended."""
    if server.kind == "local":
        return {server.kind: server.process.pid}
    found: list[dict[str, int]] = []
    while len(found) < _LOOKS_ALIKE or found[-_LOOKS_ALIKE:] != found[-1:] * _LOOKS_ALIKE:
        time.sleep(1)
        found.append({server.kind: server.process.pid})
        for name in (REPLICA, PROXY):
            found[-1] |= {f"{name} {i}": process for i, process in enumerate(descendants(server.process.pid, name))}
    return found[-1]


def load(server: Any, seconds: float) -> tuple[dict[str, list[Held]], Counter[str]]:
    """Load a server; return what its processes held, sample by sample, and how often what happened."""
    processes = find_processes(server)
    samples: dict[str, list[Held]] = {name: [] for name in processes}
    over = threading.Event()

    def run(actor: Actor, first: int) -> Counter[str]:
        own: Counter[str] = Counter()
        with actor(server) as act:
            for place in itertools.count(first):
                if over.is_set():
                    return own
                try:
                    own[act(_CASES[place % len(_CASES)])] += 1
                except Exception as error:  # a load goes on, and tells
                    own[f"{type(error).__name__}: {error}"] += 1
        return own

    with ThreadPoolExecutor(len(_ACTORS)) as executor:
        running = [executor.submit(run, actor, 7 * i) for i, actor in enumerate(_ACTORS)]
        try:
            time.sleep(min(3.0, seconds / 4))  # most buffers have been used once
            for _ in range(_NUM_SAMPLES):
                time.sleep(seconds / _NUM_SAMPLES)
                assert server.process.poll() is None, server.log.read_text()[-3000:]
                for name, process in processes.items():
                    samples[name].append(held_by(process))
        finally:
            over.set()
    return samples, sum((future.result() for future in running), Counter())


def find_growth(samples: dict[str, list[Held]]) -> list[str]:
    """Compare the last quarter with the second; return what has grown.

    Memory is compared at its most, threads and files at their fewest: connections come and go.
    """
    grown = []
    for name, held in samples.items():
        quarter, tenth = len(held) // 4, len(held) // 10
        over_time = [max(h.memory_kib for h in held[at : at + tenth]) for at in range(0, 10 * tenth, tenth)]
        print(f"  memory_kib of {name}, at its most in each tenth: {over_time}")
        for what, find, allowed in (("memory_kib", max, _MOST_GROWTH), ("threads", min, 0), ("files", min, _SLACK)):
            before, after = (
                find(getattr(h, what) for h in some) for some in (held[quarter : 2 * quarter], held[-quarter:])
            )
            print(f"  {what} of {name}: {before}, then {after}: {after / before - 1:+.2%}")
            if after > before + (allowed * before if what == "memory_kib" else allowed):
                grown.append(f"{what} of {name}")
    return grown


@pytest.mark.parametrize("kind", _KINDS)
def test_nothing_grows(start_server: Any, kind: str) -> None:
    server = start_server(kind)
    samples, outcomes = load(server, SECONDS)
    print(f"\n{kind}, {SECONDS:.0f} s: {dict(outcomes)}")
    grown = find_growth(samples)
    assert set(outcomes) == _EXPECTED
    assert outcomes["REST 200"] + outcomes["gRPC OK"] > SECONDS
    assert grown == []
    assert server.stop() == 0
