"""Every kind of model behind the same server: the same client, the same fields, over both transports."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mqan_client import Client, InvalidRequestError, StreamedWord
from mqan_core.wordings import samples_of
from mqan_runtime.interface import AnswerEngine, open_engine

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(
    scope="module",
    params=[
        ("local", "default"),
        ("local", "shared-memory"),
        ("local", "mt-dnn"),
        pytest.param(("ray", "mt-dnn"), marks=pytest.mark.slow),
    ],
    ids="-".join,
)
def served(
    request: pytest.FixtureRequest,
    start_server: Callable[..., Any],
    sibling_bundle: Callable[[str], Path],
    bundle_folder: Path,
) -> Iterator[tuple[Any, AnswerEngine]]:
    """A server of each kind of model, and the engine of its bundle in this process; it must end well."""
    server, kind = request.param
    folder = bundle_folder if kind == "default" else sibling_bundle(kind)
    running = start_server(server, bundle=folder)
    yield running, open_engine(folder, provider="cpu")
    assert running.stop() == 0, running.log.read_text()[-3000:]


@pytest.fixture(scope="module")
def clients(served: tuple[Any, AnswerEngine]) -> Iterator[tuple[Client, Client]]:
    """Clients over gRPC and REST."""
    server, _ = served
    with Client(f"grpc://{server.rpc}") as rpc, Client(server.rest) as rest:
        yield rpc, rest


def test_both_transports_answer_as_the_engine_does(
    served: tuple[Any, AnswerEngine], clients: tuple[Client, Client]
) -> None:
    engine, (rpc, rest) = served[1], clients
    for context, question in samples_of(engine.bundle.questions):
        answer = rest.answer(context, question)
        assert answer == rpc.answer(context, question)
        (expected,) = engine.answer([engine.read(context, question)], [min(100, engine.max_answer_tokens)])
        assert (answer.text, answer.answered, answer.chosen) == (expected.text, expected.answered, expected.chosen)
        assert answer.probability == pytest.approx(expected.probability, rel=1e-3)
        assert [choice.probability for choice in answer.choices] == pytest.approx(expected.shares)
        *words, last = rest.answer_stream(context, question)
        assert last == answer
        assert all(isinstance(word, StreamedWord) for word in words)
        assert "".join(word.delta for word in words if isinstance(word, StreamedWord)) == answer.text
        assert [*rpc.answer_stream(context, question)] == [*words, last]
    many = rpc.answer_many([*samples_of(engine.bundle.questions)] * 2)
    assert many == rest.answer_many([*samples_of(engine.bundle.questions)] * 2)


def test_the_model_lists_its_questions_alike(served: tuple[Any, AnswerEngine], clients: tuple[Client, Client]) -> None:
    engine, (rpc, rest) = served[1], clients
    model = rest.get_model()
    assert model == rpc.get_model()
    assert model.sha256 == engine.bundle.sha256
    assert [(q.task, q.question, q.context, q.labels) for q in model.questions] == [
        (q.task, q.wording.question, q.wording.context, q.labels) for q in engine.bundle.questions
    ]


def test_what_does_not_fit_a_model_of_fixed_tasks_is_refused_alike(
    served: tuple[Any, AnswerEngine], clients: tuple[Client, Client]
) -> None:
    questions = served[1].bundle.questions
    if not questions:
        pytest.skip("it takes any question")
    context, question = samples_of(questions)[0]
    pair = next((q.wording for q in questions if q.wording.num_texts == 2), None)
    for client in clients:
        with pytest.raises(InvalidRequestError, match="Ask one of these, word for word: ") as raised:
            client.answer(context, "Where is the kettle?")
        assert raised.value.code == "unknown_question"
        refused = ({"choices": ["a", "b"]}, {"yes_no": True}, {"contiguous": True}, {"explain": True}, {"parse": "sql"})
        for option in refused:
            with pytest.raises(InvalidRequestError) as raised:
                client.answer(context, question, **option)
            assert raised.value.code == "option_not_supported"
        if pair is not None:
            with pytest.raises(InvalidRequestError) as raised:
                client.answer("The kettle is in the kitchen.", pair.fill("a", "b")[1])
            assert raised.value.code == "unexpected_context"


def test_limits_and_metrics_are_those_of_every_model(served: tuple[Any, AnswerEngine]) -> None:
    server, engine = served
    context, question = samples_of(engine.bundle.questions)[0]
    with httpx2.Client(base_url=server.rest, trust_env=False, timeout=30) as rest:
        refused = rest.post("/v1/answer", json={"context": "a " * 4001, "question": question})
        assert (refused.status_code, refused.json()["code"]) == (422, "context_too_long")
        most = rest.get("/v1/model").json()["limits"]["max_answer_tokens"]
        refused = rest.post(
            "/v1/answer", json={"context": context, "question": question, "max_answer_tokens": most + 1}
        )
        assert refused.json()["code"] == "max_answer_tokens_out_of_range"
        if server.kind == "local":
            assert "mqan_" in rest.get("/metrics").text
