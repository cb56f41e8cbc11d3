"""Headless Chromium, where it and Node are found, and a server to look at."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
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
def browse(node_packages: Callable[[str], Path]) -> Iterator[Browse]:
    """Runs a scenario of one of the scripts here in a browser and returns what it returns."""
    node_packages("page")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    script = Path(__file__).with_name("browse.mjs")
    with subprocess.Popen(
        ["node", str(script), chromium], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, told = process.stdin, process.stdout

        def run(name: str, url: str, **given: Any) -> Any:
            asked.write(json.dumps({"name": name, "url": url, "given": given}) + "\n")
            line = told.readline()
            assert line, "the browser has ended; its output says why"
            done = json.loads(line)
            assert "error" not in done, done["error"]
            return done["result"]

        yield run
        asked.close()
        assert process.wait(60) == 0
