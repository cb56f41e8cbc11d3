"""Bodies of requests that come compressed by zstd.

A body is kept as it came until it is whole, which the limit of a request bounds. How large it gets, and how much memory
that takes, is read from its first bytes before anything is decompressed; whatever these say, no more comes out than the
limit. Windows may have 8 MiB, as RFC 9659 has it.
"""

from typing import Final

import zstandard
from starlette.types import Message, Receive

from mqan_core.errors import InputError
from mqan_serving.contract.errors import refuse

ENCODING: Final = "zstd"
_MOST_WINDOW_BYTES: Final = 8 * 1024 * 1024
_PART_BYTES: Final = 64 * 1024


class Decompressed:
    """The body of one request as it was before it was compressed; it has at most ``limit`` bytes before and after."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._is_read = False

    async def receive(self) -> Message:
        """Return the whole body as one message, or raise ``InputError``; then what comes after it."""
        if self._is_read:
            return await self._receive()
        body = bytearray()
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                return message
            body += message.get("body", b"")
            if len(body) > self._limit:
                raise _too_large(self._limit)
            if not message.get("more_body", False):
                break
        self._is_read = True
        return {"type": "http.request", "body": decompress(bytes(body), self._limit), "more_body": False}


def decompress(body: bytes, limit: int) -> bytes:
    """Return what a body of zstd frames was made of, of one that was cut off the beginning; refuse too much."""
    most_window_bytes = max(_MOST_WINDOW_BYTES, limit)
    decompressor = zstandard.ZstdDecompressor(max_window_size=most_window_bytes)
    parts: list[bytes] = []
    num_bytes = 0
    try:
        frame = zstandard.get_frame_parameters(body)
        says_size = frame.content_size != zstandard.CONTENTSIZE_UNKNOWN
        if (says_size and frame.content_size > limit) or frame.window_size > most_window_bytes:
            raise _too_large(limit)
        with decompressor.stream_reader(body, read_across_frames=True) as reader:
            while part := reader.read(_PART_BYTES):
                num_bytes += len(part)
                if num_bytes > limit:
                    raise _too_large(limit)
                parts.append(part)
    except zstandard.ZstdError:
        message = "The body is not compressed by zstd, or takes too much memory to decompress."
        raise refuse("malformed_request", "body", message, "Send it as zstd, or uncompressed.") from None
    return b"".join(parts)


def _too_large(limit: int) -> InputError:
    message = f"The request is larger, or takes more memory to decompress, than the {limit} bytes that are accepted."
    return refuse("request_too_large", "body", message)
