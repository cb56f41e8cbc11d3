"""The same engine behind mqan, LitServe and BentoML: answers a second to many clients, and what one client waits.

One server after the other has all cores, by as many threads (mqan) or processes (the others), and takes up to four
questions together. Beside each run the engine's own figures are taken in this process: answers a second of the batcher
on as many threads before the server starts, and the wait for one in turns with it. The questions are SQuAD's, every
answer is compared with the engine's, and all are asked for over bare HTTP (mqan by gRPC too). Needs two packages that
nothing else does: pip install litserve bentoml.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import itertools
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import grpc
from batching import run_load
from served import BareConnection, free_port, wait_until_ready
from squad import read_questions
from turns import CONTEXT, QUESTION, difference, flat, take_turns

from mqan.v1 import answer_pb2, answer_pb2_grpc
from mqan_runtime.engine import Engine
from mqan_serving.service.batching import Batcher
from mqan_serving.service.timeline import Timeline

LIMIT = 10  # tokens of an answer
START_TIMEOUT_S, ANSWER_TIMEOUT_S = 120, 60
PEERS = Path(__file__).parent / "peers"

Ask = Callable[[str, str], str]
Open = Callable[[ExitStack], Ask]


@dataclass(frozen=True)
class Server:
    """A server to measure.

    Attributes:
        command: its command line, for a port of REST and one of gRPC.
        path: where it answers over REST.
        ask_for: makes the document of a question.
        answer_in: finds the answer's text in the response.
        has_rpc: whether it speaks gRPC too.
    """

    name: str
    command: Callable[[int, int], list[str]]
    path: str
    ask_for: Callable[[dict[str, Any]], Any] = lambda question: question
    answer_in: Callable[[Any], str] = lambda response: response["answer"]
    has_rpc: bool = False


def main() -> int:
    """Print a line for each server and way of asking; exit 1 if mqan by gRPC is slower than it may be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("serving/bundles/default"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=20.0, help="of load on each server, by each way of asking")
    parser.add_argument("--at-least", type=float, default=0.85, help="share of the engine's rate that gRPC must reach")
    parser.add_argument("--at-most-ms", type=float, default=1.5, help="most that gRPC may add for one client")
    given = parser.parse_args()
    os.environ |= {"PEER_BUNDLE": str(given.bundle.absolute()), "PEER_LIMIT": str(LIMIT)}
    engine = Engine.open(given.bundle, provider="cpu", num_threads=1)
    texts = read_questions(given.data, every=40)
    answers = [engine.answer([engine.read(*text)], [LIMIT])[0].text for text in texts]
    print(f"{len(texts)} questions of SQuAD, {given.clients} clients; one client: the usual case", flush=True)
    is_good = True
    for server in servers_of(str(given.bundle)):
        bare = engine_rate(engine, texts, given.clients, given.seconds)
        with started(server) as ways:
            for way, opened in ways.items():
                rate = load_rate(opened, texts, answers, given.clients, given.seconds)
                added, wait = one_client(engine, opened)
                share = rate / bare
                print(
                    f"  {server.name + ', ' + way:24} {rate:6.1f} answers a second, {share:4.2f} of the engine's own "
                    f"{bare:6.1f}; one client waits {wait:6.2f} ms, {added:+.2f} ms",
                    flush=True,
                )
                if server.name == "mqan --ray" and way == "gRPC":
                    is_good = share >= given.at_least and added <= given.at_most_ms
    return 0 if is_good else 1


def servers_of(bundle: str) -> list[Server]:
    """Return the servers."""
    mqan = [sys.executable, "-m", "mqan_cli.main", "serve", "--bundle", bundle]
    bentoml = [str(Path(sys.executable).parent / "bentoml"), "serve", "with_bentoml:Peer", "--host", "127.0.0.1"]

    def serve(*more: str) -> Callable[[int, int], list[str]]:
        return lambda http, rpc: [*mqan, *more, "--http-port", f"{http}", "--grpc-port", f"{rpc}"]

    return [
        Server("mqan --ray", serve("--ray"), "/v1/answer", has_rpc=True),
        Server("mqan", serve(), "/v1/answer", has_rpc=True),
        Server(
            f"LitServe {version('litserve')}",
            lambda http, _: [sys.executable, str(PEERS / "with_litserve.py"), f"{http}"],
            "/predict",
        ),
        Server(
            f"BentoML {version('bentoml')}",
            lambda http, _: [*bentoml, "--working-dir", str(PEERS), "--port", f"{http}"],
            "/answer",
            ask_for=lambda question: {"questions": [question]},
            answer_in=lambda response: response[0]["answer"],
        ),
    ]


@contextmanager
def started(server: Server) -> Iterator[dict[str, Open]]:
    """Start a server; yield the ways to ask it once it answers."""
    http_port, rpc_port = free_port(), free_port()
    environment = {**os.environ, "MQAN_NUM_THREADS": str(os.cpu_count() or 1)}
    folder = tempfile.TemporaryDirectory()
    log = Path(folder.name) / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            server.command(http_port, rpc_port),
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,  # a group of its own, which ends as one
        )

    def open_rest(stack: ExitStack) -> Ask:
        connection = stack.enter_context(BareConnection(http_port))
        limit = {"max_answer_tokens": LIMIT} if server.has_rpc else {}

        def ask(context: str, question: str) -> str:
            document = server.ask_for({"context": context, "question": question, **limit})
            return server.answer_in(json.loads(connection.post(server.path, json.dumps(document).encode())))

        return ask

    def open_rpc(stack: ExitStack) -> Ask:
        options = [("grpc.use_local_subchannel_pool", 1)]
        channel = stack.enter_context(grpc.insecure_channel(f"127.0.0.1:{rpc_port}", options))
        stub = answer_pb2_grpc.QuestionAnsweringStub(channel)

        def ask(context: str, question: str) -> str:
            request = answer_pb2.AnswerRequest(context=context, question=question, max_answer_tokens=LIMIT)
            answer: str = stub.Answer(request, timeout=ANSWER_TIMEOUT_S).answer
            return answer

        return ask

    ways: dict[str, Open] = {"REST": open_rest}
    if server.has_rpc:
        ways["gRPC"] = open_rpc
    try:
        for opened in ways.values():
            wait_until_it_answers(opened, process)
        if server.has_rpc:
            wait_until_ready(process, log)
        yield ways
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=60)
        finally:  # LitServe's workers outlive it
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            folder.cleanup()


def wait_until_it_answers(opened: Open, process: "subprocess.Popen[bytes]") -> None:
    """Wait until a server answers.

    Raises:
        RuntimeError: it has ended, or takes too long.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with ExitStack() as stack:
                opened(stack)("The kettle is here.", "Where is the kettle?")
                return
        except (OSError, RuntimeError, grpc.RpcError):
            time.sleep(0.5)
    raise RuntimeError(f"no answer from {process.args!r}")


def engine_rate(engine: Engine, texts: Sequence[tuple[str, str]], num_clients: int, seconds: float) -> float:
    """Return the answers a second of the batcher in this process, on all cores."""
    endless = itertools.cycle(texts)
    begins: list[float] = []
    ends: list[float] = []

    async def ask(batcher: Batcher) -> None:
        begins.append(time.perf_counter())
        await batcher.answer(engine.read(*next(endless)), LIMIT, Timeline())
        ends.append(time.perf_counter())

    run_load(engine, os.cpu_count() or 1, seconds, [ask] * num_clients)
    return sum(end <= begins[0] + seconds for end in ends) / seconds


def load_rate(
    opened: Open, texts: Sequence[tuple[str, str]], answers: Sequence[str], num_clients: int, seconds: float
) -> float:
    """Return the answers a second that many clients get from when all are connected, each comparing its answers.

    Raises:
        RuntimeError: an answer is not the engine's, or a client got none.
    """
    all_ready = threading.Barrier(num_clients)

    def run(client: int) -> int:
        with ExitStack() as stack:
            ask = opened(stack)
            try:
                ask(*texts[client % len(texts)])  # connects
            except BaseException:
                all_ready.abort()
                raise
            all_ready.wait(timeout=ANSWER_TIMEOUT_S)
            end = time.perf_counter() + seconds
            for number in itertools.count():
                place = (client + number) % len(texts)
                answer = ask(*texts[place])
                if answer != answers[place]:
                    raise RuntimeError(f"answered {answer!r} to {texts[place][1]!r}, not {answers[place]!r}")
                if time.perf_counter() > end:
                    break
        return number

    with ThreadPoolExecutor(num_clients) as clients:
        runs = [clients.submit(run, client) for client in range(num_clients)]
    for error in filter(None, (run.exception() for run in runs)):
        if not isinstance(error, threading.BrokenBarrierError):  # the others gave up because of this one
            raise error
    counts = [run.result() for run in runs]
    if not all(counts):
        raise RuntimeError(f"{counts.count(0)} clients got no answer in {seconds:g} s")
    return sum(counts) / seconds


def one_client(engine: Engine, opened: Open) -> tuple[float, float]:
    """Return the milliseconds that a server adds to the engine's for one client, and the median of its wait."""
    with ExitStack() as stack:
        ask = opened(stack)
        ways = {
            "engine": lambda: engine.answer([engine.read(CONTEXT, QUESTION)], [LIMIT]),
            "server": lambda: ask(CONTEXT, QUESTION),
        }
        take_turns(ways, 1)  # warms up
        times = take_turns(ways, 160)
    return difference(times["server"], times["engine"]), statistics.median(flat(times["server"]))


if __name__ == "__main__":
    sys.exit(main())
