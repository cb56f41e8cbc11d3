"""Bodies of requests that come compressed by zstd.

A body is kept as it came until it is whole, which the limit of a request bounds. How large a frame gets, and how much
memory that takes, is read from its first bytes before anything is decompressed; whatever these say, no more comes out
than the limit. Windows may have 8 MiB, as RFC 9659 has it.
"""

import sys
from typing import Final

from starlette.types import Message, Receive

from mqan_core.errors import InputError
from mqan_serving.contract.errors import refuse

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ENCODING: Final = "zstd"
_MOST_WINDOW_LOG: Final = 23
_NEEDS_MEMORY: Final = "too much memory"  # of a frame, in the library's words
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
    """Return what a body of zstd frames was made of; refuse too much, and one that is cut off."""
    options: dict[int, int] = {
        zstd.DecompressionParameter.window_log_max: max(_MOST_WINDOW_LOG, (limit - 1).bit_length())
    }
    parts: list[bytes] = []
    num_bytes, rest = 0, body
    try:
        if (zstd.get_frame_info(body).decompressed_size or 0) > limit:
            raise _too_large(limit)
        while rest:
            frame = zstd.ZstdDecompressor(options=options)
            while not frame.eof:
                part, rest = frame.decompress(rest, _PART_BYTES), b""
                num_bytes += len(part)
                if num_bytes > limit:
                    raise _too_large(limit)
                if not part and frame.needs_input and not frame.eof:
                    raise _malformed()
                parts.append(part)
            rest = frame.unused_data
    except zstd.ZstdError as error:
        raise (_too_large(limit) if _NEEDS_MEMORY in str(error) else _malformed()) from None
    return b"".join(parts)


def _too_large(limit: int) -> InputError:
    message = f"The request is larger, or takes more memory to decompress, than the {limit} bytes that are accepted."
    return refuse("request_too_large", "body", message)


def _malformed() -> InputError:
    message = "The body is not compressed by zstd."
    return refuse("malformed_request", "body", message, "Send it as zstd, or uncompressed.")
