"""Metrics that replicas share: whatever happens to their folder, requests are answered, and what is known is told."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

_COUNTED = 'mqan_requests_total{code="ok",method="Answer",transport="rest"}'
# Does what it is told, line by line: "count" counts a request, "render" prints the metrics, all else is executed.
_PROCESS = """
import os, resource, shutil, signal, sys
from mqan_serving.observability.metrics import Metrics
from mqan_serving.observability.logs import flush_logs, set_up_logs
set_up_logs("info")
folder = os.environ["PROMETHEUS_MULTIPROC_DIR"]
def fill_disk():  # a file that grows is refused as on a full disk, which the kernel tells by an error
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, resource.RLIM_INFINITY))
def empty_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
if os.environ.get("FULL"):
    fill_disk()
metrics = Metrics()
print("ready", flush=True)
for line in sys.stdin:
    if line == "count\\n":
        metrics.count_request("rest", "Answer", "ok", 0.1)
    elif line == "render\\n":
        print(metrics.render().decode(), flush=True)
    else:
        exec(line)
    flush_logs()
    print("done", flush=True)
"""


class Process:
    """A process that counts."""

    def __init__(self, folder: Path, **variables: str) -> None:
        environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(folder)} | variables
        pipe: Any = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROCESS], env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )
        assert self._read() == "ready\n", "it has not started"

    def tell(self, line: str) -> str:
        """Have a line done and return what is printed."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        printed = ""
        while (read := self._read()) != "done\n":
            assert read, f"it has ended with {self._process.wait()}"
            printed += read
        return printed

    def count(self) -> int:
        """Count a request, and return how many /metrics tells."""
        self.tell("count")
        return self.told()

    def told(self) -> int:
        """Return how many requests /metrics tells of."""
        text = self.tell("render")
        samples = {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}
        assert "mqan_queue_depth" in samples
        (value,) = [line.rpartition(" ")[2] for line in text.splitlines() if line.startswith(_COUNTED)]
        return int(float(value))

    def end(self) -> list[str]:
        """End it, and return what it has logged."""
        _, log = self._process.communicate(timeout=30)
        assert self._process.returncode == 0
        return [json.loads(line)["event"] for line in log.splitlines()]

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "metrics"


@pytest.fixture
def start(folder: Path) -> Any:
    started: list[Process] = []

    def start_one(**variables: str) -> Process:
        started.append(Process(folder, **variables))
        return started[-1]

    yield start_one
    for process in started:
        process.kill()


Start = Callable[..., Process]


def test_a_full_disk_loses_no_request(start: Start) -> None:
    one, other = start(), start()
    one.tell("count")
    one.tell("fill_disk()")
    # A new series needs room, which there is not.
    one.tell("metrics.count_request('rest', 'other', 'not_found', 0.1)")
    assert one.count() == 2, "its own"
    assert other.told() in (1, 2), "what was written"
    one.tell("empty_disk()")
    assert one.count() == 3
    assert other.told() == 3
    said, again = one.end()
    assert "metrics of other processes are left out" in said
    assert again == "metrics of all processes are told again"
    assert other.end() == []


def test_it_starts_on_a_full_disk(start: Start) -> None:
    process = start(FULL="1")
    assert [process.count() for _ in range(3)] == [1, 2, 3]
    process.tell("empty_disk()")
    assert process.told() == 3
    other = start()
    assert other.told() == 3, "written once there is room"
    assert len(process.end()) == 2


@pytest.mark.parametrize("size", [0, 1, 100, 4096])
def test_a_file_that_is_cut_off_does_not_end_the_process(start: Start, folder: Path, size: int) -> None:
    process, other = start(), start()
    process.tell("count")
    for path in folder.iterdir():
        os.truncate(path, size)
    assert process.count() == 2
    assert other.count() == 3
    assert process.told() == 3


def test_a_folder_that_is_removed_is_made_anew(start: Start, folder: Path) -> None:
    process, other = start(), start()
    process.tell("count")
    shutil.rmtree(folder)
    assert process.count() == 2
    assert other.count() == 3
    assert process.told() == 3


@pytest.mark.parametrize("place", ["below a file", "a file", "/proc"])
def test_a_folder_that_cannot_be(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    folder = {"below a file": tmp_path / "file" / "metrics", "a file": tmp_path / "file"}.get(
        place, Path("/proc/metrics")
    )
    process = Process(folder)
    try:
        assert process.count() == 1
        (said,) = process.end()
        assert "metrics of other processes are left out" in said
    finally:
        process.kill()


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**40)


_LEFTOVERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "empty": ("counter_999999.db", lambda path: path.write_bytes(b"")),
    "cut off": ("counter_999999.db", lambda path: path.write_bytes(b"\x20\0\0\0")),
    "garbage": ("counter_999999.db", lambda path: path.write_bytes(b"\xff" * 4096)),
    "a length beyond its end": ("histogram_999999.db", lambda path: path.write_bytes(b"\0\0\0\x7f" + b"\0" * 100)),
    "a key that is no JSON": ("counter_999999.db", lambda path: path.write_bytes(record(b"no JSON"))),
    "a key of other parts": ("counter_999999.db", lambda path: path.write_bytes(record(b'["a", 1, {}, null]'))),
    "a key that is no list": ("counter_999999.db", lambda path: path.write_bytes(record(b"7"))),
    "no number of a process": ("gauge_livesum_x.db", lambda path: path.write_bytes(b"")),
    "a dead one's": ("gauge_livesum_999999.db", lambda path: path.write_bytes(b"")),
    "another kind of gauge": ("gauge_min_999999.db", lambda path: path.write_bytes(b"\xff" * 64)),
    "not ours": ("notes.db", lambda path: path.write_bytes(b"x")),
    "a folder": ("counter_77.db", lambda path: path.mkdir()),
    "a pipe": ("counter_77.db", make_pipe),
    "a link to nowhere": ("histogram_77.db", lambda path: path.symlink_to("nowhere")),
    "huge": ("counter_78.db", make_huge),
}


def record(key: bytes) -> bytes:
    """Return a file of one number."""
    padded = key + b" " * (8 - (len(key) + 4) % 8)
    body = len(key).to_bytes(4, "little") + padded + bytes(16)
    return (8 + len(body)).to_bytes(4, "little") + bytes(4) + body


@pytest.mark.parametrize("kind", _LEFTOVERS)
def test_leftovers_are_left_out(start: Start, folder: Path, kind: str) -> None:
    folder.mkdir()
    name, make = _LEFTOVERS[kind]
    make(folder / name)
    process, other = start(), start()
    assert process.count() == 1
    assert other.count() == 2
    assert process.told() == 2
    assert len(process.end()) <= 1, "said once, not once a scrape"


def test_a_file_of_a_process_of_the_same_number_is_not_mistaken_for_its_own(start: Start, folder: Path) -> None:
    process = start()
    process.tell("[os.remove(e.path) or open(e.path, 'wb').write(b'\\xff' * 500) for e in os.scandir(folder)]")
    assert [process.count() for _ in range(2)] == [1, 2]
