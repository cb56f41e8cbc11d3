"""Many clients while models change: no request is lost, and every answer is the one that its model gives alone.

In the test suite against a small server; by itself with bundles of other weights, against a server that it starts
(``--ray``: on Ray Serve), or against one that runs (``--rest``, ``--grpc``, with its admin's key in MQAN_ADMIN_KEY):

    python tests/load/test_changes.py swaps a=DIR b=DIR
    python tests/load/test_changes.py memory a=DIR b=DIR c=DIR --seconds 300
    python tests/load/test_changes.py swaps a b --rest http://127.0.0.1:8000 --grpc 127.0.0.1:9000

``swaps`` unloads the second model, loads it, makes it stable, goes back and gives it half of the callers, 20 times,
under 64 clients who name none; the slowest of 100 requests may take twice as long as before. ``memory`` lets 32 clients
ask the models in turn, of which all but one fit into the memory.
"""

import argparse
import asyncio
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx2

from mqan_core.bundle import read_manifest
from mqan_serving.keys import add_key
from mqan_serving.service.catalog import Entry
from mqan_serving.service.loading import PROCESS_BYTES, Slot
from tests.load.test_load import Report, put_under_load
from tests.processes import held_by

_MIB = 1024 * 1024
_MOST_SLOWER = 2.0  # p99 while models change, to that before
_START_S = 120.0


def changes_of(second: str, first: str) -> list[tuple[str, str, dict[str, Any] | None]]:
    """Return what an admin asks for, one after the other."""
    return [
        ("DELETE", f"models/{second}", None),
        ("PUT", f"models/{second}", {}),
        ("PUT", "aliases/stable", {"model": second}),
        ("PUT", "aliases/stable", {"model": first}),
        ("PUT", "aliases/canary", {"model": second, "share": 0.5}),
        ("DELETE", "aliases/canary", None),
    ]


async def swap(rest: str, key: str, names: Sequence[str], times: int, pause_s: float) -> None:
    """Change models again and again."""
    headers = {"authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(base_url=f"{rest}/admin/", trust_env=False, timeout=300, headers=headers) as admin:
        for _ in range(times):
            for method, path, body in changes_of(names[1], names[0]):
                response = await admin.request(method, path, json=body)
                if response.status_code != 200:
                    raise RuntimeError(f"{method} {path}: {response.status_code} {response.text}")
                await asyncio.sleep(pause_s)


async def run_swaps(
    rest: str, rpc: str, key: str, names: Sequence[str], *, seconds: float, times: int, pause_s: float, clients: int
) -> tuple[Report, float, float]:
    """Return what was found, and the p99 in milliseconds before and during the changes."""
    begun = 0.0

    async def meanwhile() -> None:
        nonlocal begun
        begun = time.perf_counter()
        await swap(rest, key, names, times, pause_s)

    report = await put_under_load(rest, rpc, seconds, clients, known=names, meanwhile=meanwhile)
    parts: tuple[list[float], list[float]] = ([], [])
    for ended, ms in zip(report.ended, report.latencies_ms, strict=True):
        parts[ended > begun].append(ms)
    before, during = (statistics.quantiles(part, n=100)[98] for part in parts)
    return report, before, during


def models_memory(folders: Sequence[Path], number: int) -> int:
    """Return the setting in MiB that lets so many of the largest models, but not one more, be open."""
    bundles = [read_manifest(folder)[0].files.values() for folder in folders]
    entries = [Entry("", Path(), "", "", sum(file.num_bytes for file in files)) for files in bundles]
    sizes = sorted(Slot(entry).memory for entry in entries)
    return math.ceil((PROCESS_BYTES + sum(sizes[-number:])) / _MIB)


async def test_no_request_is_lost_while_models_change(
    small_bundle: Path, tiny_bundle: Path, start_server: Callable[..., Any], tmp_path: Path
) -> None:
    bundles = tmp_path / "bundles"
    bundles.mkdir()
    for name, folder in (("a", small_bundle), ("b", tiny_bundle)):
        (bundles / name).symlink_to(folder)
    key = add_key(tmp_path / "admins", "ann")
    server = start_server(
        "local", bundle="", bundles=bundles, admin_key_file=tmp_path / "admins", request_timeout_s=150
    )
    found = await run_swaps(server.rest, server.rpc, key, "ab", seconds=0.5, times=2, pause_s=0.2, clients=16)
    report = found[0]
    assert not report.errors, report
    assert {model[0] for model in report.models} == {"a", "b"}
    assert server.stop() == 0


async def test_models_that_do_not_fit_together_take_turns(
    small_bundle: Path, tiny_bundle: Path, start_server: Callable[..., Any]
) -> None:
    folders = {"a": small_bundle, "b": tiny_bundle}
    given = ",".join(f"{name}={folder}" for name, folder in folders.items())
    most = models_memory([*folders.values()], 1)
    server = start_server("local", bundle="", bundles=given, models_memory=most, request_timeout_s=150)
    report = await put_under_load(server.rest, server.rpc, 2, 8, names="ab")
    assert not report.errors, report
    assert {model[0] for model in report.models} == {"a", "b"}
    assert server.stop() == 0
    opened = [line for line in server.log.read_text().splitlines() if '"model opened"' in line]
    assert len(opened) > 2


def start(given: argparse.Namespace, run_folder: Path) -> tuple[subprocess.Popen[bytes], Path, str]:
    """Start a server of the bundles; return it, its log and the admin's key."""
    bundles, log = run_folder / "bundles", run_folder / "log"
    bundles.mkdir()
    folders = [Path(bundle.partition("=")[2]).resolve() for bundle in given.bundles]
    for bundle, folder in zip(given.bundles, folders, strict=True):
        (bundles / bundle.partition("=")[0]).symlink_to(folder)
    key = add_key(run_folder / "admins", "ann")
    environment = os.environ | {
        "MQAN_BUNDLES": str(bundles),
        "MQAN_ADMIN_KEY_FILE": str(run_folder / "admins"),
        "MQAN_HTTP_PORT": given.rest.rpartition(":")[2],
        "MQAN_GRPC_PORT": given.grpc.rpartition(":")[2],
    }
    if given.what == "memory":
        given.memory = models_memory(folders, len(folders) - 1)
        environment["MQAN_MODELS_MEMORY"] = str(given.memory)
        print(f"the server may take {given.memory} MiB")
    command = [sys.executable, "-m", "mqan_cli.main", "serve", *(["--ray"] if given.ray else [])]
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    deadline = time.monotonic() + _START_S
    while "mqan is ready" not in log.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            process.terminate()
            raise RuntimeError(f"the server is not ready: {log.read_text()[-3000:]}")
        time.sleep(0.2)
    return process, log, key


async def watch_memory(process: int, most_kib: list[int]) -> None:
    """Keep the most memory that a process has."""
    while True:
        most_kib[0] = max(most_kib[0], held_by(process).memory_kib)
        await asyncio.sleep(0.05)


async def measure(given: argparse.Namespace, process: int | None, log: Path | None, key: str) -> bool:
    """Print what was found; return whether it is as it must be."""
    names = [bundle.partition("=")[0] for bundle in given.bundles]
    if given.what == "swaps":
        report, before, during = await run_swaps(
            given.rest, given.grpc, key, names,
            seconds=given.seconds, times=given.times, pause_s=given.pause, clients=given.clients or 64,
        )  # fmt: skip
        print(f"{report}\n{dict(report.models)}")
        print(f"{given.times} times: p99 {before:.0f} ms before, {during:.0f} ms during: {during / before:.2f} of it")
        return not report.errors and during <= _MOST_SLOWER * before
    clients, few = given.clients or 32, names[:-1]
    calm = await put_under_load(given.rest, given.grpc, given.seconds / 10, clients, names=few)
    print(f"{' and '.join(few)}, which fit: {calm}")
    most_kib = [0]
    watching = asyncio.ensure_future(watch_memory(process, most_kib)) if process else None
    num_before = len(loads_of(log))
    report = await put_under_load(given.rest, given.grpc, given.seconds, clients, names=names)
    if watching:
        watching.cancel()
    loads = loads_of(log)[num_before:] or [0.0]
    longest, allowed = max(report.latencies_ms), max(loads) * 1000 + max(calm.latencies_ms)
    print(f"all in turn: {report}, {dict(report.models)}")
    print(f"{len(loads)} loads, median {statistics.median(loads):.2f} s, longest {max(loads):.2f} s")
    print(f"the server took {most_kib[0] / 1024:.0f} MiB at its most")
    print(f"the longest wait {longest:.0f} ms; the longest load and the longest wait without: {allowed:.0f} ms")
    return not report.errors and longest <= allowed and most_kib[0] <= given.memory * 1024


def loads_of(log: Path | None) -> list[float]:
    """Return the seconds of each time that a model was opened."""
    text = "" if log is None else log.read_text()
    return [json.loads(line)["s"] for line in re.findall(r'^\{.*"model opened".*\}$', text, re.MULTILINE)]


def main() -> int:
    """Measure, and say by the exit status whether all is as it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["swaps", "memory"])
    parser.add_argument("bundles", nargs="+", metavar="NAME[=DIR]")
    parser.add_argument("--ray", action="store_true", help="start the server on Ray Serve")
    parser.add_argument("--rest", default="", help="ask this server, and start none")
    parser.add_argument("--grpc", default="")
    parser.add_argument("--seconds", type=float, default=20.0, help="of load: before the changes, or in all")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--pause", type=float, default=0.5, help="seconds after each change")
    parser.add_argument("--clients", type=int)
    given = parser.parse_args()
    given.memory = math.inf  # of a server that others have started
    if given.rest:
        return 0 if asyncio.run(measure(given, None, None, os.environ.get("MQAN_ADMIN_KEY", ""))) else 1
    given.rest, given.grpc = "http://127.0.0.1:18120", "127.0.0.1:18121"
    with tempfile.TemporaryDirectory() as run_folder:
        process, log, key = start(given, Path(run_folder))
        try:
            return 0 if asyncio.run(measure(given, process.pid, log, key)) else 1
        finally:
            process.terminate()
            process.wait(timeout=90)


if __name__ == "__main__":
    sys.exit(main())
