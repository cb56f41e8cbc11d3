"""``POST /v1/hf/question-answering``: one unbroken quotation, as Hugging Face's question-answering task gives it.

Requests and responses are those of https://huggingface.co/docs/inference-providers/tasks/question-answering; what they
leave open is done as ``QuestionAnsweringPipeline`` of transformers 4 does it. Two things differ: whether there is an
answer the model decides, not the order of scores, and ``top_k`` above 1 gives a list however many answers there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from mqan_core.answer.types import Answer
from mqan_core.ask.options import MOST_ALTERNATIVES, Options
from mqan_serving.contract.model import Model
from mqan_serving.contract.questions import Question
from mqan_serving.formats.adapting import Place, as_flag, as_object, as_string, as_whole, get, read_object
from mqan_serving.formats.hf_parameters import read_parameters

MOST_ANSWERS: Final = 1 + MOST_ALTERNATIVES
_USUAL_LENGTH: Final = 15  # of an answer, in tokens, where none is asked for: the pipeline's
# What the pipeline needs to read a text in pieces, and to end answers at the ends of words: the texts are read whole
# here, in windows of the model's own, and an answer has whole words, always.
_WITHOUT_EFFECT: Final = frozenset({"align_to_words", "doc_stride", "max_question_len", "max_seq_len"})
_PARAMETERS: Final = _WITHOUT_EFFECT | {"handle_impossible_answer", "max_answer_len", "top_k"}
_NONE: Final[dict[str, Any]] = {"score": 0.0, "start": 0, "end": 0, "answer": ""}


class LikeliestQuotation(Question):
    """A question that is answered by a quotation even where the text does not say."""

    @cached_property
    def options(self) -> Options:
        """As of any question, without the way out."""
        return replace(super().options, refuses=False)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a document.

    Attributes:
        question: the service's own.
        top_k: most answers that are wanted.
        may_refuse: whether "there is no answer" is one of them.
    """

    question: Question
    top_k: int
    may_refuse: bool

    @property
    def place(self) -> Place:
        """Where it stands in the document."""
        return ("inputs",)

    @property
    def fields(self) -> Mapping[str, Place]:
        """Where fields stand in the document that are not the question's."""
        return {"context": ("inputs", "context"), "question": ("inputs", "question")}


def parse(body: bytes, model: Model) -> list[Asked]:
    """Read the question of a document, for ``foreign.Format``."""
    document = read_object(body)
    inputs = as_object(get(document, "inputs", ()), ("inputs",))
    parameters = read_parameters(document, _PARAMETERS)

    def text(name: str) -> str:
        return as_string(get(inputs, name, ("inputs",)), ("inputs", name))

    def whole(name: str, unset: int, most: int) -> int:
        return as_whole(parameters[name], ("parameters", name), 1, most) if name in parameters else unset

    longest = model.limits.max_answer_tokens
    place = ("parameters", "handle_impossible_answer")
    may_refuse = as_flag(parameters.get("handle_impossible_answer", False), place)
    top_k = whole("top_k", 1, MOST_ANSWERS)
    question = (Question if may_refuse else LikeliestQuotation)(
        context=text("context"),
        question=text("question"),
        contiguous=True,
        alternatives=top_k - 1,
        max_answer_tokens=whole("max_answer_len", min(_USUAL_LENGTH, longest), longest),
    )
    return [Asked(question, top_k, may_refuse)]


def respond(asked: Sequence[Asked], answers: Sequence[Answer], model: str) -> dict[str, Any] | list[dict[str, Any]]:
    """Return the answer, or with ``top_k`` above 1 a list of answers; of several at most as many as there are.

    The first is what the model decides, also between a quotation and none; the others follow by their scores.
    """
    [one], [answer] = asked, answers
    found = [_tell(quotation) for quotation in (answer, *answer.alternatives) if quotation.spans]
    if one.may_refuse:
        none = _NONE | {"score": answer.refusal}
        first, rest = (found[:1], found[1:]) if answer.answered else ([none], found)
        found = [*first, *sorted([*rest, none] if answer.answered else rest, key=lambda told: -told["score"])]
    found = found[: one.top_k] or [_NONE]
    return found if one.top_k > 1 else found[0]


def _tell(answer: Answer) -> dict[str, Any]:
    [span] = answer.spans
    return {"score": answer.probability, "start": span.start, "end": span.end, "answer": span.text}
