"""The client against our own server, with an engine that always copies the same: both transports tell the same."""

import asyncio
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from mqan_client import AsyncClient, Client, InvalidRequestError, Source
from mqan_core.answer import Answer, AnswerToken, Masses, Span, compose
from mqan_core.answer import Source as CoreSource
from mqan_core.request import Request, read_request
from mqan_core.vocab import Vocabulary
from mqan_serving.local import LocalServer
from mqan_serving.service import AnswerService
from mqan_serving.settings import Settings
from mqan_serving.telemetry import set_up_logs

CONTEXT = "👩‍👧 Élan: the\nEiffel  Tower."
MASSES = Masses(0.5, 0.25, 0.25)


class CopyingEngine:
    """Answers with the first two tokens of the context and a word of its own."""

    provider = "CPUExecutionProvider"
    max_answer_tokens = 8

    def __init__(self) -> None:
        manifest = SimpleNamespace(name="copier", version="1", max_positions=8, scores={"sst": {"em": 80.5}})
        self.vocabulary = Vocabulary([" yes "], ["yes"])
        self.bundle: Any = SimpleNamespace(manifest=manifest, sha256="ab" * 32, vocabulary=self.vocabulary)

    def read(self, context: str, question: str) -> Request:
        return read_request(self.vocabulary, context, question)

    def start(self, requests: Sequence[Request], max_answer_tokens: Sequence[int], keys: Sequence[Any]) -> Any:
        answers = map(self._answer, requests, max_answer_tokens)
        return SimpleNamespace(answers=list(zip(keys, answers, strict=True)), num_steps=0, num_tokens=1)

    def step(self, decoding: Any) -> list[tuple[Any, Answer]]:
        answers: list[tuple[Any, Answer]] = decoding.answers
        return answers

    def write(self, ended: Answer) -> Answer:
        return ended

    def drop(self, decoding: Any, keys: Collection[Any]) -> None:
        decoding.answers = [(key, answer) for key, answer in decoding.answers if key not in keys]

    def merge(self, decodings: Sequence[Any]) -> Any:
        raise AssertionError("every answer ends at the first step")

    def _answer(self, request: Request, limit: int) -> Answer:
        tokens = [
            AnswerToken(
                token.piece.strip(" "), token.piece, 0.5, CoreSource.CONTEXT, MASSES, Span(token.start, token.end)
            )
            for token in request.context_tokens[:2]
        ]
        tokens.append(AnswerToken("yes", " yes ", 0.25, CoreSource.VOCABULARY, MASSES, None))
        return compose(tokens[:limit], 0.125, limit < len(tokens), request.context, request.question)


@pytest.fixture(scope="module")
def urls(free_ports: Callable[[int], list[int]]) -> Iterator[dict[str, str]]:
    http_port, grpc_port = free_ports(2)
    set_up_logs("error")
    settings = Settings(http_port=http_port, grpc_port=grpc_port, drain_delay_s=0, drain_timeout_s=1, log_level="error")
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def run() -> None:
        service: AnswerService[Any] = AnswerService(CopyingEngine(), settings)
        await service.warm_up()
        server = LocalServer(service, settings)
        await server.start()
        stop = asyncio.Event()
        started.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()
        await server.stop()

    def run_in_thread() -> None:
        try:
            asyncio.run(run())
        except Exception as error:
            started.set_exception(error)

    thread = threading.Thread(target=run_in_thread)
    thread.start()
    loop, stop = started.result(timeout=20)
    yield {"grpc": f"grpc://127.0.0.1:{grpc_port}", "rest": f"http://127.0.0.1:{http_port}"}
    loop.call_soon_threadsafe(stop.set)
    thread.join(timeout=20)


def test_both_transports_tell_the_same(urls: dict[str, str]) -> None:
    with Client(urls["grpc"]) as rpc, Client(urls["rest"]) as rest:
        answer = rpc.answer(CONTEXT, "What?")
        assert answer == rest.answer(CONTEXT, "What?")
        assert rpc.get_model() == rest.get_model()
        assert rpc.answer(CONTEXT, "What?", max_answer_tokens=1) == rest.answer(CONTEXT, "What?", max_answer_tokens=1)
    for span in answer.spans:
        assert span.text == CONTEXT[span.start : span.end]
    assert answer.tokens[-1].source is Source.VOCABULARY


@pytest.mark.parametrize("transport", ["grpc", "rest"])
@pytest.mark.parametrize(
    ("context", "question", "limit", "code"),
    [
        ("", "What?", None, "empty_context"),
        (CONTEXT, " \n", None, "empty_question"),
        ("word " * 5000, "What?", None, "context_too_long"),
        (CONTEXT, "word " * 300, None, "question_too_long"),
        (CONTEXT, "What?", 0, "max_answer_tokens_out_of_range"),
        ("x" * 2_000_000, "What?", None, "request_too_large"),
    ],
)
def test_both_transports_refuse_the_same(
    urls: dict[str, str], transport: str, context: str, question: str, limit: int | None, code: str
) -> None:
    with Client(urls[transport]) as client, pytest.raises(InvalidRequestError) as caught:
        client.answer(context, question, max_answer_tokens=limit)
    assert caught.value.code == code
    assert caught.value.request_id


@pytest.mark.parametrize("transport", ["grpc", "rest"])
async def test_many_questions_at_once(urls: dict[str, str], transport: str) -> None:
    async with AsyncClient(urls[transport]) as client:
        answers = await asyncio.gather(*(client.answer(f"word{i} and", "What?") for i in range(200)))
    assert [answer.text for answer in answers] == [f"word{i} yes" for i in range(200)]
