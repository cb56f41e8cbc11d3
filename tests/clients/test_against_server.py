"""The client against our own server, with a stand-in for the engine: both transports tell the same."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from mqan_client import Answer as ClientAnswer
from mqan_client import (
    AskedQuestion,
    AsyncClient,
    Client,
    ClientError,
    DeadlineExceededError,
    InvalidRequestError,
    Retries,
)
from tests.serving.conftest import StandInEngine

CONTEXT = "👩‍👧 Élan: the\nEiffel  Tower."


@pytest.fixture(scope="module")
def urls(serve_local: Callable[..., AbstractContextManager[tuple[int, int]]]) -> Iterator[dict[str, str]]:
    with serve_local(StandInEngine()) as (http_port, grpc_port):
        yield {"grpc": f"grpc://127.0.0.1:{grpc_port}", "rest": f"http://127.0.0.1:{http_port}"}


@pytest.mark.parametrize("transport", ["grpc", "rest"])
def test_what_no_transport_reads_is_not_sent_again(urls: dict[str, str], transport: str) -> None:
    slow = Retries(initial_s=30.0, max_s=30.0)
    with Client(urls[transport], retries=slow, timeout_s=25) as client, pytest.raises(InvalidRequestError) as caught:
        client.answer("x" * 5_000_000, "What?")
    assert caught.value.code == "request_too_large"


@pytest.mark.parametrize("transport", ["grpc", "rest"])
def test_an_async_client_belongs_to_the_loop_it_is_first_used_in(urls: dict[str, str], transport: str) -> None:
    client = AsyncClient(urls[transport])

    async def ask() -> str:
        async with client:
            return (await client.answer("word and", "What?")).text

    assert asyncio.run(ask()) == "word and"


async def test_an_async_client_that_was_never_used_can_be_closed(urls: dict[str, str]) -> None:
    for url in urls.values():
        await AsyncClient(url).close()


def test_many_questions_are_answered_in_their_order(urls: dict[str, str]) -> None:
    texts = [f"Text {i} is here." for i in range(40)]
    texts[7] = ""
    for url in urls.values():
        done: list[int] = []
        with Client(url) as client:
            results = client.answer_many([(text, "What?") for text in texts], concurrency=5, progress=done.append)
            assert len(done) == 40

        async def ask(url: str = url) -> list[ClientAnswer | ClientError]:
            async with AsyncClient(url) as client:
                return await client.answer_many([(text, "What?") for text in texts], concurrency=5)

        for found in (results, asyncio.run(ask())):
            assert isinstance(found[7], InvalidRequestError)
            assert [answer.text for answer in found if not isinstance(answer, ClientError)] == [
                f"Text {i} is" for i in range(40) if i != 7
            ]


def test_many_questions_need_somebody_to_ask_them(urls: dict[str, str]) -> None:
    with Client(urls["rest"]) as client, pytest.raises(ValueError, match="concurrency is 0"):
        client.answer_many([("a", "b")], concurrency=0)


def test_a_fault_in_the_callers_own_code_ends_the_call(urls: dict[str, str]) -> None:
    def progress(_: int) -> None:
        raise ZeroDivisionError

    pairs = [(f"Text {i}", "What?") for i in range(200)]
    with Client(urls["grpc"]) as client:
        with pytest.raises(ZeroDivisionError):
            client.answer_many(pairs, concurrency=2, progress=progress)
        assert client.answer("Text", "What?").answered

    async def ask() -> None:
        async with AsyncClient(urls["grpc"]) as client:
            await client.answer_many(pairs, concurrency=2, progress=progress)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(ask())


def test_a_fault_among_the_questions_asks_none(urls: dict[str, str]) -> None:
    def pairs() -> Iterator[tuple[str, str]]:
        yield "Text", "What?"
        raise ZeroDivisionError

    done: list[int] = []
    with Client(urls["rest"]) as client, pytest.raises(ZeroDivisionError):
        client.answer_many(pairs(), progress=done.append)
    assert done == []


def test_several_questions_about_one_text_are_one_call(urls: dict[str, str]) -> None:
    asked: list[str | AskedQuestion] = ["What?", {"question": "What?", "max_answer_tokens": 1}, " ", "Which?"]
    for url in urls.values():
        with Client(url) as client:
            results = client.answer_questions(CONTEXT, asked)
            alone = [client.answer(CONTEXT, "What?"), client.answer(CONTEXT, "What?", max_answer_tokens=1)]

        async def ask(url: str = url) -> list[ClientAnswer | ClientError]:
            async with AsyncClient(url) as client:
                return await client.answer_questions(CONTEXT, asked)

        for found in (results, asyncio.run(ask())):
            assert found[:2] == alone
            assert found[3] == alone[0]
            assert isinstance(found[2], InvalidRequestError)
            assert found[2].code == "empty_question"


@pytest.mark.parametrize(
    ("questions", "code"),
    [([], "wrong_type"), (["What?"] * 257, "too_many_questions"), (["What \ud800?"], None), ([7], "invalid_input")],
)
def test_a_call_of_questions_that_cannot_be_asked(urls: dict[str, str], questions: list[Any], code: str | None) -> None:
    for url in urls.values():
        with Client(url) as client, pytest.raises(InvalidRequestError) as raised:
            client.answer_questions(CONTEXT, questions)
        assert code is None or raised.value.code == code


def test_the_time_of_a_call_is_that_of_its_questions(urls: dict[str, str]) -> None:
    for url in urls.values():
        with Client(url, timeout_s=1e-3) as client, pytest.raises(DeadlineExceededError):
            client.answer_questions(CONTEXT, ["What?"] * 256)
        with Client(url) as client:
            client.answer(CONTEXT, "What?")  # the server has done with those before it
