"""Reading documents in other formats by pydantic models, and the parts that their responses share."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, WrapValidator
from pydantic_core import ErrorDetails, PydanticCustomError, from_json

from mqan_core.answer.types import Answer
from mqan_core.errors import InputError
from mqan_serving.contract.answers import place_document, quotation_document
from mqan_serving.contract.calls import AskedText, Item
from mqan_serving.contract.errors import ERRORS, AnsweringError, PlacedError, shown_field
from mqan_serving.contract.questions import Question
from mqan_serving.service.many import Outcome
from mqan_serving.service.models import Models

Place = tuple[str, ...]
_CODE_OF_PROBLEM: Final = {
    "missing": "missing_field",
    "union_tag_not_found": "missing_field",
    "union_tag_invalid": "invalid_input",
    "extra_forbidden": "unknown_field",
    "literal_error": "unknown_field",
    "too_short": "invalid_input",
    "too_long": "invalid_input",
    "greater_than_equal": "option_out_of_range",
    "less_than_equal": "option_out_of_range",
}


class Part(BaseModel, strict=True):
    """An object of a document. Fields that it does not know are ignored."""


class Adaptable(Part):
    """Where labels are given, or an adapter that has its own."""

    adapter: str | None = None


def _or_adapter(labels: Any, read: Callable[[Any], Any], info: Any) -> Any:
    has_adapter = info.data.get("adapter") is not None
    if labels is None and has_adapter:
        return None
    if labels is None:
        raise problem("missing_field", "it is missing")
    if has_adapter:
        raise problem("incompatible_options", "the adapter has labels of its own")
    return read(labels)


OR_ADAPTER: Final = WrapValidator(_or_adapter)
"""A check of labels: none are given where an ``Adaptable`` names an adapter, and only there."""
NO_LABELS: Any = Field(default=None, validate_default=True)

PartT = TypeVar("PartT", bound=Part)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a document."""

    question: Question
    place: Place
    fields: Mapping[str, Place] = field(default_factory=dict)  # places of fields of ``question`` that are elsewhere
    kind: str = ""  # as the format calls it
    name: str | None = None
    values: Sequence[Any] = ()  # of its choices or levels, as they were sent
    choice_of: Sequence[int] = ()  # of each value the choice that stands for it, where some have one together


def refuse(code: str, place: Place, message: str, hint: str = "") -> PlacedError:
    return PlacedError(code, place, message, hint or ERRORS[code].hint)


def problem(code: str, message: str, *place: str) -> PydanticCustomError:
    """Return the error of a validator: ``refuse`` at a place below the field."""
    return PydanticCustomError(code, "{message}", {"message": message, "place": place})


def read_object(body: bytes) -> Any:
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise refuse("malformed_request", (), f"The body is not valid JSON: {error}.") from None


def read(model: type[PartT], document: Any, place_of: Callable[[Place], Place] = lambda place: place) -> PartT:
    """Validate a document, or raise ``PlacedError`` for a place of it, which ``place_of`` makes of pydantic's."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise _refused(error.errors(include_url=False, include_input=False)[0], place_of) from None


def _refused(error: ErrorDetails, place_of: Callable[[Place], Place]) -> PlacedError:
    kind, place = error["type"], tuple(map(str, error["loc"]))
    code = kind if kind in ERRORS else _CODE_OF_PROBLEM.get(kind, "wrong_type")
    message = error["msg"].removesuffix(".")
    if kind.startswith("union_tag"):
        place = (*place, "type")
        message = f"it should be one of {error['ctx']['expected_tags']}" if "invalid" in kind else "it is missing"
    elif kind == "extra_forbidden":
        place = (*place[:-1], shown_field(place[-1], "a field of it"))
    place = place_of((*place, *error.get("ctx", {}).get("place", ())))
    name = f"The field {'.'.join(place)}" if place else "The body"
    hint = "Send it, too." if code == "missing_field" else ""
    return refuse(code, place, f"{name} is wrong: {message}.", hint)


def sized(
    least: int, most: int, code: str = "invalid_input", *, of: type[list[Any]] | type[dict[str, Any]] = list
) -> BeforeValidator:
    """Return a check of how many entries a list (or what ``of`` is) has, before they are read."""

    def check(value: Any) -> Any:
        if isinstance(value, of) and not least <= len(value) <= most:
            raise problem(code, f"it has {len(value)} entries; {least} to {most} are accepted")
        return value

    return BeforeValidator(check)


def must(holds: Callable[[Any], bool], code: str, message: str) -> AfterValidator:
    """Return a check of a value."""

    def check(value: Any) -> Any:
        if not holds(value):
            raise problem(code, message)
        return value

    return AfterValidator(check)


def as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict | list):
        raise problem("wrong_type", "it should be a string, object or array")
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError as error:  # a number of thousands of digits, or beyond all floating-point ones
        raise problem("wrong_type", f"it cannot be written as text: {error}") from None


def unless_blank(text: str) -> str:
    """Return a text; none, where it is white space: clients send that for what they leave out."""
    return text if text.strip() else ""


Text = Annotated[str, BeforeValidator(as_text)]


def name_in(document: Any, models: Models) -> str | None:
    """Return the model that a document asks for, None for the default; raise ``PlacedError`` if it is not served."""
    given = document.get("model") if isinstance(document, dict) else None
    if not isinstance(given, str) or (given not in models.catalog.entries and models.is_alias(given)):
        return None
    try:
        models.name_of(given, "")
    except InputError as error:
        hint = f"{error.hint} GET /v1/models lists the models, and MQAN_MODEL_ALIASES more names."
        raise refuse("unknown_model", ("model",), "The model of the request is not served here.", hint) from None
    return given


def asked_texts(questions: Sequence[Question]) -> list[AskedText]:
    """Return questions as one call of the service; those that follow each other about one text are together."""
    texts = groupby(questions, key=lambda question: question.context)
    return [AskedText(None, tuple(Item(None, question) for question in about)) for _, about in texts]


def answers_of(outcomes: Iterable[Outcome], rows: Sequence[Asked]) -> list[Answer]:
    """Return the answers to the questions of a document; the first that has none raises ``AnsweringError``."""
    answers = []
    for outcome, row in zip(outcomes, rows, strict=True):
        if not isinstance(outcome.result, Answer):
            raise AnsweringError(outcome.result, row.fields.get(outcome.result.field or "", row.place))
        answers.append(outcome.result)
    return answers


def shares(answer: Answer) -> list[float]:
    """Return the probability of each choice; they sum to 1, unless several can be right."""
    return list(answer.shares) if answer.is_multiple else [choice.among_choices for choice in answer.choices]


def shares_of_values(asked: Asked, answer: Answer) -> list[float]:
    """Return the probability of each value; those of one choice have equal parts of its own."""
    found = shares(answer)
    return [found[i] / asked.choice_of.count(i) for i in asked.choice_of] if asked.choice_of else found


def beside(answer: Answer) -> dict[str, Any]:
    """Return what these formats have no fields for: whether a choice is right, which words decide, which adapter."""
    places = [place for choice in answer.choices for place in choice.evidence]
    sources = dict.fromkeys(place.span for place in places)
    return {
        "x_answered": answer.answered,
        "x_none": answer.refusal,
        "x_sources": list(map(quotation_document, sources)),
        "x_evidence": list(map(place_document, places)),
        **({} if answer.adapter is None else {"x_adapter": answer.adapter}),
    }
