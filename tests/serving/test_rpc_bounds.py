"""What peers of the gRPC port may take: others' calls are answered or refused in the API's words, never dropped."""

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_reflection.v1alpha import reflection_pb2

from mqan.v1 import answer_pb2, answer_pb2_grpc
from mqan_serving.rpc import bounds
from mqan_serving.rpc.methods import SERVICE_NAME
from tests import http2
from tests.serving.conftest import StartServer, until

_ANSWER = f"/{SERVICE_NAME}/Answer".encode()


def channel_to(port: int, number: int = 0) -> grpc.aio.Channel:
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0), ("grpc.primary_user_agent", number)]
    return grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options)


async def outcome(stub: Any, request: answer_pb2.AnswerRequest) -> str:
    """Ask, and return how it ended: the status, and the code of the API."""
    try:
        await stub.Answer(request, timeout=30)
    except grpc.aio.AioRpcError as error:
        trailing = dict(error.trailing_metadata() or ())
        return f"{error.code().name} {trailing.get('mqan-code')}"
    return "OK"


@pytest.mark.parametrize("num_connections", [1, 40])
async def test_ten_times_the_places_are_answered_or_told(
    start_server: StartServer, engine: Any, num_connections: int
) -> None:
    callers = await start_server(max_queued_requests=112, max_batch_size=8)
    engine.may_answer.clear()
    places = callers.service.limits.max_concurrent_requests
    number = 10 * places
    assert number > 1_000, "by default gRPC would drop some"
    channels = [channel_to(callers.grpc_port, number) for number in range(num_connections)]
    stubs = [answer_pb2_grpc.QuestionAnsweringStub(channel) for channel in channels]
    tasks = [asyncio.create_task(outcome(stubs[i % num_connections], callers.request())) for i in range(number)]
    await until(lambda: sum(task.done() for task in tasks) >= number - places)
    engine.may_answer.set()
    seen = Counter(await asyncio.gather(*tasks))
    for channel in channels:
        await channel.close()
    assert seen == {"OK": places, "RESOURCE_EXHAUSTED overloaded": number - places}


async def test_a_connection_that_resets_calls_does_not_fill_the_places_of_others(start_server: StartServer) -> None:
    callers = await start_server()
    number, most = 25_000, callers.service.limits.max_concurrent_requests + 200
    with http2.connect(callers.grpc_port) as peer, ThreadPoolExecutor(1) as executor:  # the server's loop stands still
        read = executor.submit(http2.count_resets, peer, number - most)
        for pieces in http2.resets(_ANSWER, None, number):
            peer.sendall(pieces)
        assert read.result() >= number - most
        assert await outcome(callers.rpc, callers.request()) == "OK"


async def test_connections_have_a_number(start_server: StartServer) -> None:
    callers = await start_server(max_connections=8)
    peers = [await asyncio.to_thread(http2.connect, callers.grpc_port) for _ in range(8)]
    assert all([await asyncio.to_thread(peer.recv, 9) for peer in peers])
    assert await outcome(callers.rpc, callers.request()) == "UNAVAILABLE None"
    for peer in peers:
        peer.close()

    async def is_answered() -> bool:
        async with channel_to(callers.grpc_port) as channel:  # one that was refused waits before it tries again
            return await outcome(answer_pb2_grpc.QuestionAnsweringStub(channel), callers.request()) == "OK"

    async with asyncio.timeout(60):
        while not await is_answered():
            await asyncio.sleep(0.05)


async def test_silent_connections_are_closed(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "_HANDSHAKE_S", 1)
    monkeypatch.setattr(bounds, "_IDLE_S", 1)
    callers = await start_server()
    silent_reader, silent = await asyncio.open_connection("127.0.0.1", callers.grpc_port)
    idle_reader, idle = await asyncio.open_connection("127.0.0.1", callers.grpc_port)
    idle.write(http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0))
    async with asyncio.timeout(60):
        await silent_reader.read()
        received = await idle_reader.read()
    assert b"connection idle" in received
    for writer in (silent, idle):
        writer.close()


async def test_reflection_has_both_names(start_server: StartServer) -> None:
    callers = await start_server()
    symbols = ["mqan.v1.QuestionAnswering", "grpc.reflection.v1.ServerReflection"]
    for package in ("grpc.reflection.v1", "grpc.reflection.v1alpha"):
        requests = [reflection_pb2.ServerReflectionRequest(list_services="")]
        requests += [reflection_pb2.ServerReflectionRequest(file_containing_symbol=symbol) for symbol in symbols]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{callers.grpc_port}") as channel:
            call = channel.stream_stream(
                f"/{package}.ServerReflection/ServerReflectionInfo",
                reflection_pb2.ServerReflectionRequest.SerializeToString,
                reflection_pb2.ServerReflectionResponse.FromString,
            )
            listed, *described = [response async for response in call(iter(requests), timeout=60)]
        names = {service.name for service in listed.list_services_response.service}
        assert names == {*symbols, "grpc.reflection.v1alpha.ServerReflection", "grpc.health.v1.Health"}
        for symbol, response in zip(symbols, described, strict=True):
            file = FileDescriptorProto.FromString(response.file_descriptor_response.file_descriptor_proto[0])
            assert symbol in {f"{file.package}.{service.name}" for service in file.service}
