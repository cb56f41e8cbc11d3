"""What operators deploy asks for metrics, settings and files that exist."""

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from mqan_core.answer.types import Source
from mqan_serving.contract.model import Model
from mqan_serving.observability.metrics import CODES, METHODS, TRANSPORTS, Metrics
from mqan_serving.settings import Settings

_SOURCES = tuple(source.value for source in Source)
_LABELS = {"code": CODES, "method": METHODS, "transport": TRANSPORTS, "source": _SOURCES}


@pytest.fixture(scope="module")
def deploy(repository: Path) -> Path:
    return repository / "deploy"


@pytest.fixture(scope="module")
def sample_names() -> set[str]:
    """Names of all samples of a server that has been asked."""
    metrics = Metrics()
    limits: Any = SimpleNamespace(max_concurrent_requests=1)
    metrics.describe_server(Model("n", "v", "s", "p", limits, 0, 0, ()))
    metrics.count_key("k", is_limited=False)
    return set(re.findall(r"^(mqan_\w+)", metrics.render().decode(), re.MULTILINE))


def rules_of(deploy: Path) -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((deploy / "prometheus" / "alerts.yml").read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def panels_of(deploy: Path) -> list[dict[str, Any]]:
    panels: list[dict[str, Any]] = json.loads((deploy / "grafana" / "dashboards" / "mqan.json").read_text())["panels"]
    return panels


def expressions(deploy: Path) -> list[str]:
    of_panels = [target["expr"] for panel in panels_of(deploy) for target in panel["targets"]]
    return [*of_panels, *(rule["expr"] for rule in rules_of(deploy))]


def test_every_metric_exists_and_every_one_is_shown(deploy: Path, sample_names: set[str]) -> None:
    used = {name for expression in expressions(deploy) for name in re.findall(r"\bmqan_\w+", expression)}
    assert used - sample_names == set()
    families = {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in sample_names}
    assert families - {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in used} == set()


def test_every_label_can_have_the_value(deploy: Path) -> None:
    found = 0
    for expression in expressions(deploy):
        for label, values in re.findall(r'\b(code|method|transport|source)=~?"([^"]*)"', expression):
            assert set(values.split("|")) <= set(_LABELS[label]), expression
            found += 1
    assert found > 10


def test_every_alert_and_metric_is_explained(deploy: Path, repository: Path, sample_names: set[str]) -> None:
    text = (repository / "docs" / "operations.md").read_text()
    for rule in rules_of(deploy):
        assert f"`{rule['alert']}`" in text
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"]["summary"].endswith(".")
    told = set(re.findall(r"`(mqan_\w+)", text))
    assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in sample_names} == told


def test_settings_in_documents_exist(deploy: Path, repository: Path) -> None:
    known = {f"MQAN_{name.upper()}" for name in Settings.model_fields} | {
        *("MQAN_API_KEY", "MQAN_ADMIN_KEY", "MQAN_SERVER")  # of clients
    }
    files = [repository / "docs" / "operations.md", *(path for path in deploy.rglob("*") if path.is_file())]
    named = {name for path in files for name in re.findall(r"\bMQAN_[A-Z_]*[A-Z]", path.read_text())}
    assert len(named) > 10
    assert named - known == set()
    application = yaml.safe_load((deploy / "serve.yaml").read_text())["applications"][0]
    assert application["args"].keys() <= Settings.model_fields.keys()


def test_compose_finds_its_files(deploy: Path) -> None:
    services = yaml.safe_load((deploy / "compose.yaml").read_text())["services"]
    for service in services.values():
        for volume in service.get("volumes", []):
            assert (deploy / volume.split(":")[0]).is_dir(), volume
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), "nothing is published to the network by default"
    assert (deploy / services["mqan"]["build"] / "Dockerfile").is_file()
    prometheus = yaml.safe_load((deploy / "prometheus" / "prometheus.yml").read_text())
    (scrape,) = prometheus["scrape_configs"]
    assert scrape["job_name"] == "mqan"
    for expression in expressions(deploy):
        assert set(re.findall(r'job="(\w+)"', expression)) <= {"mqan"}
    assert [(deploy / "prometheus" / name).is_file() for name in prometheus["rule_files"]] == [True]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_rules_fire_when_they_should(deploy: Path) -> None:
    cases = Path(__file__).with_name("alerts.yml")
    for arguments in (
        ["check", "config", str(deploy / "prometheus" / "prometheus.yml")],
        ["test", "rules", str(cases)],
    ):
        done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_unit_of_systemd_drains_and_has_files_for_its_connections(deploy: Path) -> None:
    parsed = configparser.ConfigParser(strict=True, interpolation=None)
    parsed.read_string((deploy / "systemd" / "mqan.service").read_text())
    service, settings = parsed["Service"], Settings()
    assert service["Type"] == "exec", "the server does not notify systemd"
    assert int(service["TimeoutStopSec"]) >= settings.drain_delay_s + settings.drain_timeout_s + 2
    assert int(service["LimitNOFILE"]) >= 2 * settings.max_connections + 100
    assert service["DynamicUser"] == service["PrivateTmp"] == "yes"
    assert service["ProtectSystem"] == "strict"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_knows_every_line(deploy: Path, tmp_path: Path) -> None:
    other = tmp_path / "mqan.service"
    other.write_text((deploy / "systemd" / "mqan.service").read_text().replace("/opt/mqan/bin/mqan", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(other)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
