"""Prometheus metrics, for one process or for all replicas of a machine.

Labels come from closed sets: nothing that a caller sends becomes one. Replicas share files in the folder named by
``PROMETHEUS_MULTIPROC_DIR``, so that each of them reports the sums of all; counts of replicas that have ended stay in
the sums, their gauges do not.
"""

import os
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    values,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.values import MultiProcessValue

from mqan_core.answer.types import Answer, Source
from mqan_serving.contract.errors import ERRORS
from mqan_serving.observability.log_writer import WRITER
from mqan_serving.service.meter import Meter
from mqan_serving.service.timeline import STAGES, Timeline

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # the library's
CONTENT_TYPE = CONTENT_TYPE_LATEST

OK, CANCELLED = "ok", "cancelled"
TRANSPORTS = ("rest", "grpc")
ANSWERING = ("Answer", "AnswerMany", "AnswerStream", "FillRecord")
METHODS = (*ANSWERING, "GetModel", "Check", "other")
CODES = (OK, CANCELLED, *ERRORS)

_STAGE_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SIZES = tuple(2.0**power for power in range(9))
_TOKENS = tuple(2.0**power for power in range(5, 17))
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics(Meter):
    """The counts of one process."""

    def __init__(self) -> None:
        folder = os.environ.get(FOLDER_VARIABLE)
        self._folder = Path(folder) if folder else None
        if self._folder is not None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            values.ValueClass = MultiProcessValue()  # type: ignore[no-untyped-call]
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "mqan_requests",
            "Requests, by how they ended: ok, cancelled by the caller, or the code of their error.",
            ["transport", "method", "code"],
            registry=registry,
        )
        self._seconds = Histogram(
            "mqan_request_duration_seconds",
            "Seconds from a request's arrival to its response, of requests that ended ok.",
            ["transport", "method"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._in_flight = Gauge(
            "mqan_requests_in_flight",
            "Questions inside the server, waiting or being answered.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self._max_in_flight = Gauge(
            "mqan_requests_in_flight_limit",
            "Most questions that may be inside the server; more are refused as overloaded.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self._queue = Gauge(
            "mqan_queue_depth",
            "Questions that wait for a batch.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self._oldest = Gauge(
            "mqan_oldest_question_seconds",
            "Seconds since the oldest question inside the server came; 0 where there is none.",
            multiprocess_mode="livemax",
            registry=registry,
        )
        self._stages = Histogram(
            "mqan_stage_duration_seconds",
            "Seconds of an answered question in each stage; those of a batch share its encoding and steps.",
            ["stage"],
            buckets=_STAGE_SECONDS,
            registry=registry,
        )
        self._batch_size = Histogram(
            "mqan_batch_requests", "Questions that were encoded together.", buckets=_SIZES, registry=registry
        )
        self._batch_tokens = Histogram(
            "mqan_batch_tokens",
            "Tokens of contexts and questions that were encoded together, padding included.",
            buckets=_TOKENS,
            registry=registry,
        )
        self._steps = Counter("mqan_decoding_steps", "Steps of decoding, of one question or many.", registry=registry)
        self._step_rows = Counter(
            "mqan_decoding_step_questions", "Questions that took part in steps, summed over these.", registry=registry
        )
        self._words = Counter(
            "mqan_answer_words", "Words of answers, by where they came from.", ["source"], registry=registry
        )
        self._mass = Counter(
            "mqan_answer_mass",
            "Trust that the model put into each source, summed over the words of answers; 1 for each word.",
            ["source"],
            registry=registry,
        )
        self._model = Gauge(
            "mqan_model_info",
            "1 for the model that is served.",
            ["name", "version", "sha256", "provider"],
            multiprocess_mode="livemax",
            registry=registry,
        )
        self._dropped = Counter(
            "mqan_log_lines_dropped", "Lines of the log that could not be written in time.", registry=registry
        )
        self._num_dropped = 0
        # A rate is only seen of a series that was there before its first event.
        for transport in TRANSPORTS:
            for method in ANSWERING:
                for code in CODES:
                    self._requests.labels(transport, method, code)
                self._seconds.labels(transport, method)
        # What every answer counts is looked up once.
        self._of_source = {source: (self._words.labels(source), self._mass.labels(source)) for source in Source}
        self._of_stage = {stage: self._stages.labels(stage) for stage in STAGES}

    def describe_server(self, *, name: str, version: str, sha256: str, provider: str, max_requests: int) -> None:
        """Tell what is served, and how many requests fit in."""
        self._model.labels(name, version, sha256, provider).set(1)
        self._max_in_flight.set(max_requests)

    def count_request(self, transport: str, method: str, code: str, seconds: float) -> None:
        """Count a request that has ended."""
        self._requests.labels(transport, method, code).inc()
        if code == OK:
            self._seconds.labels(transport, method).observe(seconds)

    def track_request(self) -> AbstractContextManager[None]:
        """Count a question as inside the server until it leaves."""
        return self._in_flight.track_inprogress()

    def observe(self, num_waiting: int, oldest_s: float) -> None:
        """Tell how many questions wait, for how long the oldest has been inside, and which log lines were dropped."""
        self._queue.set(num_waiting)
        self._oldest.set(oldest_s)
        num_dropped = WRITER.num_dropped
        self._dropped.inc(num_dropped - self._num_dropped)
        self._num_dropped = num_dropped

    def count_batch(self, num_requests: int, num_tokens: int) -> None:
        """Count a batch that was encoded."""
        self._batch_size.observe(num_requests)
        self._batch_tokens.observe(num_tokens)

    def count_step(self, num_requests: int) -> None:
        """Count a step of questions that decode together."""
        self._steps.inc()
        self._step_rows.inc(num_requests)

    def count_answer(self, answer: Answer, timeline: Timeline) -> None:
        """Count where an answer's time went; and its words by source, and the model's trust in each."""
        for stage, seconds in timeline.seconds.items():
            self._of_stage[stage].observe(seconds)
        for source, (words, mass) in self._of_source.items():
            words.inc(sum(token.source is source for token in answer.tokens))
            mass.inc(sum(getattr(token.masses, source) for token in answer.tokens))

    def render(self) -> bytes:
        """Return all metrics in Prometheus' text format; reads files where there are several processes."""
        if self._folder is None:
            return generate_latest(self._registry)
        _forget_ended_processes(self._folder)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, str(self._folder))  # type: ignore[no-untyped-call]
        return generate_latest(registry)


def _forget_ended_processes(folder: Path) -> None:
    """Remove the gauges of processes that have ended."""
    for process in {int(path.stem.rpartition("_")[2]) for path in folder.glob("gauge_live*.db")}:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            with suppress(FileNotFoundError):  # another replica was faster
                mark_process_dead(process, folder)  # type: ignore[no-untyped-call]
