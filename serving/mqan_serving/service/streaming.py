"""An answer word by word, for every transport."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from mqan_core.answer.streaming import StreamedWord, WordStream
from mqan_core.answer.types import Answer, AnswerToken
from mqan_serving.contract.questions import Question
from mqan_serving.service.answer_service import Service
from mqan_serving.service.timeline import Timeline

Streamed = StreamedWord | Answer


async def stream_answer(service: Service, question: Question, timeline: Timeline) -> AsyncGenerator[Streamed, None]:
    """Yield the words of an answer as soon as they are decided, then the whole answer, whose tokens they are.

    A caller that goes away closes this generator or cancels its task, which frees the question's place at once. What
    the caller has not taken yet is kept, so that nobody waits for a slow one; an answer has few words. Errors are
    those of ``Service.answer``.
    """
    decided: asyncio.Queue[Sequence[AnswerToken] | None] = asyncio.Queue()
    answering = asyncio.create_task(service.answer(question, timeline, tell=decided.put_nowait))

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
