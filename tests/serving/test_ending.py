"""The end of a server: whoever asks meanwhile is answered, told to ask another, or refused a connection."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import httpx2
import pytest

from mqan.v1 import answer_pb2_grpc

StartServer = Callable[..., Awaitable[Any]]

_TOLD = {"200", "503 retry-after", "refused", "OK", "UNAVAILABLE"}


async def ask_by_rest(client: httpx2.AsyncClient, callers: Any) -> str:
    settings = callers.server._settings
    try:
        response = await client.post(f"http://127.0.0.1:{settings.http_port}/v1/answer", json=callers.body)
    except httpx2.ConnectError:
        return "refused"
    except httpx2.TransportError as error:
        return repr(error)
    return f"{response.status_code}{' retry-after' if 'retry-after' in response.headers else ''}"


async def ask_by_rpc(channel: grpc.aio.Channel, callers: Any) -> str:
    try:
        await answer_pb2_grpc.QuestionAnsweringStub(channel).Answer(callers.request(), timeout=10)
    except grpc.aio.AioRpcError as error:
        return error.code().name
    return "OK"


async def keep_asking(callers: Any, kind: str, seen: Counter[str], over: asyncio.Event, *, anew: bool) -> None:
    """Ask until it is over, on one connection or on a new one each time."""
    address = f"127.0.0.1:{callers.server._settings.grpc_port}"
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
    while not over.is_set():
        async with (
            httpx2.AsyncClient(trust_env=False, timeout=10, verify=False) as client,
            grpc.aio.insecure_channel(address, options) as channel,
        ):
            while not over.is_set():
                seen[await (ask_by_rest(client, callers) if kind == "rest" else ask_by_rpc(channel, callers))] += 1
                await asyncio.sleep(0.001)
                if anew:
                    break


@pytest.mark.parametrize("run", range(20))
async def test_nobody_is_cut_off_while_a_server_ends(start_server: StartServer, engine: Any, run: int) -> None:
    callers = await start_server(drain_delay_s=0.05, log_level="error")
    over, seen = asyncio.Event(), Counter[str]()
    asking = [
        asyncio.create_task(keep_asking(callers, kind, seen, over, anew=anew))
        for kind in ("rest", "grpc")
        for anew in (False, True)
        for _ in range(4)
    ]
    async with asyncio.timeout(20):
        while seen["OK"] < 8 or seen["200"] < 8:
            await asyncio.sleep(0.005)
    await callers.server.stop()
    refused = seen["refused"]
    async with asyncio.timeout(20):
        while seen["refused"] < refused + 8:
            await asyncio.sleep(0.005)
    over.set()
    await asyncio.gather(*asking)
    assert set(seen) <= _TOLD, seen
    assert seen["503 retry-after"]
    assert seen["UNAVAILABLE"]


async def test_a_connection_that_is_open_is_told_before_it_is_closed(start_server: StartServer) -> None:
    callers = await start_server(drain_delay_s=0, log_level="error")
    reader, writer = await asyncio.open_connection("127.0.0.1", callers.server._settings.grpc_port)
    no_settings = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    acknowledged = bytes([0, 0, 0, 4, 1, 0, 0, 0, 0])
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + no_settings)
    await reader.readuntil(acknowledged)
    async with asyncio.timeout(10):
        _, rest = await asyncio.gather(callers.server.stop(), reader.read())
    writer.close()
    goaway = bytes([0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    assert rest.endswith(goaway), "no call was looked at, and nothing is wrong"
