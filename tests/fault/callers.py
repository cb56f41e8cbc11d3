"""Callers at work while something happens to the servers that they ask."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Self

import grpc
import httpx2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from mqan.v1 import answer_pb2, answer_pb2_grpc

CONTEXT, QUESTION, LIMIT = "The kettle is in the kitchen.", "Where is the kettle?", 3

_PAUSE_S = 0.3  # of a caller who was told to come again, or found nobody
_PATIENCE_S = 60.0

Ask = Callable[[], str]
Caller = Callable[[], AbstractContextManager[Ask]]


@dataclass(frozen=True)
class Outcome:
    """How a request ended: ``ok``, ``told`` (to come again later, in the API's own words), ``refused`` (a connection),
    or what went wrong.
    """

    begun: float
    ended: float
    what: str


class Load:
    """Callers at work, a thread each, from entering to leaving, and the outcomes of their requests in order.

    Who was told to come again waits for ``pause_s`` on average: up to half of it less or more, as clients do that shall
    not all come at the same moment.
    """

    def __init__(self, callers: Sequence[Caller], pause_s: float = _PAUSE_S) -> None:
        self.num_callers = len(callers)
        self.outcomes: list[Outcome] = []
        self._pause_s = pause_s
        self._over = threading.Event()
        self._all_ready = threading.Barrier(len(callers) + 1)  # making hundreds of clients takes seconds
        self._threads = [threading.Thread(target=self._call, args=(caller,)) for caller in callers]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        self._all_ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _call(self, caller: Caller) -> None:
        with caller() as ask:
            self._all_ready.wait()
            time.sleep(random.uniform(0, self._pause_s))
            while not self._over.is_set():
                begun = time.perf_counter()
                what = ask()
                self.outcomes.append(Outcome(begun, time.perf_counter(), what))
                if what in ("refused", "told"):
                    time.sleep(self._pause_s * random.uniform(0.5, 1.5))

    def between(self, begun: float, ended: float) -> Counter[str]:
        """Return how the requests ended that began in a span of time."""
        return Counter(outcome.what for outcome in list(self.outcomes) if begun <= outcome.begun < ended)

    def rate(self, begun: float, ended: float) -> float:
        """Return the answers a second that came in a span of time."""
        found = [o for o in list(self.outcomes) if o.what == "ok" and begun <= o.ended < ended]
        return len(found) / (ended - begun)


def rest_caller(*servers: Any, patience_s: float = _PATIENCE_S) -> Caller:
    """Return a plain HTTP client of one or several servers; it goes to the next that is ready where one has failed."""
    body = {"context": CONTEXT, "question": QUESTION, "max_answer_tokens": LIMIT}

    @contextmanager
    def caller() -> Iterator[Ask]:
        with ExitStack() as opened:
            clients = [
                opened.enter_context(
                    httpx2.Client(base_url=server.rest, trust_env=False, verify=False, timeout=patience_s)
                )
                for server in servers
            ]

            def ask(client: httpx2.Client) -> str:
                try:
                    response = client.post("/v1/answer", json=body)
                except httpx2.ConnectError:
                    return "refused"
                except httpx2.TransportError as error:
                    return f"{type(error).__name__}: {error}"
                is_told = response.status_code in (429, 503) and "retry-after" in response.headers
                return "ok" if response.status_code == 200 else "told" if is_told else f"{response.status_code}"

            def is_ready(client: httpx2.Client) -> bool:
                try:
                    return client.get("/health/ready", timeout=1).status_code == 200
                except httpx2.TransportError:
                    return False

            yield _in_turn(ask, is_ready, clients)

    return caller


def rpc_caller(*servers: Any, patience_s: float = _PATIENCE_S) -> Caller:
    """Return a plain gRPC client, as ``rest_caller`` does."""
    request = answer_pb2.AnswerRequest(context=CONTEXT, question=QUESTION, max_answer_tokens=LIMIT)

    @contextmanager
    def caller() -> Iterator[Ask]:
        with ExitStack() as opened:
            channels = [
                opened.enter_context(grpc.insecure_channel(server.rpc, [("grpc.use_local_subchannel_pool", 1)]))
                for server in servers
            ]

            def ask(channel: grpc.Channel) -> str:
                try:
                    answer_pb2_grpc.QuestionAnsweringStub(channel).Answer(request, timeout=patience_s)
                except grpc.RpcError as raised:
                    error: Any = raised
                    if "retry-after" in dict(error.trailing_metadata() or ()):
                        return "told"
                    is_refused = error.code() is grpc.StatusCode.UNAVAILABLE and "connect" in error.details()
                    return "refused" if is_refused else f"{error.code().name}: {error.details()}"
                return "ok"

            def is_ready(channel: grpc.Channel) -> bool:
                try:
                    found = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=1)
                except grpc.RpcError:
                    return False
                return bool(found.status == health_pb2.HealthCheckResponse.SERVING)

            yield _in_turn(ask, is_ready, channels)

    return caller


def _in_turn(ask: Callable[[Any], str], is_ready: Callable[[Any], bool], places: Sequence[Any]) -> Ask:
    place = places[0]

    def ask_on() -> str:
        nonlocal place
        what = ask(place)
        if what != "ok":
            place = next(filter(is_ready, (other for other in places if other is not place)), place)
        return what

    return ask_on


def wait_for(is_so: Any, begun: float) -> float:
    """Wait until something is so; return the seconds since ``begun``, at most 150."""
    while not is_so(now := time.perf_counter()) and now < begun + 150:
        time.sleep(0.1)
    return now - begun
