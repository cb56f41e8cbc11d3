"""The TypeScript client and the page's sources: types, the client's own tests, and an installed package."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FindPackages = Callable[[str], Path]


def run(folder: Path, *command: str, **environment: str) -> str:
    """Run a program of a package's and return what it printed."""
    path = os.pathsep.join([str(folder / "node_modules" / ".bin"), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, **environment}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("package", ["page", "typescript"])
def test_types_hold(node_packages: FindPackages, package: str) -> None:
    node_packages("typescript")  # the page's sources import the client's
    run(node_packages(package), "tsc", "--noEmit")


def test_types_are_those_of_the_contract(node_packages: FindPackages, tmp_path: Path) -> None:
    folder = node_packages("typescript")
    made = tmp_path / "schema.ts"
    run(folder, "openapi-typescript", "../../protos/openapi.json", "--output", str(made))
    assert made.read_text() == (folder / "src/schema.ts").read_text(), "run `npm run generate` in clients/typescript"


def test_the_client_against_a_server(node_packages: FindPackages, page_server: str) -> None:
    shown = run(node_packages("typescript"), "vitest", "run", "--reporter=verbose", MQAN_URL=page_server)
    assert "a real server" in shown
    assert "skipped" not in shown


def test_the_built_package_runs_the_code_of_the_page(
    node_packages: FindPackages, browse: Any, page_server: str, tmp_path: Path
) -> None:
    folder = node_packages("typescript")
    installed = tmp_path / "node_modules" / "@mqan" / "client"
    installed.mkdir(parents=True)
    run(folder, "tsc", "--project", "tsconfig.build.json", "--outDir", str(installed / "dist"))
    (installed / "package.json").write_text((folder / "package.json").read_text())
    program = tmp_path / "ask.mjs"
    code = browse("code", page_server)
    program.write_text(code["TypeScript"])
    answer = json.loads(run(tmp_path, "sh", "-c", code["curl"]))["answer"]
    assert answer
    assert answer in run(tmp_path, "node", str(program))
