"""Bodies that come compressed: what they were made of is answered, and what would get too large is never made."""

import json
import tracemalloc
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
from backports import zstd

from mqan_core.errors import InputError
from mqan_serving.rest.compression import decompress
from tests.serving.conftest import StartServer

MIB = 1024 * 1024
LIMIT = 100_000


def in_pieces(body: bytes, **settings: Any) -> bytes:
    """Compress without saying how large it was."""
    compressor = zstd.ZstdCompressor(**settings)
    return compressor.compress(body) + compressor.flush()


def bomb(num_bytes: int, *, says_size: bool) -> bytes:
    compressor = zstd.ZstdCompressor()
    compressor.set_pledged_input_size(num_bytes if says_size else None)
    parts = [compressor.compress(bytes(MIB)) for _ in range(num_bytes // MIB)]
    return b"".join([*parts, compressor.flush()])


async def post(callers: Any, content: Any, encoding: str = "zstd", path: str = "/v1/answer") -> httpx2.Response:
    headers = {"content-type": "application/json", "content-encoding": encoding}
    response: httpx2.Response = await callers.rest.post(path, content=content, headers=headers)
    return response


@pytest.mark.parametrize("encoding", ["zstd", "ZSTD"])
@pytest.mark.parametrize("compress", [zstd.compress, in_pieces])
async def test_what_a_body_was_made_of_is_answered(
    start_server: StartServer, compress: Callable[[bytes], bytes], encoding: str
) -> None:
    callers = await start_server()
    plain = (await callers.post()).json()
    body = json.dumps(callers.body).encode()
    response = await post(callers, compress(body), encoding)
    assert (response.status_code, response.json()) == (200, plain)
    half = len(body) // 2
    assert (await post(callers, compress(body[:half]) + compress(body[half:]), encoding)).json() == plain

    async def bytewise() -> AsyncIterator[bytes]:
        for byte in compress(body):
            yield bytes([byte])

    assert (await post(callers, bytewise())).json() == plain


async def test_every_path_takes_compressed_bodies(start_server: StartServer) -> None:
    callers = await start_server()
    question = {"question": "Where?", "context": "The kettle is in the kitchen."}
    content = zstd.compress(json.dumps({"inputs": question}).encode())
    refused = await post(callers, content, path="/v1/systemone")
    assert refused.status_code == 422, "it was read, and is none of this format"
    content = zstd.compress(json.dumps({"context": "c d", "questions": ["q"]}).encode())
    response = await post(callers, content, path="/v1/answers")
    assert response.json()["texts"][0]["answers"][0]["answer"]["answer"] == "c d"


@pytest.mark.parametrize("says_size", [True, False])
async def test_a_bomb_is_refused_and_takes_no_memory(start_server: StartServer, says_size: bool) -> None:
    callers = await start_server(max_request_bytes=LIMIT)
    content = bomb(512 * MIB, says_size=says_size)
    assert len(content) < LIMIT, "as it comes it is small enough"
    tracemalloc.start()
    try:
        response = await post(callers, content)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (response.status_code, response.json()["code"]) == (413, "request_too_large")
    assert peak_bytes < 3 * MIB
    assert (await callers.post()).status_code == 200


@pytest.mark.parametrize("log", [24, 27])
def test_a_window_beyond_the_standard_is_refused(log: int) -> None:
    content = in_pieces(b"short", options={zstd.CompressionParameter.window_log: log})
    for before in (b"", zstd.compress(b"{}")):
        with pytest.raises(InputError) as raised:
            decompress(before + content, LIMIT)
        assert raised.value.code == "request_too_large"


def test_the_limit_is_that_of_what_comes_out() -> None:
    for compress in (zstd.compress, in_pieces):
        assert decompress(compress(b"x" * LIMIT), LIMIT) == b"x" * LIMIT
        assert decompress(compress(b""), LIMIT) == b""
        for content in (compress(b"x" * (LIMIT + 1)), compress(b"x" * LIMIT) + compress(b"y")):
            with pytest.raises(InputError) as raised:
                decompress(content, LIMIT)
            assert raised.value.code == "request_too_large"


async def test_what_is_too_large_before_is_refused(start_server: StartServer) -> None:
    callers = await start_server(max_request_bytes=LIMIT)

    async def endless() -> AsyncIterator[bytes]:
        yield zstd.compress(b"{")
        for _ in range(30):
            yield b"x" * 10_000

    response = await post(callers, endless())
    assert (response.status_code, response.json()["code"]) == (413, "request_too_large")


BODY = json.dumps({"context": "c", "question": "q"}).encode()
DAMAGED = [b"", b"(", BODY, zstd.compress(BODY)[:-5], zstd.compress(BODY) + b"rest", in_pieces(BODY)[:-6]]


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
async def test_what_is_no_zstd_is_malformed(start_server: StartServer, content: bytes) -> None:
    callers = await start_server()
    response = await post(callers, content)
    assert (response.status_code, response.json()["code"]) == (400, "malformed_request")


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd, zstd", "zstd, gzip", "x"])
async def test_other_encodings_are_refused(start_server: StartServer, encoding: str) -> None:
    callers = await start_server()
    response = await post(callers, zstd.compress(BODY), encoding)
    assert (response.status_code, response.json()["code"]) == (415, "unsupported_encoding")
    assert "zstd" in response.json()["message"]
