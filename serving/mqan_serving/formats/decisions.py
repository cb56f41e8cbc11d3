"""``POST /v1/decisions``: typed questions about an input, as OpenAI's clients send them.

Other clients send TypeSafe's requests to paths that end so, OpenRouter's among them: these have a ``state``.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, Final

from mqan_core.answer.types import Answer
from mqan_core.ask.options import MOST_CHOICES, MOST_LEVELS
from mqan_serving.contract.model import Model
from mqan_serving.contract.questions import ChoiceField, Question
from mqan_serving.formats import systemone
from mqan_serving.formats.adapting import (
    Place,
    as_list,
    as_object,
    as_string,
    as_text,
    check_model,
    choice_confidence,
    choose,
    count_tokens,
    expected,
    get,
    read_object,
    refuse,
    score_confidence,
    shares,
    told_beside,
    unless_blank,
)

_MOST_QUESTIONS: Final = 400  # as the format has it
_MOST_PARTS: Final = 10_000
_TEXTS_OF_PARTS: Final = {
    "input_text": "text",
    "output_text": "text",
    "input_json": "data",
    "refusal": "refusal",
}
_TEXTS_OF_CALLS: Final = {
    "function_call": "arguments",
    "function_call_output": "output",
    "custom_tool_call": "input",
    "custom_tool_call_output": "output",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a document.

    Attributes:
        name: as it was sent; None where it has none.
        type: ``predicate``, ``choice`` or ``score``.
        values: the values of its choices, or the labels of its levels, as they were sent.
        place: where it stands in the document.
        question: the service's own.
    """

    name: str | None
    type: str
    values: list[Any]
    place: Place
    question: Question

    @property
    def fields(self) -> Mapping[str, Place]:
        """Where fields stand in the document that are not the question's."""
        return {"context": ("input",)}


def parse(body: bytes, model: Model) -> list[Asked] | list[systemone.Asked]:
    """Read the questions of a document, for ``foreign.Format``."""
    document = read_object(body)
    if "state" in document and "input" not in document:
        return systemone.read(document, model)
    check_model(get(document, "model", ()), model)
    context = _read_input(get(document, "input", ()))
    rows = as_list(get(document, "questions", ()), ("questions",), 1, _MOST_QUESTIONS)
    return [_ask(context, row, ("questions", str(i))) for i, row in enumerate(rows)]


def respond(
    asked: Sequence[Asked] | Sequence[systemone.Asked], answers: Sequence[Answer], model: str
) -> dict[str, Any]:
    """Return the response to a document, its answers in the order of the questions."""
    of_systemone = [one for one in asked if isinstance(one, systemone.Asked)]
    if of_systemone:
        return systemone.respond(of_systemone, answers, model)
    number = count_tokens([one.question for one in asked])
    usage = {
        "input_tokens": number,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": number,
    }
    told = [_tell(one, answer) for one, answer in zip(asked, answers, strict=True) if isinstance(one, Asked)]
    return {"model": model, "answers": told, "usage": usage}


def _read_input(given: Any) -> str:
    if isinstance(given, str):
        return given
    rows = as_list(given, ("input",), 1, _MOST_PARTS)
    return "\n".join(_read_item(row, ("input", str(i))) for i, row in enumerate(rows))


def _read_item(row: Any, place: Place) -> str:
    row = as_object(row, place)
    kind = row.get("type", "message")
    if isinstance(kind, str) and kind in _TEXTS_OF_CALLS:
        name = _TEXTS_OF_CALLS[kind]
        return _read_content(get(row, name, place), (*place, name))
    if kind != "message":
        raise refuse("invalid_input", (*place, "type"), "The type of an item of the input is not known.")
    return _read_content(get(row, "content", place), (*place, "content"))


def _read_content(given: Any, place: Place) -> str:
    """Return a string as it is, parts one below the other."""
    if isinstance(given, str):
        return given
    texts = []
    for i, part in enumerate(as_list(given, place, 1, _MOST_PARTS)):
        here = (*place, str(i))
        part = as_object(part, here)
        kind = get(part, "type", here)
        if not isinstance(kind, str) or kind not in _TEXTS_OF_PARTS:
            message = "The type of a part is not input_text, input_json, output_text or refusal."
            raise refuse("invalid_input", (*here, "type"), message, "Send text; images are not read here.")
        name = _TEXTS_OF_PARTS[kind]
        value = get(part, name, here)
        texts.append(as_text(value, (*here, name)) if kind == "input_json" else as_string(value, (*here, name)))
    return "\n".join(texts)


def _ask(context: str, row: Any, place: Place) -> Asked:
    row = as_object(row, place)
    name = row.get("name")
    if name is not None:
        as_string(name, (*place, "name"))
    kind = get(row, "type", place)
    text = _read_content(get(row, "instructions", place), (*place, "instructions"))
    if kind == "predicate":
        choices, values = [ChoiceField(label="yes"), ChoiceField(label="no")], [True, False]
    elif kind == "choice":
        choices, values = _choices(row, place)
    elif kind == "score":
        choices, values = _levels(row, place)
    else:
        message = "The type of a question is not predicate, choice or score."
        raise refuse("invalid_input", (*place, "type"), message, "Send one of these.")
    return Asked(name, str(kind), values, place, choose(context, text, choices))


def _choices(row: dict[str, Any], place: Place) -> tuple[list[ChoiceField], list[Any]]:
    place = (*place, "choices")
    entries = as_list(get(row, place[-1], place[:-1]), place, 2, MOST_CHOICES)
    given = [entry.get("value") for entry in entries if isinstance(entry, dict)]
    texts = {value.casefold() for value in given if isinstance(value, str)}
    choices, values = [], []
    for i, entry in enumerate(entries):
        here = (*place, str(i))
        entry = as_object(entry, here)
        value = get(entry, "value", here)
        label = _shown(value, texts) if isinstance(value, bool) else as_string(value, (*here, "value"))
        choices.append(ChoiceField(label=label, description=_description(entry, here)))
        values.append(value)
    return choices, values


def _shown(value: bool, others: Set[str]) -> str:
    """Return the label that the model is shown for true or false: one that is not among the strings, too.

    Args:
        value: true or false.
        others: the strings, case folded: the model reads them so.
    """
    labels = ("yes", "true") if value else ("no", "false")
    return next(label for label in chain(labels, (f"{labels[0]} {n}" for n in count(2))) if label not in others)


def _levels(row: dict[str, Any], place: Place) -> tuple[list[ChoiceField], list[Any]]:
    place = (*place, "levels")
    choices, labels = [], []
    for i, entry in enumerate(as_list(get(row, place[-1], place[:-1]), place, 2, MOST_LEVELS)):
        here = (*place, str(i))
        entry = as_object(entry, here)
        label = as_string(get(entry, "label", here), (*here, "label"))
        choices.append(ChoiceField(label=label, description=_description(entry, here)))
        labels.append(label)
    meanings = {choice.description.casefold() for choice in choices if choice.label.isdecimal()} - {""}
    if len(meanings) == len(choices):
        # some clients number the levels and put their meaning beside them: the model reads the meaning
        choices = [ChoiceField(label=choice.description) for choice in choices]
    return choices, labels


def _description(entry: dict[str, Any], place: Place) -> str:
    given = entry.get("description")
    return "" if given is None else unless_blank(_read_content(given, (*place, "description")))


def _tell(asked: Asked, answer: Answer) -> dict[str, Any]:
    found = shares(answer)
    told: dict[str, Any] = {"type": asked.type, "name": asked.name}
    if asked.type == "predicate":
        told["probability"] = min(1.0, found[0])
    elif asked.type == "choice":
        told["choice"] = asked.values[max(range(len(found)), key=lambda i: found[i])]
        told["confidence"] = choice_confidence(found)
        told["probabilities"] = [
            {"value": value, "probability": share} for value, share in zip(asked.values, found, strict=True)
        ]
    else:
        told["score"] = expected(found)
        told["confidence"] = score_confidence(found)
        told["probabilities"] = [
            {"value": i, "label": label, "probability": share}
            for i, (label, share) in enumerate(zip(asked.values, found, strict=True))
        ]
    return told | told_beside(answer)
