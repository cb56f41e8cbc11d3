"""Bad input is refused with a stable code, and the message says what is wrong, where, and how to fix it."""

import json
from functools import partial
from typing import Any

import pytest
from grpc_health.v1 import health_pb2
from hypothesis import given
from hypothesis import strategies as st

from mqan.v1 import answer_pb2
from mqan_core.ask.request import read_question
from mqan_core.errors import InputError
from mqan_core.text.vocab import Vocabulary
from mqan_serving.contract.errors import ERRORS
from mqan_serving.contract.model import LimitsDocument
from mqan_serving.contract.questions import Question, question_of, read_object
from mqan_serving.rpc.guard import parse_message
from mqan_serving.service.validation import Validator
from tests.timing import is_below

LIMITS = LimitsDocument(
    max_request_bytes=10_000,
    max_context_tokens=100,
    max_question_tokens=20,
    max_answer_tokens=30,
    max_word_length=50,
    max_metadata_bytes=200,
    max_timeout_ms=1000,
    max_concurrent_requests=2,
    max_queued_requests=1,
)
VALIDATOR = Validator(LIMITS)


def parse(body: bytes) -> Question:
    return question_of(read_object(body))


READ = partial(read_question, Vocabulary((), ()))


def outcome(body: bytes, validator: Validator = VALIDATOR) -> str | None:
    """Return the code that a document is refused with, or None."""
    try:
        validator.read(parse(body), READ)
    except InputError as error:
        return error.code
    return None


def code_of(body: bytes) -> str:
    with pytest.raises(InputError) as raised:
        VALIDATOR.read(parse(body), READ)
    error = raised.value
    assert error.code in ERRORS
    assert error.message.endswith(".")
    assert error.hint.endswith(".")
    return error.code


@pytest.mark.parametrize(
    ("body", "code"),
    [
        *((b"", "malformed_request"), (b"{", "malformed_request"), (b"[]", "malformed_request")),
        *((b'"text"', "malformed_request"), (b"null", "malformed_request"), (b"{}{}", "malformed_request")),
        *((b"\xff\xfe", "malformed_request"), (b'{"context": "\xff", "question": "q"}', "malformed_request")),
        *((b'{"context": "\\ud800", "question": "q"}', "malformed_request"), (b"[" * 9_000, "malformed_request")),
        *((b'{"context": "c"}', "missing_field"), (b'{"question": "q"}', "missing_field")),
        (b'{"context": "c", "question": "q", "labels": []}', "unknown_field"),
        (b'{"context": "c", "question": "q", "timeout_ms": 0}', "invalid_timeout"),
        (b'{"context": "c", "question": "q", "timeout_ms": -5}', "invalid_timeout"),
        (b'{"context": "c", "question": "q", "timeout_ms": 0.5}', "invalid_timeout"),
        (b'{"context": "c", "question": "q", "timeout_ms": "1s"}', "invalid_timeout"),
        (b'{"context": "c", "question": "q", "timeout_ms": true}', "invalid_timeout"),
        *((b'{"context": null, "question": "q"}', "wrong_type"), (b'{"context": 1, "question": "q"}', "wrong_type")),
        (b'{"context": ["c"], "question": "q"}', "wrong_type"),
        (b'{"context": "c", "question": "q", "max_answer_tokens": "5"}', "wrong_type"),
        (b'{"context": "c", "question": "q", "max_answer_tokens": true}', "wrong_type"),
        (b'{"context": "c", "question": "q", "max_answer_tokens": 1.5}', "wrong_type"),
        (b'{"context": "c", "question": "q", "max_answer_tokens": NaN}', "wrong_type"),
        (b'{"context": "c", "question": "q", "max_answer_tokens": 0}', "max_answer_tokens_out_of_range"),
        (b'{"context": "c", "question": "q", "max_answer_tokens": -1}', "max_answer_tokens_out_of_range"),
        (b'{"context": "c", "question": "q", "max_answer_tokens": 31}', "max_answer_tokens_out_of_range"),
        (b'{"context": "", "question": "q"}', "empty_context"),
        (b'{"context": " \\n\\u00a0", "question": "q"}', "empty_context"),
        (b'{"context": "c", "question": ""}', "empty_question"),
        (b'{"context": "\\u200b \\ufeff", "question": "q"}', "empty_context"),
        (b'{"context": "c", "question": "\\u00ad"}', "empty_question"),
        (b'{"context": "a' + b"\\u00ad" * 50 + b'b", "question": "q"}', "word_too_long"),
        (b'{"context": "' + b"x" * 10_001 + b'", "question": "q"}', "request_too_large"),
        (b'{"context": "' + b"x" * 51 + b'", "question": "q"}', "word_too_long"),
        (b'{"context": "' + b"x " * 101 + b'", "question": "q"}', "context_too_long"),
        (b'{"context": "' + b"!" * 101 + b'", "question": "q"}', "context_too_long"),
        (b'{"context": "' + (b"!" * 50 + b" ") * 3 + b'", "question": "q"}', "context_too_long"),
        (b'{"context": "c", "question": "' + b"x " * 21 + b'"}', "question_too_long"),
    ],
)
def test_bad_documents_have_their_code(body: bytes, code: str) -> None:
    assert code_of(body) == code


def test_a_document_of_unknown_fields_is_refused_at_once() -> None:
    body = json.dumps({f"f{number}": 1 for number in range(60_000)}).encode()

    def refuse() -> None:
        with pytest.raises(InputError, match="The field f0 is unknown"):
            parse(body)

    assert is_below(8, refuse, partial(json.loads, body))  # 1.1 times was seen


def test_a_message_of_unknown_fields_is_refused_at_once() -> None:
    content = b"\x78\x01" * 500_000

    def refuse() -> None:
        with pytest.raises(InputError, match="The request has unknown fields"):
            parse_message(health_pb2.HealthCheckRequest, content)

    assert is_below(50, refuse, partial(health_pb2.HealthCheckRequest.FromString, content))  # to list them: 400 times


def test_unknown_fields_are_refused_in_parts_of_a_message_too() -> None:
    unknown = b"\xb8\x3e\x01"  # field 999: 1
    with pytest.raises(InputError, match="an unknown field, number 999"):
        parse_message(answer_pb2.AnswerRequest, unknown)
    question = answer_pb2.AskedQuestion(id="a")
    question.MergeFromString(unknown)
    text = answer_pb2.AskedText(context="c", questions=[question])
    many = answer_pb2.AnswerManyRequest(texts=[text]).SerializeToString()
    with pytest.raises(InputError, match="The request has an unknown field in a part") as error:
        parse_message(answer_pb2.AnswerManyRequest, many)
    assert error.value.code == "unknown_field"


def test_lone_surrogate_in_a_string_is_refused() -> None:
    with pytest.raises(InputError) as raised:
        VALIDATOR.read(Question.model_construct(context="a\ud800", question="q", max_answer_tokens=None), READ)
    assert raised.value.code == "invalid_text"
    assert "code point 1" in raised.value.message


@pytest.mark.parametrize("wanted", [None, 1, 30])
@pytest.mark.parametrize(
    ("context", "question"), [("Ein Bär 🐻.", "Was?"), ("a " * 100, "b " * 20), ("a.b," * 20, "q")]
)
def test_good_documents_pass(context: str, question: str, wanted: int | None) -> None:
    document = {"context": context, "question": question, "max_answer_tokens": wanted}
    assert VALIDATOR.read(parse(json.dumps(document).encode()), READ)[1] == (wanted or 30)


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"choices": [{"label": "x", "desc": "y"}]}, "choices", "The field choices[0].desc is unknown."),
        ({"choices": ["x", 1]}, "choices", "The field choices[1] has the wrong type: Input should be a valid string."),
        ({"choices": [{"label": 1}]}, "choices", "The field choices[0].label has the wrong type: "),
        ({"choices": [{"description": "y"}]}, "choices", "The field choices[0].label is missing."),
        ({"choices": [{"label": "x", "no name": 1}]}, "choices", "A field of choices[0] is unknown."),
        ({"choices": "x"}, "choices", "The field choices has the wrong type: "),
        ({"sources": ["text"]}, "sources", "The field sources[0] has the wrong type: Input should be 'context', "),
        ({"scale": ["low", None]}, "scale", "The field scale[1] has the wrong type: "),
        ({"no name": 1}, "body", "A field of the body is unknown."),
        ({"x" * 41: 1}, "body", "A field of the body is unknown."),
    ],
)
def test_what_is_wrong_within_a_field_is_named(fields: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        parse(json.dumps({"context": "c", "question": "q", **fields}).encode())
    assert (raised.value.field, raised.value.message[: len(message)]) == (field, message)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["context", "question", "max_answer_tokens", "other", ""])


@given(
    body=st.binary(max_size=300) | st.dictionaries(FIELDS, JSON, max_size=5).map(lambda one: json.dumps(one).encode())
)
def test_anything_is_a_question_or_refused(body: bytes) -> None:
    assert outcome(body) in {None, *ERRORS}
