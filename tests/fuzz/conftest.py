"""A server for fuzzing, and what no reply may hold."""

import copy
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from mqan_runtime.engine import Engine

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


def damaged(data: bytes, chance: random.Random, scraps: Sequence[bytes] = (b"\xff" * 9,)) -> bytes:
    """Return bytes with some of them changed, left out, repeated, put in or cut off."""
    found = bytearray(data)
    for _ in range(chance.randint(0, 6)):
        place = chance.randrange(len(found) + 1)
        end = min(len(found), place + chance.randint(0, 20))
        match chance.randrange(6):
            case 0 if place < len(found):
                found[place] ^= 1 << chance.randrange(8)
            case 1:
                del found[place:end]
            case 2:
                found[place:place] = found[place:end] * chance.randint(1, 50)
            case 3:
                found[place:place] = chance.randbytes(chance.randint(1, 12))
            case 4:
                found[place:place] = chance.choice(scraps)
            case _ if chance.random() < 0.3:
                del found[place:]
    return bytes(found)


@pytest.fixture(scope="session")
def num_cases() -> int:
    """How many cases of each kind."""
    return cases()


def cases() -> int:
    return int(os.environ.get("MQAN_FUZZ_CASES", "50"))


@pytest.fixture(scope="session")
def target(serve_local: Callable[..., AbstractContextManager[tuple[int, int]]]) -> Iterator[Target]:
    """Start a server for all cases; it must be well and idle at the end."""
    with serve_local(max_request_bytes=100_000) as (http_port, grpc_port):
        fuzzed = Target(f"http://127.0.0.1:{http_port}", f"127.0.0.1:{grpc_port}")
        yield fuzzed
    print(f"\nfuzzed: {dict(fuzzed.replies)}")


@pytest.fixture(scope="session")
def client(target: Target) -> Iterator[httpx2.Client]:
    """One for all cases: to make one takes longer than to ask with it."""
    with httpx2.Client(base_url=target.rest, trust_env=False, timeout=60) as client:
        yield client


FUZZED = settings(max_examples=cases(), deadline=None, suppress_health_check=list(HealthCheck), database=None)
JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 30),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=30),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=6,
)


@pytest.fixture(scope="session")
def reader(
    small_bundle: Path, serve_local: Callable[..., AbstractContextManager[tuple[int, int]]]
) -> Iterator[tuple[Target, httpx2.Client]]:
    """A server of a small pretrained reader, which answers every kind of question, and a client of it."""
    with serve_local(Engine.open(small_bundle), max_request_bytes=100_000) as (http_port, _):
        target = Target(f"http://127.0.0.1:{http_port}", "")
        with httpx2.Client(base_url=target.rest, trust_env=False, timeout=30) as client:
            yield target, client
    print(f"\nfuzzed: {dict(target.replies)}")


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every part of a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield (*place, key)
        yield from _places(part, (*place, key))


@st.composite
def changed(draw: st.DrawFn, document: dict[str, Any]) -> dict[str, Any]:
    """Return a document with some parts replaced, left out or added."""
    found = copy.deepcopy(document)
    for _ in range(draw(st.integers(0, 3))):
        *way, last = draw(st.sampled_from([*_places(found), ("added",)]))
        holder = found
        for key in way:
            holder = holder[key]
        if isinstance(holder, dict) and draw(st.integers(0, 4)) == 0:
            holder.pop(last, None)
        else:
            holder[last] = draw(JSON)
    return found
