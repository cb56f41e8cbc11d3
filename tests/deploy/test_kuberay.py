"""The Kubernetes manifest asks Ray Serve, the image and the server for what they have."""

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from ray.serve.schema import ServeDeploySchema

import mqan_core
from mqan_serving.ray_serve.app import APP_NAME, GRPC_SERVICERS
from mqan_serving.settings import Settings

# Those of KubeRay's API reference, ray.io/v1 (docs/reference/api.md of ray-project/kuberay), that we may want.
_SERVICE_FIELDS: dict[str, type] = {
    "serveConfigV2": str, "rayClusterConfig": dict, "serveService": dict, "upgradeStrategy": dict,
    "excludeHeadPodFromServeSvc": bool,
}  # fmt: skip
_CLUSTER_FIELDS: dict[str, type] = {
    "rayVersion": str, "enableInTreeAutoscaling": bool, "autoscalerOptions": dict, "gcsFaultToleranceOptions": dict,
    "authOptions": dict, "headServiceAnnotations": dict, "headGroupSpec": dict, "workerGroupSpecs": list,
    "suspend": bool,
}  # fmt: skip
_AUTOSCALER_FIELDS: dict[str, type] = {"resources": dict, "securityContext": dict, "env": list, "volumeMounts": list}
_HEAD_FIELDS: dict[str, type] = {"template": dict, "rayStartParams": dict, "headService": dict, "serviceType": str}
_WORKER_FIELDS: dict[str, type] = {
    "groupName": str, "replicas": int, "minReplicas": int, "maxReplicas": int, "numOfHosts": int,
    "idleTimeoutSeconds": int, "rayStartParams": dict, "template": dict,
}  # fmt: skip


@pytest.fixture(scope="module")
def documents(repository: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((repository / "deploy" / "kuberay.yaml").read_text()))


@pytest.fixture(scope="module")
def config(documents: list[dict[str, Any]]) -> ServeDeploySchema:
    return ServeDeploySchema(**yaml.safe_load(documents[0]["spec"]["serveConfigV2"]))


@pytest.fixture(scope="module")
def templates(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of the pods: the head's, then the workers'."""
    cluster = documents[0]["spec"]["rayClusterConfig"]
    (workers,) = cluster["workerGroupSpecs"]
    return [cluster["headGroupSpec"]["template"], workers["template"]]


@pytest.fixture(scope="module")
def containers(templates: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    pods = [template["spec"] for template in templates]
    assert all(pod["securityContext"]["runAsNonRoot"] for pod in pods)
    return {container["name"]: container for pod in pods for container in pod["containers"]}


def test_fields_are_those_that_kuberay_has(documents: list[dict[str, Any]]) -> None:
    assert (documents[0]["apiVersion"], documents[0]["kind"]) == ("ray.io/v1", "RayService")
    service = documents[0]["spec"]
    cluster = service["rayClusterConfig"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    parts: list[tuple[dict[str, Any], dict[str, type]]] = [
        (service, _SERVICE_FIELDS),
        (cluster, _CLUSTER_FIELDS),
        (cluster["autoscalerOptions"], _AUTOSCALER_FIELDS),
        (groups[0], _HEAD_FIELDS),
        *((workers, _WORKER_FIELDS) for workers in groups[1:]),
    ]
    for part, fields in parts:
        assert {name: type(value) for name, value in part.items()}.items() <= fields.items()
    assert all(isinstance(value, str) for group in groups for value in group["rayStartParams"].values())


def test_kubernetes_own_schemas_hold(documents: list[dict[str, Any]], templates: list[dict[str, Any]]) -> None:
    """Of the pods, with the autoscaler in the head's, the service and the policies; no field is unknown."""
    autoscaler = {
        "name": "autoscaler",
        "image": "image",
        **documents[0]["spec"]["rayClusterConfig"]["autoscalerOptions"],
    }
    head = {**templates[0], "spec": {**templates[0]["spec"], "containers": [autoscaler]}}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "pod", **template["metadata"]},
            "spec": template["spec"],
        }
        for template in (*templates, head)
    ]
    assert [document["kind"] for document in documents[1:]] == ["Service", "NetworkPolicy", "NetworkPolicy"]
    for resource in (*pods, *documents[1:]):
        kubernetes_validate.validate(resource, "1.34", strict=True)


def test_only_the_public_ports_are_open_to_others(
    documents: list[dict[str, Any]], templates: list[dict[str, Any]], containers: dict[str, dict[str, Any]]
) -> None:
    policy = documents[2]["spec"]
    for template in templates:
        assert policy["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    (anybody,) = [rule for rule in policy["ingress"] if "from" not in rule]
    public = {port["port"] for port in anybody["ports"]}
    assert public | {"metrics"} == {port["name"] for port in containers["ray-worker"]["ports"]}
    for_prometheus, rule = (rule for rule in policy["ingress"] if "from" in rule)
    assert for_prometheus["ports"] == [{"port": "metrics", "protocol": "TCP"}]
    (prometheus,) = for_prometheus["from"]
    assert prometheus["namespaceSelector"]["matchLabels"].keys() == {"kubernetes.io/metadata.name"}
    own, operator = rule["from"]
    assert own == {"podSelector": policy["podSelector"]}
    assert operator["podSelector"]["matchLabels"] == {"app.kubernetes.io/component": "kuberay-operator"}
    assert operator["namespaceSelector"]["matchLabels"].keys() == {"kubernetes.io/metadata.name"}
    assert policy["policyTypes"] == ["Ingress", "Egress"]


def test_the_application_is_the_one_of_serve_yaml(config: ServeDeploySchema, repository: Path) -> None:
    other = yaml.safe_load((repository / "deploy" / "serve.yaml").read_text())
    (application,) = config.applications
    expected = other["applications"][0]
    assert (application.name, application.import_path, application.route_prefix) == (
        APP_NAME,
        expected["import_path"],
        expected["route_prefix"],
    )
    assert config.grpc_options.grpc_servicer_functions == GRPC_SERVICERS
    assert application.args.keys() <= Settings.model_fields.keys()
    for options in ("http_options", "grpc_options"):
        assert getattr(config, options).request_timeout_s == other[options]["request_timeout_s"]
        assert getattr(config, options).request_timeout_s > Settings().request_timeout_s


def test_metrics_of_every_replica_are_read(
    config: ServeDeploySchema,
    templates: list[dict[str, Any]],
    containers: dict[str, dict[str, Any]],
    repository: Path,
) -> None:
    monitor = yaml.safe_load((repository / "deploy" / "prometheus" / "podmonitor.yaml").read_text())
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    ports = {port["name"]: port["containerPort"] for port in containers["ray-worker"]["ports"]}
    args = config.applications[0].args
    assert (args["host"], args["metrics_port"]) == ("0.0.0.0", ports[endpoint["port"]])
    labels = templates[1]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    scrapes = yaml.safe_load((repository / "deploy" / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    assert labels[monitor["spec"]["jobLabel"]] == scrapes[0]["job_name"]


def test_messages_are_bounded_before_they_are_read(containers: dict[str, dict[str, Any]], repository: Path) -> None:
    limit = str(Settings().max_message_bytes)
    name = "RAY_SERVE_GRPC_MAX_MESSAGE_SIZE"
    for container in containers.values():
        assert {"name": name, "value": limit} in container["env"]
    assert f"{name}={limit} serve run" in (repository / "deploy" / "serve.yaml").read_text()


def test_replicas_follow_the_questions_in_progress(config: ServeDeploySchema, documents: list[dict[str, Any]]) -> None:
    (deployment,) = config.applications[0].deployments
    assert deployment.name == "mqan"
    scaling = deployment.autoscaling_config
    assert isinstance(scaling, dict)
    assert scaling["target_ongoing_requests"] < Settings().max_queued_requests
    (workers,) = documents[0]["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    assert (workers["minReplicas"], workers["maxReplicas"]) == (scaling["min_replicas"], scaling["max_replicas"])
    assert workers["rayStartParams"]["num-cpus"] == str(config.applications[0].args["num_cpus"]), "one replica each"


def test_versions_are_those_of_the_image(
    documents: list[dict[str, Any]], containers: dict[str, dict[str, Any]], repository: Path
) -> None:
    pins = dict(re.findall(r"^([\w-]+)==(\S+)$", (repository / "constraints.txt").read_text(), re.MULTILINE))
    assert documents[0]["spec"]["rayClusterConfig"]["rayVersion"] == pins["ray"]
    assert {container["image"] for container in containers.values()} == {f"REGISTRY/mqan-ray:{mqan_core.__version__}"}


def test_probes_and_ports_are_the_servers(
    documents: list[dict[str, Any]], containers: dict[str, dict[str, Any]], config: ServeDeploySchema
) -> None:
    worker = containers["ray-worker"]
    assert worker["readinessProbe"]["httpGet"] == {"path": "/health/ready", "port": config.http_options.port}
    ports = {port["name"]: port["containerPort"] for port in worker["ports"]}
    metrics_port = config.applications[0].args["metrics_port"]
    assert ports == {
        "serve": config.http_options.port,
        "serve-grpc": config.grpc_options.port,
        "metrics": metrics_port,
    }
    assert documents[1]["spec"]["ports"][0]["targetPort"] in ports
    for container in containers.values():
        assert {"livenessProbe", "readinessProbe"} <= container.keys(), "the operator's own need wget"
        compile(container["livenessProbe"]["exec"]["command"][2], container["name"], "exec")
    head = {port["name"]: port["containerPort"] for port in containers["ray-head"]["ports"]}
    assert head["serve"] == config.http_options.port, "the operator takes the port of its service from the head"


def test_a_node_that_goes_finishes_its_questions(
    documents: list[dict[str, Any]], containers: dict[str, dict[str, Any]]
) -> None:
    (workers,) = documents[0]["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    template = workers["template"]
    pause_s = int(containers["ray-worker"]["lifecycle"]["preStop"]["exec"]["command"][1])
    assert Settings().request_timeout_s < pause_s < template["spec"]["terminationGracePeriodSeconds"]
    selector = documents[1]["spec"]["selector"]
    assert selector.items() - template["metadata"]["labels"].items() == {("ray.io/serve", "true")}, "the operator's own"


def test_ray_asks_for_a_token(documents: list[dict[str, Any]]) -> None:
    """Without it, whoever reaches the job API runs what they like."""
    cluster = documents[0]["spec"]["rayClusterConfig"]
    assert cluster["authOptions"] == {"mode": "token"}
    assert tuple(map(int, cluster["rayVersion"].split("."))) >= (2, 52, 0), "the first that knows tokens"


def test_only_the_autoscaler_has_a_key_to_kubernetes(
    documents: list[dict[str, Any]], templates: list[dict[str, Any]]
) -> None:
    place = "/var/run/secrets/kubernetes.io/serviceaccount"  # where clients of Kubernetes look
    for template in templates:
        assert template["spec"]["automountServiceAccountToken"] is False
        for container in template["spec"]["containers"]:
            assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/tmp"]
    (mounted,) = [
        mount
        for mount in documents[0]["spec"]["rayClusterConfig"]["autoscalerOptions"]["volumeMounts"]
        if mount["mountPath"] == place
    ]
    assert mounted["readOnly"]
    (volume,) = [volume for volume in templates[0]["spec"]["volumes"] if volume["name"] == mounted["name"]]
    sources = {name: source for part in volume["projected"]["sources"] for name, source in part.items()}
    assert sources["serviceAccountToken"]["path"] == "token"
    assert [item["path"] for item in sources["configMap"]["items"]] == ["ca.crt"]
    assert [item["path"] for item in sources["downwardAPI"]["items"]] == ["namespace"]
    assert {volume["name"] for volume in templates[1]["spec"]["volumes"]} == {"tmp"}, "workers have none"


def test_containers_are_confined(
    documents: list[dict[str, Any]], templates: list[dict[str, Any]], containers: dict[str, dict[str, Any]]
) -> None:
    autoscaler = documents[0]["spec"]["rayClusterConfig"]["autoscalerOptions"]
    for container in (*containers.values(), autoscaler):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"].keys() == {"cpu", "memory"}
        assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"], "else nothing can be written"
    for template in templates:
        (tmp,) = [volume for volume in template["spec"]["volumes"] if volume["name"] == "tmp"]
        assert tmp["emptyDir"]["sizeLimit"]
        assert template["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in containers.values():
        assert {"name": "HOME", "value": "/tmp"} in container["env"]


def test_pods_reach_each_other_and_names_and_only_the_head_kubernetes(documents: list[dict[str, Any]]) -> None:
    _, _, policy, of_head = (document.get("spec", {}) for document in documents)
    own, names = policy["egress"]
    assert own == {"to": [{"podSelector": policy["podSelector"]}]}
    assert {port["port"] for port in names["ports"]} == {53}
    assert all("namespaceSelector" in peer for peer in names["to"])
    assert of_head["policyTypes"] == ["Egress"]
    labels = dict(of_head["podSelector"]["matchLabels"])
    assert labels.pop("ray.io/node-type") == "head", "the operator's own label"
    assert labels == policy["podSelector"]["matchLabels"]
    (kubernetes,) = of_head["egress"]
    assert {port["port"] for port in kubernetes["ports"]} == {443, 6443}
