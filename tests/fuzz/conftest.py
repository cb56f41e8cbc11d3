"""A server for fuzzing, and what no reply may hold."""

import asyncio
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mqan_export.engine import Engine
from mqan_serving.local import LocalServer
from mqan_serving.service import AnswerService
from mqan_serving.settings import load_settings
from mqan_serving.telemetry import set_up_logs

_INTERNAL = re.compile(r"Traceback|File \"|\.py\b|site-packages|/(?:usr|root|home|tmp|proc|srv)/|\b0x[0-9a-f]{6,}\b")


@dataclass
class Target:
    """A server over a small untrained bundle, and how it has replied."""

    rest: str
    grpc: str
    replies: Counter[str] = field(default_factory=Counter)

    def note(self, status: str, message: str) -> None:
        """Count a reply; one that is no answer must say nothing of the server's insides."""
        self.replies[status] += 1
        found = _INTERNAL.search(message)
        assert found is None, f"{status} tells {found and found[0]!r}: {message}"


@pytest.fixture(scope="session")
def num_cases() -> int:
    """How many cases of each kind."""
    return cases()


def cases() -> int:
    return int(os.environ.get("MQAN_FUZZ_CASES", "100"))


@pytest.fixture(scope="session")
def target(tiny_bundle: Path, free_ports: Callable[[int], list[int]]) -> Iterator[Target]:
    """Start a server for all cases; it must be well and nearly idle at the end."""
    http_port, grpc_port = free_ports(2)
    set_up_logs("error")
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def run() -> None:
        settings = load_settings(
            http_port=http_port, grpc_port=grpc_port, drain_delay_s=0, max_request_bytes=100_000, log_level="error"
        )
        service: AnswerService[Any] = AnswerService(Engine.open(tiny_bundle, provider="cpu"), settings)
        await service.warm_up()
        server = LocalServer(service, settings)
        await server.start()
        stop = asyncio.Event()
        started.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()
        assert service.health.is_ready
        assert service.num_requests == 0
        await server.stop()

    failure: list[BaseException] = []

    def work() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            failure.append(error)
            if not started.done():
                started.set_exception(error)

    thread = threading.Thread(target=work, name="fuzzed-server")
    thread.start()
    loop, stop = started.result(60)
    fuzzed = Target(f"http://127.0.0.1:{http_port}", f"127.0.0.1:{grpc_port}")
    yield fuzzed
    loop.call_soon_threadsafe(stop.set)
    thread.join(30)
    print(f"\nfuzzed: {dict(fuzzed.replies)}")
    assert failure == []
