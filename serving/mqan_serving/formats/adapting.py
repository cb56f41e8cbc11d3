"""Reading documents of the formats of others, and telling shares, confidence and evidence."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Protocol, TypeVar

from pydantic_core import from_json

from mqan_core.answer.types import Answer
from mqan_core.text.tokens import measure
from mqan_serving.contract.answers import place_document, quotation_document
from mqan_serving.contract.calls import AskedText, Item
from mqan_serving.contract.errors import ERRORS, AnsweringError, PlacedError
from mqan_serving.contract.model import Model
from mqan_serving.contract.questions import ChoiceField, Question
from mqan_serving.service.many import Outcome

Place = tuple[str, ...]
ValueT = TypeVar("ValueT")


def refuse(code: str, place: Place, message: str, hint: str = "") -> PlacedError:
    """Return the error that refuses what stands at a place of a document."""
    return PlacedError(code, place, message, hint or ERRORS[code].hint)


def read_object(body: bytes) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        PlacedError: it is none.
    """
    try:
        document = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise refuse("malformed_request", (), f"The body is not valid JSON: {error}.") from None
    return as_object(document, ())


def as_object(value: Any, place: Place) -> dict[str, Any]:
    """Return a value that has to be an object; all functions here raise ``PlacedError`` where it is none."""
    return _checked(value, dict, place, "an object")


def as_list(value: Any, place: Place, least: int, most: int) -> list[Any]:
    """Return a value that has to be a list of some length."""
    found = _checked(value, list, place, "a list")
    if not least <= len(found) <= most:
        message = f"{_name(place)} has {len(found)} entries; {least} to {most} are accepted."
        raise refuse("invalid_input", place, message, "Send a number of entries that is accepted.")
    return found


def as_string(value: Any, place: Place) -> str:
    """Return a value that has to be a string."""
    return _checked(value, str, place, "a string")


def as_flag(value: Any, place: Place) -> bool:
    """Return a value that has to be true or false."""
    return _checked(value, bool, place, "true or false")


def as_whole(value: Any, place: Place, least: int, most: int) -> int:
    """Return a value that has to be a whole number of some size."""
    found = _checked(None if isinstance(value, bool) else value, int, place, "a whole number")
    if not least <= found <= most:
        message = f"{_name(place)} is out of range; {least} to {most} are accepted."
        raise refuse("option_out_of_range", place, message)
    return found


def _checked(value: Any, kind: type[ValueT], place: Place, what: str) -> ValueT:
    if not isinstance(value, kind):
        raise refuse("wrong_type", place, f"{_name(place)} is not {what}.", f"Send {what}.")
    return value


def get(document: dict[str, Any], name: str, place: Place) -> Any:
    """Return a field that has to be there.

    Raises:
        PlacedError: it is missing.
    """
    if name not in document:
        message = f"The field {'.'.join((*place, name))} is missing."
        raise refuse("missing_field", (*place, name), message, "Send it, too.")
    return document[name]


def as_text(value: Any, place: Place) -> str:
    """Return a string as it is, an object or array as one line of JSON, its keys in the caller's order.

    Raises:
        PlacedError: it is something else.
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, dict | list):
        raise refuse("wrong_type", place, f"{_name(place)} is no string, object or array.", "Send one of these.")
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError as error:  # a number of thousands of digits, or beyond all floating-point ones
        raise refuse("wrong_type", place, f"{_name(place)} cannot be written as text: {error}.") from None


def unless_blank(text: str) -> str:
    """Return a text; none, where it is white space: clients send that for what they leave out."""
    return text if text.strip() else ""


def check_model(given: Any, model: Model) -> None:
    """Check that a document asks for the model that is served.

    Raises:
        PlacedError: it asks for another, or not for one.
    """
    if not model.is_called(as_string(given, ("model",))):
        hint = f"Ask for {model.name!r}; GET /v1/models lists the models, and MQAN_MODEL_ALIASES more names."
        raise refuse("unknown_model", ("model",), "The model of the request is not served here.", hint)


def choose(context: str, question: str, choices: Sequence[ChoiceField]) -> Question:
    """Return the question which of some labels is right."""
    return Question(context=context, question=question, choices=list(choices))


def asked(questions: Sequence[Question]) -> list[AskedText]:
    """Return questions as one call of the service; those that follow each other about one text stand together."""
    texts = groupby(questions, key=lambda question: question.context)
    return [AskedText(None, tuple(Item(None, question) for question in about)) for _, about in texts]


class Placed(Protocol):
    """A question of a caller's document."""

    @property
    def question(self) -> Question:
        """The service's own."""

    @property
    def place(self) -> Place:
        """Where it stands in the document."""

    @property
    def fields(self) -> Mapping[str, Place]:
        """Where fields of the service's own questions stand in the document, as far as that is elsewhere."""


def answers_of(outcomes: Iterable[Outcome], rows: Sequence[Placed]) -> list[Answer]:
    """Return the answers of a call.

    Args:
        outcomes: what became of its questions.
        rows: the questions, as they were sent.

    Raises:
        AnsweringError: a question was not answered; it says which.
    """
    answers = []
    for outcome, row in zip(outcomes, rows, strict=True):
        if not isinstance(outcome.result, Answer):
            raise AnsweringError(outcome.result, row.fields.get(outcome.result.field or "", row.place))
        answers.append(outcome.result)
    return answers


def shares(answer: Answer) -> list[float]:
    """Return the probability of each choice; they sum to 1, unless several can be right."""
    return list(answer.shares) if answer.is_multiple else [choice.among_choices for choice in answer.choices]


def choice_confidence(probabilities: Sequence[float]) -> float:
    """Return how far the likeliest choice is above chance: 0 where all are alike, 1 where the rest is impossible."""
    number = len(probabilities)
    if number == 1:
        return 1.0
    return min(1.0, max(0.0, (number * max(probabilities) - 1) / (number - 1)))


def score_confidence(probabilities: Sequence[float]) -> float:
    """Return how close the levels lie to the likeliest, compared with levels that are all alike."""
    number = len(probabilities)
    if number == 1:
        return 1.0
    likeliest = max(range(number), key=lambda i: probabilities[i])
    spread = sum(share * abs(i - likeliest) for i, share in enumerate(probabilities))
    uniform = sum(abs(i - (number - 1) / 2) for i in range(number)) / number
    return min(1.0, max(0.0, 1 - spread / uniform))


def expected(probabilities: Sequence[float]) -> float:
    """Return the expected level, the lowest being 0."""
    return sum(i * share for i, share in enumerate(probabilities))


def told_beside(answer: Answer) -> dict[str, Any]:
    """Return what these formats have no fields for: whether a choice is right, and which words of the text decide."""
    places = [place for choice in answer.choices for place in choice.evidence]
    sources = dict.fromkeys(place.span for place in places)
    return {
        "x_answered": answer.answered,
        "x_none": answer.refusal,
        "x_sources": list(map(quotation_document, sources)),
        "x_evidence": list(map(place_document, places)),
    }


def count_tokens(questions: Sequence[Question]) -> int:
    """Return how many words were read: the text once, and each question with its choices."""
    number = measure(questions[0].context).num_tokens
    for question in questions:
        number += measure(question.question).num_tokens
        for choice in question.options.choices:
            number += measure(choice.label).num_tokens + measure(choice.description).num_tokens
    return number


def _name(place: Place) -> str:
    return f"The field {'.'.join(place)}" if place else "The body"
