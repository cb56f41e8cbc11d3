"""Servers start fast and small, say how to use them, refuse to start on wrong settings, and stop on signals."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.processes import PROXY, descendants, wait_for_end
from tests.timing import wait_until


def test_local_server_is_small_and_says_how_to_use_it(start_server: Any) -> None:
    server = start_server("local")
    assert server.start_s < 40  # about 1 s on a free core
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    peak_kib = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
    assert peak_kib < 300 * 1024
    lines = server.log.read_text().splitlines()
    curl = next(line for line in lines if "curl http" in line)
    words = shlex.split(curl)
    name, _, value = words[3].partition(": ")
    response = httpx2.post(words[1], content=words[words.index("-d") + 1], headers={name: value}, trust_env=False)
    assert response.status_code == 200
    ask = next(line for line in lines if "mqan ask" in line)
    asked = subprocess.run(ask, shell=True, capture_output=True, text=True)  # as pasted, in this folder
    assert asked.returncode == 0, asked.stderr
    assert "330 m" in asked.stdout
    assert httpx2.get(lines[lines.index(curl) - 1].strip(), trust_env=False).status_code == 200
    assert server.rpc in lines[lines.index(curl) - 2]
    assert server.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_local_server_stops_on_signals(start_server: Any, number: signal.Signals) -> None:
    server = start_server("local", drain_delay_s=0)
    server.process.send_signal(number)
    assert server.process.wait(50) == 0


@pytest.mark.parametrize("kind", ["local", "ray"])
def test_a_second_signal_waits_for_nothing(start_server: Any, kind: str) -> None:
    server = start_server(kind, drain_delay_s=60)
    below = descendants(server.process.pid, "")
    server.process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        server.process.wait(2)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(50) != 0
    wait_for_end(below)


@pytest.fixture
def serving(free_ports: Any, tmp_path: Path) -> Iterator[Callable[..., "tuple[subprocess.Popen[bytes], Path]"]]:
    """Starts ``mqan serve`` with settings, after other code or by a shell; gives it and its log, and ends it."""
    started = []

    def start(
        *arguments: str, before: str = "", shell: str = 'exec "$@"', **settings: object
    ) -> "tuple[subprocess.Popen[bytes], Path]":
        http_port, grpc_port = free_ports(2)
        given = {"http_port": http_port, "grpc_port": grpc_port, **settings}
        command = [sys.executable, "-c", before + "from mqan_cli.main import app; app()", "serve", *arguments]
        log = tmp_path / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["sh", "-c", shell, "sh", *command],
                env=os.environ | {f"MQAN_{name.upper()}": str(value) for name, value in given.items()},
                stdout=output,
                stderr=output,
            )
        started.append(process)
        return process, log

    yield start
    for process in started:
        process.kill()
        process.wait()


_NO_CHECK = """
import os
from mqan_serving import main

make = main.ray_environment

def make_and_import(*arguments):
    os.environ.update(make(*arguments))
    import mqan_serving.ray_serve.app
    mqan_serving.ray_serve.app._check_gpus = lambda settings: None
    return {}

main.ray_environment = make_and_import
"""


@pytest.mark.parametrize("name", ["gcs_server", PROXY])
def test_a_signal_ends_a_start_that_would_not_end(bundle_folder: Path, serving: Any, name: str) -> None:
    process, _ = serving("--ray", before=_NO_CHECK, num_gpus=64, bundle=bundle_folder)
    wait_until(lambda: bool(descendants(process.pid, name)) or process.poll() is not None, 120)
    assert process.poll() is None
    time.sleep(1)
    below = descendants(process.pid, "")
    process.send_signal(signal.SIGTERM)
    assert process.wait(90) == 0  # about 1 s, and 20 s where four others want both cores
    if name == PROXY:  # before, Ray's agents notice after a minute that the rest has gone
        wait_for_end(below)


_START = """
import time
from mqan_serving import main

def open_slowly(*given):
    print("opening", flush=True)
    time.sleep(60)

main.read_catalog = open_slowly
"""

_LOSE = """
import signal

class Loses:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

def make_import_and_lose(*arguments):
    make_and_import(*arguments)
    import mqan_serving.ray_serve.app
    mqan_serving.ray_serve.app._check_gpus = lambda settings: Loses()
    return {}

main.ray_environment = make_import_and_lose
"""


def test_a_signal_at_a_moment_when_python_drops_exceptions_ends_a_start(bundle_folder: Path, serving: Any) -> None:
    process, log = serving("--ray", before=_NO_CHECK + _LOSE, num_gpus=64, bundle=bundle_folder)
    assert process.wait(150) == 0, log.read_text()


def test_a_signal_ends_the_start_of_the_first_process_of_a_container(bundle_folder: Path, serving: Any) -> None:
    """The kernel gives that process no signal that it has not asked for, as if it had been told to ignore them."""
    process, log = serving("--ray", before=_START, shell='trap "" TERM; exec "$@"', bundle=bundle_folder)
    wait_until(lambda: "opening\n" in log.read_text())
    process.send_signal(signal.SIGTERM)
    assert process.wait(50) != 0


_BREAK = """
from mqan_core.errors import EngineFailedError
from mqan_runtime.engine import Engine

start = Engine.start_in_turns

def fail(self, requests, *arguments):
    if any(request.num_question_tokens == 7 for request in requests):
        raise EngineFailedError("the device is gone")
    return start(self, requests, *arguments)

Engine.start_in_turns = fail
"""


def test_local_server_whose_engine_has_failed_ends(start_server: Any) -> None:
    """So that whoever watches over the process can start it again."""
    server = start_server("local", before=_BREAK, drain_delay_s=0)
    body = {"context": "The tower is 330 m tall.", "question": "one two three four five six seven"}
    response = httpx2.post(f"{server.rest}/v1/answer", json=body, trust_env=False)
    assert response.status_code == 503
    assert server.process.wait(50) == 1
    assert "mqan: the engine has failed; start the server again" in server.log.read_text()


def test_a_server_whose_ray_has_died_ends(start_server: Any) -> None:
    server = start_server("ray")
    (raylet,) = (process for process in descendants(server.process.pid, "raylet"))
    below = descendants(server.process.pid, "")
    os.kill(raylet, signal.SIGKILL)
    assert server.process.wait(60) == 1  # Ray itself takes some 15 s to see it
    assert "mqan: Ray on this machine has died; start the server again" in server.log.read_text()
    wait_for_end(below)


def test_gpus_that_are_not_there_are_named(bundle_folder: Path, serving: Any) -> None:
    """Ray would wait for them without an end."""
    process, log = serving("--ray", num_gpus=64, bundle=bundle_folder)
    assert process.wait(150) == 1
    assert "setting num_gpus (MQAN_NUM_GPUS): 1 replica(s) need 64 GPU(s)" in log.read_text()


@pytest.mark.parametrize("mode", [["--ray"], []], ids=["ray", "local"])
def test_wrong_bundle_is_reported_at_once(tmp_path: Path, serving: Any, mode: list[str]) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    process, log = serving("--bundle", str(tmp_path), *mode)
    assert process.wait(50) != 0
    assert "manifest.json" in log.read_text()
