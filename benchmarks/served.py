"""Time the served answer against the engine's own, one client at a time: ``make bench``.

Starts ``mqan serve`` (or ``mqan serve --local``) on free loopback ports, asks one question again and again, and
compares the median with that of the engine in this process. All take turns in blocks, so that a busy machine slows all.
What counts is the server, asked by a bare stub and a bare HTTP connection; what the Python client adds is shown beside.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import http.client
import json
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import grpc

from mqan.v1 import answer_pb2, answer_pb2_grpc
from mqan_client import Client, ClientError
from mqan_export.engine import Engine

SENTENCE = "The harbour office keeps a list of every ship that entered the bay between March and late October of 1923. "
CONTEXT = SENTENCE * 7
QUESTION = "Which ships does the list of the harbour office name for the month of October?"
BLOCK, READY_TIMEOUT_S = 20, 60


def main() -> int:
    """Run the benchmark; exit 1 when a transport adds more than ``--at-most-ms``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("serving/bundles/default"))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--local", action="store_true", help="serve in one process, without Ray")
    parser.add_argument("--at-most-ms", type=float, default=3.0, help="most that serving may add to the median")
    arguments = parser.parse_args()
    engine = Engine.open(arguments.bundle, provider="cpu", num_threads=1)
    http_port, grpc_port = free_port(), free_port()
    command = [sys.executable, "-m", "mqan_cli.main", "serve", "--bundle", str(arguments.bundle)]
    command += ["--http-port", str(http_port), "--grpc-port", str(grpc_port)]
    command += ["--local"] if arguments.local else []
    environment = {**os.environ, "MQAN_NUM_THREADS": "1"}
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        return measure(engine, http_port, grpc_port, arguments)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=60)


def measure(engine: Engine, http_port: int, grpc_port: int, arguments: argparse.Namespace) -> int:
    """Ask by every way in turn and print the medians."""
    limit = 4
    with (
        Client(f"grpc://127.0.0.1:{grpc_port}") as by_grpc,
        Client(f"http://127.0.0.1:{http_port}") as by_rest,
        grpc.insecure_channel(f"127.0.0.1:{grpc_port}") as channel,
        closing(http.client.HTTPConnection("127.0.0.1", http_port)) as connection,
    ):
        wait_until_ready((by_grpc, by_rest))
        stub = answer_pb2_grpc.QuestionAnsweringStub(channel)
        fields = {"context": CONTEXT, "question": QUESTION, "max_answer_tokens": limit}

        def post() -> None:
            connection.request("POST", "/v1/answer", json.dumps(fields), {"content-type": "application/json"})
            response = connection.getresponse()
            if response.status != 200:
                raise RuntimeError(f"the server answered {response.status}: {response.read()!r}")
            json.load(response)

        ways: dict[str, Callable[[], object]] = {
            "engine": lambda: engine.answer([engine.read(CONTEXT, QUESTION)], [limit]),
            "gRPC": lambda: stub.Answer(answer_pb2.AnswerRequest(**fields)),
            "REST": post,
            "gRPC, Python client": lambda: by_grpc.answer(CONTEXT, QUESTION, max_answer_tokens=limit),
            "REST, Python client": lambda: by_rest.answer(CONTEXT, QUESTION, max_answer_tokens=limit),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for block in range(arguments.runs // BLOCK + 1):
            for name, ask in ways.items():
                for _ in range(BLOCK):
                    started = time.perf_counter()
                    ask()
                    if block:  # the first warms up
                        times[name].append(1000 * (time.perf_counter() - started))
    request = engine.read(CONTEXT, QUESTION)
    where = "one process" if arguments.local else "Ray Serve"
    print(
        f"{where}, one client, {request.num_context_tokens} context and {request.num_question_tokens} question tokens"
    )
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, median in medians.items():
        print(f"  {name:19} p50 {median:6.2f} ms   +{median - medians['engine']:.2f} ms")
    worst = max(medians["gRPC"], medians["REST"]) - medians["engine"]
    return 0 if worst <= arguments.at_most_ms else 1


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def wait_until_ready(clients: tuple[Client, ...]) -> None:
    """Wait until every client gets an answer."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    for client in clients:
        while True:
            try:
                client.answer("The kettle is here.", "Where is the kettle?")
                break
            except ClientError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
