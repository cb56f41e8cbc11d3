"""Prometheus metrics, for one process or for all replicas of a machine.

Labels come from closed sets: nothing that a caller sends becomes one. Replicas share files in the folder named by
``PROMETHEUS_MULTIPROC_DIR``, so that each of them reports the sums of all; counts of replicas that have ended stay in
the sums, their gauges do not.
"""

import os
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Final, Literal

import prometheus_client
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.values import MultiProcessValue

from mqan_core.answer.types import Answer, Source
from mqan_serving.contract.errors import ERRORS
from mqan_serving.contract.model import Model
from mqan_serving.observability.log_writer import WRITER
from mqan_serving.service.timeline import STAGES, Meter, Timeline

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # the library's
CONTENT_TYPE = CONTENT_TYPE_LATEST

OK, CANCELLED = "ok", "cancelled"
TRANSPORTS = ("rest", "grpc")
ANSWERING = ("Answer", "AnswerMany", "AnswerStream", "FillRecord")
METHODS = (*ANSWERING, "GetModel", "Check", "other")
CODES = (OK, CANCELLED, *ERRORS)
_OF_ALL = (OK, CANCELLED, "overloaded", "rate_limited", "unavailable", "deadline_exceeded", "internal")  # any method's
KINDS = ("free", "choice", "several", "scale")
OTHER_KEYS = "(others)"  # no name of a key
_MOST_KEYS = 100
_KEY_REQUESTS: Final = "key_requests"
_BY_KEY: Final = f"mqan_{_KEY_REQUESTS}".encode()

_FILE: Final = re.compile(r"(?:counter|histogram|gauge_[a-z]+)_[0-9]{1,9}\.db")  # the library's names
_HEAD_BYTES: Final = 8  # of a file; the first four say how many of all are used

_STAGE_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SIZES = tuple(2.0**power for power in range(9))
_TOKENS = tuple(2.0**power for power in range(5, 17))
_TENTHS = tuple(tenth / 10 for tenth in range(1, 11))
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics(Meter):
    """The counts of one process."""

    def __init__(self) -> None:
        folder = os.environ.get(FOLDER_VARIABLE)
        self._folder = Path(folder) if folder else None
        if self._folder is not None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            values.ValueClass = MultiProcessValue()  # type: ignore[no-untyped-call]
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = registry = CollectorRegistry()

        def counter(name: str, help_text: str, *labels: str) -> Counter:
            return Counter(f"mqan_{name}", help_text, labels, registry=registry)

        def gauge(name: str, help_text: str, mode: Literal["livesum", "livemax"], *labels: str) -> Gauge:
            return Gauge(f"mqan_{name}", help_text, labels, multiprocess_mode=mode, registry=registry)

        def histogram(name: str, help_text: str, buckets: Sequence[float], *labels: str) -> Histogram:
            return Histogram(f"mqan_{name}", help_text, labels, buckets=buckets, registry=registry)

        ended = "Requests, by how they ended: ok, cancelled by the caller, or the code of their error."
        self._requests = counter("requests", ended, "transport", "method", "code")
        by_key = "Requests by API key, admitted or limited by its rate; (others): all but the first 100 of a process."
        self._by_key = counter(_KEY_REQUESTS, by_key, "key", "outcome")
        self._keys: set[str] = set()  # that have a series of their own
        took = "Seconds from a request's arrival to its response, of requests that ended ok."
        self._seconds = histogram("request_duration_seconds", took, _SECONDS, "transport", "method")
        inside = "Questions inside the server, waiting or being answered."
        self._in_flight = gauge("requests_in_flight", inside, "livesum")
        limit = "Most questions that may be inside the server; more are refused as overloaded."
        self._max_in_flight = gauge("requests_in_flight_limit", limit, "livesum")
        self._queue = gauge("queue_depth", "Questions that wait for a batch.", "livesum")
        oldest = "Seconds since the oldest question inside the server came; 0 where there is none."
        self._oldest = gauge("oldest_question_seconds", oldest, "livemax")
        stages = "Seconds of an answered question in each stage; those of a batch share its encoding and steps."
        self._stages = histogram("stage_duration_seconds", stages, _STAGE_SECONDS, "stage")
        self._batch_size = histogram("batch_requests", "Questions that were encoded together.", _SIZES)
        tokens = "Tokens of contexts and questions that were encoded together, padding included."
        self._batch_tokens = histogram("batch_tokens", tokens, _TOKENS)
        self._steps = counter("decoding_steps", "Steps of decoding, of one question or many.")
        self._step_rows = counter("decoding_step_questions", "Questions that took part in steps, summed over these.")
        self._words = counter("answer_words", "Words of answers, by where they came from.", "source")
        mass = "Trust that the model put into each source, summed over the words of answers; 1 for each word."
        self._mass = counter("answer_mass", mass, "source")
        sure = "How sure answers are, and refusals for want of an answer, by what was asked for."
        self._confidence = histogram("answer_confidence", sure, _TENTHS, "kind", "outcome")
        model = ("name", "version", "sha256", "provider")
        self._model = gauge("model_info", "1 for each model that is served, 0 for one that was.", "livemax", *model)
        late = "1 where the models could not be changed to what their folder says, until they are; else 0."
        self._not_changed = gauge("models_not_changed", late, "livemax")
        self._answers = counter("model_answers", "Answers, by the model that gave them.", "model")
        self._served: dict[tuple[str, str], int] = {}  # by hash and name: how many requests fit in
        self._waiting: dict[str, tuple[int, float]] = {}  # by model: how many, and for how long
        self._dropped = counter("log_lines_dropped", "Lines of the log that could not be written in time.")
        self._num_dropped = 0
        # A rate is only seen of a series that was there before its first event.
        for transport in TRANSPORTS:
            for method in ANSWERING:
                for code in _OF_ALL:
                    self._requests.labels(transport, method, code)
                self._seconds.labels(transport, method)
        # What every answer counts is looked up once.
        self._of_source = {source: (self._words.labels(source), self._mass.labels(source)) for source in Source}
        self._of_kind = {
            (kind, is_answer): self._confidence.labels(kind, "answered" if is_answer else "refused")
            for kind in KINDS
            for is_answer in (True, False)
        }
        self._of_stage = {stage: self._stages.labels(stage) for stage in STAGES}

    def describe_server(self, model: Model) -> None:
        self._model.labels(model.name, model.version, model.sha256, model.provider).set(1)
        self._answers.labels(model.name)
        self._served[model.sha256, model.name] = model.limits.max_concurrent_requests
        self._max_in_flight.set(sum(self._served.values()))

    def forget(self, model: Model) -> None:
        self._served.pop((model.sha256, model.name), None)
        if self._served:
            self._model.labels(model.name, model.version, model.sha256, model.provider).set(0)
            self._max_in_flight.set(sum(self._served.values()))
        self._waiting.pop(model.name, None)

    def tell_change(self, *, is_done: bool) -> None:
        self._not_changed.set(not is_done)

    def count_request(self, transport: str, method: str, code: str, seconds: float) -> None:
        self._requests.labels(transport, method, code).inc()
        if code == OK:
            self._seconds.labels(transport, method).observe(seconds)

    def count_key(self, name: str, *, is_limited: bool) -> None:
        if name not in self._keys and len(self._keys) < _MOST_KEYS:
            self._keys.add(name)
        label = name if name in self._keys else OTHER_KEYS
        self._by_key.labels(label, "limited" if is_limited else "admitted").inc()

    def keep_keys(self, names: Collection[str]) -> None:
        """Forget the keys that are no more; in files that replicas share, their counts stay."""
        for name in self._keys.difference(names):
            self._keys.discard(name)
            if self._folder is None:
                self._by_key.remove_by_labels({"key": name})

    def track_request(self) -> AbstractContextManager[None]:
        return self._in_flight.track_inprogress()

    def observe(self, model: str, num_waiting: int, oldest_s: float) -> None:
        self._waiting[model] = num_waiting, oldest_s
        self._queue.set(sum(number for number, _ in self._waiting.values()))
        self._oldest.set(max(seconds for _, seconds in self._waiting.values()))
        num_dropped = WRITER.num_dropped
        self._dropped.inc(num_dropped - self._num_dropped)
        self._num_dropped = num_dropped

    def count_batch(self, num_requests: int, num_tokens: int) -> None:
        self._batch_size.observe(num_requests)
        self._batch_tokens.observe(num_tokens)

    def count_step(self, num_requests: int) -> None:
        self._steps.inc()
        self._step_rows.inc(num_requests)

    def count_answer(self, answer: Answer, timeline: Timeline, model: str | None = None) -> None:
        """Count where an answer's time went, its words by source, how sure it is, and which model gave it."""
        if model is not None:
            self._answers.labels(model).inc()
        for stage, seconds in timeline.seconds.items():
            self._of_stage[stage].observe(seconds)
        self._of_kind[_kind_of(answer), answer.answered].observe(answer.confidence)
        for source, (words, mass) in self._of_source.items():
            words.inc(sum(token.source is source for token in answer.tokens))
            mass.inc(sum(getattr(token.masses, source) for token in answer.tokens))

    def render(self, *, names_keys: bool = True) -> bytes:
        """Return all metrics in Prometheus' text format; reads files where there are several processes.

        Without ``names_keys`` those that name callers' API keys are left out.
        """
        registry = self._registry
        if self._folder is not None:
            _forget_ended_processes(self._folder)
            registry = CollectorRegistry()
            _Collector(registry, str(self._folder))  # type: ignore[no-untyped-call]
        lines = generate_latest(registry).splitlines(keepends=True)
        return b"".join(line for line in lines if names_keys or _BY_KEY not in line)


def _kind_of(answer: Answer) -> str:
    if answer.expected is not None:
        return "scale"
    return "several" if answer.is_multiple else "choice" if answer.choices else "free"


class _Collector(MultiProcessCollector):
    """The library's, but for files that are none of a process, or not whole: of one killed while it made them."""

    def collect(self) -> Iterable[Metric]:
        files = [str(path) for path in Path(self._path).glob("*.db") if _is_whole(path)]
        merged: Iterable[Metric] = self.merge(files, accumulate=True)  # type: ignore[no-untyped-call]
        return merged


def _is_whole(path: Path) -> bool:
    if not _FILE.fullmatch(path.name):
        return False
    try:
        with path.open("rb") as file:
            used = int.from_bytes(file.read(_HEAD_BYTES)[:4], sys.byteorder, signed=True)
            size = os.fstat(file.fileno()).st_size
            return size >= _HEAD_BYTES and (used == 0 or _HEAD_BYTES <= used <= size)
    except OSError:
        return False


def _forget_ended_processes(folder: Path) -> None:
    for process in {int(path.stem.rpartition("_")[2]) for path in folder.glob("gauge_live*_[0-9]*.db")}:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            with suppress(FileNotFoundError):  # another replica was faster
                mark_process_dead(process, folder)  # type: ignore[no-untyped-call]
