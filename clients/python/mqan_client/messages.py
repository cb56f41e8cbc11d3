"""The messages of gRPC that ask."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mqan.v1 import answer_pb2
from mqan_client.errors import InvalidRequestError
from mqan_client.records import schema_text
from mqan_client.results import Source
from mqan_client.transport import Question

_NUMBERS = {
    Source.CONTEXT: answer_pb2.SOURCE_CONTEXT,
    Source.QUESTION: answer_pb2.SOURCE_QUESTION,
    Source.VOCABULARY: answer_pb2.SOURCE_VOCABULARY,
}
_PARSE_KINDS = {
    None: answer_pb2.PARSE_KIND_UNSPECIFIED,
    "sql": answer_pb2.PARSE_KIND_SQL,
    "dialogue_state": answer_pb2.PARSE_KIND_DIALOGUE_STATE,
}


def answer_request(question: Question) -> answer_pb2.AnswerRequest:
    """Return the message that asks a question.

    Raises:
        InvalidRequestError: there is something in it that cannot be sent.
    """
    if question.parse is not None and question.parse not in tuple(_PARSE_KINDS):  # it may be of any type
        message = f"The request cannot be sent: parse is {question.parse!r}, neither 'sql' nor 'dialogue_state'."
        raise InvalidRequestError(message, code="invalid_input")
    try:
        return answer_pb2.AnswerRequest(
            context=question.context,
            question=question.question,
            max_answer_tokens=question.max_answer_tokens,
            choices=[answer_pb2.Choice(label=c.label, description=c.description) for c in question.choices],
            multiple=question.multiple,
            yes_no=question.yes_no,
            scale=question.scale,
            sources=[_NUMBERS[source] for source in question.sources],
            contiguous=question.contiguous,
            all=question.all,
            alternatives=question.alternatives,
            explain=question.explain,
            parse=_PARSE_KINDS[question.parse],
            min_probability=question.min_probability,
            none=question.none,
        )
    except (ValueError, TypeError) as error:  # a lone surrogate, a number that is no uint32, a value of another type
        raise InvalidRequestError(f"The request cannot be sent: {error}.", code="invalid_input") from None


def answer_many_request(context: str, questions: Sequence[Question]) -> answer_pb2.AnswerManyRequest:
    """Return the message that asks several questions about one context.

    Raises:
        InvalidRequestError: there is something in it that cannot be sent.
    """
    try:
        text = answer_pb2.AskedText(context=context)
    except (ValueError, TypeError) as error:
        raise InvalidRequestError(f"The request cannot be sent: {error}.", code="invalid_input") from None
    for question in questions:
        text.questions.add(request=answer_request(replace(question, context="")))
    return answer_pb2.AnswerManyRequest(texts=[text])


def record_request(context: str, schema: dict[str, Any]) -> answer_pb2.FillRecordRequest:
    """Return the message that asks for a record.

    Raises:
        InvalidRequestError: there is something in it that cannot be sent.
    """
    text = schema_text(schema)
    try:
        return answer_pb2.FillRecordRequest(context=context, schema=text)
    except (ValueError, TypeError) as error:
        raise InvalidRequestError(f"The request cannot be sent: {error}.", code="invalid_input") from None
