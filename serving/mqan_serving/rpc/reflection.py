"""Reflection of gRPC by both its names: v1alpha, which the library has, and v1, whose messages are the same."""

from collections.abc import Sequence
from typing import Final

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, text_format
from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc

V1: Final = "grpc.reflection.v1.ServerReflection"
_PACKAGE, _FILE = "grpc.reflection.v1", "grpc/reflection/v1/reflection.proto"


def add_reflection(services: Sequence[str], server: grpc.aio.Server) -> None:
    """Let tools list the services of a server, and read their descriptions."""
    _describe_v1()
    servicer = reflection.aio.ReflectionServicer((*services, reflection.SERVICE_NAME, V1))
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, server)
    method = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(V1, {"ServerReflectionInfo": method}),))


def _describe_v1() -> None:
    pool = descriptor_pool.Default()
    try:
        pool.FindFileContainingSymbol(V1)
    except KeyError:
        file = descriptor_pb2.FileDescriptorProto()
        reflection_pb2.DESCRIPTOR.CopyToProto(file)
        text = text_format.MessageToString(file).replace(reflection_pb2.DESCRIPTOR.package, _PACKAGE)
        file = text_format.Parse(text, descriptor_pb2.FileDescriptorProto())
        file.name = _FILE
        pool.AddSerializedFile(file.SerializeToString())
