"""Options of gRPC's core that bound the peers of a server.

By default the core cancels honest calls at random when more than 1,000 wait, in a burst or beside a connection that
resets its own: ``tests/serving/test_rpc_bounds.py`` and ``tests/soak/test_attacks.py``.
"""

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
    """Return how many calls may be in gRPC's hands: more than places, for beyond them its core resets calls unsaid."""
    return max(_LEAST_CALLS, _CALLS_A_PLACE * settings.max_admitted_requests)


def waiting_options(number: int) -> Options:
    """Return options for any server: how many calls wait in its core before it resets some at random, and all."""
    return [("grpc.server.max_pending_requests", number), ("grpc.server.max_pending_requests_hard_limit", number)]


def bound_servers_of_ray(number: int = _LEAST_CALLS) -> None:
    """Let so many calls wait in the servers that Ray Serve makes here, and responses have any size."""
    from ray.serve._private.constants import DEFAULT_GRPC_SERVER_OPTIONS

    others = [option for option in DEFAULT_GRPC_SERVER_OPTIONS if option[0] != _SENT]
    DEFAULT_GRPC_SERVER_OPTIONS[:] = [*others, (_SENT, -1), *waiting_options(number)]


def server_options(settings: Settings) -> Options:
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
