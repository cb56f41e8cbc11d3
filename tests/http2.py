"""Frames of HTTP/2, for peers that send what no client would."""

import socket
from collections.abc import Iterator

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return a frame."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def literal(name: bytes, value: bytes) -> bytes:
    """Return a header that enters no table; name and value have fewer than 127 bytes."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def call_headers(path: bytes) -> bytes:
    """Return the headers of a gRPC call."""
    pairs = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", path),
        (b":authority", b"x"),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
    ]
    return b"".join(literal(*pair) for pair in pairs)


def message(content: bytes) -> bytes:
    """Return a message as gRPC frames it."""
    return b"\0" + len(content).to_bytes(4, "big") + content


def connect(port: int, settings: bytes = b"") -> socket.socket:
    """Return a connection that has said hello."""
    peer = socket.create_connection(("127.0.0.1", port), timeout=30)
    peer.sendall(PREFACE + frame(SETTINGS, 0, 0, settings))
    return peer


def resets(path: bytes, content: bytes | None, number: int, batch: int = 50) -> Iterator[bytes]:
    """Yield calls, with a message or without, that are reset as soon as they are made, some at a time."""
    headers, error = call_headers(path), (8).to_bytes(4, "big")
    for begin in range(0, number, batch):
        pieces = []
        for stream in range(2 * begin + 1, 2 * (begin + batch) + 1, 2):
            pieces.append(frame(HEADERS, END_HEADERS, stream, headers))
            if content is not None:
                pieces.append(frame(DATA, END_STREAM, stream, message(content)))
            pieces.append(frame(RST_STREAM, 0, stream, error))
        yield b"".join(pieces)


def drain(peer: socket.socket) -> int:
    """Read what there is, without waiting; return its bytes."""
    number = 0
    peer.setblocking(False)
    try:
        while received := peer.recv(1 << 20):
            number += len(received)
    except BlockingIOError:
        pass
    finally:
        peer.settimeout(30)
    return number


def count_resets(peer: socket.socket, number: int) -> int:
    """Read until a server has reset so many calls, or sends nothing for five seconds; return how many it has."""
    found, received = 0, b""
    peer.settimeout(5)
    try:
        while found < number and (more := peer.recv(1 << 16)):
            received += more
            while len(received) >= 9 and len(received) >= 9 + (size := int.from_bytes(received[:3], "big")):
                found += received[3] == RST_STREAM
                received = received[9 + size :]
    except TimeoutError:
        pass
    return found
