"""A log that cannot be written costs lines, which are counted, and never an answer."""

import fcntl
import http.client
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import httpx2
import pytest

from mqan_serving.observability.log_writer import WRITER, LogWriter
from tests.timing import wait_until

_BOUND = 20  # lines that wait
_SERVER = "from mqan_cli.main import app; app(['serve'])"


pytestmark = pytest.mark.timeout(120)  # a line that is not there would be waited for


@contextmanager
def stderr_is_a_pipe() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Put a pipe that holds one page in place of standard error; its two ends.

    What servers of earlier tests have logged is written before: it would end up in the pipe.
    """
    assert WRITER.flush(10)
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    with open(reading, "rb") as reader, open(writing, "wb", buffering=0) as writer, pytest.MonkeyPatch.context() as now:
        now.setattr(sys, "stderr", writer)
        yield reader, writer


def test_a_pipe_that_is_not_read_drops_lines_and_says_how_many() -> None:
    with stderr_is_a_pipe() as pipe:
        reader, _ = pipe
        writer = LogWriter(_BOUND)
        line = "x" * 99
        taken = 0
        while writer.flush(0.05):  # until the pipe is full, and the thread waits
            writer.write(line)
            taken += 1
        for _ in range(1000):
            writer.write(line)  # nobody waits
        assert not writer.flush(0.05)
        dropped = writer.num_dropped
        assert 1000 - _BOUND <= dropped < 1000
        written = Counter(reader.readline() for _ in range(taken + 1000 - dropped + 1))
        assert written.pop(f"{line}\n".encode()) == taken + 1000 - dropped
        told = json.loads(next(iter(written)))
        assert (told["event"], told["lines"]) == ("log lines dropped", dropped)
        writer.write("later")
        assert reader.readline() == b"later\n", "it is said once"
        assert writer.num_dropped == dropped


def test_a_pipe_that_nobody_waits_for_in_vain() -> None:
    """Made non-blocking by somebody else, as a terminal that is shared: lines wait, none is lost."""
    with stderr_is_a_pipe() as pipe:
        reader, stream = pipe
        os.set_blocking(stream.fileno(), False)
        writer = LogWriter()
        for number in range(200):
            writer.write(f"{number:099}")
        assert [int(reader.readline()) for _ in range(200)] == list(range(200))
        assert writer.num_dropped == 0


def test_a_reader_that_has_gone() -> None:
    with stderr_is_a_pipe() as pipe:
        pipe[0].close()
        writer = LogWriter()
        for number in range(5):
            writer.write("nobody reads this")
            wait_until(lambda: writer.num_dropped == number + 1)  # noqa: B023  called at once


@pytest.mark.parametrize("stream", [None, "closed", "/dev/full"])
def test_no_place_to_write_to(stream: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened = (Path("/dev/full") if stream == "/dev/full" else tmp_path / "log").open("w") if stream else None
    if stream == "closed" and opened is not None:
        opened.close()
    monkeypatch.setattr(sys, "stderr", opened)
    writer = LogWriter()
    writer.write("a line")
    wait_until(lambda: writer.num_dropped == 1)
    log = tmp_path / "new"
    with log.open("w") as better:
        monkeypatch.setattr(sys, "stderr", better)
        writer.write("another")
        assert writer.flush(10)
    another, told = log.read_text().splitlines()
    assert another == "another"
    assert json.loads(told)["lines"] == 1


def ask(port: int, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        method, headers = ("POST", {"content-type": "application/json"}) if body else ("GET", {})
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def is_ready(port: int) -> bool:
    try:
        return ask(port, "/health/ready")[0] == 200
    except OSError:
        return False


@pytest.mark.parametrize("place", ["pipe", "/dev/full"])
def test_a_server_whose_log_nobody_takes_starts_and_answers_on(
    place: str, tiny_bundle: Path, free_ports: Callable[[int], list[int]]
) -> None:
    http_port, grpc_port = free_ports(2)
    given = {"bundle": tiny_bundle, "http_port": http_port, "grpc_port": grpc_port, "drain_delay_s": 0}
    environment = os.environ | {f"MQAN_{name.upper()}": str(value) for name, value in given.items()}
    reading, writing = os.pipe() if place == "pipe" else (os.open(place, os.O_WRONLY) for _ in range(2))
    server = subprocess.Popen([sys.executable, "-c", _SERVER], env=environment, stdout=writing, stderr=writing)
    os.close(writing)
    try:
        wait_until(lambda: server.poll() is not None or is_ready(http_port), 100)
        # Over 170 bytes each, of which 64 KiB are in the pipe, and 1,000 lines wait.
        headers = {"content-type": "application/json"}
        with httpx2.Client(headers=headers, trust_env=False, timeout=10) as client:
            for _ in range(1600 if place == "pipe" else 1):
                assert client.post(f"http://127.0.0.1:{http_port}/v1/answer", content=b"{").status_code == 400
        body: Any = json.dumps({"context": "the old harbour", "question": "what ?"}).encode()
        wait_until(lambda: b"\nmqan_log_lines_dropped_total 0.0" not in ask(http_port, "/metrics")[1])
        assert ask(http_port, "/v1/answer", body)[0] == 200
        assert ask(http_port, "/health/live")[0] == 200
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0, "it ends, too"
    finally:
        server.kill()
        server.wait()
        os.close(reading)
