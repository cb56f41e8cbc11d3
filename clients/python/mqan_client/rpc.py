"""The gRPC transport. Deadlines are gRPC's own."""

import json
from collections.abc import AsyncGenerator
from functools import cached_property
from typing import Any

import grpc
import grpc.aio
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from mqan.v1 import answer_pb2, answer_pb2_grpc
from mqan_client import errors
from mqan_client.documents import Document, of_a_server, to_json
from mqan_client.transport import Attempts, Retries, Transport, seconds

_ERRORS: dict[grpc.StatusCode, type[errors.ClientError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: errors.InvalidRequestError,
    grpc.StatusCode.UNAUTHENTICATED: errors.UnauthenticatedError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.OverloadedError,
    grpc.StatusCode.UNAVAILABLE: errors.UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.DeadlineExceededError,
}
# Trailing metadata, where what lies between client and server keeps it.
_CODE_KEY = "mqan-code"
_REQUEST_ID_KEY = "x-request-id"
_RETRY_AFTER_KEY = "retry-after"
# gRPC waits 20 s for a connection that was taken but never spoken on, as by a proxy that is being replaced.
# It also refuses responses of more than 4 MB, which many answers can have.
_OPTIONS = (("grpc.min_reconnect_backoff_ms", 5_000), ("grpc.max_receive_message_length", -1))
_PARSE_KINDS = {"sql": "PARSE_KIND_SQL", "dialogue_state": "PARSE_KIND_DIALOGUE_STATE"}


class RpcTransport(Transport):
    def __init__(self, target: str, retries: Retries, headers: dict[str, str], *, tls: bool) -> None:
        super().__init__(retries)
        self._metadata = tuple(headers.items())
        self._target = target
        self._tls = tls

    @cached_property
    def _channel(self) -> grpc.aio.Channel:
        """Belongs to the event loop that runs when it is made."""
        if self._tls:
            return grpc.aio.secure_channel(self._target, grpc.ssl_channel_credentials(), _OPTIONS)
        return grpc.aio.insecure_channel(self._target, _OPTIONS)

    @cached_property
    def _stub(self) -> answer_pb2_grpc.QuestionAnsweringStub:
        return answer_pb2_grpc.QuestionAnsweringStub(self._channel)

    async def _call(self, name: str, request: Document, timeout_s: float) -> Document:
        message = _message(name, request)
        try:
            response = await getattr(self._stub, name)(message, timeout=timeout_s, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise _explain(error) from None
        with of_a_server():
            return _document(response)

    async def _stream(self, request: Document, attempts: Attempts) -> AsyncGenerator[tuple[str, Document], None]:
        message, timeout_s = _message("Answer", request), attempts.remaining_s()
        call = self._stub.AnswerStream(message, timeout=timeout_s, metadata=self._metadata)
        try:
            async for part in call:
                name = part.WhichOneof("event")
                if name is not None:  # else an error follows
                    yield name, _document(getattr(part, name))
        except grpc.aio.AioRpcError as error:
            raise _explain(error) from None
        finally:
            call.cancel()  # of a call that has ended nothing is left

    async def _close(self) -> None:
        if "_channel" in self.__dict__:
            await self._channel.close()


def _message(name: str, request: Document) -> Message:
    try:
        match name:
            case "Answer":
                return answer_pb2.AnswerRequest(**_asked(request))
            case "AnswerMany":
                questions = [{"request": _asked(question)} for question in request["questions"]]
                return answer_pb2.AnswerManyRequest(texts=[{"context": request["context"], "questions": questions}])
            case "FillRecord":
                return answer_pb2.FillRecordRequest(context=request["context"], schema=to_json(request["schema"]))
            case _:
                return answer_pb2.GetModelRequest()
    except errors.InvalidRequestError:
        raise
    except (ValueError, TypeError) as error:  # a lone surrogate, a number that is no uint32, a value of another type
        raise errors.unsendable(f"{error}.") from None


def _asked(question: Document) -> dict[str, Any]:
    """Return the fields of a question's message: names in small letters are those of the contract."""
    asked = dict(question)
    if isinstance(asked.get("choices"), dict):
        asked |= asked.pop("choices")
    if "sources" in asked:
        asked["sources"] = [f"SOURCE_{name.upper()}" for name in asked["sources"]]
    if "parse" in asked:
        if asked["parse"] not in tuple(_PARSE_KINDS):  # it may be of any type
            raise errors.unsendable(f"parse is {asked['parse']!r}, neither 'sql' nor 'dialogue_state'.")
        asked["parse"] = _PARSE_KINDS[asked["parse"]]
    return asked


def _document(message: Message) -> Document:
    """Return a response as the document that REST would answer with, but for what gRPC has as parts of their own."""
    document = MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    if isinstance(message, answer_pb2.FillRecordResponse):
        parsed = {field.pop("name"): field | {"value": json.loads(field["value"])} for field in document["fields"]}
        return document | {"record": json.loads(document["record"]), "fields": parsed}
    for answer in (document, *(one.get("answer", {}) for text in document.get("texts", ()) for one in text["answers"])):
        if "state" in answer:
            answer["state"]["slots"] = {slot.pop("slot"): slot for slot in answer["state"]["slots"]}
        if parsed := answer.get("query") or answer.get("state"):
            answer["parsed"] = parsed
    return document


def _explain(error: grpc.aio.AioRpcError) -> errors.ClientError:
    status, details = error.code(), error.details() or f"The server answered {error.code().name}."
    kind = _ERRORS.get(status, errors.ServerError)
    code = status.name.lower() if kind is errors.ServerError else None
    trailing = {key: value for key, value in error.trailing_metadata() or () if isinstance(value, str)}
    if _CODE_KEY not in trailing:
        # INTERNAL is of Ray's own proxy, whose replica has gone; CANCELLED of a server that has ended or drops calls.
        if status in (grpc.StatusCode.INTERNAL, grpc.StatusCode.CANCELLED):
            kind, code = errors.UnavailableError, None
        if status is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in details:  # says the server's transport
            kind, code = errors.InvalidRequestError, "request_too_large"
    found = kind(details, code=trailing.get(_CODE_KEY, code), request_id=trailing.get(_REQUEST_ID_KEY))
    found.retry_after_s = seconds(trailing.get(_RETRY_AFTER_KEY))
    return found
