"""A stand-in for the engine, which is slow, blocks and fails on demand, and servers over it."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import grpc
import httpx2
import numpy as np
import pytest

from mqan.v1 import answer_pb2, answer_pb2_grpc
from mqan_client import Client
from mqan_core.answer.types import Answer, AnswerToken, Masses, Source, Span, compose
from mqan_core.ask.options import PLAIN, Options
from mqan_core.ask.request import Check, read_question
from mqan_core.bundle import Bundle
from mqan_core.errors import EngineFailedError
from mqan_core.manifest import Manifest, Sizes
from mqan_core.text.tokens import Token, read_tokens
from mqan_core.text.vectors import WordVectors
from mqan_core.text.vocab import Vocabulary
from mqan_serving.local import LocalServer
from mqan_serving.observability.log_writer import WRITER
from mqan_serving.observability.logs import set_up_logs
from mqan_serving.observability.metrics import Metrics
from mqan_serving.records.quoted import NEAR_CHARS
from mqan_serving.records.values import Kind, Value, read_value
from mqan_serving.service import answer_service
from mqan_serving.service.answer_service import Service
from mqan_serving.settings import load_settings
from tests.serving_one import models_of


@dataclass(frozen=True)
class ReadText:
    """A tokenised request."""

    context: str
    question: str
    num_context_tokens: int
    num_question_tokens: int

    @property
    def num_read(self) -> int:
        return self.num_context_tokens + self.num_question_tokens

    @property
    def work(self) -> int:
        return self.num_read


class Unlimited:
    """A semaphore that nobody waits for."""

    def acquire(self, timeout: float) -> None:
        """Go on at once."""


@dataclass
class StandInDecoding:
    """Requests on their way, and the steps that each has left and has taken."""

    left: dict[Any, int]
    answers: dict[Any, Answer]
    num_tokens: int
    num_steps: int = 0
    taken: dict[Any, int] = field(default_factory=dict)


@dataclass
class StandInEngine:
    """Answers with the first words of the context, in one step for the end and one for each "step" in the question.

    Each of these but the last decides a word, while there are any. It pauses once for each "window" in the longest
    question, and keeps a record of the batches it started, and of the contexts of each step and pause.
    """

    provider: str = "StandIn"
    text_width: int = 0
    may_answer: threading.Event = field(default_factory=threading.Event)
    may_step: "threading.Semaphore | Unlimited" = field(default_factory=Unlimited)
    may_read: "threading.Semaphore | Unlimited" = field(default_factory=Unlimited)
    batches: list[list[str]] = field(default_factory=list)
    steps: list[list[str]] = field(default_factory=list)
    windows: list[list[str]] = field(default_factory=list)
    num_reads: int = 0
    num_started: int = 0
    num_running: int = 0
    most_running: int = 0
    max_answer_tokens: int = 49
    bundle: Bundle = field(init=False)

    def __post_init__(self) -> None:
        self.may_answer.set()
        vocabulary = Vocabulary([" a "], ["a"])
        vectors = WordVectors(
            vocabulary, np.zeros((1, 2), np.int8), np.ones(1, np.float32), np.zeros((4, 2), np.float32)
        )
        sizes = Sizes(4, 4, num_layers=1, num_heads=1, head_width=4, num_generated=vocabulary.num_generated)
        manifest = Manifest("stand-in", "1", "words", sizes, 50, {}, scores={"squad": {"nf1": 50.0}})
        self.bundle = Bundle(Path(), manifest, "0" * 64, vocabulary, vectors=vectors)

    def read(self, context: str, question: str, options: Options = PLAIN, check: Check | None = None) -> ReadText:
        self.num_reads += 1
        read = read_question(self.bundle.vocabulary, context, question, options, check)
        return ReadText(context, question, read.num_context_tokens, read.num_question_tokens)

    def start_in_turns(
        self, requests: Sequence[ReadText], max_answer_tokens: Sequence[int], keys: Sequence[Any]
    ) -> Generator[None, None, StandInDecoding]:
        for _ in range(max(request.question.count("window") for request in requests)):
            self.may_read.acquire(timeout=60)
            self.windows.append([request.context for request in requests])
            yield
        self.num_started += 1
        self.may_answer.wait(60)
        self.batches.append([request.context for request in requests])
        if any("explode" in request.context for request in requests):
            raise RuntimeError("secret of the engine at /srv/model")
        self.num_running += len(requests)
        self.most_running = max(self.most_running, self.num_running)
        left = {key: 1 + request.question.count("step") for key, request in zip(keys, requests, strict=True)}
        answers = map(self._answer, requests, max_answer_tokens)
        longest = max(request.num_context_tokens + request.num_question_tokens for request in requests)
        return StandInDecoding(left, dict(zip(keys, answers, strict=True)), longest * len(requests))

    def step(self, decoding: StandInDecoding) -> list[tuple[Any, Answer]]:
        assert decoding.left, "a step of nobody"
        self.may_step.acquire(timeout=60)
        self.steps.append([key.request.context for key in decoding.left])
        if any("burst" in key.request.context for key in decoding.left):
            raise RuntimeError("secret of the step")
        if any("die" in key.request.context for key in decoding.left):
            raise EngineFailedError("the device is gone")
        decoding.num_steps += 1
        ended = [key for key, left in decoding.left.items() if left == 1]
        decoding.left = {key: left - 1 for key, left in decoding.left.items() if left > 1}
        decoding.taken = {key: decoding.taken.get(key, 0) + 1 for key in decoding.left}
        self.num_running -= len(ended)
        return [(key, decoding.answers[key]) for key in ended]

    def decided(self, decoding: StandInDecoding, told: Mapping[Any, int]) -> list[tuple[Any, Sequence[AnswerToken]]]:
        if any("undecidable" in key.request.context for key in told):
            raise RuntimeError("secret of the decided")
        return [(key, decoding.answers[key].tokens[told[key] : decoding.taken[key]]) for key in told]

    def write(self, answer: Answer) -> Answer:
        if "unwritable" in answer.text:
            raise RuntimeError("secret of the writer")
        return answer

    def drop(self, decoding: StandInDecoding, keys: Collection[Any]) -> None:
        for key in keys:
            del decoding.left[key]
            self.num_running -= 1

    def merge(self, decodings: Sequence[StandInDecoding]) -> StandInDecoding:
        first, *others = decodings
        for other in others:
            first.left |= other.left
            first.answers |= other.answers
            first.taken |= other.taken
            first.num_tokens += other.num_tokens
            first.num_steps = max(first.num_steps, other.num_steps)
        return first

    def words(self, context: str) -> list[Token]:
        """Return the words of an answer."""
        return read_tokens(context)[:3]

    def _answer(self, request: ReadText, most: int) -> Answer:
        found = self.words(request.context)[:most]
        tokens = [
            AnswerToken(
                request.context[token.start : token.end],
                token.piece,
                0.5,
                Source.CONTEXT,
                Masses(0.5, 0.25, 0.25),
                Span(token.start, token.end),
            )
            for token in found
        ]
        return compose(tokens, 0.5 ** (len(tokens) + 1), False, request.context, request.question)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


def log_lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Return what has been logged since this was asked last."""
    assert WRITER.flush(1.0)
    return [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]


async def refusal(call: Awaitable[Any]) -> tuple[grpc.StatusCode, dict[str, str]]:
    """Return the status and the trailing metadata that a call of gRPC ends with."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return raised.value.code(), dict(raised.value.trailing_metadata() or ()) | {"details": raised.value.details() or ""}


def found_around(kind: Kind, text: str, knows: Callable[[str], bool] = str.isascii) -> Value:
    """Read the quotation that stands in brackets in a text, or the whole text where there are none."""
    before, _, rest = (text if "[" in text else f"[{text}]").partition("[")
    quotation, _, after = rest.partition("]")
    return read_value(kind, quotation, before[-NEAR_CHARS:], after[:NEAR_CHARS], knows, before + quotation + after)


def read_around(kind: Kind, text: str, knows: Callable[[str], bool] = str.isascii) -> object:
    return found_around(kind, text, knows).value


@pytest.fixture
def engine() -> StandInEngine:
    """A stand-in that answers at once."""
    return StandInEngine()


@pytest.fixture
def metrics() -> Metrics:
    """What a test's services count; those of one test count together."""
    return Metrics()


ServiceFactory = Callable[..., Service]
StartServer = Callable[..., Awaitable[Any]]


@pytest.fixture
async def make_service(engine: StandInEngine, metrics: Metrics) -> AsyncIterator[ServiceFactory]:
    """Create ready services over the stand-in, by settings; they are closed at the end."""
    services: list[Service] = []

    def make(**settings: Any) -> Service:
        service = Service(cast(Any, engine), load_settings(**settings), meter=metrics)
        service.health.set_ready()
        services.append(service)
        return service

    yield make
    engine.may_answer.set()
    for service in services:
        await service.close()


@pytest.fixture
def end_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Ends the time of a question, by its number in the order in which they came; no clock ends it."""
    timeouts: list[asyncio.Timeout] = []

    def timeout(_: float) -> asyncio.Timeout:
        timeouts.append(asyncio.timeout(None))
        return timeouts[-1]

    monkeypatch.setattr(answer_service, "asyncio", SimpleNamespace(**vars(asyncio) | {"timeout": timeout}))
    return lambda number: timeouts[number].reschedule(0.0)


@dataclass
class Callers:
    """A server over the stand-in engine, and both ways to call it."""

    server: LocalServer
    service: Service
    metrics: Metrics
    rest: httpx2.AsyncClient
    rpc: Any
    body: dict[str, str] = field(
        default_factory=lambda: {"context": "The kettle is in the kitchen.", "question": "Where is the kettle?"}
    )

    @property
    def http_port(self) -> int:
        return self.server._settings.http_port

    @property
    def grpc_port(self) -> int:
        return self.server._settings.grpc_port

    def post(self, **changes: Any) -> Awaitable[httpx2.Response]:
        return self.rest.post("/v1/answer", json=self.body | changes)

    def call(self, **changes: str) -> Any:
        return self.rpc.Answer(self.request(**changes), timeout=60)

    def request(self, **changes: str) -> answer_pb2.AnswerRequest:
        return answer_pb2.AnswerRequest(**(self.body | changes))  # type: ignore[arg-type]


@pytest.fixture
async def start_server(
    make_service: ServiceFactory,
    engine: StandInEngine,
    metrics: Metrics,
    free_ports: Callable[[int], list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Callable[..., Awaitable[Callers]]]:
    """Start servers over the stand-in, by settings; they are stopped at the end."""
    opened: list[tuple[Callers, grpc.aio.Channel]] = []

    async def start(**settings: Any) -> Callers:
        http_port, grpc_port = free_ports(2)
        given = {"http_port": http_port, "grpc_port": grpc_port, "drain_delay_s": 0.0, **settings}
        service = make_service(**given)
        server = LocalServer(models_of(service, load_settings(**given)), load_settings(**given), metrics)
        await server.start()
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{grpc_port}")
        rest = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{http_port}", trust_env=False, verify=False, timeout=60)
        opened.append(
            (Callers(server, service, metrics, rest, answer_pb2_grpc.QuestionAnsweringStub(channel)), channel)
        )
        return opened[-1][0]

    set_up_logs("debug")
    yield start
    engine.may_answer.set()
    for callers, channel in opened:
        await callers.rest.aclose()
        await channel.close()
        await callers.server.stop()


@pytest.fixture(scope="module")
def clients(small_server: tuple[str, str]) -> Iterator[tuple[Client, Client, str]]:
    """Clients of the small server over REST and over gRPC, and the URL of REST."""
    with Client(small_server[0]) as rest, Client(small_server[1]) as rpc:
        yield rest, rpc, small_server[0]


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "MQAN_BUNDLE",
        "MQAN_HTTP_PORT",
        "MQAN_GRPC_PORT",
        "MQAN_PROVIDER",
        "MQAN_LOG_LEVEL",
        "MQAN_API_KEY_FILE",
    ):
        monkeypatch.delenv(name, raising=False)
