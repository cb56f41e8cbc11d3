"""Which protocol a port speaks: gRPC and REST have ports of their own, and a client of one cannot read the other."""

import contextlib
import socket
from urllib.parse import urlsplit

_TIMEOUT_S = 2.0
_REST = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"  # RFC 9113, section 3.4
_SETTINGS = b"\0\0\0\4\0\0\0\0\0"  # an empty frame of settings, which a server answers with its own
_FRAME_BYTES = 9
_PORTS = {"grpc": 9000, "http": 80}


def other_url(url: str) -> str | None:
    """Return a URL with the other protocol if the port of a URL speaks that one; else None.

    Args:
        url: of a server that could not be asked. TLS hides what is spoken: None for ``grpcs`` and ``https``.
    """
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    port = parts.port or _PORTS[parts.scheme]
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    if parts.scheme == "grpc":
        return f"http://{host}:{port}" if _first(parts.hostname, port, _REST).startswith(b"HTTP/1.") else None
    return f"grpc://{host}:{port}" if _is_settings(_first(parts.hostname, port, _PREFACE + _SETTINGS)) else None


def _first(host: str, port: int, sent: bytes) -> bytes:
    """Return the first bytes that a port answers with; nothing if it does not."""
    received = b""
    with contextlib.suppress(OSError), socket.create_connection((host, port), _TIMEOUT_S) as connection:
        connection.settimeout(_TIMEOUT_S)
        connection.sendall(sent)
        while len(received) < _FRAME_BYTES and (chunk := connection.recv(_FRAME_BYTES - len(received))):
            received += chunk
    return received


def _is_settings(frame: bytes) -> bool:
    """Say whether this is the header of a frame of HTTP/2 that holds settings of a connection."""
    return len(frame) == _FRAME_BYTES and frame[3] == 4 and frame[5:] == b"\0\0\0\0"
