"""What is counted, and where the time of a question goes, stage by stage: for the histograms and for a span each."""

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, get_args

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from mqan_serving.contract.model import Model

Stage = Literal["tokenise", "queue", "encode", "decode", "detokenise"]
STAGES: tuple[Stage, ...] = get_args(Stage)

_PROPAGATOR = TraceContextTextMapPropagator()
_TRACER = trace.get_tracer("mqan")  # hands on to whatever collects traces, once something does


class Timeline:
    """The stages that a question has been through; each ends where the next begins.

    The event loop marks them until the question waits, then the engine's thread, which stops at the next step after a
    caller has gone; what it marks too late is not seen.
    """

    def __init__(self) -> None:
        self._begun_ns = time.perf_counter_ns()
        self._epoch_ns = time.time_ns() - self._begun_ns  # a clock that is set back shall not bend a duration
        self._stages: list[tuple[Stage, int]] = []
        self._ended_ns: int | None = None
        self.waited_s = 0.0  # for a model to be loaded, which its time includes

    def begin(self, stage: Stage) -> None:
        """End the stage before, if any, and begin the next; one that begins again goes on."""
        if not self._stages or self._stages[-1][0] != stage:
            self._stages.append((stage, time.perf_counter_ns()))

    def end(self) -> None:
        self._ended_ns = self._ended_ns or time.perf_counter_ns()

    @property
    def elapsed_s(self) -> float:
        return (time.perf_counter_ns() - self._begun_ns) / 1e9

    @property
    def seconds(self) -> dict[Stage, float]:
        totals: dict[Stage, float] = {}
        for stage, begun_ns, ended_ns in self._spans():
            totals[stage] = totals.get(stage, 0.0) + (ended_ns - begun_ns) / 1e9
        return totals

    def trace(self, name: str, headers: Mapping[str, str], values: Mapping[str, str | int], *, is_fault: bool) -> None:
        """End, and hand a span of the request and one of each stage to whatever collects traces, below the caller's."""
        self.end()
        around = trace.get_current_span().get_span_context().is_valid
        parent = None if around else _PROPAGATOR.extract(headers, Context())
        begun_ns = self._epoch_ns + self._begun_ns
        span = _TRACER.start_span(name, parent, SpanKind.SERVER, dict(values), start_time=begun_ns)
        if span.is_recording():
            inside = trace.set_span_in_context(span, Context())
            for stage, stage_begun_ns, stage_ended_ns in self._spans():
                child = _TRACER.start_span(stage, inside, start_time=self._epoch_ns + stage_begun_ns)
                child.end(self._epoch_ns + stage_ended_ns)
            if is_fault:
                span.set_status(Status(StatusCode.ERROR))
        span.end(self._epoch_ns + time.perf_counter_ns())

    def _spans(self) -> list[tuple[Stage, int, int]]:
        last_ns = self._ended_ns or time.perf_counter_ns()
        stages = [(stage, begun_ns) for stage, begun_ns in self._stages if begun_ns <= last_ns]
        ends = [*(begun_ns for _, begun_ns in stages[1:]), last_ns]
        return [(stage, begun_ns, ended_ns) for (stage, begun_ns), ended_ns in zip(stages, ends, strict=False)]


class Meter:
    """Is told what can be counted, and counts nothing; a subclass counts."""

    def describe_server(self, model: Model) -> None:
        """Tell what is served, too, and how many requests fit in."""

    def track_request(self) -> AbstractContextManager[None]:
        """Count a question as inside the server until it leaves."""
        return nullcontext()

    def forget(self, model: Model) -> None:
        """Tell what is served no more."""

    def tell_change(self, *, is_done: bool) -> None:
        """Tell whether the models were changed to what their folder says."""

    def observe(self, model: str, num_waiting: int, oldest_s: float) -> None:
        """Tell, twice a second, how many questions wait for a model, and for how long the oldest has been inside."""

    def count_batch(self, num_requests: int, num_tokens: int) -> None:
        """Count a batch that was encoded."""

    def count_step(self, num_requests: int) -> None:
        """Count a step of questions that decode together."""
