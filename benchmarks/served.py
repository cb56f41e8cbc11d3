"""Time the served answer against the engine's own, one client at a time: ``make bench``.

Starts ``mqan serve`` (or ``mqan serve --ray``) on free loopback ports, asks one question again and again, and
compares the median with that of the engine in this process, turn by turn. What counts is the server, asked by a bare
stub and over a bare connection; what the Python client adds is shown beside.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import json
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
from turns import CONTEXT, QUESTION, difference, flat, ratio, take_turns

from mqan.v1 import answer_pb2, answer_pb2_grpc
from mqan_client import Client
from mqan_runtime.engine import Engine

READY_TIMEOUT_S = 60
ANSWER_TOKENS = 4


def main() -> int:
    """Run the benchmark; exit 1 when a transport adds more than ``--at-most-ms``, or a first word is late."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("serving/bundles/default"))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--ray", action="store_true", help="serve on Ray Serve")
    parser.add_argument("--at-most-ms", type=float, default=3.0, help="most that serving may add to the median")
    parser.add_argument("--first-at-most", type=float, default=1.2, help="most that a stream's first word may take")
    arguments = parser.parse_args()
    engine = Engine.open(arguments.bundle, provider="cpu", num_threads=1)
    http_port, grpc_port = free_port(), free_port()
    command = [sys.executable, "-m", "mqan_cli.main", "serve", "--bundle", str(arguments.bundle)]
    command += ["--http-port", str(http_port), "--grpc-port", str(grpc_port)]
    command += ["--ray"] if arguments.ray else []
    environment = {**os.environ, "MQAN_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("w+") as log:
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, env=environment)
        try:
            wait_until_ready(server, Path(log.name))
            return measure(engine, http_port, grpc_port, arguments)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=60)


def measure(engine: Engine, http_port: int, grpc_port: int, arguments: argparse.Namespace) -> int:
    """Ask by every way in turn and print the medians."""
    with (
        Client(f"grpc://127.0.0.1:{grpc_port}") as by_grpc,
        Client(f"http://127.0.0.1:{http_port}") as by_rest,
        grpc.insecure_channel(f"127.0.0.1:{grpc_port}") as channel,
    ):
        stub = answer_pb2_grpc.QuestionAnsweringStub(channel)
        fields: dict[str, Any] = {"context": CONTEXT, "question": QUESTION, "max_answer_tokens": ANSWER_TOKENS}
        with BareConnection(http_port) as connection:
            ways: dict[str, Callable[[], object]] = {
                "engine": lambda: engine.answer([engine.read(CONTEXT, QUESTION)], [ANSWER_TOKENS]),
                "gRPC": lambda: stub.Answer(answer_pb2.AnswerRequest(**fields)),
                "REST": lambda: json.loads(connection.post("/v1/answer", json.dumps(fields).encode())),
                "gRPC, Python client": lambda: by_grpc.answer(CONTEXT, QUESTION, max_answer_tokens=ANSWER_TOKENS),
                "REST, Python client": lambda: by_rest.answer(CONTEXT, QUESTION, max_answer_tokens=ANSWER_TOKENS),
                "gRPC, one word": lambda: stub.Answer(answer_pb2.AnswerRequest(**{**fields, "max_answer_tokens": 1})),
                "gRPC, first word": lambda: first_word(stub, fields),
            }
            take_turns(ways, 1)  # warms up
            times = take_turns(ways, arguments.runs)
    request = engine.read(CONTEXT, QUESTION)
    where = "Ray Serve" if arguments.ray else "one process"
    print(
        f"{where}, one client, {request.num_context_tokens} context and {request.num_question_tokens} question tokens"
    )
    added = {name: difference(turns, times["engine"]) for name, turns in times.items()}
    for name, turns in times.items():
        print(f"  {name:19} p50 {statistics.median(flat(turns)):6.2f} ms   turn by turn +{added[name]:.2f} ms")
    first = ratio(times["gRPC, first word"], times["gRPC, one word"])
    print(f"  the first word of a stream takes {first:.2f} of a one-word answer (at most {arguments.first_at_most:g})")
    is_quick = max(added["gRPC"], added["REST"]) <= arguments.at_most_ms
    return 0 if is_quick and first <= arguments.first_at_most else 1


def first_word(stub: answer_pb2_grpc.QuestionAnsweringStub, fields: dict[str, Any]) -> object:
    """Return the first word of a stream, and leave the rest."""
    call: Any = stub.AnswerStream(answer_pb2.AnswerRequest(**fields))
    part = next(iter(call))
    call.cancel()
    return part


class BareConnection:
    """HTTP/1.1 over one socket, without the cost of Python's own client, which reads headers as if they were mail."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> "BareConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def post(self, path: str, body: bytes) -> bytes:
        """Send a JSON document; return that of the response.

        Raises:
            RuntimeError: the server did not answer with 200.
        """
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        self._socket.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._receive()
        headers, _, content = received.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", headers, re.IGNORECASE)
        if not headers.startswith(b"HTTP/1.1 200 ") or length is None:
            raise RuntimeError(f"the server answered {received!r}")
        while len(content) < int(length[1]):
            content += self._receive()
        return content

    def _receive(self) -> bytes:
        received = self._socket.recv(65_536)
        if not received:
            raise RuntimeError("the server closed the connection")
        return received


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def wait_until_ready(server: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server says that all of it is ready.

    Before that it answers already, but HAProxy still closes connections when it learns of another replica.

    Raises:
        RuntimeError: it has ended, or takes too long.
    """
    deadline = time.monotonic() + READY_TIMEOUT_S
    while "mqan is ready" not in log.read_text():
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the server is not ready: {log.read_text()[-3000:]}")
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
