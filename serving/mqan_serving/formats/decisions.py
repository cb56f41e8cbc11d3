"""Typed questions about an input, as two vendors' clients send them.

``POST /v1/systemone`` takes TypeSafe's requests, about a ``state``; ``POST /v1/decisions`` takes OpenAI's, about an
``input``. Other clients, OpenRouter's among them, send TypeSafe's requests to paths that end in ``decisions``.
"""

import operator
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import chain, count
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from mqan_core.answer.types import Answer
from mqan_core.ask.options import MOST_CHOICES, MOST_LEVELS, is_yes_no
from mqan_core.text.tokens import measure
from mqan_serving.contract.calls import MOST_QUESTIONS
from mqan_serving.contract.model import Model
from mqan_serving.contract.questions import AdapterField, ChoiceField, Question
from mqan_serving.formats import adapting
from mqan_serving.formats.adapting import NO_LABELS, OR_ADAPTER, Adaptable, Asked, Part, Text, must, problem, sized

_MOST_QUESTIONS: Final = 400  # as the format has it
_MOST_PARTS: Final = 10_000
_FIELD_OF_PART: Final = {"input_text": "text", "output_text": "text", "input_json": "data", "refusal": "refusal"}
_FIELD_OF_ITEM: Final = {
    "message": "content",
    "function_call": "arguments",
    "function_call_output": "output",
    "custom_tool_call": "input",
    "custom_tool_call_output": "output",
}
_DESCRIBES: Final = 3  # words: from here on a description says alone what an option stands for
JEV: Final = "jev-latest"  # what its clients ask for by default
RELEASED: Final = "2026-11-26"  # of this format; its clients want a date


def _as_level(value: Any) -> Any:
    adapting.as_text(value)  # refuses what is no text
    return value


_Described = Annotated[
    str, BeforeValidator(lambda value: "" if value is None else adapting.unless_blank(adapting.as_text(value)))
]


class _Meanings(Part, extra="forbid"):
    yes: _Described = Field("", alias="true")
    no: _Described = Field("", alias="false")


class _Noul(Part):
    type: Literal["noul"]
    instructions: _Described = ""
    criteria: _Meanings | None = None


class _Options(Adaptable):
    type: Literal["choice"]
    instructions: _Described = ""
    criteria: Annotated[
        dict[str, _Described], sized(1, MOST_CHOICES, "wrong_number_of_choices", of=dict), OR_ADAPTER
    ] = NO_LABELS


class _Levels(Adaptable):
    type: Literal["score"]
    instructions: _Described = ""
    criteria: Annotated[list[Annotated[Any, AfterValidator(_as_level)]], sized(1, MOST_LEVELS), OR_ADAPTER] = NO_LABELS


class _StateRequest(Part):
    model: str
    state: Text
    assets: Annotated[Any, must(operator.not_, "invalid_input", "images are not read here; leave out assets")] = None
    questions: Annotated[
        dict[str, Annotated[_Noul | _Options | _Levels, Field(discriminator="type")]],
        sized(1, MOST_QUESTIONS, "too_many_questions", of=dict),
    ]


def parse_systemone(document: Any, _: Model) -> list[Asked]:
    if isinstance(document, dict) and "state" not in document and "input" in document:
        hint = "This looks like a request of OpenAI's: send it to /v1/decisions."
        raise adapting.refuse("missing_field", ("state",), "The field state is missing.", hint)
    request = adapting.read(_StateRequest, document)
    return [_ask_about_state(request.state, name, row) for name, row in request.questions.items()]


def _ask_about_state(state: str, name: str, row: _Noul | _Options | _Levels) -> Asked:
    if not name:
        raise adapting.refuse("invalid_input", ("questions", ""), "A question has an empty id.", "Name it.")
    place: adapting.Place = ("questions", name, row.type)
    text, values = row.instructions, list[Any]()
    choices: list[ChoiceField] | AdapterField
    choice_of: list[int] = []
    if isinstance(row, _Noul):
        meanings = row.criteria or _Meanings()
        if not (text or meanings.yes or meanings.no):
            message = "A question has neither instructions nor criteria."
            raise adapting.refuse("missing_field", (*place, "instructions"), message, "Send one of them.")
        text = text or (f"Is it so: {meanings.yes}" if meanings.yes else "Is this true?")
        pairs = (("yes", meanings.yes), ("no", meanings.no))
        choices = [ChoiceField(label=label, description=meaning) for label, meaning in pairs]
    elif row.adapter is not None:
        choices = AdapterField(adapter=row.adapter)
    elif isinstance(row, _Options):
        text, values = text or "Which of these is right?", list(row.criteria)
        choices, choice_of = _read_options(row.criteria)
    else:
        text, values = text or "Which of these levels is right?", row.criteria
        choices = [ChoiceField(label=label) for label in _as_yes_no([adapting.as_text(level) for level in values])]
    return _asked("state", state, text, choices, place, row.type, name, values, choice_of)


def _asked(
    field: str, context: str, text: str, choices: list[ChoiceField] | AdapterField, place: adapting.Place, *rest: Any
) -> Asked:
    fields: dict[str, adapting.Place] = {"context": (field,)}
    if isinstance(choices, AdapterField):
        fields["choices"] = (*place, "adapter")
    given: Any = choices
    return Asked(Question(context=context, question=text, choices=given), place, fields, *rest)


def _read_options(criteria: Mapping[str, str]) -> tuple[list[ChoiceField], list[int]]:
    """Return the choices that are read, and which of them stands for each option.

    Where all options are described in some words, their ids are a program's names: the descriptions are read, once
    each. A word or two are a hint, which is read beside the id.
    """
    if any(len(meaning.split()) < _DESCRIBES for meaning in criteria.values()):
        hints = {label: hint if hint.casefold() != label.casefold() else "" for label, hint in criteria.items()}
        return [ChoiceField(label=label, description=hint) for label, hint in hints.items()], []
    told = [" ".join(meaning.split()) for meaning in criteria.values()]
    label_of = {meaning.casefold(): meaning for meaning in told}
    place_of = {folded: place for place, folded in enumerate(label_of)}
    return [ChoiceField(label=label) for label in label_of.values()], [place_of[m.casefold()] for m in told]


def _as_yes_no(labels: list[str]) -> list[str]:
    said = {"true": "yes", "false": "no"}
    folded = [label.strip().casefold() for label in labels]
    return [said.get(label, label) for label in folded] if len(labels) == 2 and is_yes_no(labels) else labels


def respond_systemone(asked: Sequence[Asked], answers: Sequence[Answer], model: str) -> dict[str, Any]:
    rows = _labelled(asked, answers)
    found = {one.name: _describe_systemone(one, answer) for one, answer in rows}
    return {"model": model, "answers": found, "usage": {"input_tokens": _count_tokens(rows), "output_tokens": 0}}


def _labelled(asked: Sequence[Asked], answers: Sequence[Answer]) -> list[tuple[Asked, Answer]]:
    rows = []
    for one, answer in zip(asked, answers, strict=True):
        values = one.values
        if answer.adapter is not None:
            if answer.is_multiple or (one.kind == "score" and answer.expected is None):
                wanted = "levels of a scale" if one.kind == "score" else "labels of which one is right"
                message = f"The adapter {answer.adapter.name} does not decide between {wanted}."
                raise adapting.refuse(
                    "incompatible_options", (*one.place, "adapter"), message, "Ask with POST /v1/answer."
                )
            values = [choice.label for choice in answer.choices]
        rows.append((replace(one, values=values), answer))
    return rows


def _decided(asked: Asked, found: Sequence[float]) -> dict[str, Any]:
    if asked.kind == "choice":
        likeliest = max(range(len(found)), key=lambda i: found[i])
        return {"choice": asked.values[likeliest], "confidence": choice_confidence(found)}
    expected = sum(i * share for i, share in enumerate(found))
    return {"score": expected, "confidence": score_confidence(found)}


def _describe_systemone(asked: Asked, answer: Answer) -> dict[str, Any]:
    found = adapting.shares_of_values(asked, answer)
    described: dict[str, Any] = {"type": asked.kind}
    if asked.kind == "noul":
        return described | {"noul": min(1.0, found[0])} | adapting.beside(answer)
    described |= _decided(asked, found)
    if asked.kind == "choice":
        described["probabilities"] = dict(zip(asked.values, found, strict=True))
    else:
        described["legend"] = {str(i): level for i, level in enumerate(asked.values)}
        described["probabilities"] = {str(i): share for i, share in enumerate(found)}
    return described | adapting.beside(answer)


def list_models(served: Sequence[tuple[str, str]], *, is_jev: bool = True) -> dict[str, Any]:
    """Return the list of models for the clients of TypeSafe (``is_jev``: with its own name) and OpenAI's at once."""
    rows = [
        {"name": name, "description": f"mqan {version}", "release_date": RELEASED}
        for name, version in (*served, *([(JEV, served[0][1])] if is_jev else []))
    ]
    listed = [{"id": name, "object": "model", "created": 0, "owned_by": "mqan"} for name, _ in served]
    return {"models": rows, "object": "list", "data": listed}


def _read_parts(given: Any, field_of: Mapping[str, str], *place: str, usual: str | None = None) -> str:
    if isinstance(given, str):
        return given
    if not isinstance(given, list):
        raise problem("wrong_type", "it should be a string or a list", *place)
    if not 1 <= len(given) <= _MOST_PARTS:
        raise problem("invalid_input", f"it has {len(given)} entries; 1 to {_MOST_PARTS} are accepted", *place)
    texts = []
    for i, entry in enumerate(given):
        here = (*place, str(i))
        if not isinstance(entry, dict):
            raise problem("wrong_type", "it should be an object", *here)
        kind = entry.get("type", usual)
        name = field_of.get(kind) if isinstance(kind, str) else None
        if name is None:
            code = "invalid_input" if "type" in entry else "missing_field"
            raise problem(code, f"it should be one of {', '.join(field_of)}; images are not read here", *here, "type")
        if name not in entry:
            raise problem("missing_field", "it is missing", *here, name)
        value = entry[name]
        if field_of is _FIELD_OF_ITEM:
            value = _read_content(value, *here, name)
        elif kind != "input_json" and not isinstance(value, str):
            raise problem("wrong_type", "it should be a string", *here, name)
        texts.append(adapting.as_text(value))
    return "\n".join(texts)


def _read_content(given: Any, *place: str) -> str:
    return _read_parts(given, _FIELD_OF_PART, *place)


class _Entry(Part):
    value: Annotated[
        Any, must(lambda value: isinstance(value, str | bool), "wrong_type", "it should be a string, true or false")
    ]
    description: Annotated[
        str, BeforeValidator(lambda value: "" if value is None else adapting.unless_blank(_read_content(value)))
    ] = ""


class _Level(_Entry):
    value: Any = None
    label: str


class _Question(Part):
    name: str | None = None
    instructions: Annotated[str, BeforeValidator(_read_content)]


class _Predicate(_Question):
    type: Literal["predicate"]


class _Choice(_Question, Adaptable):
    type: Literal["choice"]
    choices: Annotated[list[_Entry], sized(2, MOST_CHOICES), OR_ADAPTER] = NO_LABELS


class _Score(_Question, Adaptable):
    type: Literal["score"]
    levels: Annotated[list[_Level], sized(2, MOST_LEVELS), OR_ADAPTER] = NO_LABELS


class _Request(Part):
    model: str
    input: Annotated[str, BeforeValidator(partial(_read_parts, field_of=_FIELD_OF_ITEM, usual="message"))]
    questions: Annotated[
        list[Annotated[_Predicate | _Choice | _Score, Field(discriminator="type")]], sized(1, _MOST_QUESTIONS)
    ]


def _place_of(place: adapting.Place) -> adapting.Place:
    """Leave out the type of a question, which pydantic puts after its number."""
    has_type = place[:1] == ("questions",) and place[2:3] in (("predicate",), ("choice",), ("score",))
    return (*place[:2], *place[3:]) if has_type else place


def parse(document: Any, model: Model) -> list[Asked]:
    if isinstance(document, dict) and "state" in document and "input" not in document:
        return parse_systemone(document, model)
    request = adapting.read(_Request, document, _place_of)
    return [_ask(request.input, row, ("questions", str(i))) for i, row in enumerate(request.questions)]


def _ask(context: str, row: _Predicate | _Choice | _Score, place: adapting.Place) -> Asked:
    choices: list[ChoiceField] | AdapterField
    values: list[Any] = []
    if isinstance(row, _Predicate):
        choices, values = [ChoiceField(label="yes"), ChoiceField(label="no")], [True, False]
    elif row.adapter is not None:
        choices = AdapterField(adapter=row.adapter)
    elif isinstance(row, _Choice):
        values = [entry.value for entry in row.choices]
        texts = {value.casefold() for value in values if isinstance(value, str)}
        pairs = [(_label_of(entry.value, texts), entry.description) for entry in row.choices]
        choices = [ChoiceField(label=label, description=description) for label, description in pairs]
    else:
        values = [level.label for level in row.levels]
        choices = [ChoiceField(label=level.label, description=level.description) for level in row.levels]
        meanings = {level.description.casefold() for level in row.levels if level.label.isdecimal()} - {""}
        if len(meanings) == len(choices):
            # some clients number the levels and put their meaning beside them: the model reads the meaning
            choices = [ChoiceField(label=level.description) for level in row.levels]
    return _asked("input", context, row.instructions, choices, place, row.type, row.name, values)


def _label_of(value: str | bool, others: Set[str]) -> str:
    if isinstance(value, str):
        return value
    labels = ("yes", "true") if value else ("no", "false")
    return next(label for label in chain(labels, (f"{labels[0]} {n}" for n in count(2))) if label not in others)


def respond(asked: Sequence[Asked], answers: Sequence[Answer], model: str) -> dict[str, Any]:
    if asked[0].fields["context"] == ("state",):
        return respond_systemone(asked, answers, model)
    rows = _labelled(asked, answers)
    number = _count_tokens(rows)
    usage = {
        "input_tokens": number,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": number,
    }
    return {"model": model, "answers": [_describe(one, answer) for one, answer in rows], "usage": usage}


def _describe(asked: Asked, answer: Answer) -> dict[str, Any]:
    found = adapting.shares(answer)
    described: dict[str, Any] = {"type": asked.kind, "name": asked.name}
    if asked.kind == "predicate":
        return described | {"probability": min(1.0, found[0])} | adapting.beside(answer)
    name, pairs = "value" if asked.kind == "choice" else "label", zip(asked.values, found, strict=True)
    rows = [{name: value, "probability": share} for value, share in pairs]
    if asked.kind == "score":
        rows = [{"value": i, **row} for i, row in enumerate(rows)]
    return described | _decided(asked, found) | {"probabilities": rows} | adapting.beside(answer)


def choice_confidence(probabilities: Sequence[float]) -> float:
    """Return how far the likeliest choice is above chance: 0 where all are alike, 1 where the rest is impossible."""
    number = len(probabilities)
    return 1.0 if number == 1 else min(1.0, max(0.0, (number * max(probabilities) - 1) / (number - 1)))


def score_confidence(probabilities: Sequence[float]) -> float:
    """Return how close the levels lie to the likeliest, compared with levels that are all alike."""
    number = len(probabilities)
    if number == 1:
        return 1.0
    likeliest = max(range(number), key=lambda i: probabilities[i])
    spread = sum(share * abs(i - likeliest) for i, share in enumerate(probabilities))
    uniform = sum(abs(i - (number - 1) / 2) for i in range(number)) / number
    return min(1.0, max(0.0, 1 - spread / uniform))


def _count_tokens(rows: Sequence[tuple[Asked, Answer]]) -> int:
    texts = [rows[0][0].question.context]
    for one, answer in rows:
        texts += [one.question.question, *(one.question.labels or [choice.label for choice in answer.choices])]
    return sum(measure(text).num_tokens for text in texts)
