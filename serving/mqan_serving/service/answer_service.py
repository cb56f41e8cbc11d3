"""The service itself: a question in, an attributed answer out. It knows no transport; every adapter calls it."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mqan_core.answer.trace import StreamedWord, WordStream
from mqan_core.answer.types import Answer, AnswerToken
from mqan_core.bundle import Bundle, read_verified
from mqan_core.errors import BundleError
from mqan_core.forms.parsed import parse_answer
from mqan_core.manifest import MODEL_CARD
from mqan_core.text.layout import estimate_work
from mqan_runtime.steps import SAMPLE, ReadRequest
from mqan_serving.contract.errors import ServingError, refuse
from mqan_serving.contract.model import LimitsDocument, Model, ScoreDocument
from mqan_serving.contract.questions import ParseName, Question
from mqan_serving.service.adapters import Adapters
from mqan_serving.service.admission import Admission, FairReader, Pace, full
from mqan_serving.service.batching import Batcher
from mqan_serving.service.health import Health, Watch
from mqan_serving.service.timeline import Meter, Timeline
from mqan_serving.service.validation import Validator
from mqan_serving.service.waiting import Tell
from mqan_serving.settings import Settings

if TYPE_CHECKING:  # it loads onnxruntime
    from mqan_runtime.engine import Engine

_CHARS_READ_INLINE = 16_384  # tokenised in about 5 ms; longer texts would hold up the event loop
_RETRY_AFTER_S = 1
_FAILED = "The server has failed and is about to be replaced."
_WORDS_MEASURED, _TIMES_MEASURED = 300, 2  # of the text whose reading shows the pace
_OBSERVE_PERIOD_S = 0.5  # metrics are read every few seconds

Streamed = StreamedWord | Answer


class Service:
    """Answers questions with one engine, which nobody else may use; ``reader`` reads the texts of several services."""

    def __init__(
        self,
        engine: "Engine",
        settings: Settings,
        executor: ThreadPoolExecutor | None = None,
        meter: Meter | None = None,
        name: str | None = None,
        reader: FairReader | None = None,
    ) -> None:
        manifest = engine.bundle.manifest
        num_threads = settings.threads_on(engine.provider)
        max_batch_size = settings.batch_size_on(engine.provider)
        self.health = Health()
        self.limits = LimitsDocument(
            max_request_bytes=settings.max_request_bytes,
            max_context_tokens=settings.max_context_tokens,
            max_question_tokens=settings.max_question_tokens,
            max_answer_tokens=min(settings.max_answer_tokens, engine.max_answer_tokens),
            max_word_length=settings.max_word_length,
            max_metadata_bytes=settings.max_metadata_bytes,
            max_timeout_ms=max(1, round(settings.request_timeout_s * 1000)),
            max_concurrent_requests=settings.max_queued_requests + max_batch_size,
            max_queued_requests=settings.max_queued_requests,
        )
        self.validator = Validator(self.limits)
        self.adapters = Adapters(settings.adapters, engine.bundle.sha256, engine.text_width)
        self.model = Model(
            name or manifest.name,
            manifest.version,
            engine.bundle.sha256,
            engine.provider,
            self.limits,
            engine.bundle.vocabulary.num_generated,
            len(engine.bundle.vocabulary.words),
            tuple(
                ScoreDocument(task=task, metric=name, value=value)
                for task, metrics in manifest.scores.items()
                for name, value in metrics.items()
            ),
        )
        self.knows = knows_of(engine.bundle)
        self._meter = meter or Meter()
        self._meter.describe_server(self.model)
        self._observer: asyncio.Task[None] | None = None
        self._engine = engine
        self._timeout_s = settings.request_timeout_s
        self._unready_after_s = settings.unready_after_s
        self._num_calls = 0  # of many questions
        self._pace = Pace(num_threads)
        self._admission = Admission(self.limits.max_concurrent_requests, self._pace, self._timeout_s)
        self.num_side_by_side = 2 * num_threads * max_batch_size
        self._watch = Watch(settings.unready_after_s, num_threads)
        self._executor = executor or _engine_threads(num_threads)
        self._is_reader_shared = reader is not None
        self._reader = reader or FairReader()
        self._batcher = Batcher(
            engine,
            self._executor,
            self._meter,
            self._watch,
            self._pace,
            num_threads=num_threads,
            max_batch_size=max_batch_size,
            max_batch_tokens=settings.max_batch_tokens,
            max_running_tokens=settings.max_running_tokens,
        )

    @property
    def num_requests(self) -> int:
        return self._admission.num_requests

    @property
    def why_not_ready(self) -> str | None:
        """Why requests should not be sent here, in a sentence; None where they should."""
        if not self.health.is_ready:
            return f"The server is {self.health.state}."
        oldest_s = self._admission.oldest_s
        if oldest_s > self._unready_after_s:
            return f"The server is too slow: a question has waited {oldest_s:.0f} s for its answer."
        return self._watch.complaint

    async def warm_up(self) -> None:
        """Answer once, so that the first caller does not wait for lazy set-up; then take requests."""
        request = self._engine.read(*SAMPLE)
        await self._batcher.answer(request, min(2, self.limits.max_answer_tokens), Timeline())
        for _ in range(_TIMES_MEASURED):  # how long a text takes that fills a window
            request = self._engine.read(" ".join(["a"] * _WORDS_MEASURED), "Why?")
            await self._batcher.answer(request, 1, Timeline())
        self._observer = asyncio.create_task(self._observe(), name="mqan-observer")
        self.health.set_ready()

    @contextmanager
    def admit_call(self) -> Iterator[None]:
        """Count a call of many questions in, and out again at the end; the server does not end before it."""
        self.check_open()
        if self._num_calls >= self.limits.max_concurrent_requests:
            raise full()
        self._num_calls += 1
        try:
            yield
        finally:
            self._num_calls -= 1

    def check_work(self, work: int, timeout_s: float) -> None:
        """Refuse a call with more to read than its time allows, as far as that is more than a text may have."""
        of_a_text = estimate_work(self.limits.max_question_tokens, 0, self.limits.max_context_tokens)
        most = max(self._pace.most_in(timeout_s), of_a_text)
        if work > most:
            message = (
                f"The call has about {work / most:.2g} times as much to read, labels once for each text, as this "
                f"server answers in the {timeout_s:g} s of the call."
            )
            raise refuse("request_too_large", "body", message, "Send fewer texts, questions or labels in a call.")

    def read_card(self) -> bytes:
        bundle = self._engine.bundle
        try:
            return read_verified(bundle.folder, MODEL_CARD, bundle.manifest.files[MODEL_CARD])
        except BundleError:
            raise ServingError("not_found", "The card of this model was changed or removed on the server.") from None

    async def answer(
        self,
        question: Question,
        timeline: Timeline | None = None,
        *,
        tell: Tell | None = None,
        call_begun: float | None = None,
    ) -> Answer:
        """Answer one question within its ``timeout_ms`` and the server's own limit, whichever is less.

        A caller that goes away cancels this call, which frees its place at once; so does the end of its time. ``tell``
        is called with words as soon as they are decided, in order; the last may come with the answer only. A question
        of a call that was admitted, whose time is that of the call, waits for a place, also of a draining server.

        Raises:
            InputError: it cannot be answered; the error says why and how to fix it.
            ServingError: the server is full, starting, draining or too slow.
        """
        question = self.adapters.adapt(question)
        timeout_s, work = self.timeout_s_of(question), question.work
        timeline = timeline or Timeline()
        if call_begun is None:
            self.check_open()
            self.check_work(work, timeout_s)
        deadline = (time.monotonic() - timeline.waited_s if call_begun is None else call_begun) + timeout_s
        is_full = False
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                while call_begun is not None and (is_full := not self._admission.has_room(work)):
                    await self._admission.wait(work)
                self._check_working()
                with self._admission.admit(work), self._meter.track_request():
                    timeline.begin("tokenise")
                    request, limit = await self._read(question)
                    answer = await self._batcher.answer(request, limit, timeline, deadline=deadline, tell=tell)
        except TimeoutError:
            if is_full:
                raise full() from None
            raise ServingError("deadline_exceeded", f"No answer within {timeout_s:g} s.") from None
        if question.parse is None:
            return answer
        return await asyncio.to_thread(self._parse, question.parse, answer, question)

    async def stream(self, question: Question, timeline: Timeline) -> AsyncGenerator[Streamed, None]:
        """Yield the words of an answer as soon as they are decided, then the whole answer, whose tokens they are.

        A caller that goes away closes this generator or cancels its task, which frees the question's place at once.
        What the caller has not taken yet is kept, so that nobody waits for a slow one; an answer has few words.
        """
        decided: asyncio.Queue[Sequence[AnswerToken] | None] = asyncio.Queue()
        answering = asyncio.create_task(self.answer(question, timeline, tell=decided.put_nowait))

        def end(task: "asyncio.Task[Answer]") -> None:
            if not task.cancelled():
                task.exception()  # looked at also where nobody waits for it any more
            decided.put_nowait(None)

        answering.add_done_callback(end)
        words = WordStream(question.context, question.question)
        try:
            while (tokens := await decided.get()) is not None:
                for word in words.add(tokens):
                    yield word
            answer = await answering
            for word in words.end(answer):
                yield word
            yield answer
        finally:
            answering.cancel()

    def check_live(self) -> None:
        if not self.health.is_live:
            raise ServingError("unavailable", _FAILED)

    def check_open(self) -> None:
        if not self.health.is_ready:
            raise ServingError("unavailable", f"The server is {self.health.state}.", retry_after_s=_RETRY_AFTER_S)
        self._check_working()

    def _check_working(self) -> None:
        if not self._batcher.is_alive:
            self.health.set_failed()
        self.check_live()

    def timeout_s_of(self, question: Question) -> float:
        if question.timeout_ms is None:
            return self._timeout_s
        # a number of any length, which may be more than a float holds: compared before it is divided
        return min(self._timeout_s * 1000, question.timeout_ms) / 1000

    async def close(self) -> None:
        self.health.set_draining()
        if self._observer is not None:
            self._observer.cancel()
            self._observer = None  # which keeps what cancelled it, and with it this service
            self._watch.end()
        await self._batcher.close()
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._meter.forget(self.model)
        vars(self).pop("_engine", None)  # so that its memory is free now: no collection looks at what has been frozen
        if not self._is_reader_shared:
            self._reader.close()

    async def _observe(self) -> None:
        while True:
            self._watch.look()
            self._meter.observe(self.model.name, self._batcher.num_waiting, self._admission.oldest_s)
            if not self._batcher.is_alive:
                self.health.set_failed()
            await asyncio.sleep(_OBSERVE_PERIOD_S)

    async def _read(self, question: Question) -> tuple[ReadRequest, int]:
        if question.num_chars <= _CHARS_READ_INLINE:
            return self._check_and_read(question)
        return await self._reader.read(question.num_chars, lambda: self._check_and_read(question))

    def _check_and_read(self, question: Question) -> tuple[ReadRequest, int]:
        with self._watch.over("The reading of a question"):
            return self.validator.read(question, self._engine.read)

    def _parse(self, parse: ParseName, answer: Answer, question: Question) -> Answer:
        with self._watch.over("The parsing of an answer"):
            return parse_answer(parse, answer, question.context, question.question)


async def open_service(
    folder: Path,
    settings: Settings,
    meter: Meter | None = None,
    name: str | None = None,
    reader: FairReader | None = None,
) -> Service:
    """Open a bundle on a thread that will run it, and answer once; raise ``BundleError`` where it is damaged."""
    opener = _engine_threads(1)  # captured graphs belong to the thread that made them

    def open_here() -> "Engine":
        from mqan_runtime.engine import Engine

        return Engine.open(folder, provider=settings.provider, num_threads=1, precision=settings.precision)

    engine = await asyncio.get_running_loop().run_in_executor(opener, open_here)
    is_alone = settings.threads_on(engine.provider) == 1
    if not is_alone:
        opener.shutdown()
    service = Service(engine, settings, opener if is_alone else None, meter, name, reader)
    await service.warm_up()
    return service


def knows_of(bundle: Bundle) -> Callable[[str], bool]:
    """Return what says whether a word is one of the language that is read, where the model knows words of one."""
    return str.isascii if bundle.word_pieces is None else bundle.word_pieces.knows


def _engine_threads(number: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(number, thread_name_prefix="mqan-engine")
