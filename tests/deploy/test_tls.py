"""nginx in front, as ``deploy/nginx`` configures it: TLS for both transports, and clients that mean ill."""

import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import grpc
import httpx2
import pytest

from mqan.v1 import answer_pb2, answer_pb2_grpc
from tests.timing import wait_until

pytestmark = pytest.mark.skipif(
    shutil.which("nginx") is None or shutil.which("openssl") is None, reason="nginx and openssl are not installed"
)
BODY = {"context": "the old harbour was closed", "question": "what ?"}
REQUEST = answer_pb2.AnswerRequest(context=BODY["context"], question=BODY["question"])
LONG = answer_pb2.AnswerRequest(context="the old harbour was closed " * 300, question="what ?", max_answer_tokens=60)
_HEADER_TIMEOUT_S = 1  # instead of 10, so that the test is short
_AT_ONCE = 20  # requests of an address, instead of 256


@dataclass(frozen=True)
class Proxy:
    """A running proxy."""

    port: int
    certificate: Path

    @property
    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.certificate))

    def rest(self) -> httpx2.Client:
        return httpx2.Client(
            base_url=f"https://localhost:{self.port}", verify=self.context, trust_env=False, timeout=20
        )

    def rpc(self) -> grpc.Channel:
        credentials = grpc.ssl_channel_credentials(self.certificate.read_bytes())
        return grpc.secure_channel(f"localhost:{self.port}", credentials)

    def connect(self, source: str = "127.0.0.1") -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=10, source_address=(source, 0))
        return self.context.wrap_socket(plain, server_hostname="localhost")


@pytest.fixture(scope="module")
def local_server(serve_local: Callable[..., AbstractContextManager[tuple[int, int]]]) -> Iterator[tuple[int, int]]:
    """The ports of REST and gRPC of a server."""
    with serve_local() as ports:
        yield ports


@pytest.fixture(scope="module")
def proxy(
    local_server: tuple[int, int],
    repository: Path,
    tmp_path_factory: pytest.TempPathFactory,
    free_ports: Callable[[int], list[int]],
) -> Iterator[Proxy]:
    base = tmp_path_factory.mktemp("nginx")
    folder = base / "deploy" / "nginx"
    folder.mkdir(parents=True)
    (port,) = free_ports(1)
    text = (repository / "deploy" / "nginx" / "nginx.conf").read_text()
    for shipped, here in (
        ("127.0.0.1:8000", f"127.0.0.1:{local_server[0]}"),
        ("127.0.0.1:9000", f"127.0.0.1:{local_server[1]}"),
        ("listen 8443", f"listen 127.0.0.1:{port}"),
        ("client_header_timeout 10s", f"client_header_timeout {_HEADER_TIMEOUT_S}s"),
        ("limit_conn addresses 256", f"limit_conn addresses {_AT_ONCE}"),
        ("worker_processes auto", "worker_processes 1"),
        ("access_log off;", "access_log off; " + " ".join(f"{kind}_temp_path {folder / kind};" for kind in _TEMPORARY)),
    ):
        assert text.count(shipped) >= 1, shipped
        text = text.replace(shipped, here)
    (folder / "nginx.conf").write_text(text)
    lines = [line.removeprefix("#").partition("  # ")[0] for line in text.splitlines() if line.startswith("#   ")]
    make_certificate, run = "\n".join(lines).replace("\\\n", " ").split("\n")[:2]
    subprocess.run(make_certificate, shell=True, cwd=base, check=True, capture_output=True, timeout=30)
    process = subprocess.Popen(f"exec {run.strip()}", shell=True, cwd=base)
    running = Proxy(port, folder / "tls.crt")
    deadline = time.monotonic() + 60
    try:
        while True:
            try:
                running.connect().close()
                break
            except OSError:
                assert process.poll() is None, "nginx has ended"
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield running
        process.terminate()
        process.wait(10)
    finally:
        process.kill()
        process.wait()


_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def is_well(proxy: Proxy) -> bool:
    with proxy.rest() as rest:
        return rest.post("/v1/answer", json=BODY).status_code == 200


def test_both_transports_answer_over_tls(proxy: Proxy) -> None:
    with proxy.rest() as rest, proxy.rpc() as channel:
        response = rest.post("/v1/answer", json=BODY)
        assert response.status_code == 200
        assert response.headers["x-request-id"]
        stub = answer_pb2_grpc.QuestionAnsweringStub(channel)
        assert stub.Answer(REQUEST, timeout=10).answer == response.json()["answer"]
        assert rest.get("/health/ready").status_code == 200
        assert rest.get("/metrics").status_code == 404, "for the inside only"
        refused = rest.post("/v1/answer", json={"context": " ", "question": "?"})
        assert (refused.status_code, refused.json()["code"]) == (422, "empty_context")
    with pytest.raises(httpx2.HTTPError):
        httpx2.get(f"https://localhost:{proxy.port}/", trust_env=False)  # unknown certificate


def test_a_client_that_sends_headers_slowly_is_cut_off(proxy: Proxy) -> None:
    with proxy.connect() as slow:
        slow.sendall(b"POST /v1/answer HTTP/1.1\r\nhost: localhost\r\n")
        slow.settimeout(_HEADER_TIMEOUT_S + 40)
        try:
            reply = slow.recv(4096)
        except OSError:
            reply = b""
        assert reply == b"" or b" 408 " in reply
    assert is_well(proxy)


@pytest.mark.parametrize("size", [9_000, 200_000])
def test_oversized_headers_are_refused(proxy: Proxy, size: int) -> None:
    with proxy.rest() as rest:
        try:
            status = rest.post("/v1/answer", json=BODY, headers={"x-large": "a" * size}).status_code
        except httpx2.HTTPError:
            status = 400  # cut off while it was sending
    assert status in (400, 431)
    assert is_well(proxy)


def test_one_address_cannot_take_all_places(proxy: Proxy) -> None:
    request = b"GET /health/ready HTTP/1.1\r\nhost: localhost\r\n\r\n"
    flood = []
    try:
        for _ in range(2 * _AT_ONCE):
            connection = proxy.connect(source="127.0.0.2")
            flood.append(connection)
            # A request that is never complete holds its place.
            connection.sendall(b"POST /v1/answer HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n")
        late = proxy.connect(source="127.0.0.2")
        flood.append(late)
        late.sendall(request)
        assert late.recv(4096).startswith(b"HTTP/1.1 429")
        assert is_well(proxy), "others are answered"
    finally:
        for connection in flood:
            connection.close()


def test_streams_that_are_reset_at_once_leave_nothing_behind(proxy: Proxy, local_server: tuple[int, int]) -> None:
    port = local_server[0]
    before = sample(port, 'mqan_requests_total{code="cancelled",method="Answer",transport="grpc"}')
    with proxy.rpc() as channel:
        grpc.channel_ready_future(channel).result(10)
        stub = answer_pb2_grpc.QuestionAnsweringStub(channel)
        for _ in range(40):
            calls = [stub.Answer.future(LONG, timeout=10) for _ in range(_AT_ONCE // 2)]
            time.sleep(0.02)
            for call in calls:
                call.cancel()
    assert is_well(proxy)
    wait_until(lambda: sample(port, "mqan_requests_in_flight") == 0)
    cancelled = sample(port, 'mqan_requests_total{code="cancelled",method="Answer",transport="grpc"}') - before
    assert cancelled > 5, "the server has seen some of them go"


def sample(port: int, name: str) -> float:
    text = httpx2.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    (value,) = (line.removeprefix(name) for line in text.splitlines() if line.startswith(f"{name} "))
    return float(value)
