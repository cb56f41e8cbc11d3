"""The plain server: REST and gRPC in one process on one event loop, without Ray."""

import asyncio
import signal
import socket
from contextlib import suppress

import grpc

from mqan_serving.keys import ApiKeys
from mqan_serving.observability.logs import log
from mqan_serving.observability.metrics import Metrics
from mqan_serving.rest.http_server import HttpServer, listen
from mqan_serving.rest.routes import create_rest_app, export_metrics
from mqan_serving.rpc import bounds
from mqan_serving.rpc.guard import RpcGuard
from mqan_serving.rpc.methods import (
    SERVICE_NAMES,
    QuestionAnsweringMethods,
    add_health,
    add_question_answering,
    add_reflection,
)
from mqan_serving.service.health import Health
from mqan_serving.service.models import Models
from mqan_serving.settings import Settings, address

_HEALTH_PERIOD_S = 0.5
_LAST_CALLS_S = 1.0  # for calls that were sent before their callers knew that the server ends


class LocalServer:
    """REST and gRPC over the models of this process."""

    def __init__(self, models: Models, settings: Settings, metrics: Metrics) -> None:
        self.models = models
        self._settings = settings
        self._metrics = metrics
        self._keys = keys = ApiKeys(settings.api_key_file, metrics.keep_keys)
        app = create_rest_app(lambda: models, settings, keys, metrics)
        self._http = HttpServer(app, settings, metrics, settings.drain_timeout_s)
        self._grpc = grpc.aio.server(
            options=bounds.server_options(settings), maximum_concurrent_rpcs=bounds.max_calls(settings)
        )
        methods = QuestionAnsweringMethods(lambda: models, RpcGuard(settings, keys, metrics))
        add_question_answering(methods, self._grpc)
        add_health(methods, self._grpc)
        if settings.reflection:
            add_reflection(SERVICE_NAMES, self._grpc)

    async def start(self) -> None:
        settings = self._settings
        self._exporter = await export_metrics(settings, self._keys, self._metrics)
        listener: socket.socket | None = None
        try:
            listener = listen(settings.host, settings.http_port)
            self._grpc.add_insecure_port(address(settings.host, settings.grpc_port))
        except (OSError, RuntimeError) as error:
            await self._exporter.close()
            await self._grpc.stop(None)
            if listener is None:
                raise
            listener.close()
            raise OSError(f"cannot listen on port {settings.grpc_port}") from error
        await self._grpc.start()
        await self._http.open(listener)

    async def stop(self) -> None:
        """Say 'not ready', finish what is in progress, then close all ports."""
        settings = self._settings
        log("draining", requests=self.models.num_requests)
        self.models.health.set_draining()
        await asyncio.sleep(settings.drain_delay_s)
        await self.models.drain(settings.drain_timeout_s)
        self._http.should_exit = True
        await self._grpc.stop(_LAST_CALLS_S)
        await self._http.close()
        await self._exporter.close()
        await self.models.close()
        log("stopped")


async def wait_for_end(served: Models | Health) -> None:
    """Return when the process is asked to end, or an engine has failed; SIGHUP reads models again."""
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    looks: set[asyncio.Task[None]] = set()

    def look() -> None:
        if isinstance(served, Models):
            looks.add(task := loop.create_task(served.look()))
            task.add_done_callback(looks.discard)

    loop.add_signal_handler(signal.SIGHUP, look)
    try:
        while served.is_live and not asked.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(asked.wait(), _HEALTH_PERIOD_S)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)  # that of SIGHUP stays: it never ends a server
