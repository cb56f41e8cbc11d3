"""``POST /v1/hf/question-answering``: one unbroken quotation, as Hugging Face's question-answering task gives it.

Requests and responses are those of https://huggingface.co/docs/inference-providers/tasks/question-answering; what they
leave open is done as ``QuestionAnsweringPipeline`` of transformers 4 does it. Two things differ: whether there is an
answer the model decides, not the order of scores, and ``top_k`` above 1 gives a list however many answers there are.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from pydantic import ConfigDict, Field

from mqan_core.answer.types import Answer
from mqan_core.ask.options import MOST_ALTERNATIVES, Options
from mqan_serving.contract.model import Model
from mqan_serving.contract.questions import Question
from mqan_serving.formats.adapting import Asked, Part, read, read_object, refuse

MOST_ANSWERS: Final = 1 + MOST_ALTERNATIVES
_USUAL_LENGTH: Final = 15  # of an answer, in tokens, where none is asked for: the pipeline's
_NONE: Final[dict[str, Any]] = {"score": 0.0, "start": 0, "end": 0, "answer": ""}


class _Inputs(Part):
    question: str
    context: str


class _Parameters(Part):
    """The task's. The last four, which the pipeline needs to read a text in pieces, have no effect."""

    model_config = ConfigDict(strict=True, extra="forbid")

    handle_impossible_answer: bool | None = None
    max_answer_len: int | None = Field(None, ge=1)
    top_k: int | None = Field(None, ge=1, le=MOST_ANSWERS)
    align_to_words: Any = None
    doc_stride: Any = None
    max_question_len: Any = None
    max_seq_len: Any = None


class _Request(Part):
    inputs: _Inputs
    parameters: _Parameters | None = None


class LikeliestQuotation(Question):
    """A question that is answered by a quotation even where the text does not say."""

    @cached_property
    def options(self) -> Options:
        return replace(super().options, refuses=False)


def parse(body: bytes, model: Model) -> list[Asked]:
    request = read(_Request, read_object(body))
    parameters = request.parameters or _Parameters()
    longest = model.limits.max_answer_tokens
    length = parameters.max_answer_len or min(_USUAL_LENGTH, longest)
    if length > longest:
        message = f"The field parameters.max_answer_len is out of range; 1 to {longest} are accepted."
        raise refuse("option_out_of_range", ("parameters", "max_answer_len"), message)
    question = (Question if parameters.handle_impossible_answer else LikeliestQuotation)(
        context=request.inputs.context,
        question=request.inputs.question,
        contiguous=True,
        alternatives=(parameters.top_k or 1) - 1,
        max_answer_tokens=length,
    )
    return [Asked(question, ("inputs",), {name: ("inputs", name) for name in ("context", "question")})]


def respond(asked: Sequence[Asked], answers: Sequence[Answer], model: str) -> dict[str, Any] | list[dict[str, Any]]:
    """Return the answer, or with ``top_k`` above 1 a list of answers; of several at most as many as there are.

    The first is what the model decides, also between a quotation and none; the others follow by their scores.
    """
    [one], [answer] = asked, answers
    top_k = one.question.alternatives + 1
    found = [_describe(quotation) for quotation in (answer, *answer.alternatives) if quotation.spans]
    if not isinstance(one.question, LikeliestQuotation):
        none = _NONE | {"score": answer.refusal}
        first, rest = (found[:1], [*found[1:], none]) if answer.answered else ([none], found)
        found = [*first, *sorted(rest, key=lambda each: -each["score"])]
    found = found[:top_k] or [_NONE]
    return found if top_k > 1 else found[0]


def _describe(answer: Answer) -> dict[str, Any]:
    [span] = answer.spans
    return {"score": answer.probability, "start": span.start, "end": span.end, "answer": span.text}
