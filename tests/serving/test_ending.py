"""The end of a server: who asks meanwhile is answered, told to ask another, or refused a connection."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import httpx2

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


async def test_callers_are_told_or_refused_while_a_server_ends(start_server: StartServer, engine: Any) -> None:
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
    broken = {what: number for what, number in seen.items() if what == "CANCELLED" or "Error(" in what}
    assert sum(broken.values()) <= len(asking), "at most the last request of each, of which clients ask another server"
    assert set(seen) - set(broken) <= _TOLD, seen
    assert seen["503 retry-after"]
    assert seen["UNAVAILABLE"]
