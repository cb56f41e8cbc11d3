"""The image and the compose file: what is in them is named by its hash, and what runs in them is confined."""

import http.client
import re
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from mqan_serving import probe

_HASHED = re.compile(r"([a-z0-9.-]+)==(\S+) \\\n    --hash=sha256:([0-9a-f]{64})")


@pytest.fixture(scope="module")
def dockerfile(repository: Path) -> str:
    return (repository / "Dockerfile").read_text()


@pytest.fixture(scope="module")
def services(repository: Path) -> dict[str, dict[str, Any]]:
    document: dict[str, dict[str, Any]] = yaml.safe_load((repository / "deploy" / "compose.yaml").read_text())
    return document["services"]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def hashed(repository: Path, extra: str) -> dict[str, str]:
    """Return the version of each package of a file of requirements; nothing else may be in it."""
    comment, _, text = (repository / "deploy" / f"requirements-{extra}.txt").read_text().partition("\n")
    assert comment == f"# Made by deploy/hash_requirements.py {extra}, for Python 3.11 on Linux x86-64."
    assert _HASHED.sub("", text).strip() == ""
    found = _HASHED.findall(text)
    versions = {normal(name): version for name, version, _ in found}
    assert len(versions) == len(found) == len({sha256 for _, _, sha256 in found})
    return versions


def test_the_base_is_named_by_its_digest(dockerfile: str) -> None:
    bases = re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)
    stages = set(re.findall(r"^FROM \S+ AS (\S+)", dockerfile, re.MULTILINE))
    outside = [base for base in bases if base not in stages]
    assert len(outside) == 1
    assert re.fullmatch(r"python:3\.11\.\d+-slim-\w+@sha256:[0-9a-f]{64}", outside[0])


@pytest.mark.parametrize("extra", ["cpu", "ray", "gpu"])
def test_packages_are_installed_by_their_hashes(dockerfile: str, repository: Path, extra: str) -> None:
    stage = re.split(r"^FROM ", dockerfile, flags=re.MULTILINE)[["gpu", "ray", "cpu"].index(extra) + 2]
    installs = re.findall(r"pip install (?:--no-compile )?([^&\n\\]+?) *\\?$", stage, re.MULTILINE)
    assert installs == [
        f"--require-hashes --requirement deploy/requirements-{extra}.txt",
        "--no-deps --no-build-isolation --editable .",  # the project itself: nothing is downloaded
    ]
    assert f"!deploy/requirements-{extra}.txt" in (repository / ".dockerignore").read_text().splitlines()


@pytest.mark.parametrize(("image", "extra"), [("cpu", "cpu"), ("ray", "cpu"), ("gpu", "gpu")])
def test_hashed_versions_are_those_that_are_tested(repository: Path, image: str, extra: str) -> None:
    versions = hashed(repository, image)
    pins: dict[str, str] = {}
    for name in ("constraints.txt", "constraints-gpu.txt"):
        found = re.findall(r"^([\w.-]+)==(\S+)$", (repository / name).read_text(), re.MULTILINE)
        pins |= {normal(package): version for package, version in found}
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(extras["serve"] if image != "cpu" else ()), *extras[extra]]
    assert {normal(re.split(r"[\[<>=,]", name)[0]) for name in wanted} <= versions.keys()
    build = {"editables"}  # what builds is in no extra, so not tested
    assert versions.keys() - build <= pins.keys()
    assert {name: pins[name] for name in versions.keys() - build} == {
        n: v for n, v in versions.items() if n not in build
    }
    assert ("ray" in versions) == (image != "cpu")
    assert ("onnxruntime" in versions, "onnxruntime-gpu" in versions) == (extra == "cpu", extra == "gpu")


def test_every_service_is_confined(services: dict[str, dict[str, Any]]) -> None:
    assert set(services) == {"mqan", "prometheus", "grafana"}
    for name, service in services.items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert re.fullmatch(r"\d+[mg]", service["mem_limit"]), name
        assert 0 < service["pids_limit"] <= 256, name
        assert service["cpus"], name
        assert all(re.fullmatch(r"/\S+:size=\d+m", place) for place in service.get("tmpfs", [])), name


def test_nobody_can_log_in_to_grafana(services: dict[str, dict[str, Any]]) -> None:
    """Not by admin and admin either: there is no account, and who looks has the least of roles."""
    environment = services["grafana"]["environment"]
    assert environment["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert environment["GF_AUTH_DISABLE_LOGIN_FORM"] == "true"
    assert environment["GF_AUTH_BASIC_ENABLED"] == "false"
    assert environment["GF_AUTH_ANONYMOUS_ENABLED"] == "true"
    assert environment.get("GF_AUTH_ANONYMOUS_ORG_ROLE", "Viewer") == "Viewer"


def test_grafana_finds_its_dashboards(services: dict[str, dict[str, Any]], repository: Path) -> None:
    file = repository / "deploy" / "grafana" / "provisioning" / "dashboards" / "mqan.yaml"
    (provider,) = yaml.safe_load(file.read_text())["providers"]
    assert f"./grafana/dashboards:{provider['options']['path']}:ro" in services["grafana"]["volumes"]


class Health(BaseHTTPRequestHandler):
    """Answers as the server's health does."""

    status = 200

    def do_GET(self) -> None:  # the library's spelling
        self.send_response(self.status if self.path == "/health/ready" else 404)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Server6(ThreadingHTTPServer):
    address_family = socket.AF_INET6


@pytest.fixture
def health(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    """An address, and the port of a server that listens there only."""
    host = request.param
    kind = Server6 if ":" in host else ThreadingHTTPServer
    with kind((host, 0), Health) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield host, server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("health", ["0.0.0.0", "127.0.0.1", "127.0.0.2", "::", "::1"], indirect=True)
def test_health_is_asked_where_the_server_listens(health: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    host, port = health
    monkeypatch.setenv("MQAN_HOST", host)
    monkeypatch.setenv("MQAN_HTTP_PORT", str(port))
    assert probe.main() == 0
    monkeypatch.delenv("MQAN_HTTP_PORT")
    monkeypatch.setenv("mqan_http_port", str(port))  # names are read in any case, as by the server
    assert probe.main() == 0
    monkeypatch.setattr(Health, "status", 503)
    assert probe.main() == 1


@pytest.mark.parametrize("health", ["127.0.0.1"], indirect=True)
def test_an_empty_variable_is_not_set(
    health: tuple[str, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MQAN_HOST", "")
    monkeypatch.setenv("MQAN_HTTP_PORT", str(health[1]))
    assert probe.main() == 0
    monkeypatch.setenv("MQAN_HTTP_PORT", "")

    def refuse(host: str, port: int, **_: Any) -> Any:
        raise ConnectionRefusedError(f"{host} {port} is not asked here")

    monkeypatch.setattr(http.client, "HTTPConnection", refuse)
    assert probe.main() == 1
    assert capsys.readouterr().err == "127.0.0.1, port 8000: 127.0.0.1 8000 is not asked here\n"


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", None), ("no such host", "80"), ("127.0.0.1", "http")])
def test_an_address_where_nobody_listens_is_not_well(
    host: str, port: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        free = str(closed.getsockname()[1])
    monkeypatch.setenv("MQAN_HOST", host)
    monkeypatch.setenv("MQAN_HTTP_PORT", port or free)
    assert probe.main() == 1
    assert capsys.readouterr().err.startswith(f"{host}, port {port or free}: ")


def test_the_image_runs_this_probe(dockerfile: str) -> None:
    assert 'CMD ["python", "-m", "mqan_serving.probe"]' in dockerfile
    command = [sys.executable, "-c", "import sys, mqan_serving.probe; print(*sys.modules)"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert not {"pydantic", "fastapi", "numpy", "ray"} & set(loaded), "it runs every ten seconds"
