"""``POST /v1/hf/zero-shot-classification``: labels by their scores, as Hugging Face's task of that name gives them.

Requests are those of https://huggingface.co/docs/inference-providers/tasks/zero-shot-classification, responses those of
transformers' ``ZeroShotClassificationPipeline``; ``huggingface_hub`` reads another shape.

Hugging Face's models judge for each label whether the text implies a sentence with it, the hypothesis. Here all labels
are choices of one question, and a template of hypotheses is made into that question.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mqan_core.answer.types import Answer
from mqan_core.ask.options import MOST_CHOICES
from mqan_serving.contract.calls import MOST_TEXTS
from mqan_serving.contract.model import Model
from mqan_serving.contract.questions import ChoiceField, Question
from mqan_serving.formats.adapting import (
    Place,
    as_flag,
    as_list,
    as_string,
    get,
    read_object,
    refuse,
    shares,
    told_beside,
)
from mqan_serving.formats.hf_parameters import read_parameters

USUAL_QUESTION: Final = "Which label fits the text?"
_PARAMETERS: Final = frozenset({"candidate_labels", "hypothesis_template", "multi_label"})
_GAP: Final = "{}"  # of a template: where the label goes
_LABELS: Final = ("parameters", "candidate_labels")
_TEMPLATE: Final = ("parameters", "hypothesis_template")


@dataclass(frozen=True, slots=True)
class Asked:
    """A text of a document.

    Attributes:
        question: the service's own.
        place: where the text stands in the document.
    """

    question: Question
    place: Place

    @property
    def is_alone(self) -> bool:
        """Whether it was sent by itself, not in a list."""
        return len(self.place) == 1

    @property
    def fields(self) -> Mapping[str, Place]:
        """Where fields stand in the document that are not the question's."""
        return {"choice": _LABELS, "choices": _LABELS, "question": _TEMPLATE}


def parse(body: bytes, model: Model) -> list[Asked]:
    """Read the texts of a document and what is asked about them, for ``foreign.Format``."""
    document = read_object(body)
    inputs = get(document, "inputs", ())
    parameters = read_parameters(document, _PARAMETERS)
    labels = _read_labels(get(parameters, "candidate_labels", ("parameters",)))
    is_multiple = as_flag(parameters.get("multi_label", False), ("parameters", "multi_label"))
    question = question_of(parameters["hypothesis_template"]) if _TEMPLATE[1] in parameters else USUAL_QUESTION
    choices = [ChoiceField(label=label) for label in labels]

    def ask(text: Any, *place: str) -> Asked:
        context = as_string(text, place)
        # one label alone would be certain among the labels
        several = is_multiple or len(choices) == 1
        return Asked(Question(context=context, question=question, choices=list(choices), multiple=several), place)

    if not isinstance(inputs, list):
        return [ask(inputs, "inputs")]
    return [ask(text, "inputs", str(i)) for i, text in enumerate(as_list(inputs, ("inputs",), 1, MOST_TEXTS))]


def question_of(template: Any) -> str:
    """Return the question that a template of hypotheses stands for.

    A sentence with a gap is no question, so it is asked which label completes it. A template that is a question
    already, with a question mark at its end and no gap, is asked as it stands.

    Raises:
        PlacedError: it is no string, or has no gap or several.
    """
    text = as_string(template, _TEMPLATE).strip()
    number = text.count(_GAP)
    if number == 0 and text.endswith("?"):
        return text
    if number != 1:
        message = f"The field parameters.hypothesis_template has {number} places for a label; 1 is accepted."
        hint = "Write {} once, where the label goes, or send a question that ends with a question mark."
        raise refuse("invalid_input", _TEMPLATE, message, hint)
    return f'Which of these completes "{text.removesuffix(".").replace(_GAP, "...")}"?'


def respond(asked: Sequence[Asked], answers: Sequence[Answer], model: str) -> dict[str, Any] | list[dict[str, Any]]:
    """Return for each text its labels and their scores, the highest first, as transformers' pipeline does."""
    told = []
    for one, answer in zip(asked, answers, strict=True):
        labels = [choice.label for choice in answer.choices]
        ranked = sorted(zip(labels, shares(answer), strict=True), key=lambda pair: -pair[1])
        scores = {"labels": [label for label, _ in ranked], "scores": [score for _, score in ranked]}
        told.append({"sequence": one.question.context, **scores, **told_beside(answer)})
    return told[0] if asked[0].is_alone else told


def _read_labels(given: Any) -> list[str]:
    if isinstance(given, str):
        given = [label.strip() for label in given.split(",") if label.strip()]
    labels = as_list(given, _LABELS, 1, MOST_CHOICES)
    return [as_string(label, (*_LABELS, str(i))) for i, label in enumerate(labels)]
