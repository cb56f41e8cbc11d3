"""The messages of ``mqan.v1``: they have the fields of the contract's documents, but for a few names.

Requests become the documents that ``contract`` reads, and the documents that it writes become responses.
"""

import math
from typing import Any, Final

from google.protobuf.message import Message
from pydantic_core import to_json

from mqan.v1 import answer_pb2
from mqan_serving.contract.errors import refuse
from mqan_serving.contract.questions import Question, check_lists, question_of
from mqan_serving.records.filling import RecordRequest, parse_schema

_SOURCES: Final = {
    answer_pb2.SOURCE_CONTEXT: "context",
    answer_pb2.SOURCE_QUESTION: "question",
    answer_pb2.SOURCE_VOCABULARY: "vocabulary",
}
_PARSES: Final = {answer_pb2.PARSE_KIND_SQL: "sql", answer_pb2.PARSE_KIND_DIALOGUE_STATE: "dialogue_state"}
_ENUMS: Final[dict[str, dict[Any, str]]] = {"sources": _SOURCES, "parse": _PARSES}
_NUMBERS_OF_SOURCES: Final = {name: number for number, name in _SOURCES.items()}
_HAS_A_SPAN: Final = ("probability", "weight")  # of places and weights: their span is a message of its own


def timeout_ms_of(remaining_s: float | None) -> int | None:
    return None if remaining_s is None else max(1, math.ceil(1000 * remaining_s))


def question_of_message(request: answer_pb2.AnswerRequest, remaining_s: float | None) -> Question:
    texts = {"context": request.context, "question": request.question}
    return question_of({**texts, **_fields_of(request), "timeout_ms": timeout_ms_of(remaining_s)})


def call_document(request: answer_pb2.AnswerManyRequest, remaining_s: float | None) -> dict[str, Any]:
    texts = []
    for text in request.texts:
        questions = []
        for asked in text.questions:
            timeout_ms = {"timeout_ms": asked.timeout_ms} if asked.HasField("timeout_ms") else {}
            row = {"question": asked.request.question, **_fields_of(asked.request), **timeout_ms}
            questions.append(row | {"id": asked.id} if asked.HasField("id") else row)
        about = {"context": text.context, "questions": questions}
        texts.append(about | {"id": text.id} if text.HasField("id") else about)
    return {"texts": texts, "timeout_ms": timeout_ms_of(remaining_s), "model": request.model}


def _fields_of(message: Message) -> dict[str, Any]:
    set_fields = message.ListFields()
    check_lists({field.name: len(value) for field, value in set_fields if field.is_repeated})
    fields: dict[str, Any] = {}
    for field, value in set_fields:
        values = list(value) if field.is_repeated else [value]
        if field.name in _ENUMS:
            values = [_ENUMS[field.name].get(number, "unknown") for number in values]
        elif field.message_type is not None:
            values = [_fields_of(part) for part in values]
        fields[field.name] = values if field.is_repeated else values[0]
    if "adapter" in fields:
        if "choices" in fields:
            raise refuse("incompatible_options", "choices", "adapter has labels of its own, and there are choices.")
        fields["choices"] = {"adapter": fields.pop("adapter")}
    return fields


def record_request_of(request: answer_pb2.FillRecordRequest, remaining_s: float | None) -> RecordRequest:
    return RecordRequest(request.context, parse_schema(request.schema), timeout_ms_of(remaining_s), request.model)


def answer_response(document: dict[str, Any]) -> answer_pb2.AnswerResponse:
    return answer_pb2.AnswerResponse(**_answer(document))


def answers_response(document: dict[str, Any]) -> answer_pb2.AnswerManyResponse:
    texts = [
        {
            "id": text["id"],
            "answers": [
                {**outcome, "answer": None if outcome["answer"] is None else _answer(outcome["answer"])}
                for outcome in text["answers"]
            ],
        }
        for text in document["texts"]
    ]
    return answer_pb2.AnswerManyResponse(texts=texts, model=document["model"])


def stream_response(name: str, document: dict[str, Any]) -> answer_pb2.AnswerStreamResponse:
    if name == "answer":
        return answer_pb2.AnswerStreamResponse(answer=answer_response(document))
    token = {name: value for name, value in document.items() if name != "delta"}
    word = answer_pb2.StreamedWord(token=_message(token), delta=document["delta"])
    return answer_pb2.AnswerStreamResponse(word=word)


def record_response(document: dict[str, Any]) -> answer_pb2.FillRecordResponse:
    fields = [
        {**_message(field), "name": name, "value": to_json(field["value"]).decode()}
        for name, field in document["fields"].items()
    ]
    record = to_json(document["record"]).decode()
    return answer_pb2.FillRecordResponse(
        record=record, missing=document["missing"], fields=fields, model=document["model"]
    )


def model_response(document: dict[str, Any]) -> answer_pb2.GetModelResponse:
    return answer_pb2.GetModelResponse(**document)


def _answer(document: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = _message({name: value for name, value in document.items() if name != "parsed"})
    match document["parsed"]:
        case {"sql": _} as query:
            fields["query"] = _message(query)
        case {"slots": slots} as state:
            rows = [{"slot": name, **slot} for name, slot in slots.items()]
            fields["state"] = _message({**state, "slots": rows})
    return fields


def _message(document: Any) -> Any:
    if isinstance(document, list):
        return [_message(part) for part in document]
    if not isinstance(document, dict):
        return document
    fields = {name: _message(value) for name, value in document.items() if value is not None}
    if "source" in fields:
        fields["source"] = _NUMBERS_OF_SOURCES[fields["source"]]
    for name in _HAS_A_SPAN:
        if name in fields and "start" in fields:
            value = fields.pop(name)
            return {"span": fields, name: value}
    return fields
