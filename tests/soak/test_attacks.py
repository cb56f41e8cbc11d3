"""Honest callers beside attacks of all kinds: they lose nothing, and wait at most three times as long.

Bounded in the test suite, where times are only printed; in full:

    MQAN_SOAK_SECONDS=1800 pytest -s --session-timeout 9000 tests/soak/test_attacks.py
"""

import asyncio
import itertools
import logging
import multiprocessing
import os
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import grpc
import httpx2
import pytest

from mqan.v1 import answer_pb2, answer_pb2_grpc
from mqan_serving.default_bundle import default_bundle
from tests.cli.test_mcp import listening
from tests.fuzz.conftest import damaged
from tests.fuzz.test_http import ATTACKS, SCRAPS, SEEDS, attack
from tests.load.test_load import Case, document, make_cases
from tests.peer import Peer
from tests.serving.test_connections import ENDLESS
from tests.serving.test_hostile_texts import TEXTS

SECONDS = float(os.environ.get("MQAN_SOAK_SECONDS", "12"))
_QUIET = 0.25  # of the time: before the attacks
_SHORT_S = 300.0  # in a shorter load a handful of answers decides
_MOST_TIMES = 3  # as long
_PAUSE_S = 0.05  # of an honest caller
_START_S = 60.0  # of the process that attacks
_CASES = make_cases(48)
_ACCEPT = {"accept": "application/json, text/event-stream"}

pytestmark = pytest.mark.timeout(SECONDS + 600)


@dataclass
class Seen:
    """How calls ended, and how long they took."""

    outcomes: Counter[str] = field(default_factory=Counter)
    times_s: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{dict(self.outcomes)}, p50 {statistics.median(self.times_s):.3f} s, p99 {self.p99_s:.3f} s"

    @property
    def p99_s(self) -> float:
        """Seconds that one call in a hundred took longer than."""
        return statistics.quantiles(self.times_s, n=100)[98]


def ask_by_rest(server: Any, case: Case) -> str:
    """Ask on a connection of its own."""
    response = httpx2.post(f"{server.rest}/v1/answer", json=document(case), trust_env=False, timeout=60)
    return f"REST {response.status_code}"


def ask_by_rpc(server: Any, case: Case) -> str:
    """Ask on a connection of its own."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
    channel = grpc.insecure_channel(server.rpc, options)
    try:
        answer_pb2_grpc.QuestionAnsweringStub(channel).Answer(answer_pb2.AnswerRequest(**document(case)), timeout=60)
    except grpc.RpcError as error:
        return f"gRPC {error.code().name} {error.details()}"
    finally:
        channel.close()
    return "gRPC OK"


def ask_by_mcp(url: str, case: Case) -> str:
    """Ask a tool on a connection of its own."""
    asked = document(case)
    call = {"name": "answer", "arguments": {name: asked[name] for name in ("context", "question")}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    response = httpx2.post(url, json=body, headers=_ACCEPT, trust_env=False, timeout=60)
    return f"MCP {response.status_code}{' error' if response.json()['result'].get('isError') else ''}"


def ask_for(server: Any, url: str, seconds: float) -> Seen:
    """Let honest callers ask for some time; return what they saw."""
    end = time.monotonic() + seconds

    def run(ask: Callable[[Any, Case], str], first: int) -> Seen:
        own, cases = Seen(), itertools.cycle(_CASES[first:] + _CASES[:first])
        while (begun := time.monotonic()) < end:
            try:
                own.outcomes[ask(url if ask is ask_by_mcp else server, next(cases))] += 1
            except httpx2.TransportError as error:
                own.outcomes[type(error).__name__] += 1
            own.times_s.append(time.monotonic() - begun)
            time.sleep(_PAUSE_S)
        return own

    callers = [ask_by_rest, ask_by_rpc, ask_by_rest, ask_by_rpc, ask_by_mcp]
    with ThreadPoolExecutor(len(callers)) as executor:
        found = list(executor.map(run, callers, range(0, 48, 9)))
    return Seen(sum((one.outcomes for one in found), Counter()), [t for one in found for t in one.times_s])


async def send(port: int, pieces: list[bytes]) -> None:
    """Send, as far as it is taken, on a connection of its own."""
    with suppress(OSError):
        peer = await Peer.connect(port)
        await peer.send(pieces)
        peer.writer.close()


async def drip(port: int, over: Event) -> None:
    """Keep connections open that say little or nothing."""
    with suppress(OSError):
        peers = [await Peer.connect(port) for _ in range(50)]
        for _ in range(10):
            if over.is_set():
                break
            for peer in peers[::2]:
                peer.writer.write(b"A")
            await asyncio.sleep(1)
        for peer in peers:
            peer.writer.close()


def ask_about(port: int, text: str) -> None:
    """Ask about a text, whatever becomes of it."""
    body = {"context": text, "question": "Where?", "max_answer_tokens": 1}
    with suppress(httpx2.TransportError), httpx2.Client(trust_env=False, timeout=60) as client:
        client.post(f"http://127.0.0.1:{port}/v1/answer", json=body)


def ask_much(port: int, path: str, body: dict[str, Any]) -> None:
    """Ask for what takes long, or is refused for it, whatever becomes of it."""
    with suppress(httpx2.TransportError), httpx2.Client(trust_env=False, timeout=60) as client:
        client.post(f"http://127.0.0.1:{port}{path}", json=body)


def ask_for_stream(url: str) -> None:
    """Ask MCP for a stream, which nothing would end."""
    with suppress(httpx2.TransportError), httpx2.Client(trust_env=False, timeout=60) as client:
        client.get(url, headers=_ACCEPT)


def heavy_calls() -> list[tuple[str, dict[str, Any]]]:
    """Return calls of few bytes: lines of a list that a pattern could take for ever, and labels for many texts."""
    labels, context = [f"v{i}" for i in range(255)], "The total is 5 EUR."
    listed = "Choose one of these options\n- a" + ", or" * 33 + "x\n- b\n- c"
    of_labels = {"parameters": {"candidate_labels": labels}}
    return [
        ("/v1/answer", {"context": context, "question": listed}),
        ("/v1/hf/zero-shot-classification", {"inputs": [context] * 256, **of_labels}),
        ("/v1/hf/zero-shot-classification", {"inputs": [context] * 4, **of_labels}),
        (
            "/v1/records",
            {"context": context, "schema": {"properties": {f"f{i}": {"enum": labels} for i in range(256)}}},
        ),
    ]


def run_attacks(http_port: int, grpc_port: int, url: str, begun: Event, over: Event) -> None:
    """Attack in all ways at once until it is over, each way at a pace that one core beside the server's keeps up."""
    logging.getLogger("asyncio").setLevel("ERROR")  # it warns of each peer that has closed
    chance = random.Random(41)
    endless, kinds, texts, heavy = list(ENDLESS.values()), list(ATTACKS), list(TEXTS.values()), heavy_calls()

    def send_endless() -> None:
        begin, more = chance.choice(endless)
        asyncio.run(send(http_port, [begin, *[more] * 200]))

    ways: list[tuple[Callable[[], None], float]] = [  # and the seconds between two of a way
        (lambda: asyncio.run(send(http_port, [damaged(chance.choice(SEEDS), chance, SCRAPS)])), 0.05),
        (send_endless, 0.25),
        (lambda: asyncio.run(drip(http_port, over)), 0.0),
        (lambda: ask_about(http_port, chance.choice(texts)), 2.0),
        (lambda: attack(grpc_port, chance.choice(kinds), 0.02), 1.0),
        (lambda: ask_much(http_port, *chance.choice(heavy)), 1.0),
        (lambda: ask_for_stream(url), 0.25),
    ]

    def repeat(way: Callable[[], None], pause_s: float) -> None:
        while not over.wait(pause_s):
            way()

    with ThreadPoolExecutor(len(ways)) as executor:
        running = [executor.submit(repeat, *way) for way in ways]
        begun.set()
    for one in running:
        one.result()  # an attack that has broken off is none


def test_honest_callers_lose_nothing_beside_attacks(
    start_server: Any, free_ports: Callable[[int], list[int]], tmp_path: Path
) -> None:
    server = start_server("local", bundle=default_bundle(), log_level="error")
    http_port, grpc_port = (int(address.rpartition(":")[2]) for address in (server.rest, server.rpc))
    processes = multiprocessing.get_context("spawn")
    begun, over = processes.Event(), processes.Event()
    with listening(free_ports(1)[0], tmp_path / "log", MQAN_SERVER=server.rest) as url:
        ask_for(server, url, 1)  # what is set up once
        quiet = ask_for(server, url, _QUIET * SECONDS)
        attacker = processes.Process(target=run_attacks, args=(http_port, grpc_port, url, begun, over))
        attacker.start()
        try:
            assert begun.wait(_START_S)
            attacked = ask_for(server, url, (1 - _QUIET) * SECONDS)
        finally:
            over.set()
            attacker.join()
    counted = httpx2.get(f"{server.rest}/metrics", trust_env=False, timeout=60).text.splitlines()
    print(f"\nalone: {quiet}\nbeside attacks: {attacked}")
    print("\n".join(line for line in counted if line.startswith("mqan_requests_total")))
    assert set(quiet.outcomes + attacked.outcomes) == {"REST 200", "gRPC OK", "MCP 200"}
    assert attacker.exitcode == 0
    if SECONDS >= _SHORT_S:
        assert attacked.p99_s <= _MOST_TIMES * quiet.p99_s
    assert server.stop() == 0
