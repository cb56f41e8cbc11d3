"""``POST /v1/hf/zero-shot-classification``: labels by their scores, as Hugging Face's task of that name gives them.

Requests are those of https://huggingface.co/docs/inference-providers/tasks/zero-shot-classification, responses those of
transformers' ``ZeroShotClassificationPipeline``; ``huggingface_hub`` reads another shape.

Hugging Face's models judge for each label whether the text implies a sentence with it, the hypothesis. Here all labels
are choices of one question, and a template of hypotheses is made into that question.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, ConfigDict

from mqan_core.answer.types import Answer
from mqan_core.ask.options import MOST_CHOICES
from mqan_serving.contract.calls import MOST_TEXTS
from mqan_serving.contract.model import Model
from mqan_serving.contract.questions import ChoiceField, Question
from mqan_serving.formats.adapting import Asked, Part, beside, read, read_object, refuse, shares, sized

USUAL_QUESTION: Final = "Which label fits the text?"
_GAP: Final = "{}"  # of a template: where the label goes
_LABELS: Final = ("parameters", "candidate_labels")
_TEMPLATE: Final = ("parameters", "hypothesis_template")


def _split(labels: Any) -> Any:
    return [label.strip() for label in labels.split(",") if label.strip()] if isinstance(labels, str) else labels


class _Parameters(Part):
    model_config = ConfigDict(strict=True, extra="forbid")

    candidate_labels: Annotated[list[str] | None, sized(1, MOST_CHOICES), BeforeValidator(_split)] = None
    hypothesis_template: str | None = None
    multi_label: bool | None = None


class _Request(Part):
    inputs: Annotated[
        list[str],
        sized(1, MOST_TEXTS),
        BeforeValidator(lambda inputs: inputs if isinstance(inputs, list) else [inputs]),
    ]
    parameters: _Parameters | None = None


def parse(body: bytes, model: Model) -> list[Asked]:
    document = read_object(body)
    request = read(_Request, document)
    parameters = request.parameters or _Parameters()
    if parameters.candidate_labels is None:
        raise refuse("missing_field", _LABELS, f"The field {'.'.join(_LABELS)} is missing.", "Send it, too.")
    choices = [ChoiceField(label=label) for label in parameters.candidate_labels]
    template = parameters.hypothesis_template
    question = USUAL_QUESTION if template is None else question_of(template)
    several = bool(parameters.multi_label) or len(choices) == 1  # one label alone would be certain among the labels
    fields = {"choice": _LABELS, "choices": _LABELS, "question": _TEMPLATE}
    is_list = isinstance(document["inputs"], list)
    return [
        Asked(
            Question(context=text, question=question, choices=list(choices), multiple=several),
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


def respond(asked: Sequence[Asked], answers: Sequence[Answer], model: str) -> dict[str, Any] | list[dict[str, Any]]:
    """Return for each text its labels and their scores, the highest first, as transformers' pipeline does."""
    found = []
    for one, answer in zip(asked, answers, strict=True):
        pairs = zip([choice.label for choice in answer.choices], shares(answer), strict=True)
        ranked = sorted(pairs, key=lambda pair: -pair[1])
        scores = {"labels": [label for label, _ in ranked], "scores": [score for _, score in ranked]}
        found.append({"sequence": one.question.context, **scores, **beside(answer)})
    return found if len(asked[0].place) > 1 else found[0]
