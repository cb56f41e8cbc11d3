"""What Ray's processes say is printed where it tells of trouble, and kept back where it does not."""

import subprocess
import sys

import pytest

from mqan_serving.ray_serve.ray_output import Batch, ChatterFilter

STAMP = "2026-11-26 13:46:00,399"
ANSWERED = '{"event": "answered", "level": "info"}'
START = [
    f"INFO {STAMP} serve 14022 -- Throughput optimized Ray Serve enabled with the following configurations:",
    "  • Direct ingress enabled",
    "",
]
MEANT = (
    f"WARNING {STAMP} controller 1 -- HTTPOptions.host='127.0.0.1' won't accept connections from HAProxy on other nodes"
)
WARNING = f"WARNING {STAMP} controller 1 -- Replica 'mqan' failed its health check"
FAILURE = [
    f"ERROR {STAMP} controller 1 -- it failed",
    "  on two lines",
    "Traceback (most recent call last):",
    '  File "x"',
]


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        (START, []),
        ([*START, ANSWERED], [ANSWERED]),
        ([MEANT, WARNING], [WARNING]),
        ([*START, *FAILURE, *START], FAILURE),
        ([*START, "Traceback (most recent call last):", "  File"], ["Traceback (most recent call last):", "  File"]),
        (["Task failed: The actor is dead because it was killed by `ray.kill`.", "Killed"], ["Killed"]),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 100])
def test_only_trouble_and_the_service_are_heard(lines: list[str], kept: list[str], size: int) -> None:
    """However Ray divides the lines."""
    chatter = ChatterFilter()
    batches = [lines[start : start + size] for start in range(0, len(lines), size)]
    assert [line for batch in batches for line in chatter.lines_of(7, batch)] == kept


def test_processes_are_told_apart() -> None:
    chatter = ChatterFilter()
    assert chatter.lines_of(1, START[:1]) == []
    assert chatter.lines_of(2, ["  goes on"]) == ["  goes on"]
    assert chatter.lines_of(1, ["  goes on"]) == []


def test_batches_keep_what_they_say_of_their_lines() -> None:
    handed: list[Batch] = []
    handle = ChatterFilter().wrap(handed.append)
    for lines in (START, [*START, WARNING]):
        handle({"pid": 1, "is_err": True, "lines": lines})
    assert handed == [{"pid": 1, "is_err": True, "lines": [WARNING]}]


def test_ray_prints_by_what_is_replaced() -> None:
    """In a process of its own, for Ray keeps what prints for all of it."""
    program = f"""
import ray
from ray._private import ray_logging, worker
from mqan_serving.ray_serve.ray_output import hide_chatter

class Talker:
    def say(self):
        print("INFO {STAMP} x 1 -- hidden")
        print("heard", flush=True)

ray.init(address="local", include_dashboard=False, num_cpus=1, logging_level="ERROR", object_store_memory=80 * 2**20)
hide_chatter()
killed = "Task listen_for_change failed. Error: The actor is dead because it was killed by `ray.kill`."
worker.print_to_stdstream({{"lines": [killed], "pid": "raylet", "is_err": False}}, ignore_prefix=False)
ray.get(ray.remote(Talker).remote().say.remote())
while input() != "stop":
    pass
ray.shutdown()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        _, _ = process.communicate("stop\n", timeout=60)
    assert "heard" in first
