"""Many clients at once, mixed lengths: no errors, and every answer is the one its question gets alone.

In the test suite against a local server for MQAN_LOAD_SECONDS (5); by itself against any server that runs:

    python tests/load/test_load.py --rest http://127.0.0.1:8000 --grpc 127.0.0.1:9000 --seconds 60
"""

import argparse
import asyncio
import itertools
import os
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import httpx2

from mqan.v1 import answer_pb2, answer_pb2_grpc
from mqan_runtime.engine import Engine
from tests.messages import document_of

NUM_CLIENTS = 64
_WORDS = (
    "the", "tower", "is", "tall", "and", "kitchen", "Paris", "Ahmed", "330", "happy", "angry", "Été", "🦊", "well-known"
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A question, how it is asked, and the answer it gets alone."""

    context: str
    question: str
    max_answer_tokens: int


@dataclass
class Report:
    """What a run of load found."""

    seconds: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)  # when each of these had its answer
    errors: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)  # that answered

    def __str__(self) -> str:
        """Return one line."""
        if not self.latencies_ms:
            return f"no answers, errors: {dict(self.errors)}"
        p50, p99 = (statistics.quantiles(self.latencies_ms, n=100)[i] for i in (49, 98))
        rate = len(self.latencies_ms) / self.seconds
        return (
            f"{len(self.latencies_ms)} answers in {self.seconds:.1f} s: {rate:.0f}/s, p50 {p50:.1f} ms, "
            f"p99 {p99:.1f} ms, errors: {dict(self.errors)}"
        )


def make_cases(number: int) -> list[Case]:
    """Return questions of 5 to 400 tokens, the same every time."""
    chance = random.Random(7)
    cases = []
    for i in range(number):
        length = round(5 * 80 ** chance.random())  # as many short as long ones, on a logarithmic scale
        context = " ".join(chance.choices(_WORDS, k=length)) + f" number {i}."
        question = " ".join(chance.choices(_WORDS, k=chance.randint(2, 15))) + "?"
        cases.append(Case(context, question, chance.choice([1, 3, 6])))
    return cases


async def put_under_load(
    rest: str,
    rpc: str,
    seconds: float,
    num_clients: int = NUM_CLIENTS,
    *,
    names: Sequence[str] = ("",),
    known: Sequence[str] = (),
    meanwhile: Callable[[], Awaitable[None]] | None = None,
) -> Report:
    """Ask alone first, then from many clients, half over each transport, and compare.

    Clients ask the models ``names`` in turn; ``known`` are those that may answer who name none. They ask for so many
    seconds, and then as long as ``meanwhile`` takes.
    """
    cases = make_cases(48)
    report = Report()
    alone: dict[str, list[Any]] = {}
    async with (
        httpx2.AsyncClient(
            base_url=rest, trust_env=False, timeout=150, limits=httpx2.Limits(max_connections=num_clients)
        ) as client,
        grpc.aio.insecure_channel(rpc) as channel,
    ):
        stub = answer_pb2_grpc.QuestionAnsweringStub(channel)
        for name in known or names:
            for case in cases:
                answer, model = await ask_rest(client, case, name)
                alone.setdefault(model, []).append(identity(answer))
        is_over = asyncio.Event()

        async def run_client(number: int) -> None:
            chance = random.Random(number)
            for turn in itertools.count(number):
                if is_over.is_set():
                    return
                i, name = chance.randrange(len(cases)), names[turn % len(names)]
                begun = time.perf_counter()
                try:
                    answering = ask_rpc(stub, cases[i], name) if number % 2 else ask_rest(client, cases[i], name)
                    answer, model = await answering
                except (httpx2.HTTPError, grpc.RpcError, RuntimeError) as error:
                    report.errors[f"{type(error).__name__}: {str(error)[:200]}"] += 1
                    continue
                report.ended.append(time.perf_counter())
                report.latencies_ms.append((report.ended[-1] - begun) * 1000)
                report.models[model] += 1
                if name not in ("", answer["model"]["name"]) or not model.startswith(f"{answer['model']['name']}/"):
                    report.errors["another model than asked"] += 1
                if model not in alone or identity(answer) != alone[model][i]:
                    report.errors["another answer than alone"] += 1

        begun = time.perf_counter()
        asking = [asyncio.ensure_future(run_client(number)) for number in range(num_clients)]
        await asyncio.sleep(seconds)
        if meanwhile is not None:
            await meanwhile()
        is_over.set()
        await asyncio.gather(*asking)
        report.seconds = time.perf_counter() - begun
    return report


def identity(answer: Any) -> Any:
    """Return what must not depend on the batch: everything but the last digits of probabilities."""
    tokens = [(t["text"], t["source"], t.get("span")) for t in answer["tokens"]]
    return answer["answer"], answer["truncated"], tokens, round(answer["probability"], 3)


def document(case: Case) -> dict[str, Any]:
    """Return the fields of a question."""
    return {"context": case.context, "question": case.question, "max_answer_tokens": case.max_answer_tokens}


async def ask_rest(client: httpx2.AsyncClient, case: Case, model: str) -> tuple[Any, str]:
    """Ask over REST; return the answer, and the name, version and hash of the model that gave it."""
    response = await client.post("/v1/answer", json=document(case) | ({"model": model} if model else {}))
    if response.status_code != 200:
        raise RuntimeError(f"{response.status_code} {response.text}")
    return response.json(), response.headers["x-mqan-model"]


async def ask_rpc(stub: Any, case: Case, model: str) -> tuple[Any, str]:
    """Ask over gRPC; return what REST returns."""
    call = stub.Answer(answer_pb2.AnswerRequest(**document(case), model=model), timeout=150)
    response, trailing = await call, dict(await call.trailing_metadata())
    return document_of(response), trailing["x-mqan-model"]


async def test_no_errors_and_no_cross_talk(bundle_folder: Path, serve_local: Any) -> None:
    engine = Engine.open(bundle_folder, provider="cpu")
    seconds = float(os.environ.get("MQAN_LOAD_SECONDS", "5"))
    with serve_local(engine, request_timeout_s=150) as (http_port, grpc_port):  # however busy the machine
        report = await put_under_load(f"http://127.0.0.1:{http_port}", f"127.0.0.1:{grpc_port}", seconds)
    assert not report.errors, report
    assert len(report.latencies_ms) >= NUM_CLIENTS
    print(report)


def main() -> int:
    """Put a running server under load and print what was found."""
    parser = argparse.ArgumentParser(description="Put a running server under load.")
    parser.add_argument("--rest", default="http://127.0.0.1:8000")
    parser.add_argument("--grpc", default="127.0.0.1:9000")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=NUM_CLIENTS)
    given = parser.parse_args()
    report = asyncio.run(put_under_load(given.rest, given.grpc, given.seconds, given.clients))
    print(report)
    return 1 if report.errors or not report.latencies_ms else 0


if __name__ == "__main__":
    sys.exit(main())
