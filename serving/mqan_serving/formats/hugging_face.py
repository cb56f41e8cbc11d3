"""Two of Hugging Face's tasks, as its clients send them and as transformers' pipelines answer.

``POST /v1/hf/question-answering`` gives one unbroken quotation. What
https://huggingface.co/docs/inference-providers/tasks/question-answering leaves open is done as
``QuestionAnsweringPipeline`` of transformers 4 does it. Two things differ: whether there is an answer the model
decides, not the order of scores, and ``top_k`` above 1 gives a list however many answers there are.

``POST /v1/hf/zero-shot-classification`` gives labels by their scores. Requests are those of
https://huggingface.co/docs/inference-providers/tasks/zero-shot-classification, responses those of transformers'
``ZeroShotClassificationPipeline``; ``huggingface_hub`` reads another shape. Hugging Face's models judge for each label
whether the text implies a sentence with it, the hypothesis. Here all labels are choices of one question, and a template
of hypotheses is made into that question. The parameter ``adapter`` stands in the place of the labels.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from mqan_core.answer.types import Answer
from mqan_core.ask.options import MOST_ALTERNATIVES, MOST_CHOICES, Options
from mqan_serving.contract.calls import MOST_TEXTS
from mqan_serving.contract.model import Model
from mqan_serving.contract.questions import AdapterField, Question
from mqan_serving.formats import adapting
from mqan_serving.formats.adapting import NO_LABELS, OR_ADAPTER, Adaptable, Asked, Part, refuse, sized

MOST_ANSWERS: Final = 1 + MOST_ALTERNATIVES
Found = dict[str, Any] | list[dict[str, Any]]
_USUAL_LENGTH: Final = 15  # of an answer, in tokens, where none is asked for: the pipeline's
_NONE: Final[dict[str, Any]] = {"score": 0.0, "start": 0, "end": 0, "answer": ""}
_USUAL_QUESTION: Final = "Which label fits the text?"
_GAP: Final = "{}"  # of a template: where the label goes
_LABELS: Final = ("parameters", "candidate_labels")
_ADAPTER: Final = ("parameters", "adapter")
_TEMPLATE: Final = ("parameters", "hypothesis_template")


class _Quoted(Part):
    question: str
    context: str


class _QuotationParameters(Part, extra="forbid"):
    """The task's. The last four, which the pipeline needs to read a text in pieces, have no effect."""

    handle_impossible_answer: bool | None = None
    max_answer_len: int | None = Field(None, ge=1)
    top_k: int | None = Field(None, ge=1, le=MOST_ANSWERS)
    align_to_words: Any = None
    doc_stride: Any = None
    max_question_len: Any = None
    max_seq_len: Any = None


class _QuotationRequest(Part):
    inputs: _Quoted
    parameters: _QuotationParameters | None = None


class LikeliestQuotation(Question):
    """A question that is answered by a quotation even where the text does not say."""

    @cached_property
    def options(self) -> Options:
        return replace(super().options, refuses=False)


def parse_quotation(document: Any, model: Model) -> list[Asked]:
    request = adapting.read(_QuotationRequest, document)
    parameters = request.parameters or _QuotationParameters()
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


def respond_quotation(asked: Sequence[Asked], answers: Sequence[Answer], model: str) -> Found:
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


def _split(labels: Any) -> Any:
    return [label.strip() for label in labels.split(",") if label.strip()] if isinstance(labels, str) else labels


class _LabelParameters(Adaptable, extra="forbid"):
    candidate_labels: Annotated[list[str], sized(1, MOST_CHOICES), BeforeValidator(_split), OR_ADAPTER] = NO_LABELS
    hypothesis_template: str | None = None
    multi_label: bool | None = None


class _LabelRequest(Part):
    inputs: Annotated[
        list[str],
        sized(1, MOST_TEXTS),
        BeforeValidator(lambda inputs: inputs if isinstance(inputs, list) else [inputs]),
    ]
    parameters: Annotated[_LabelParameters, BeforeValidator(lambda given: {} if given is None else given)] = NO_LABELS


def parse_labels(document: Any, _: Model) -> list[Asked]:
    request = adapting.read(_LabelRequest, document)
    parameters, template = request.parameters, request.parameters.hypothesis_template
    choices: Any = parameters.candidate_labels
    several = bool(parameters.multi_label)
    fields = {"choice": _LABELS, "choices": _LABELS, "question": _TEMPLATE}
    if parameters.adapter is not None:
        choices, fields["choices"] = AdapterField(adapter=parameters.adapter), _ADAPTER
    elif len(choices) == 1:
        several = True  # one label alone would be certain among the labels
    question = _USUAL_QUESTION if template is None else question_of(template)
    is_list = isinstance(document["inputs"], list)
    return [
        Asked(
            Question(context=text, question=question, choices=choices, multiple=several),
            ("inputs", str(i)) if is_list else ("inputs",),
            fields,
        )
        for i, text in enumerate(request.inputs)
    ]


def question_of(template: str) -> str:
    """Return the question that a template of hypotheses stands for.

    A sentence with a gap is no question, so it is asked which label completes it. A template that is a question
    already, with a question mark at its end and no gap, is asked as it stands.

    Raises:
        PlacedError: it has no gap or several.
    """
    text = template.strip()
    number = text.count(_GAP)
    if number == 0 and text.endswith("?"):
        return text
    if number != 1:
        message = f"The field {'.'.join(_TEMPLATE)} has {number} places for a label; 1 is accepted."
        hint = "Write {} once, where the label goes, or send a question that ends with a question mark."
        raise refuse("invalid_input", _TEMPLATE, message, hint)
    return f'Which of these completes "{text.removesuffix(".").replace(_GAP, "...")}"?'


def respond_labels(asked: Sequence[Asked], answers: Sequence[Answer], model: str) -> Found:
    found = []
    for one, answer in zip(asked, answers, strict=True):
        pairs = zip([choice.label for choice in answer.choices], adapting.shares(answer), strict=True)
        ranked = sorted(pairs, key=lambda pair: -pair[1])
        scores = {"labels": [label for label, _ in ranked], "scores": [score for _, score in ranked]}
        found.append({"sequence": one.question.context, **scores, **adapting.beside(answer)})
    return found if len(asked[0].place) > 1 else found[0]
