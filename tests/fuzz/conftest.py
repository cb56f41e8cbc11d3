"""A server for fuzzing, and what no reply may hold."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import pytest

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
def target(serve_local: Callable[..., AbstractContextManager[tuple[int, int]]]) -> Iterator[Target]:
    """Start a server for all cases; it must be well and idle at the end."""
    with serve_local(max_request_bytes=100_000) as (http_port, grpc_port):
        fuzzed = Target(f"http://127.0.0.1:{http_port}", f"127.0.0.1:{grpc_port}")
        yield fuzzed
    print(f"\nfuzzed: {dict(fuzzed.replies)}")
