"""The contract, held by every kind of server over both transports."""

import json
import re
import shlex
from contextlib import suppress
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import httpx2
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from mqan.v1 import answer_pb2, answer_pb2_grpc
from mqan_runtime.engine import Engine
from mqan_serving.records.documents import RECORD_REQUEST, RECORD_RESPONSE
from tests.messages import document_of, without_nothing
from tests.processes import descendants, listeners
from tests.timing import wait_until

pytestmark = pytest.mark.timeout(240)  # the first test of a server waits for its start

QUESTIONS = [
    ("The Eiffel Tower is 330 metres tall. It was built in Paris.", "How tall is the Eiffel Tower?", None),
    ("Ein Bär 🐻‍❄️ und\n\n  zwei Füchse 🦊🦊 schlafen.", "Wer schläft?", None),
    ("  السلام عليكم  — ok\t?", "What does it say?", 5),
    (" ".join(f"Sentence {i} is about number {i}." for i in range(60)), "What is it about?", 12),
]
_LOOPBACK = {"0100007F", f"{0:024}01000000", "0000000000000000FFFF00000100007F"}  # 127.0.0.1, ::1, and as one of IPv6
CHECKOUT = re.escape(str(Path(__file__).resolve().parents[2]))
LEAKS = re.compile(rf"Traceback|site-packages|\.py\b|{CHECKOUT}|/tmp|/home|0x[0-9a-f]{{6}}|ActorI|\bpid\b|Exception")


def ask(client: httpx2.Client, context: str, question: str, limit: int | None) -> Any:
    body: dict[str, Any] = {"context": context, "question": question}
    if limit is not None:
        body["max_answer_tokens"] = limit
    response = client.post("/v1/answer", json=body)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize(("context", "question", "limit"), QUESTIONS, ids=range(len(QUESTIONS)))
def test_rest_answers_as_the_engine_does(
    rest: httpx2.Client, engine: Engine, context: str, question: str, limit: int | None
) -> None:
    body = ask(rest, context, question, limit)
    most = limit or rest.get("/v1/model").json()["limits"]["max_answer_tokens"]
    expected = engine.answer([engine.read(context, question)], [most])[0]
    of_options = {"choices", "chosen", "expected", "places", "alternatives", "steps", "parsed", "parse_error"}
    assert set(body) == {
        *("answer", "answered", "probability", "confidence", "none", "tokens", "spans", "truncated"),
        *("windows", "model", *of_options),
    }
    assert not any(body[name] for name in of_options)
    assert (body["answered"], body["windows"]) == (expected.answered, expected.num_windows)
    assert body["answer"] == expected.text
    assert body["truncated"] == expected.truncated
    assert body["probability"] == pytest.approx(expected.probability, rel=1e-3)
    assert len(body["tokens"]) == len(expected.tokens) <= most
    texts = {"context": context, "question": question}
    for token, wanted in zip(body["tokens"], expected.tokens, strict=True):
        assert set(token) == {"text", "probability", "source", "masses", "span"}
        assert (token["text"], token["source"]) == (wanted.text, wanted.source)
        assert sum(token["masses"].values()) == pytest.approx(1, abs=1e-5)
        assert (token["span"] is None) == (token["source"] == "vocabulary")
        if token["span"]:
            assert texts[token["source"]][token["span"]["start"] : token["span"]["end"]] == token["text"]
    for span in body["spans"]:
        assert texts[span["source"]][span["start"] : span["end"]] == span["text"]
    assert body["model"] == {"name": engine.bundle.manifest.name, "version": engine.bundle.manifest.version}


@pytest.mark.parametrize(("context", "question", "limit"), QUESTIONS, ids=range(len(QUESTIONS)))
def test_grpc_carries_the_same_fields(
    rest: httpx2.Client, channel: grpc.Channel, context: str, question: str, limit: int | None
) -> None:
    request = answer_pb2.AnswerRequest(context=context, question=question, max_answer_tokens=limit)
    response = answer_pb2_grpc.QuestionAnsweringStub(channel).Answer(request, timeout=30)
    assert document_of(response) == without_nothing(ask(rest, context, question, limit))


def test_many_questions_are_answered_alike(rest: httpx2.Client, channel: grpc.Channel) -> None:
    context, question, _ = QUESTIONS[0]
    asked = answer_pb2.AskedQuestion(id="a", request=answer_pb2.AnswerRequest(question=question))
    text = answer_pb2.AskedText(context=context, questions=[asked])
    request = answer_pb2.AnswerManyRequest(texts=[text] * 2)
    response = answer_pb2_grpc.QuestionAnsweringStub(channel).AnswerMany(request, timeout=30)
    alone = ask(rest, context, question, None)["answer"]
    assert [(a.id, a.answer.answer) for of_text in response.texts for a in of_text.answers] == [("a", alone)] * 2


def test_records_are_filled_alike(rest: httpx2.Client, channel: grpc.Channel) -> None:
    stub = answer_pb2_grpc.QuestionAnsweringStub(channel)
    told = rest.post("/v1/records", json=RECORD_REQUEST).json()
    assert told["record"] == RECORD_RESPONSE["record"]
    assert told["missing"] == ["order"]
    request = answer_pb2.FillRecordRequest(
        context=RECORD_REQUEST["context"], schema=json.dumps(RECORD_REQUEST["schema"])
    )
    message = document_of(stub.FillRecord(request, timeout=30))
    message["record"] = json.loads(message["record"])
    for field in message["fields"]:
        field["value"] = json.loads(field["value"])
        field["probability"] = pytest.approx(field["probability"], abs=1e-5)
    message["fields"] = {field.pop("name"): field for field in message["fields"]}
    assert list(message["fields"]) == list(told["fields"])
    assert without_nothing(told) == without_nothing(message)


@pytest.mark.parametrize(("context", "question", "limit"), QUESTIONS, ids=range(len(QUESTIONS)))
def test_word_by_word_it_is_the_same_answer(
    rest: httpx2.Client, channel: grpc.Channel, context: str, question: str, limit: int | None
) -> None:
    plain = ask(rest, context, question, limit)
    body = {"context": context, "question": question, "stream": True, **({"max_answer_tokens": limit} if limit else {})}
    with rest.stream("POST", "/v1/answer", json=body) as response:
        assert (response.status_code, response.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
        assert response.headers["x-request-id"]
        events = response.read().decode().split("\n\n")[:-1]
    names, documents = zip(*(event.removeprefix("event: ").split("\ndata: ") for event in events), strict=True)
    assert names == ("word",) * len(plain["tokens"]) + ("answer",)
    *words, answer = map(json.loads, documents)
    assert answer == plain
    assert "".join(word.pop("delta") for word in words) == plain["answer"]
    assert words == plain["tokens"]

    request = answer_pb2.AnswerRequest(context=context, question=question, max_answer_tokens=limit)
    stub = answer_pb2_grpc.QuestionAnsweringStub(channel)
    call = stub.AnswerStream(request, timeout=30)
    *parts, last = list(call)
    assert "x-request-id" in dict(call.trailing_metadata())
    assert last.answer == stub.Answer(request, timeout=30)
    assert [part.word.token for part in parts] == list(last.answer.tokens)
    assert "".join(part.word.delta for part in parts) == last.answer.answer


def test_errors_of_streams_are_those_of_answers(rest: httpx2.Client, channel: grpc.Channel) -> None:
    refused = rest.post("/v1/answer", json={"context": " ", "question": "q", "stream": True})
    assert (refused.status_code, refused.json()["code"]) == (422, "empty_context")
    stub = answer_pb2_grpc.QuestionAnsweringStub(channel)
    with pytest.raises(grpc.RpcError) as raised:
        list(stub.AnswerStream(answer_pb2.AnswerRequest(context=" ", question="q"), timeout=30))
    error: Any = raised.value
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert dict(error.trailing_metadata())["mqan-code"] == "empty_context"


def test_model_is_described_alike(rest: httpx2.Client, channel: grpc.Channel, engine: Engine) -> None:
    message = answer_pb2_grpc.QuestionAnsweringStub(channel).GetModel(answer_pb2.GetModelRequest(), timeout=30)
    body = rest.get("/v1/model").json()
    assert body | {"questions": []} == document_of(message), "of models that are no longer served"
    assert body["sha256"] == engine.bundle.sha256
    assert body["provider"].endswith("ExecutionProvider")


def test_health(rest: httpx2.Client, channel: grpc.Channel) -> None:
    assert rest.get("/health/live").json() == {"status": "live"}
    assert rest.get("/health/ready").json() == {"status": "ready"}
    stub: Any = health_pb2_grpc.HealthStub(channel)
    for name in ("", "mqan.v1.QuestionAnswering"):
        response = stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=10)
        assert response.status == health_pb2.HealthCheckResponse.SERVING
    with pytest.raises(grpc.RpcError) as raised:
        stub.Check(health_pb2.HealthCheckRequest(service="other"), timeout=10)
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND


BAD_REQUESTS = [
    (b"{", 400, "malformed_request"),
    (b'{"context": "\xff", "question": "q"}', 400, "malformed_request"),
    (b'{"context": "c"}', 422, "missing_field"),
    (b'{"context": " ", "question": "q"}', 422, "empty_context"),
    (b'{"context": "' + b"a " * 4001 + b'", "question": "q"}', 422, "context_too_long"),
    (b'{"context": "' + b"a " * 3900 + b'", "question": "q", "timeout_ms": 1}', 504, "deadline_exceeded"),
    (b" " * (1024 * 1024 + 1), 413, "request_too_large"),
]


@pytest.mark.parametrize(("content", "status", "code"), BAD_REQUESTS, ids=range(len(BAD_REQUESTS)))
def test_rest_refuses_with_an_explanation(rest: httpx2.Client, content: bytes, status: int, code: str) -> None:
    check_refusal(rest.post("/v1/answer", content=content, headers={"content-type": "application/json"}), status, code)


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "code"),
    [
        ("GET", "/v1/nothing", {}, 404, "not_found"),
        ("GET", "/v1/answer", {}, 405, "method_not_allowed"),
        ("POST", "/v1/model", {}, 405, "method_not_allowed"),
        ("POST", "/v1/answer", {}, 415, "unsupported_media_type"),
        ("POST", "/v1/answer", {"content-type": "text/plain"}, 415, "unsupported_media_type"),
        ("POST", "/v1/answer", {"content-encoding": "gzip"}, 415, "unsupported_encoding"),
    ],
)
def test_rest_refuses_what_it_does_not_serve(
    rest: httpx2.Client, method: str, path: str, headers: dict[str, str], status: int, code: str
) -> None:
    check_refusal(rest.request(method, path, headers=headers), status, code)


def test_rest_refuses_a_stream_that_grows_too_large(rest: httpx2.Client) -> None:
    chunks = (b" " * 65_536 for _ in range(20))
    response = rest.post("/v1/answer", content=chunks, headers={"content-type": "application/json"})
    check_refusal(response, 413, "request_too_large")


def check_refusal(response: httpx2.Response, status: int, code: str) -> None:
    body = response.json()
    assert (response.status_code, body["code"]) == (status, code)
    assert set(body) == {"code", "message", "hint", "request_id"}
    assert body["message"].endswith(".")
    assert body["hint"].endswith(".")
    assert not LEAKS.search(response.text)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (answer_pb2.AnswerRequest(question="q").SerializeToString(), "empty_context"),
        (answer_pb2.AnswerRequest(context="a " * 4001, question="q").SerializeToString(), "context_too_long"),
        (answer_pb2.AnswerRequest(context="a" * 2**20, question="q").SerializeToString(), "request_too_large"),
        (b"\xff\xff\xff", "malformed_request"),
        (b"\x0a\x01\xff\x12\x01q", "malformed_request"),
        (b"\x0a\x01c\x12\x01q\x7a\x01x", "unknown_field"),
        (b"\x0a\x01c\x12\x01q" + b"\xb8\x3e\x01" * 2000, "unknown_field"),
    ],
    ids=range(7),
)
def test_grpc_refuses_with_an_explanation(channel: grpc.Channel, content: bytes, code: str) -> None:
    call: Any = channel.unary_unary("/mqan.v1.QuestionAnswering/Answer")
    with pytest.raises(grpc.RpcError) as raised:
        call(content, timeout=10)
    error: Any = raised.value
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert dict(error.trailing_metadata())["mqan-code"] == code
    assert error.details().endswith(".")
    assert not LEAKS.search(error.details())


def test_grpc_reflection_lists_the_services(channel: grpc.Channel) -> None:
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
    requests = [reflection_pb2.ServerReflectionRequest(list_services="")]
    (response,) = stub.ServerReflectionInfo(iter(requests), timeout=10)
    names = {service.name for service in response.list_services_response.service}
    assert {"mqan.v1.QuestionAnswering", "grpc.health.v1.Health"} <= names


def test_request_id_is_taken_over_once(rest: httpx2.Client, channel: grpc.Channel) -> None:
    response = rest.get("/v1/nothing", headers={"x-request-id": "mine-1"})
    assert response.headers.get_list("x-request-id") == ["mine-1"]
    assert response.json()["request_id"] == "mine-1"
    stub = answer_pb2_grpc.QuestionAnsweringStub(channel)
    _, call = stub.GetModel.with_call(answer_pb2.GetModelRequest(), metadata=[("x-request-id", "mine-2")], timeout=10)
    assert [value for name, value in call.trailing_metadata() if "request" in name] == ["mine-2"]


def test_the_reference_names_everything_in_the_document(rest: httpx2.Client) -> None:
    document, page = rest.get("/openapi.json").json(), rest.get("/docs").text
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert f"{method.upper()} {path}" in page
            assert all(f"<code>{status}</code>" in page for status in operation["responses"])
    for name, schema in document["components"]["schemas"].items():
        assert f'id="{name}"' in page
        assert all(f"<code>{field}</code>" in page for field in schema["properties"])
    links = set(re.findall(r'href="#([^"]*)"', page))
    assert links <= document["components"]["schemas"].keys()


def test_reference_shows_what_to_send_and_what_comes_back(rest: httpx2.Client) -> None:
    shown = [unescape(text) for text in re.findall(r"<pre[^>]*>(.*?)</pre>", rest.get("/docs").text, re.DOTALL)]
    num_operations = sum(len(operations) for operations in rest.get("/openapi.json").json()["paths"].values())
    assert len(shown) == 2 * num_operations
    name = rest.get("/v1/model").json()["model"]["name"]
    for command, example in zip(shown[::2], shown[1::2], strict=True):
        address, *given = shlex.split(command)[1:]
        path = re.sub(r"\{\w+\}", name, urlsplit(address).path)
        answered = rest.post(path, json=json.loads(given[-1])) if given else rest.get(path)
        assert answered.status_code == 200
        assert names_in(json.loads(example)) == names_in(answered.json())


def names_in(document: Any) -> set[str]:
    """Return the names of a document's fields, or of those that it is a list of."""
    assert document
    rows = document if isinstance(document, list) else [document]
    return {name for row in rows for name in row}


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_need_nothing_from_elsewhere(rest: httpx2.Client, path: str) -> None:
    response = rest.get(path)
    assert response.headers["content-type"].startswith("text/html")
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"(src|href)=\"(?!data:|#|\./\"|[a-z.]+\")", response.text)
    assert "innerHTML" not in response.text


def test_nothing_redirects_and_nothing_is_there_that_is_not_ours(
    rest: httpx2.Client, channel: grpc.Channel, server: Any
) -> None:
    for path in ("/v1/answer/", "/health/live/", "/docs/", "//evil.example/"):
        response = rest.post(path, json={}, headers={"host": "evil.example"})
        assert response.status_code in (404, 405)
        assert "evil.example" not in response.text + str(response.headers)
    if server.kind == "ray-proxy":
        return  # Ray's own proxy has pages of its own
    for path in ("/-/routes", "/-/healthz", "/v1/nothing", "/health/ready"):
        response = rest.get(path)
        assert response.status_code == (200 if path == "/health/ready" else 404)
        assert "server" not in response.headers
        assert response.json()
    for method in ("Healthz", "ListApplications"):
        call: Any = channel.unary_unary(f"/ray.serve.RayServeAPIService/{method}")
        with pytest.raises(grpc.RpcError) as raised:
            call(b"", timeout=10)
        error: Any = raised.value
        assert error.code() is grpc.StatusCode.UNIMPLEMENTED


def test_log_holds_no_word_of_the_callers(rest: httpx2.Client, server: Any) -> None:
    ask(rest, "Xylophones are confidential.", "What about marimbas?", 2)
    check_refusal(rest.post("/v1/answer", json={"context": "glockenspiel"}), 422, "missing_field")
    if server.kind == "local":  # a thread writes the lines
        wait_until(lambda: '"answered"' in server.log.read_text())
    lines = server.log.read_text()
    assert not re.search("xylophone|marimba|glockenspiel", lines, re.IGNORECASE)
    if server.kind == "local":
        events = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
        assert {"answered", "refused"} <= {event["event"] for event in events}


def test_only_the_public_ports_may_listen_beyond_loopback(server: Any) -> None:
    """What a server opens beyond its public ports is for this machine only."""
    processes = [server.process.pid, *descendants(server.process.pid, "")]
    found = {}
    for of in processes:
        with suppress(FileNotFoundError, ProcessLookupError):  # one of Ray's short ones, ended meanwhile
            found[of] = listeners(of)
    public = {int(re.findall(r":(\d+)", url)[-1]) for url in (server.rest, server.rpc)}
    listening = set().union(*found.values())
    assert public <= {port for _, port in listening}
    assert len(listening) > 10 or server.kind == "local", "Ray has many"
    open_to_all = {
        (Path(f"/proc/{of}/cmdline").read_bytes()[:60], place)
        for of, places in found.items()
        for place in places
        if place[0] not in _LOOPBACK
    }
    assert open_to_all == set()
