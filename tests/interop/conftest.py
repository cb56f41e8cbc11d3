"""Clients of others in an environment of their own, which ``make interop`` makes, and servers for them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mqan_serving.keys import add_key

PROGRAMS = Path(__file__).parent / "programs"
Run = Callable[..., str]
Interpreter = Callable[[str], Path]


@pytest.fixture(scope="session")
def interpreter() -> Interpreter:
    """Finds the Python that has a package, or skips."""
    python = Path(os.environ.get("MQAN_INTEROP") or Path(sys.prefix) / "interop") / "bin" / "python"
    code = "from importlib.metadata import distributions as d; print(*(one.name for one in d()), sep='\\n')"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True).stdout if python.exists() else ""
    installed = set(found.split())

    def find(package: str) -> Path:
        if package not in installed:
            pytest.skip(f"{package} is not installed: run `make interop`")
        return python

    return find


@pytest.fixture(scope="session")
def run() -> Run:
    """Runs a command without proxies and returns what it printed."""

    def run(command: Sequence[str | Path], cwd: Path = PROGRAMS) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        environment.pop("PYTHONPATH", None)
        ended = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)
        assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
        return ended.stdout

    return run


@pytest.fixture(scope="session")
def ask(interpreter: Interpreter, run: Run) -> Callable[..., Any]:
    """Runs a program of ``programs/`` that needs a package and returns what it told."""

    def ask(package: str, program: str, *arguments: str) -> Any:
        return json.loads(run([interpreter(package), PROGRAMS / program, *arguments]))

    return ask


@pytest.fixture(scope="session")
def node() -> str:
    """The command that runs the clients of Node, or a skip."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node is not installed")
    if not (PROGRAMS.parent / "node_modules").is_dir():
        pytest.skip("the packages of tests/interop are not installed: run `make interop`")
    return found


@pytest.fixture(scope="session")
def default_bundle(repository: Path) -> Path:
    """The default model, which answers rightly."""
    return repository / "serving" / "bundles" / "default"


@pytest.fixture(scope="session")
def server(start_server: Callable[..., Any], default_bundle: Path) -> Any:
    """A server of the default model that asks for no key."""
    return start_server("local", bundle=default_bundle)


@pytest.fixture(scope="session")
def locked_server(
    start_server: Callable[..., Any], default_bundle: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, str]:
    """A server of the default model that asks for a key, and the key."""
    file = tmp_path_factory.mktemp("keys") / "keys"
    key = add_key(file, "client")
    return start_server("local", bundle=default_bundle, api_key_file=file), key
