"""The Ray Serve application: one deployment, whose replicas carry the REST routes, the gRPC methods and health.

``serve run deploy/serve.yaml`` builds it by ``build_app``; ``mqan serve --ray`` starts Ray here and runs it.
"""

import asyncio
import logging
import math
import os
import secrets
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
from ray import serve
from ray.serve.config import BackpressureConfig
from ray.serve.schema import LoggingConfig

from mqan_core.errors import EngineFailedError, MqanError
from mqan_serving.contract.errors import ServingError, SettingsError
from mqan_serving.keys import ApiKeys
from mqan_serving.observability.logs import set_up_logs
from mqan_serving.observability.metrics import FOLDER_VARIABLE, Metrics
from mqan_serving.ray_serve.environment import ReplicaSettings, for_replicas
from mqan_serving.ray_serve.loopback import restrict_replica, stop_listening
from mqan_serving.rest.routes import create_rest_app, export_metrics
from mqan_serving.rpc.bounds import bound_servers_of_ray, max_calls
from mqan_serving.rpc.guard import RpcGuard
from mqan_serving.rpc.methods import QuestionAnsweringMethods
from mqan_serving.service.models import Models, open_models
from mqan_serving.settings import Settings, load_settings

APP_NAME = "mqan"
GRPC_SERVICERS = [f"mqan_serving.rpc.methods.add_{name}" for name in ("question_answering", "health")]

_QUIET = LoggingConfig(log_level="WARNING", enable_access_log=False)  # the service writes its own log lines
_RESERVE_S = 5.0  # between the limits of the service and the coarser ones of Ray, so that the service's come first
_START_ATTEMPTS = 2
_PROXY_END_S = 1.5  # sooner than Ray misses it
_WATCH_S = 2.0
_SEND_S = 0.2  # for the last responses to leave


class Ingress(QuestionAnsweringMethods):
    """One replica: models of its own, reached over REST and gRPC."""

    def __init__(self, settings: dict[str, Any]) -> None:
        restrict_replica()
        self._settings = load_settings(**settings)
        bound_servers_of_ray(max_calls(self._settings))
        set_up_logs(self._settings.log_level)
        self._models: Models | None = None
        self._metrics = Metrics()
        self._keys = ApiKeys(self._settings.api_key_file, self._metrics.keep_keys)
        super().__init__(self._opened_models, RpcGuard(self._settings, self._keys, self._metrics))

    async def __serve_build_asgi_app__(self) -> Any:
        """Open the models and return the REST application; Ray calls this once, before any request."""
        self._models = await open_models(self._settings, self._metrics)
        self._exporter = await export_metrics(self._settings, self._keys, self._metrics)
        return create_rest_app(
            self._opened_models,
            self._settings,
            self._keys,
            self._metrics,
            echoes_request_id=False,  # Ray Serve does
        )

    async def drain(self) -> None:
        """Refuse new requests from now on, and return when those in progress are finished."""
        if self._models is None:
            return
        self._models.health.set_draining()
        await asyncio.sleep(self._settings.drain_delay_s)
        await self._models.drain(self._settings.drain_timeout_s)
        await asyncio.sleep(_SEND_S)

    def check_health(self) -> None:
        """Tell Ray to replace this replica when its engine no longer answers."""
        if self._models is not None and not self._models.is_live:
            raise RuntimeError("the engine no longer answers")

    def _opened_models(self) -> Models:
        if self._models is None:
            raise ServingError("unavailable", "The server is starting.", retry_after_s=1)
        return self._models


def build_app(args: dict[str, Any]) -> serve.Application:
    """Build the application, for ``serve run`` and the Serve config file, or raise ``SettingsError``."""
    return _bind(
        for_replicas(load_settings(**args)), Path(tempfile.gettempdir()) / f"mqan-metrics-{secrets.token_hex(8)}"
    )


def start_ray(
    settings: ReplicaSettings, metrics_folder: Path, *, object_store_bytes: int, once_connected: Callable[[Path], None]
) -> None:
    """Start Ray on this machine, for this machine only, and run the application; return when it is ready.

    However this ends, Ray may run then, until ``ray.shutdown``. Replicas share their metrics in the folder;
    ``once_connected`` is called with the folder of Ray's files when Ray has put signal handlers of its own in place.

    Raises:
        MqanError: Ray or the application does not start.
    """
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    try:
        _init_ray(settings, object_store_bytes)
        context = ray.get_runtime_context()
        once_connected(Path(context.get_temp_dir(), context.get_session_name()))
        _check_gpus(settings)
        _run_app(settings, metrics_folder)
    except Exception as error:
        raise MqanError(f"Ray Serve does not start: {error}") from error


def _init_ray(settings: Settings, object_store_bytes: int) -> None:
    for attempt in range(_START_ATTEMPTS):
        try:
            ray.init(
                address="local",  # never a cluster that happens to run here
                include_dashboard=False,
                _node_ip_address="127.0.0.1",
                object_store_memory=object_store_bytes,
                num_cpus=max(1, math.ceil(settings.num_cpus * settings.num_replicas)),
                logging_level=logging.WARNING,
                log_to_driver=True,
            )
        except Exception:
            # Ray gives its processes 30 s to appear, which a busy machine may need twice.
            ray.shutdown()
            if attempt + 1 == _START_ATTEMPTS:
                raise
        else:
            return


def _check_gpus(settings: Settings) -> None:
    wanted = settings.num_gpus * settings.num_replicas
    found = ray.cluster_resources().get("GPU", 0)  # type: ignore[no-untyped-call]
    if wanted > found:
        raise SettingsError(
            f"setting num_gpus (MQAN_NUM_GPUS): {settings.num_replicas} replica(s) need {wanted:g} GPU(s), and Ray "
            f"finds {found:g} on this machine (in a container: docker run --gpus all); 0 serves on the CPU"
        )


def _run_app(settings: ReplicaSettings, metrics_folder: Path) -> None:
    serve.start(
        proxy_location="HeadOnly",
        http_options={
            "host": settings.host,
            "port": settings.http_port,
            "request_timeout_s": settings.request_timeout_s + _RESERVE_S,
        },
        grpc_options={
            "port": settings.grpc_port,
            "grpc_servicer_functions": GRPC_SERVICERS,
            "request_timeout_s": settings.request_timeout_s + _RESERVE_S,
            "enable_reflection": settings.reflection,
        },
        logging_config=_QUIET,
    )
    serve.run(_bind(settings, metrics_folder), name=APP_NAME, route_prefix="/")


def wait_while_ray_lives() -> None:
    """Wait while Ray runs on this machine; raise ``EngineFailedError`` when the system has killed it."""
    while any(node["Alive"] for node in ray.nodes()):  # type: ignore[no-untyped-call]
        time.sleep(_WATCH_S)
    raise EngineFailedError("Ray on this machine has died; start the server again")


def drain_ray(settings: Settings) -> None:
    """Report 'not ready', let requests in progress finish, and stop Ray Serve, which drops what is in flight then."""
    asyncio.run(_drain_and_stop_serve(settings))


async def _drain_and_stop_serve(settings: Settings) -> None:
    timeout_s = settings.drain_delay_s + settings.drain_timeout_s + _RESERVE_S
    everywhere = serve.get_app_handle(APP_NAME).broadcast("drain")
    await everywhere.results_async(timeout_s=timeout_s, return_exceptions=True)
    configuration = os.environ.get("RAY_SERVE_HAPROXY_CONFIG_FILE_LOC")
    if configuration is not None:  # Ray would kill it, with whatever it has at that moment
        stop_listening(Path(configuration).parent, _PROXY_END_S)
    await serve.shutdown_async()  # type: ignore[no-untyped-call]


def _bind(settings: ReplicaSettings, metrics_folder: Path) -> serve.Application:
    # Ray leaves a replica without a GPU of its own all of them to see.
    hidden = {} if settings.num_gpus else {"CUDA_VISIBLE_DEVICES": ""}
    deployment = serve.deployment(
        name="mqan",
        num_replicas=settings.num_replicas,
        # The service bounds and refuses by itself, with an explanation; these only back it up.
        max_ongoing_requests=settings.max_admitted_requests + 64,
        max_queued_requests=settings.max_admitted_requests,
        backpressure_config=BackpressureConfig(status_code=429, retry_after_s=1),
        graceful_shutdown_timeout_s=settings.drain_delay_s + settings.drain_timeout_s + _RESERVE_S,
        graceful_shutdown_wait_loop_s=0.2,
        health_check_period_s=2,
        health_check_timeout_s=10,
        ray_actor_options={
            "num_cpus": settings.num_cpus,
            "num_gpus": settings.num_gpus,
            # Only here: Ray's own processes count with the same library, and are not to be counted in.
            "runtime_env": {"env_vars": {FOLDER_VARIABLE: str(metrics_folder)} | hidden},
        },
        logging_config=_QUIET,
    )
    application: serve.Application = deployment(serve.ingress()(Ingress)).bind(settings.model_dump(mode="json"))
    return application
