"""Server-sent events: an answer word by word over REST.

An event has a name and one line of JSON. ``word`` comes for each word, ``answer`` at the end with the document that the
plain call answers with, ``error`` in its place with the document of an error.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Final

from fastapi.responses import StreamingResponse
from pydantic_core import to_json
from starlette.types import Send

from mqan_serving.contract.errors import describe
from mqan_serving.observability.logs import RequestLog, Told
from mqan_serving.rest.gateway import failure_body

MEDIA_TYPE: Final = "text/event-stream"
# What lies between server and client is to hand each event on as it comes; the second is nginx's.
_HEADERS: Final = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class EventStream(StreamingResponse):
    """A response of events. What fails before the first word, or the answer, is told by a status."""

    def __init__(self, first: Told, rest: AsyncGenerator[Told, None], log: RequestLog) -> None:
        self._rest = rest
        self._log = log
        log.is_streaming = True
        super().__init__(self._write(first), headers=_HEADERS, media_type=MEDIA_TYPE)

    async def stream_response(self, send: Send) -> None:
        """Send all events; when the caller goes away, which cancels this, the decoding ends at once."""
        try:
            async with aclosing(self._rest):
                await super().stream_response(send)
        finally:
            self._log.log_cancelled()  # does nothing after the last event

    async def _write(self, first: Told) -> AsyncIterator[str]:
        try:
            yield _event(*first)
            async for name, document in self._rest:
                yield _event(name, document)
        except Exception as error:
            self._log.log_failure(error)
            self._log.count()
            yield _event("error", failure_body(describe(error), self._log))


def _event(name: str, document: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {to_json(document).decode()}\n\n"
