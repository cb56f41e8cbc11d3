"""Servers start fast and small, say how to use them, refuse to start on wrong settings, and stop without loss."""

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

BODY = {"context": "The kettle is in the kitchen.", "question": "Where is the kettle?", "max_answer_tokens": 3}


def test_local_server_is_small_and_says_how_to_use_it(start_server: Any) -> None:
    server = start_server("local")
    assert server.start_s < 10  # about 1 s on a free core
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    peak_kib = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
    assert peak_kib < 300 * 1024
    curl = next(line for line in server.log.read_text().splitlines() if "curl http" in line)
    words = shlex.split(curl[curl.index("curl ") :])
    name, _, value = words[3].partition(": ")
    response = httpx2.post(words[1], content=words[words.index("-d") + 1], headers={name: value}, trust_env=False)
    assert response.status_code == 200
    assert server.rpc in server.log.read_text()
    assert server.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_local_server_stops_on_signals(start_server: Any, number: signal.Signals) -> None:
    server = start_server("local", drain_delay_s=0)
    server.process.send_signal(number)
    assert server.process.wait(20) == 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["local", pytest.param("ray", marks=pytest.mark.slow)])
def test_nothing_in_progress_is_lost_when_a_server_stops(start_server: Any, kind: str) -> None:
    server = start_server(kind, drain_delay_s=1)
    outcomes: list[tuple[float, object]] = []
    over = threading.Event()

    def call() -> None:
        with httpx2.Client(base_url=server.rest, trust_env=False, timeout=30) as client:
            while not over.is_set():
                begun = time.perf_counter()
                try:
                    outcomes.append((begun, client.post("/v1/answer", json=BODY).status_code))
                except httpx2.TransportError as error:
                    outcomes.append((begun, type(error).__name__))
                    time.sleep(0.05)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(1.5)
    asked = time.perf_counter()
    assert server.stop() == 0, server.log.read_text()[-3000:]
    over.set()
    for thread in threads:
        thread.join()
    before = [outcome for begun, outcome in outcomes if begun < asked]
    assert before.count(200) > 8
    assert set(before) <= {200, 503}, "a request that was in progress was lost"
    during = [outcome for begun, outcome in outcomes if asked <= begun < asked + 0.8]
    assert 503 in during
    assert set(during) <= {200, 503}, "a request during the drain was not told to go elsewhere"


@pytest.mark.parametrize("mode", [[], ["--local"]], ids=["ray", "local"])
def test_wrong_bundle_is_reported_at_once(tmp_path: Path, mode: list[str]) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    code = "from mqan_cli.main import app; app()"
    environment = os.environ | {"MQAN_HTTP_PORT": "18431", "MQAN_GRPC_PORT": "18432"}
    begun = time.perf_counter()
    finished = subprocess.run(
        [sys.executable, "-c", code, "serve", "--bundle", str(tmp_path), *mode],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert time.perf_counter() - begun < 20
    assert finished.returncode != 0
    assert "manifest.json" in finished.stderr
