"""The metrics of one machine on a port of their own, for clusters whose public ports answer from any machine."""

import asyncio

from mqan_serving.keys import ApiKeys
from mqan_serving.observability.metrics import Metrics
from mqan_serving.rest.http_server import HttpServer, listen
from mqan_serving.rest.routes import create_metrics_app
from mqan_serving.settings import Settings

_GRACE_S = 1.0


class MetricsExporter:
    """``/metrics`` on a port that the replicas of a machine share; each of them reports the sums of all."""

    def __init__(self, settings: Settings, keys: ApiKeys, metrics: Metrics) -> None:
        self._settings = settings
        self._server = HttpServer(create_metrics_app(settings, keys, metrics), settings, metrics, _GRACE_S)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen on the port, or raise ``OSError``."""
        if self._settings.metrics_port is None:
            return
        listener = listen(self._settings.host, self._settings.metrics_port, shared=True)
        self._task = asyncio.create_task(self._server.serve([listener]), name="mqan-metrics")
        while not self._server.started and not self._task.done():
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await self._task
