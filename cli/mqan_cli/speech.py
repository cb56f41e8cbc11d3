"""Which protocol a port speaks: gRPC and REST have ports of their own, and a client of one cannot read the other."""

import contextlib
import socket
from urllib.parse import SplitResult, urlsplit

_TIMEOUT_S = 2.0
_REST = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"  # RFC 9113, section 3.4
_SETTINGS = b"\0\0\0\4\0\0\0\0\0"  # an empty frame of settings, which a server answers with its own
_FRAME_BYTES = 9
_PORTS = {"grpc": 9000, "http": 80}
_OTHER = {"grpc": "http", "http": "grpc"}


def other_url(url: str) -> str | None:
    """Return a URL with the other protocol if the port of a URL speaks that one; else None.

    Args:
        url: of a server that could not be asked. TLS hides what is spoken: None for ``grpcs`` and ``https``.
    """
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    other = f"{_OTHER[parts.scheme]}://{host}:{_port_of(parts)}"
    return other if speaks(other) else None


def speaks(url: str) -> bool:
    """Say whether the port of a URL speaks its protocol, well or not; no for ``grpcs`` and ``https``."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        return False
    if parts.scheme == "http":
        return _first(parts.hostname, _port_of(parts), _REST).startswith(b"HTTP/1.")
    return _is_settings(_first(parts.hostname, _port_of(parts), _PREFACE + _SETTINGS))


def _port_of(parts: SplitResult) -> int:
    return _PORTS[parts.scheme] if parts.port is None else parts.port


def _first(host: str, port: int, sent: bytes) -> bytes:
    """Return the first bytes that a port answers with; nothing if it does not."""
    received = b""
    with contextlib.suppress(OSError, UnicodeError), socket.create_connection((host, port), _TIMEOUT_S) as connection:
        connection.settimeout(_TIMEOUT_S)
        connection.sendall(sent)
        while len(received) < _FRAME_BYTES and (chunk := connection.recv(_FRAME_BYTES - len(received))):
            received += chunk
    return received


def _is_settings(frame: bytes) -> bool:
    """Say whether this is the header of a frame of HTTP/2 that holds settings of a connection."""
    return len(frame) == _FRAME_BYTES and frame[3] == 4 and frame[5:] == b"\0\0\0\0"
