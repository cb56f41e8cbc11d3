"""Servers as users start them: a process each, on free ports of loopback, stopped by SIGTERM."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import httpx2
import pytest

from mqan_export.engine import Engine

_START_S = 150.0  # a Ray start takes 10 s on two free cores
_STOP_S = 60.0
_COMMAND = [sys.executable, "-c", "from mqan_cli.main import app; app()", "serve"]


@dataclass
class ServerProcess:
    """A server that runs.

    Attributes:
        kind: ``local``, ``ray`` (HAProxy) or ``ray-proxy`` (Ray's own proxy).
        rest: base URL of REST.
        rpc: address of gRPC.
        process: the process.
        start_s: seconds from its start until it was ready.
        log: what it wrote.
    """

    kind: str
    rest: str
    rpc: str
    process: "subprocess.Popen[bytes]"
    start_s: float
    log: Path

    def stop(self) -> int:
        """Ask it to end and return its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_STOP_S)


StartServer = Callable[..., ServerProcess]


@pytest.fixture(scope="session")
def start_server(
    bundle_folder: Path, free_ports: Callable[[int], list[int]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StartServer]:
    """Start servers of a kind with settings; those still running at the end are stopped."""
    started: list[ServerProcess] = []

    def start(kind: str, **settings: object) -> ServerProcess:
        http_port, grpc_port = free_ports(2)
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        given = {"bundle": bundle_folder, "http_port": http_port, "grpc_port": grpc_port, "drain_delay_s": 0.5}
        for name, value in (given | settings).items():
            environment[f"MQAN_{name.upper()}"] = str(value)
        if kind == "ray-proxy":
            environment["RAY_SERVE_ENABLE_HA_PROXY"] = "0"
        log = tmp_path_factory.mktemp(kind) / "log"
        command = [*_COMMAND, "--local"] if kind == "local" else _COMMAND
        begun = time.perf_counter()
        with log.open("wb") as output:
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        server = ServerProcess(kind, f"http://127.0.0.1:{http_port}", f"127.0.0.1:{grpc_port}", process, 0.0, log)
        started.append(server)
        wait_until_ready(server, begun + _START_S)
        server.start_s = time.perf_counter() - begun
        return server

    yield start
    for server in started:
        if server.process.poll() is None:
            server.stop()


def wait_until_ready(server: ServerProcess, deadline: float) -> None:
    """Return when both transports answer."""
    with httpx2.Client(trust_env=False) as client:
        while time.perf_counter() < deadline:
            if server.process.poll() is not None:
                pytest.fail(f"{server.kind} server ended: {server.log.read_text()[-3000:]}")
            try:
                if client.get(f"{server.rest}/health/ready").status_code == 200:
                    with grpc.insecure_channel(server.rpc) as channel:
                        grpc.channel_ready_future(channel).result(timeout=10)
                    return
            except httpx2.TransportError:
                pass
            time.sleep(0.02)
    pytest.fail(f"{server.kind} server is not ready: {server.log.read_text()[-3000:]}")


@pytest.fixture(
    scope="session",
    params=["local", pytest.param("ray", marks=pytest.mark.slow), pytest.param("ray-proxy", marks=pytest.mark.slow)],
)
def server(request: pytest.FixtureRequest, start_server: StartServer) -> Iterator[ServerProcess]:
    """Each kind of server in turn; it must end well."""
    running = start_server(request.param)
    yield running
    assert running.stop() == 0, running.log.read_text()[-3000:]


@pytest.fixture
def rest(server: ServerProcess) -> Iterator[httpx2.Client]:
    """A plain HTTP client of the server."""
    with httpx2.Client(base_url=server.rest, trust_env=False, timeout=30) as client:
        yield client


@pytest.fixture
def channel(server: ServerProcess) -> Iterator[grpc.Channel]:
    """A plain gRPC channel to the server."""
    with grpc.insecure_channel(server.rpc) as opened:
        yield opened


@pytest.fixture(scope="session")
def engine(bundle_folder: Path) -> Engine:
    """The engine in this process: what each answer must equal."""
    return Engine.open(bundle_folder, provider="cpu")
