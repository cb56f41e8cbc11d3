"""Messages of gRPC as the documents that REST sends."""

from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message


def document_of(message: Message) -> Any:
    """Return a message as a document: with the names of its fields, and sources as REST calls them."""
    return _renamed(MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True))


def _renamed(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _renamed(inner) for name, inner in part.items()}
    if isinstance(part, list):
        return [_renamed(inner) for inner in part]
    return part.removeprefix("SOURCE_").lower() if str(part).startswith("SOURCE_") else part


def without_nothing(part: Any) -> Any:
    """Leave out what a message does not have where a document says null."""
    if isinstance(part, dict):
        return {name: without_nothing(inner) for name, inner in part.items() if inner is not None}
    return [without_nothing(inner) for inner in part] if isinstance(part, list) else part
