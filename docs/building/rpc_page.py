"""The gRPC reference, made of the comments in the contract (descriptor.proto, SourceCodeInfo)."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

_MESSAGES, _ENUMS, _SERVICES = 4, 5, 6  # fields of FileDescriptorProto, as in the paths of SourceCodeInfo
_MEMBERS: Final = 2  # of messages, enums and services alike
_REPEATED: Final = FieldDescriptorProto.LABEL_REPEATED


def rpc_page(proto: Path, root: Path) -> str:
    """Return the page as Markdown.

    Args:
        proto: file of the contract.
        root: folder that its imports are relative to.

    Raises:
        ValueError: protoc does not take the file; it has said why.
    """
    file = _describe(proto, root)
    comments = {tuple(at.path): at.leading_comments.strip() for at in file.source_code_info.location}
    parts = ["# gRPC reference", f"Package `{file.package}`. A server answers reflection, so `grpcurl` needs no file."]
    for i, service in enumerate(file.service):
        parts += [f"## {service.name}", comments.get((_SERVICES, i), "")]
        for j, method in enumerate(service.method):
            takes, returns = (_link(name) for name in (method.input_type, method.output_type))
            parts += [f"### {service.name}/{method.name}", f"{takes} → {returns}"]
            parts.append(comments.get((_SERVICES, i, _MEMBERS, j), ""))
    for i, message in enumerate(file.message_type):
        parts += [f"## {message.name} {{ #{message.name} }}", comments.get((_MESSAGES, i), "")]
        parts += _table(("Field", "Number", "Type", "Meaning"), _fields(message.field, comments, i))
    for i, enum in enumerate(file.enum_type):
        parts += [f"## {enum.name} {{ #{enum.name} }}", comments.get((_ENUMS, i), "")]
        rows = (
            (f"`{value.name}`", str(value.number), _line(comments.get((_ENUMS, i, _MEMBERS, j), "")))
            for j, value in enumerate(enum.value)
        )
        parts += _table(("Value", "Number", "Meaning"), rows)
    return "\n\n".join(part for part in parts if part) + "\n"


def _describe(proto: Path, root: Path) -> FileDescriptorProto:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "set"
        arguments = ["protoc", f"-I{root}", "--include_source_info", f"--descriptor_set_out={output}", str(proto)]
        if protoc.main(arguments) != 0:
            raise ValueError(f"{proto} is no contract: see protoc's message above")
        (file,) = FileDescriptorSet.FromString(output.read_bytes()).file
    return file


def _fields(
    fields: Sequence[FieldDescriptorProto], comments: dict[tuple[int, ...], str], message: int
) -> Iterator[tuple[str, ...]]:
    for j, field in enumerate(fields):
        kind = _link(field.type_name) if field.type_name else _name_of(field.type)
        prefix = "repeated " if field.label == _REPEATED else "optional " if field.proto3_optional else ""
        meaning = _line(comments.get((_MESSAGES, message, _MEMBERS, j), ""))
        yield f"`{field.name}`", str(field.number), prefix + kind, meaning


def _name_of(kind: Any) -> str:
    return FieldDescriptorProto.Type.Name(kind).removeprefix("TYPE_").lower()


def _link(type_name: str) -> str:
    name = type_name.rpartition(".")[2]
    return f"[{name}](#{name})"


def _line(comment: str) -> str:
    return " ".join(comment.split()).replace("|", "\\|")


def _table(head: Sequence[str], rows: Iterator[tuple[str, ...]]) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return ["\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines])] if lines else []
