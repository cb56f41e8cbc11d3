"""gRPC server reflection, with an end.

https://github.com/grpc/grpc/blob/master/doc/server-reflection.md
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import grpc
from grpc_health.v1 import health_pb2  # noqa: F401  registers the descriptor
from grpc_reflection.v1alpha import reflection
from grpc_reflection.v1alpha.reflection_pb2_grpc import add_ServerReflectionServicer_to_server

from mqan_serving.rpc.methods import SERVICE_NAMES


class _Reflection(reflection.aio.ReflectionServicer):  # type: ignore[misc]
    """Describes the services; a stream that stayed open would take the place of a call for ever."""

    def __init__(self, longest_s: float) -> None:
        super().__init__((*SERVICE_NAMES, reflection.SERVICE_NAME))
        self._longest_s = longest_s

    async def ServerReflectionInfo(self, requests: AsyncIterator[Any], context: Any) -> AsyncGenerator[Any, None]:
        try:
            async with asyncio.timeout(self._longest_s):
                async for response in super().ServerReflectionInfo(requests, context):
                    yield response
        except TimeoutError:
            message = f"A stream of reflection lasts at most {self._longest_s:g} s."
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, message)


def add_reflection(server: grpc.aio.Server, longest_s: float) -> None:
    """Let a server describe its services to who asks; a stream lasts at most so long."""
    add_ServerReflectionServicer_to_server(_Reflection(longest_s), server)
