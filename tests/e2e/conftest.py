"""Each kind of server in turn, and plain clients of it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx2
import pytest

from mqan_runtime.engine import Engine


@pytest.fixture(
    scope="module",  # so that none is left beside the tests of other modules
    params=["local", pytest.param("ray", marks=pytest.mark.slow), pytest.param("ray-proxy", marks=pytest.mark.slow)],
)
def server(request: pytest.FixtureRequest, start_server: Callable[..., Any]) -> Iterator[Any]:
    """Each kind of server in turn; it must end well."""
    running = start_server(request.param)
    yield running
    assert running.stop() == 0, running.log.read_text()[-3000:]


@pytest.fixture
def rest(server: Any) -> Iterator[httpx2.Client]:
    """A plain HTTP client of the server."""
    with httpx2.Client(base_url=server.rest, trust_env=False, verify=False, timeout=30) as client:
        yield client


@pytest.fixture
def channel(server: Any) -> Iterator[grpc.Channel]:
    """A plain gRPC channel to the server."""
    with grpc.insecure_channel(server.rpc) as opened:
        yield opened


@pytest.fixture(scope="session")
def engine(bundle_folder: Path) -> Engine:
    """The engine in this process: what each answer must equal."""
    return Engine.open(bundle_folder, provider="cpu")
