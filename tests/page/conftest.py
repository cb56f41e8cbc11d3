"""Headless Chromium, where it and Node are found, and a server to look at."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Browse = Callable[..., Any]


@pytest.fixture(scope="session")
def node_packages(repository: Path) -> Callable[[str], Path]:
    """Finds the folder of a package of Node whose dependencies are installed, or skips."""

    def find(name: str) -> Path:
        folder = repository / "clients" / name
        if shutil.which("node") is None:
            pytest.skip("Node is not installed")
        if not (folder / "node_modules").is_dir():
            pytest.skip(f"the packages of clients/{name} are not installed: run `npm ci` there")
        return folder

    return find


@pytest.fixture(scope="session")
def page_server(start_server: Any) -> str:
    """URL of a server of the default bundle."""
    url: str = start_server("local").rest
    return url


@pytest.fixture(scope="session")
def browse(node_packages: Callable[[str], Path]) -> Browse:
    """Runs a scenario of ``scenarios.mjs`` or ``editing.mjs`` in a browser and returns what it returns."""
    node_packages("page")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")

    def run(name: str, url: str, **given: Any) -> Any:
        script = Path(__file__).with_name("browse.mjs")
        command = ["node", str(script), chromium, name, url, json.dumps(given)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
