"""A peer that sends what no client would."""

import asyncio
from collections.abc import Iterator


class Peer:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, port: int) -> "Peer":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def send(self, pieces: Iterator[bytes] | list[bytes]) -> int:
        """Send until all is sent or nobody takes it; return the bytes."""
        number = 0
        try:
            for piece in pieces:
                self.writer.write(piece)
                await self.writer.drain()
                number += len(piece)
                if self.reader.at_eof():
                    break
                await asyncio.sleep(0)
        except ConnectionError:
            pass
        return number

    async def rest(self) -> bytes:
        """Return what comes until the connection ends."""
        async with asyncio.timeout(60):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b"reset"
            finally:
                self.writer.close()
