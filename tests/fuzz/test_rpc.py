"""gRPC under fuzzing: mutated messages and metadata end in an answer or a refusal, and the server stays well."""

import json
import random
from typing import Any

import grpc

from mqan.v1 import answer_pb2
from mqan_serving.records.documents import RECORD_REQUEST
from mqan_serving.rpc.methods import HEALTH_SERVICE_NAME, SERVICE_NAME
from tests.fuzz.conftest import Target, damaged

_METHODS = (
    f"/{SERVICE_NAME}/Answer",
    f"/{SERVICE_NAME}/Answer",
    f"/{SERVICE_NAME}/Answer",
    f"/{SERVICE_NAME}/AnswerMany",
    f"/{SERVICE_NAME}/AnswerMany",
    f"/{SERVICE_NAME}/FillRecord",
    f"/{SERVICE_NAME}/FillRecord",
    f"/{SERVICE_NAME}/GetModel",
    f"/{HEALTH_SERVICE_NAME}/Check",
)
_EXPECTED = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
}
_CASES_FOR_EACH_OF_REST = 2


def odd_metadata(chance: random.Random) -> list[tuple[str, Any]]:
    """Return metadata that gRPC lets through."""
    found: list[tuple[str, Any]] = []
    for _ in range(chance.randint(0, 3)):
        name = chance.choice(
            ["authorization", "x-request-id", "traceparent", "tracestate", f"x-{chance.randrange(99)}"]
        )
        if chance.random() < 0.3:
            found.append((f"{name}-bin", chance.randbytes(chance.randint(0, 40))))
        else:
            found.append((name, "".join(chr(chance.randint(32, 126)) for _ in range(chance.randint(0, 80))).strip()))
    return found


def outcome(call: Any, payload: bytes, metadata: list[tuple[str, Any]]) -> tuple[grpc.StatusCode, str]:
    """Return how a call ended."""
    try:
        call(payload, timeout=30, metadata=metadata)
    except grpc.RpcError as error:
        return error.code(), error.details() or ""
    return grpc.StatusCode.OK, ""


def test_mutated_messages(target: Target, num_cases: int) -> None:
    chance = random.Random(17)
    asked = [answer_pb2.AskedQuestion(id=f"{i}", request=answer_pb2.AnswerRequest(question="what ?")) for i in range(3)]
    many = answer_pb2.AskedText(context="the old harbour was closed", questions=asked)
    seeds = [
        answer_pb2.AnswerRequest(context="the old harbour was closed", question="what ?", max_answer_tokens=2),
        answer_pb2.AnswerRequest(context="Ελλάδα 🙂 naïve", question="happy or angry ?"),
        answer_pb2.AnswerRequest(context="cheap; food", question="what ?", parse=answer_pb2.PARSE_KIND_DIALOGUE_STATE),
        answer_pb2.AnswerRequest(),
        answer_pb2.GetModelRequest(),
        answer_pb2.AnswerManyRequest(texts=[many, many]),
        answer_pb2.FillRecordRequest(context="the old harbour", schema=json.dumps(RECORD_REQUEST["schema"])),
    ]
    with grpc.insecure_channel(target.grpc) as channel:
        for _ in range(_CASES_FOR_EACH_OF_REST * num_cases):
            call: Any = channel.unary_unary(chance.choice(_METHODS))  # bytes to bytes
            payload = damaged(chance.choice(seeds).SerializeToString(), chance)
            code, details = outcome(call, payload, odd_metadata(chance))
            assert code in _EXPECTED, (code, details, payload)
            target.note(code.name, details)
        whole: Any = channel.unary_unary(f"/{SERVICE_NAME}/AnswerMany")
        assert outcome(whole, seeds[5].SerializeToString(), [])[0] is grpc.StatusCode.OK


def test_methods_that_do_not_exist(target: Target) -> None:
    with grpc.insecure_channel(target.grpc) as channel:
        for method in ("/mqan.v1.QuestionAnswering/Nothing", "/x/y", f"/{SERVICE_NAME}/answer", "/"):
            code, details = outcome(channel.unary_unary(method), b"", [])
            assert code is grpc.StatusCode.UNIMPLEMENTED, method
            target.note(code.name, details)
