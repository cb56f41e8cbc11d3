"""HAProxy with the configuration that Ray Serve writes, and with what ours puts into it."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import httpx2
import pytest
from ray.serve._private.common import RequestProtocol
from ray.serve._private.haproxy import BackendConfig, HAProxyApi, HAProxyConfig, ServerConfig
from ray.serve.config import HTTPOptions, gRPCOptions

from mqan_serving.ray_serve import loopback
from mqan_serving.ray_serve.loopback import loopback_environment, rewrite, stop_listening
from tests import http2
from tests.peer import Peer
from tests.processes import listeners

_RUN = "from mqan_serving.ray_serve.loopback import run_haproxy; run_haproxy()"
_TOLD = {"503 retry-after", "refused"}


@pytest.fixture
def write_configuration(tmp_path: Path, free_ports: Callable[[int], list[int]]) -> Callable[..., tuple[Path, int, int]]:
    """Writes a configuration as Ray does; returns it, and the ports of REST and gRPC."""

    def write(*, backend_port: int | None = None, host: str = "127.0.0.1") -> tuple[Path, int, int]:
        http_port, grpc_port, stats_port, metrics_port, nobody = free_ports(5)
        file = tmp_path / "haproxy.cfg"
        configuration = HAProxyConfig(
            socket_path=str(tmp_path / loopback.ADMIN_SOCKET),
            server_state_base=str(tmp_path),
            server_state_file=str(tmp_path / "server-state"),
            stats_port=stats_port,
            metrics_port=metrics_port,
            maxconn=200,
            nbthread=1,
            metrics_enabled=False,
            http_health_check_path="/health/live",
            http_options=HTTPOptions(host=host, port=http_port),
            grpc_options=gRPCOptions(port=grpc_port, grpc_servicer_functions=["mqan_serving.rpc.methods.add_health"]),
        )
        backends = {}
        for protocol in (RequestProtocol.HTTP, RequestProtocol.GRPC):
            name = f"{protocol.value}-mqan"
            servers = [ServerConfig(name="one", host="127.0.0.1", port=backend_port or nobody)]
            backends[name] = BackendConfig(name, "/", servers=servers, app_name="mqan", protocol=protocol)
        api = HAProxyApi(configuration, backends if backend_port is not None else {}, str(file))
        api._generate_config_file_internal()
        return file, http_port, grpc_port

    return write


@pytest.fixture
def start_haproxy() -> Iterator[Callable[[Path, int], "subprocess.Popen[bytes]"]]:
    """Starts HAProxy as Ray does; all are ended."""
    started: list[subprocess.Popen[bytes]] = []

    def start(file: Path, port: int, host: str = "127.0.0.1", before: str = "") -> "subprocess.Popen[bytes]":
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_SERVE_HAPROXY")}
        environment |= loopback_environment(host, has_haproxy=True)
        reached = {"::": "[::1]", "::1": "[::1]", "0.0.0.0": "127.0.0.1"}.get(host, host)
        process = subprocess.Popen(
            [sys.executable, "-c", before + _RUN, "-db", "-f", str(file), "-dR"], env=environment
        )
        started.append(process)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            assert process.poll() is None
            with suppress(httpx2.TransportError):
                httpx2.get(f"http://{reached}:{port}/", trust_env=False, verify=False)
                return process
            time.sleep(0.02)
        raise TimeoutError

    yield start
    for process in started:
        process.kill()
        process.wait()


async def call(channel: grpc.aio.Channel, method: str, metadata: Any = ()) -> bytes:
    caller: Any = channel.unary_unary(method)
    response: bytes = await caller(b"", timeout=10, metadata=metadata)
    return response


async def test_its_errors_are_those_of_the_api(write_configuration: Any, start_haproxy: Any) -> None:
    file, http_port, grpc_port = write_configuration(backend_port=1)
    text = rewrite(file.read_text(), file.parent)
    assert "127.0.0.1:514" not in text
    assert not [line for line in text.splitlines() if line.strip().startswith("bind") and "127.0.0.1:" not in line]
    await asyncio.to_thread(start_haproxy, file, http_port)
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{http_port}", trust_env=False, verify=False) as client:
        for path, status, code in (("/v1/answer", 503, "unavailable"), ("/-/routes", 404, "not_found")):
            for _ in range(2):
                response = await client.post(path, json={})
                assert (response.status_code, response.json()["code"]) == (status, code)
                assert set(response.json()) == {"code", "message", "hint", "request_id"}
                assert ("retry-after" in response.headers) == (status == 503)
                assert "server" not in response.headers
        assert (await client.get("/-/healthz")).status_code == 404
    for sent in (
        b"GET / HTTP/1.1\r\nx: " + b"a" * 40_000,
        b"GET /" + b"a" * 40_000,
        b"GET / HTTP/1.1\r\n" + b"x: a\r\n" * 999,
    ):
        peer = await Peer.connect(http_port)
        await peer.send([sent])
        received = await peer.rest()
        assert received == b"reset" or received.startswith(b"HTTP/1.1 400 ")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
        for method, expected in (
            ("/ray.serve.RayServeAPIService/ListApplications", grpc.StatusCode.UNIMPLEMENTED),
            ("/ray.serve.RayServeAPIService/Healthz", grpc.StatusCode.UNIMPLEMENTED),
            ("/mqan.v1.QuestionAnswering/Answer", grpc.StatusCode.UNAVAILABLE),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await call(channel, method)
            assert raised.value.code() is expected
            received = await asyncio.to_thread(reply, grpc_port, method)
            # A status of HTTP tells all clients, one of gRPC only with its content type.
            assert (b"503" in received) != (b"grpc-status" in received)
            assert (b"application/grpc" in received) == (b"grpc-status" in received)


def reply(port: int, method: str) -> bytes:
    """Return the frames that come for a call; HAProxy writes headers as they are."""
    received = b""
    with http2.connect(port) as peer:
        headers = http2.call_headers(method.encode())
        peer.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, 1, headers))
        while b"grpc-status" not in received and b"request_id" not in received:
            part = peer.recv(4096)
            assert part, received
            received += part
    return received


@pytest.mark.parametrize(
    ("host", "written"),  # as the kernel writes it
    [
        *(("127.0.0.1", "0100007F"), ("127.0.0.2", "0200007F"), ("0.0.0.0", "00000000")),
        *(("::1", "00000000000000000000000001000000"), ("::", "0" * 32)),
    ],
)
def test_callers_connect_to_the_host_and_statistics_stay_on_loopback(
    write_configuration: Any, start_haproxy: Any, host: str, written: str
) -> None:
    file, http_port, grpc_port = write_configuration(host=host)
    process = start_haproxy(file, http_port, host)
    listening = listeners(process.pid)
    assert {(written, http_port), (written, grpc_port)} <= listening
    assert {address for address, port in listening if port not in (http_port, grpc_port)} == {"0100007F"}


async def test_without_an_application_callers_are_told_to_ask_another(
    write_configuration: Any, start_haproxy: Any
) -> None:
    file, http_port, grpc_port = write_configuration()
    await asyncio.to_thread(start_haproxy, file, http_port)
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{http_port}", trust_env=False, verify=False) as client:
        response = await client.get("/v1/evil-path")
    assert (response.status_code, response.json()["code"]) == (503, "unavailable")
    assert response.headers["retry-after"] == "1"
    assert "evil-path" not in response.text
    async with grpc.aio.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
        for metadata in ((), (("application", "x"),)):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await call(channel, "/mqan.v1.QuestionAnswering/Answer", metadata)
            assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_slow_heads_end(write_configuration: Any, start_haproxy: Any) -> None:
    file, http_port, _ = write_configuration()
    before = "from mqan_serving.ray_serve import loopback; loopback._HEAD_S = 1; "
    await asyncio.to_thread(start_haproxy, file, http_port, before=before)
    assert "timeout http-request 1s" in file.read_text()
    peer = await Peer.connect(http_port)
    await peer.send([b"GET / HTTP/1.1\r\nx: a"])
    async with asyncio.timeout(31):
        assert (await peer.reader.read()).startswith(b"HTTP/1.1 408 ")
    peer.writer.close()


def test_a_configuration_of_another_ray_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no section 'defaults'"):
        rewrite("global\n", tmp_path)


def test_at_its_end_callers_are_told_or_refused(write_configuration: Any, start_haproxy: Any, tmp_path: Path) -> None:
    file, port, _ = write_configuration()
    process = start_haproxy(file, port)
    over, seen = threading.Event(), Counter[str]()

    def ask(*, anew: bool) -> None:
        while not over.is_set():
            with httpx2.Client(trust_env=False, verify=False, timeout=10) as client:
                while not over.is_set():
                    try:
                        response = client.get(f"http://127.0.0.1:{port}/v1/model")
                        again = " retry-after" if "retry-after" in response.headers else ""
                        seen[f"{response.status_code}{again}"] += 1
                    except httpx2.ConnectError:
                        seen["refused"] += 1
                    except httpx2.TransportError as error:
                        seen[repr(error)] += 1
                    if anew:
                        break

    threads = [threading.Thread(target=ask, kwargs={"anew": number % 2 == 0}) for number in range(6)]
    for thread in threads:
        thread.start()
    try:
        while seen["503 retry-after"] < 20:
            time.sleep(0.002)
        stop_listening(tmp_path, 5.0)
        assert process.wait(30) == 0
        while seen["refused"] < 10:
            time.sleep(0.002)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    num_reset = sum(seen.pop(what) for what in list(seen) if "Error(" in what)
    assert num_reset <= len(threads), "at most the connection of each that was just being made"
    assert set(seen) == _TOLD, seen


def test_processes_of_others_are_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        (tmp_path / f"{other.pid}.pid").touch()
        stop_listening(tmp_path, 0.1)
        assert other.poll() is None
        other.send_signal(signal.SIGTERM)
