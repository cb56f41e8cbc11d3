"""REST under fuzzing: no fault of the server, no status that the contract does not know, nothing of its insides.

MQAN_FUZZ_CASES=10000 pytest -s --timeout 9000 --session-timeout 9000 tests/fuzz
"""

import json
import random
from pathlib import Path
from typing import Any

import httpx2
import schemathesis
from hypothesis import given
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.fuzz.conftest import FUZZED, Target, damaged

_SCHEMA = schemathesis.openapi.from_path(Path(__file__).parents[2] / "protos" / "openapi.json")
_CHECKS: list[Any] = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
_VALID: dict[str, Any] = {
    "context": "the old harbour was closed in 1923",
    "question": "When was it closed ?",
    "max_answer_tokens": 3,
}


@_SCHEMA.parametrize()
@FUZZED
def test_the_contract_holds(case: "schemathesis.Case[Any]", target: Target) -> None:
    response = case.call(base_url=target.rest, timeout=30)  # many questions on a busy machine may take some time
    case.validate_response(response, checks=_CHECKS)
    is_late = response.status_code == 504 and isinstance(case.body, dict) and "timeout_ms" in case.body
    assert response.status_code < 500 or is_late, response.text
    note(target, response.status_code, response.text)


def test_a_stream_holds_the_contract(target: Target) -> None:
    case = _SCHEMA["/v1/answer"]["POST"].Case(body={**_VALID, "stream": True}, media_type="application/json")
    response = case.call(base_url=target.rest)
    assert response.headers["content-type"] == ["text/event-stream; charset=utf-8"]
    case.validate_response(response, checks=_CHECKS)


_DAMAGED = st.integers().map(lambda seed: damaged(json.dumps(_VALID).encode(), random.Random(seed)))
_TYPES = st.sampled_from(
    ["application/json", "application/json; charset=utf-16", "text/plain", "", "multipart/form-data"]
)
_HEADERS = st.dictionaries(
    st.from_regex(r"[a-zA-Z][a-zA-Z0-9-]{0,20}", fullmatch=True).filter(
        lambda name: (
            name.lower() not in ("host", "content-length", "transfer-encoding", "connection", "expect", "upgrade")
        )
    ),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60).map(str.strip),
    max_size=4,
)


@FUZZED
@given(body=st.one_of(_DAMAGED, st.binary(max_size=60)), media_type=_TYPES, headers=_HEADERS)
def test_damaged_bodies_and_odd_headers(
    target: Target, client: httpx2.Client, body: bytes, media_type: str, headers: dict[str, str]
) -> None:
    response = client.post("/v1/answer", content=body, headers={**headers, "content-type": media_type})
    assert response.status_code < 500, response.text
    note(target, response.status_code, response.text)


@FUZZED
@given(context=st.text(max_size=300), question=st.text(max_size=60), limit=st.integers(1, 4))
def test_any_text_is_answered_or_refused_and_spans_cut_its_words(
    target: Target, client: httpx2.Client, context: str, question: str, limit: int
) -> None:
    body = {"context": context, "question": question, "max_answer_tokens": limit}
    response = client.post("/v1/answer", json=body)
    note(target, response.status_code, response.text)
    if response.status_code == 200:
        for token in response.json()["tokens"]:
            if token["span"] is not None:
                text = body[token["source"]]
                assert text[token["span"]["start"] : token["span"]["end"]] == token["text"]  # type: ignore[index]
    else:
        assert response.status_code in (400, 413, 422), response.text
        assert response.json()["code"]


def note(target: Target, status: int, text: str) -> None:
    target.note(str(status), "" if status < 300 else text)
