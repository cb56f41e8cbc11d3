"""The client that waits for answers.

It is the client of asyncio, whose event loop runs on a thread that all clients of a process share.
"""

import asyncio
import inspect
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import cache, wraps
from queue import SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, get_args, get_origin

from mqan_client.async_client import DEFAULT_TIMEOUT_S, AsyncClient, Progress
from mqan_client.transport import Retries

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_lock = Lock()


@cache
def _started() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="mqan-client", daemon=True).start()
    return loop


os.register_at_fork(after_in_child=_started.cache_clear)  # a forked process has no threads but its own


def _loop() -> asyncio.AbstractEventLoop:
    with _lock:
        return _started()


def _wait_for(work: Coroutine[Any, Any, T], progress: Progress | None, done: SimpleQueue[int]) -> T:
    """Wait for work that tells each thing that is done to a queue; hand that on, on the caller's thread."""
    doing = asyncio.run_coroutine_threadsafe(work, _loop())
    doing.add_done_callback(lambda _: done.put(0))
    try:
        while (number := done.get()) and progress is not None:
            progress(number)
        return doing.result()
    finally:
        doing.cancel()  # after Ctrl-C or an error nobody waits for what is on its way


def _as_waiting(call: F, method: Callable[..., Any]) -> F:
    """Let nobody who looks at a method that waits take it for one to await: by its signature, or behind its wrapper."""
    signature = inspect.signature(method)
    kind, given = get_origin(signature.return_annotation), get_args(signature.return_annotation)
    if kind is Coroutine:
        signature = signature.replace(return_annotation=given[-1])
    elif kind is AsyncGenerator:
        parts: Any = Generator
        signature = signature.replace(return_annotation=parts[given[0], None, None])
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__qualname__ = f"Client.{method.__name__}"
    del call.__wrapped__  # type: ignore[attr-defined]
    return call


def _waiting(
    method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> "Callable[Concatenate[Client, P], T]":
    @wraps(method)
    def call(self: "Client", /, *args: P.args, **given: P.kwargs) -> T:
        done: SimpleQueue[int] = SimpleQueue()
        progress: Any = given.get("progress")
        if progress is not None:
            given["progress"] = done.put
        return _wait_for(method(self._asking, *args, **given), progress, done)

    return _as_waiting(call, method)


def _waiting_for_each(
    method: Callable[Concatenate[AsyncClient, P], AsyncGenerator[T, None]],
) -> "Callable[Concatenate[Client, P], Generator[T, None, None]]":
    def wait(parts: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        async def advance() -> T | None:
            return await anext(parts, None)

        try:
            while (part := _wait_for(advance(), None, SimpleQueue())) is not None:
                yield part
        finally:
            asyncio.run_coroutine_threadsafe(parts.aclose(), _loop())  # without waiting: this may run on any thread

    @wraps(method)
    def call(self: "Client", /, *args: P.args, **given: P.kwargs) -> Generator[T, None, None]:
        return wait(method(self._asking, *args, **given))

    return _as_waiting(call, method)


class Client:
    """Asks a server and waits for the answer. May be shared between threads. Its methods are those of ``AsyncClient``.

    Args:
        url: the server: ``grpc://127.0.0.1:9000`` for gRPC, ``http://127.0.0.1:8000`` for REST, ``grpcs://HOST`` and
            ``https://HOST`` with TLS. Without one that of MQAN_SERVER, else ``grpc://127.0.0.1:9000``.
        timeout_s: longest duration of a call, retries included.
        retries: when to ask again while the server is full or cannot be reached.
        api_key: names the caller, where the server asks for that; without one that of MQAN_API_KEY. Without TLS whoever
            is between can read it.

    Raises:
        ValueError: the URL names no transport or no host, or the key has characters that no key has.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        retries: Retries | None = None,
        api_key: str | None = None,
    ) -> None:
        self._asking = AsyncClient(url, timeout_s=timeout_s, retries=retries, api_key=api_key)

    answer = _waiting(AsyncClient.answer)
    answer_stream = _waiting_for_each(AsyncClient.answer_stream)
    answer_questions = _waiting(AsyncClient.answer_questions)
    answer_many = _waiting(AsyncClient.answer_many)
    fill_record = _waiting(AsyncClient.fill_record)
    fill_records = _waiting(AsyncClient.fill_records)
    do_many = _waiting(AsyncClient.do_many)
    get_model = _waiting(AsyncClient.get_model)
    close = _waiting(AsyncClient.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
