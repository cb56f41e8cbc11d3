"""Bounds for the peers of a gRPC server: the options of its core, and an end to calls whose message never comes.

Without it gRPC's core cancels honest calls at random when more than 1,000 wait, in a burst or beside a connection that
resets its own: ``tests/serving/test_rpc_bounds.py`` and ``tests/soak/test_attacks.py``.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import grpc

from mqan_serving.observability.logs import RequestRecord, choose_request_id
from mqan_serving.observability.metrics import Metrics
from mqan_serving.service.errors import ServingError
from mqan_serving.settings import Settings

_SENT = "grpc.max_send_message_length"
_LEAST_CALLS = 20_000  # 15 kB each; fewer, and a flood of calls that are reset leaves no place to those of others
_CALLS_A_PLACE = 16
_CALLS_BEYOND_PLACES = 100  # of a connection: who asks too much is told so
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


def waiting_options(number: int) -> Options:
    """Return options for any server: how many calls wait in its core before it resets some at random, and all."""
    return [("grpc.server.max_pending_requests", number), ("grpc.server.max_pending_requests_hard_limit", number)]


def bound_servers_of_ray(number: int = _LEAST_CALLS) -> None:
    """Let so many calls wait in the gRPC servers that Ray Serve is going to make in this process.

    Responses may have any size: Ray would bound them as it does requests, and many answers can be more than that.
    """
    from ray.serve._private.constants import DEFAULT_GRPC_SERVER_OPTIONS

    others = [option for option in DEFAULT_GRPC_SERVER_OPTIONS if option[0] != _SENT]
    DEFAULT_GRPC_SERVER_OPTIONS[:] = [*others, (_SENT, -1), *waiting_options(number)]


def server_options(settings: Settings) -> Options:
    """Return options for a server whose peers are callers."""
    return [
        *waiting_options(max_calls(settings)),
        # Calls that were reset count until they have been taken from those that wait. More are refused, which costs
        # little: no connection fills the places of the others.
        ("grpc.max_concurrent_streams", settings.max_admitted_requests + _CALLS_BEYOND_PLACES),
        ("grpc.http2.max_deallocating_streams", _CALLS_BEYOND_PLACES),
        ("grpc.so_reuseport", 0),  # a second server on the port is an error, not a lottery
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        (_SENT, -1),
        # Enough above the limit to explain it to the caller.
        ("grpc.max_metadata_size", 2 * settings.max_metadata_bytes),
        ("grpc.absolute_max_metadata_size", 4 * settings.max_metadata_bytes),
        ("grpc.max_allowed_incoming_connections", settings.max_connections),
        ("grpc.server_handshake_timeout_ms", 1000 * _HANDSHAKE_S),
        ("grpc.max_connection_idle_ms", 1000 * _IDLE_S),
        ("grpc.keepalive_time_ms", 1000 * _SILENT_S),
        ("grpc.keepalive_timeout_ms", 1000 * _ANSWER_S),
    ]


class MessageDeadline(grpc.GenericRpcHandler):
    """Ends calls whose message does not come in time.

    Args:
        settings: how long a message may take.
        metrics: where calls are counted that end so.

    Attributes:
        handlers: the handlers of a server, which looks each call up on the task that is to answer it.
    """

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.handlers: list[grpc.GenericRpcHandler] = []
        self._longest_s = settings.request_timeout_s
        self._metrics = metrics
        self._waiting: dict[asyncio.Task[Any], float] = {}  # until when, in this order
        self._timer: asyncio.TimerHandle | None = None

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Take handlers, as a server does."""
        self.handlers += handlers

    def add_registered_method_handlers(self, *_: Any) -> None:
        """Leave them out: a server finds those before it has a task for the call."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """Find the handler of a call, and let its time begin."""
        found = next(filter(None, (handlers.service(handler_call_details) for handlers in self.handlers)), None)
        task = asyncio.current_task()
        if found is not None and task is not None:
            self._waiting[task] = asyncio.get_running_loop().time() + self._longest_s
            task.add_done_callback(self._forget)
            self._watch()
        return found

    def message_has_come(self) -> None:
        """End the wait for the message of the call that is being answered."""
        task = asyncio.current_task()
        if task is not None:
            self._forget(task)

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self._waiting.pop(task, None)

    def _watch(self) -> None:
        if self._timer is None and self._waiting:
            self._timer = asyncio.get_running_loop().call_at(next(iter(self._waiting.values())), self._end_late_ones)

    def _end_late_ones(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for task, deadline in list(self._waiting.items()):
            if deadline > now:
                break
            self._forget(task)
            record = RequestRecord("grpc", "other", choose_request_id(None), self._metrics, {})
            record.log_failure(ServingError("request_too_slow", "The message of the call did not come in time."))
            record.count()
            task.cancel()
        self._watch()
