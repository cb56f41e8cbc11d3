"""The Helm chart of plain servers asks Kubernetes and the server for what they have."""

import json
import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

import mqan_core
from mqan_serving.observability.metrics import Metrics
from mqan_serving.settings import Settings, load_settings

helm = pytest.importorskip("helm_python", reason="helm-python-sdk is not installed")

_EVERYTHING: dict[str, Any] = {
    "image": {"repository": "registry.example/mqan", "tag": "x"},
    "autoscaling": {"requestsInFlight": 16},
    "networkPolicy": {"from": [{"podSelector": {}}], "egress": [{"ports": [{"port": 53, "protocol": "UDP"}]}]},
    "extraVolumes": [{"name": "bundles", "persistentVolumeClaim": {"claimName": "bundles"}}],
    "extraVolumeMounts": [{"name": "bundles", "mountPath": "/bundles", "readOnly": True}],
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "k", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}


@pytest.fixture(scope="module")
def chart(repository: Path) -> Path:
    return repository / "deploy" / "helm" / "mqan"


def render(chart: Path, values: dict[str, Any] | None = None) -> dict[tuple[str, str], Any]:
    """Return the objects that Helm makes of the chart, by kind and name."""
    with helm.Chart.load(chart) as loaded:
        texts = loaded.render(values or {}, name="mqan", namespace="default").values()
    found = [document for text in texts for document in yaml.safe_load_all(text)]
    return {(document["kind"], document["metadata"]["name"]): document for document in found}


def pod_of(objects: dict[tuple[str, str], Any]) -> Any:
    return objects["Deployment", "mqan"]["spec"]["template"]["spec"]


def variables_of(objects: dict[tuple[str, str], Any]) -> dict[str, str]:
    (container,) = pod_of(objects)["containers"]
    found = {entry["name"]: entry["value"] for entry in container["env"]}
    assert len(found) == len(container["env"])
    return found


@pytest.mark.parametrize("values", [{}, _EVERYTHING, {"apiKeys": {"secret": ""}, "settings": {"metrics_port": None}}])
def test_kubernetes_knows_every_field(chart: Path, values: dict[str, Any]) -> None:
    told = [message for message in helm.lint(chart, values, strict=True)["messages"] if message["severity"] > 1]
    assert told == []
    objects = render(chart, values)
    kinds = {"Deployment", "Service", "HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy"}
    assert {kind for kind, _ in objects} == kinds
    for document in objects.values():
        kubernetes_validate.validate(document, "1.34", strict=True)


def test_every_setting_can_be_given(chart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = yaml.safe_load((chart / "values.yaml").read_text())["settings"]
    assert named.keys() == Settings.model_fields.keys()
    changed = {
        "bundles": "/bundles",
        "allowed_hosts": ["answers.example", "other.example"],
        "cors_origins": "https://app.example",
        "canary_share": 0.25,
        "models_memory": 4096,
        "max_request_bytes": 8 * 1024 * 1024,
        "request_timeout_s": 45.5,
        "reflection": False,
        "metrics_need_key": True,
        "api_key_file": "/run/secrets/mqan/keys",
    }
    wanted = {**Settings().model_dump(mode="json"), **named, **changed}
    given = {name: value for name, value in wanted.items() if value is not None}
    found = variables_of(render(chart, {"settings": given}))
    assert found.keys() == {f"MQAN_{name.upper()}" for name in given}
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    assert load_settings() == Settings(**given)


def test_keys_come_from_a_secret(chart: Path) -> None:
    objects = render(chart, {"settings": {"api_key_file": "/elsewhere"}})
    pod = pod_of(objects)
    (mounted,) = [mount for mount in pod["containers"][0]["volumeMounts"] if mount["name"] == "keys"]
    (secret,) = [volume["secret"] for volume in pod["volumes"] if volume["name"] == "keys"]
    assert mounted["readOnly"]
    assert variables_of(objects)["MQAN_API_KEY_FILE"] == f"{mounted['mountPath']}/{secret['items'][0]['path']}"
    assert secret["secretName"] == "mqan-keys"
    without = render(chart, {"apiKeys": {"secret": ""}})
    assert "MQAN_API_KEY_FILE" not in variables_of(without)
    assert [volume["name"] for volume in pod_of(without)["volumes"]] == ["tmp"]


def test_objects_fit_each_other_and_the_server(chart: Path, repository: Path) -> None:
    objects = render(chart, {"autoscaling": {"requestsInFlight": 16}})
    (container,) = pod_of(objects)["containers"]
    template = objects["Deployment", "mqan"]["spec"]["template"]
    labels = template["metadata"]["labels"]
    for selector in (
        objects["Deployment", "mqan"]["spec"]["selector"]["matchLabels"],
        objects["PodDisruptionBudget", "mqan"]["spec"]["selector"]["matchLabels"],
        objects["NetworkPolicy", "mqan"]["spec"]["podSelector"]["matchLabels"],
        *(objects["Service", name]["spec"]["selector"] for name in ("mqan", "mqan-grpc")),
    ):
        assert selector == labels
    assert container["image"] == f"REGISTRY/mqan:{mqan_core.__version__}"
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    variables = variables_of(objects)
    assert {name: str(port) for name, port in ports.items()} == {
        name: variables[f"MQAN_{name.upper()}_PORT"] for name in ("http", "grpc", "metrics")
    }
    monitor = yaml.safe_load((repository / "deploy" / "prometheus" / "podmonitor.yaml").read_text())["spec"]
    assert monitor["selector"]["matchLabels"].items() <= labels.items()
    assert monitor["podMetricsEndpoints"][0]["port"] in ports
    paths = json.loads((repository / "protos" / "openapi.json").read_text())["paths"]
    probes = [container[f"{name}Probe"]["httpGet"] for name in ("startup", "readiness", "liveness")]
    assert [(probe["path"] in paths, probe["port"]) for probe in probes] == [(True, "http")] * 3
    drain_s = float(variables["MQAN_DRAIN_DELAY_S"]) + float(variables["MQAN_DRAIN_TIMEOUT_S"])
    assert template["spec"]["terminationGracePeriodSeconds"] >= drain_s + 2
    scaler = objects["HorizontalPodAutoscaler", "mqan"]["spec"]
    assert scaler["scaleTargetRef"]["name"] == "mqan"
    cpu, in_flight = scaler["metrics"]
    assert cpu["resource"]["name"] == "cpu"
    assert re.search(rf"^{in_flight['pods']['metric']['name']} ", Metrics().render().decode(), re.MULTILINE)


def test_pods_are_confined(chart: Path) -> None:
    objects = render(chart)
    pod = pod_of(objects)
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    policy = objects["NetworkPolicy", "mqan"]["spec"]
    assert (policy["policyTypes"], policy["egress"]) == (["Ingress", "Egress"], [])
    (anybody,) = [rule for rule in policy["ingress"] if "from" not in rule]
    assert [port["port"] for port in anybody["ports"]] == ["http", "grpc"]
