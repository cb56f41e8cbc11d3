"""What the peers of a gRPC server may take: the options of its core, and an end to calls whose message never comes."""

import asyncio
import contextvars
from typing import Any

import grpc

from mqan_serving.errors import ServingError
from mqan_serving.metrics import Metrics
from mqan_serving.settings import Settings
from mqan_serving.telemetry import RequestRecord, choose_request_id

_LEAST_CALLS = 20_000  # 15 kB each; fewer, and a flood of calls that are reset leaves no place to those of others
_CALLS_A_PLACE = 16
_HANDSHAKE_S = 10
_IDLE_S = 60  # a client that asks again makes a new connection by itself
_SILENT_S = 60  # until a peer is asked whether it is still there
_ANSWER_S = 20  # for it to say so

Options = list[tuple[str, int]]


def max_calls(settings: Settings) -> int:
    """Return how many calls may be in gRPC's hands, answered ones apart.

    Beyond them its core resets calls, which callers see as CANCELLED without a word. So there are many more than places
    in the service, which tells callers that it is full.
    """
    return max(_LEAST_CALLS, _CALLS_A_PLACE * settings.max_admitted_requests)


def waiting_options(settings: Settings) -> Options:
    """Return options for any server: how many calls wait in its core before it resets some at random, and all."""
    number = max_calls(settings)
    return [("grpc.server.max_pending_requests", number), ("grpc.server.max_pending_requests_hard_limit", number)]


def server_options(settings: Settings) -> Options:
    """Return options for a server whose peers are callers."""
    return [
        *waiting_options(settings),
        ("grpc.so_reuseport", 0),  # a second server on the port is an error, not a lottery
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        ("grpc.max_send_message_length", -1),
        # Enough above the limit to explain it to the caller.
        ("grpc.max_metadata_size", 2 * settings.max_metadata_bytes),
        ("grpc.absolute_max_metadata_size", 4 * settings.max_metadata_bytes),
        ("grpc.max_allowed_incoming_connections", settings.max_connections),
        ("grpc.server_handshake_timeout_ms", 1000 * _HANDSHAKE_S),
        ("grpc.max_connection_idle_ms", 1000 * _IDLE_S),
        ("grpc.keepalive_time_ms", 1000 * _SILENT_S),
        ("grpc.keepalive_timeout_ms", 1000 * _ANSWER_S),
    ]


_timer: contextvars.ContextVar[asyncio.TimerHandle | None] = contextvars.ContextVar("mqan-message", default=None)


class MessageDeadline(grpc.GenericRpcHandler):
    """Ends calls whose message does not come; ``message_has_come`` tells that it has.

    Args:
        handlers: the handlers of a server, which looks each call up on the task that is to answer it.
        settings: how long a message may take.
        metrics: where calls are counted that end so.
    """

    def __init__(self, handlers: list[grpc.GenericRpcHandler], settings: Settings, metrics: Metrics) -> None:
        self._handlers = handlers
        self._longest_s = settings.request_timeout_s
        self._metrics = metrics

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """Find the handler of a call, and let its time begin."""
        found = next(filter(None, (handlers.service(handler_call_details) for handlers in self._handlers)), None)
        task = asyncio.current_task()
        if found is not None and task is not None:
            timer = asyncio.get_running_loop().call_later(self._longest_s, self._end, task)
            _timer.set(timer)
            task.add_done_callback(lambda _: timer.cancel())
        return found

    def _end(self, task: "asyncio.Task[Any]") -> None:
        record = RequestRecord("grpc", "other", choose_request_id(None), self._metrics, {})
        record.log_failure(ServingError("request_too_slow", "The message of the call did not come in time."))
        record.count()
        task.cancel()


def message_has_come() -> None:
    """End the wait for the message of the call that is being answered."""
    timer = _timer.get()
    if timer is not None:
        timer.cancel()
