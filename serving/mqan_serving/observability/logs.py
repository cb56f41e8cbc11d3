"""Structured logs: one JSON object a line, without a word of what callers sent.

A request is logged by its id, its lengths and a hash that lets two lines be compared.
"""

import hashlib
import logging
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from itertools import chain
from typing import Any, Final, Literal

import structlog

from mqan_core.answer.types import Answer
from mqan_serving.contract.answers import document_of, word_document
from mqan_serving.contract.calls import AskedText
from mqan_serving.contract.errors import describe
from mqan_serving.contract.model import Model
from mqan_serving.contract.questions import Question
from mqan_serving.observability.log_writer import WRITER
from mqan_serving.observability.metrics import CANCELLED, OK, Metrics
from mqan_serving.service.answer_service import Service
from mqan_serving.service.many import Outcome, answer_texts
from mqan_serving.service.models import Lease, Models
from mqan_serving.service.timeline import Timeline

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_GRAVEST: Final = ("unavailable", "overloaded", "deadline_exceeded", "internal")  # the last most; all others less
CALLER: Final = "x-mqan-caller"  # names who shall always have the same of two models
MODEL: Final = "x-mqan-model"  # names the model that answered
Told = tuple[Literal["word", "answer"], dict[str, Any]]  # a part of a streamed answer, and its document
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def set_up_logs(level: str) -> None:
    """Write log lines of at least ``level`` to standard error, those of Python's own loggers, too."""
    logging.getLogger("opentelemetry").setLevel(logging.ERROR)  # it warns of a caller's headers in the caller's words
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=lambda *_: WRITER,
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    if not any(isinstance(handler, _Forward) for handler in root.handlers):
        root.addHandler(_Forward())


class _Forward(logging.Handler):
    """Makes lines of what libraries tell Python's loggers."""

    def emit(self, record: logging.LogRecord) -> None:
        level = "error" if record.levelno >= logging.ERROR else "warning"
        try:
            log(record.getMessage(), level=level, logger=record.name, exc_info=record.exc_info)
        except Exception:  # whatever a library puts into a record
            log("a log record cannot be read", level=level, logger=record.name)


def log(event: str, *, level: str = "info", **values: Any) -> None:
    structlog.get_logger().log(_LEVELS[level], event, **values)


def choose_request_id(given: str | None) -> str:
    if given is not None and _REQUEST_ID.fullmatch(given):
        return given
    return secrets.token_hex(8)


class RequestLog:
    """Collects what is logged and counted about one request."""

    def __init__(
        self, transport: str, method: str, request_id: str, metrics: Metrics, headers: Mapping[str, str]
    ) -> None:
        self.request_id = request_id
        self.path = ""  # says how its errors look
        self.timeline = Timeline()
        self.is_streaming = False  # counted at the end of its response, not at the beginning
        self._headers = headers
        self.code = OK  # how it ended, or will end if nothing more goes wrong
        self._transport = transport
        self._method = method
        self._metrics = metrics
        self._is_counted = False
        self._is_told = False  # whether a line says how it ended
        self._answers: list[tuple[Answer, Timeline]] = []
        self.model: Model | None = None  # that answers
        self._values: dict[str, Any] = {"transport": transport, "request_id": request_id}

    def note_key(self, name: str | None) -> None:
        if name is not None:
            self._values["key"] = name

    @property
    def caller(self) -> str:
        """Who always gets the same of two models: as a header says, else by the key, else each request by itself."""
        return self._headers.get(CALLER) or str(self._values.get("key") or self.request_id)

    @property
    def model_header(self) -> str:
        """The model that answers, for the header of a response; empty where none does."""
        return "" if self.model is None else f"{self.model.name}/{self.model.version}/{self.model.sha256[:16]}"

    def note_model(self, lease: Lease) -> None:
        """Note which model answers, and what of the request's time it took to open it."""
        self.model = lease.model
        self.timeline.waited_s = lease.waited_s
        self._values |= {"model": lease.model.name, "model_hash": lease.model.sha256[:16]}

    def note_question(self, question: Question) -> None:
        text = f"{question.context}\0{question.question}".encode("utf-8", "surrogatepass")
        self._values["context_chars"] = len(question.context)
        self._values["question_chars"] = len(question.question)
        self._values["hash"] = hashlib.sha256(text).hexdigest()[:16]

    def note_stream(self) -> None:
        self._method = "AnswerStream"

    def note_call(self, texts: Sequence[AskedText]) -> None:
        self._values |= {"texts": len(texts), "questions": sum(len(text.items) for text in texts)}

    def note_answer(self, answer: Answer, timeline: Timeline | None = None) -> None:
        """Note an answer, which is told of when the request is counted; of several, each with its own stages."""
        self._answers.append((answer, timeline or self.timeline))

    def note_outcomes(self, outcomes: Sequence[Sequence[Outcome]]) -> None:
        """Note the answers of a call, log faults of ours, and note why other questions were not answered.

        Where none was answered, the call is counted as the gravest reason says.
        """
        codes = []
        for outcome in chain.from_iterable(outcomes):
            if isinstance(outcome.result, Answer):
                self.note_answer(outcome.result, outcome.timeline)
                continue
            codes.append(outcome.result.code)
            if outcome.fault is not None:
                self._log("failed", level="error", exc_info=outcome.fault)
        if codes:
            self._values["unanswered"] = len(codes)
            if not self._answers:
                self.code = max(codes, key=lambda code: _GRAVEST.index(code) if code in _GRAVEST else -1)

    @property
    def server_timing(self) -> str:
        """The stages of an answer and the whole request in milliseconds, as a header of a response has them; empty
        without an answer. Of several answers, which are found side by side, the stages of the one that took longest.

        https://www.w3.org/TR/server-timing
        """
        if self.code != OK or not self._answers:
            return ""
        stages = max((timeline.seconds for _, timeline in self._answers), key=lambda seconds: sum(seconds.values()))
        parts = [*stages.items(), ("total", self.timeline.elapsed_s)]
        return ", ".join(f"{name};dur={seconds * 1000:.2f}" for name, seconds in parts)

    def log_failure(self, error: BaseException) -> None:
        """Log a refused or failed request; a fault of ours with its traceback."""
        failure = describe(error)
        self.code, self._is_told = failure.code, True
        if failure.is_internal:
            self._log("failed", level="error", exc_info=error)
        else:
            self._log("refused", code=failure.code)

    def log_cancelled(self) -> None:
        """Log a request whose caller went away, unless it has ended before."""
        if self._is_counted:
            return
        self.code, self._is_told = CANCELLED, True
        self._log("cancelled")

    def count(self) -> None:
        """Count the request, once, and log an answer, before the response leaves: whoever has it finds both."""
        if not self._is_counted:
            self._is_counted = True
            self._metrics.count_request(self._transport, self._method, self.code, self.timeline.elapsed_s)
            if (key := self._values.get("key")) is not None:
                self._metrics.count_key(key, is_limited=self.code == "rate_limited")
            if self._method in ("Answer", "AnswerStream"):
                values = {**self._values, "code": self.code}
                is_fault = self.code == "internal"
                self.timeline.trace(f"mqan.{self._method}", self._headers, values, is_fault=is_fault)
            if self._answers and self.code == OK:
                for answer, timeline in self._answers:
                    self._metrics.count_answer(answer, timeline, None if self.model is None else self.model.name)
                self._log("answered", answer_tokens=sum(len(answer.tokens) for answer, _ in self._answers))
            elif "unanswered" in self._values and not self._is_told:
                self._log("refused", code=self.code)

    def _log(self, event: str, **values: Any) -> None:
        log(event, **values, ms=round(self.timeline.elapsed_s * 1000, 2), **self._values)


async def answer_and_log(service: Service, log: RequestLog, texts: Sequence[AskedText]) -> list[list[Outcome]]:
    """Answer the questions of a call, and note them; errors are those of ``answer_texts``."""
    log.note_call(texts)
    outcomes = await answer_texts(service, texts, log.timeline.waited_s)
    log.note_outcomes(outcomes)
    return outcomes


@asynccontextmanager
async def using(
    models: Models, wanted: str | None, log: RequestLog, timeout_ms: int | None = None
) -> AsyncIterator[Service]:
    """Take the model that a request is for, note it, and release it at the end."""
    lease = await models.take(wanted, log.caller, timeout_ms)
    log.note_model(lease)
    try:
        yield lease.service
    finally:
        lease.release()


async def answer_one(models: Models, question: Question, log: RequestLog) -> dict[str, Any]:
    async with using(models, question.model, log, question.timeout_ms) as service:
        answer = await service.answer(question, log.timeline)
        log.note_answer(answer)
        return document_of(answer, service.model, is_cited=question.citations)


async def stream_and_log(models: Models, question: Question, log: RequestLog) -> AsyncGenerator[Told, None]:
    """Yield the words of an answer, then the whole, by the model that the question is for."""
    async with (
        using(models, question.model, log, question.timeout_ms) as service,
        aclosing(service.stream(question, log.timeline)) as parts,
    ):
        async for part in parts:
            if isinstance(part, Answer):
                document = document_of(part, service.model, is_cited=question.citations)
                log.note_answer(part)
                log.count()
                yield "answer", document
            else:
                yield "word", word_document(part)
