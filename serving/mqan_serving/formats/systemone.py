"""``POST /v1/systemone``: typed questions about a state, as TypeSafe's clients send them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mqan_core.answer.types import Answer
from mqan_core.ask.options import MOST_CHOICES, MOST_LEVELS
from mqan_serving.contract.calls import MOST_QUESTIONS
from mqan_serving.contract.model import Model
from mqan_serving.contract.questions import ChoiceField, Question
from mqan_serving.formats.adapting import (
    Place,
    as_list,
    as_object,
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

JEV: Final = "jev-latest"  # what its clients ask for by default
RELEASED: Final = "2026-11-26"  # of this format; its clients want a date


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a document.

    Attributes:
        id: its name in the document.
        type: ``noul``, ``choice`` or ``score``.
        criteria: the options or levels as they were sent.
        question: the service's own.
    """

    id: str
    type: str
    criteria: list[Any]
    question: Question

    @property
    def fields(self) -> Mapping[str, Place]:
        """Where fields stand in the document that are not the question's."""
        return {"context": ("state",)}

    @property
    def place(self) -> Place:
        """Where it stands in the document."""
        return ("questions", self.id, self.type)


def parse(body: bytes, model: Model) -> list[Asked]:
    """Read the questions of a document, for ``foreign.Format``."""
    return read(read_object(body), model)


def read(document: dict[str, Any], model: Model) -> list[Asked]:
    """Read the questions of a document that is parsed.

    Raises:
        PlacedError: something in it is wrong; it says where.
    """
    check_model(get(document, "model", ()), model)
    if "state" not in document and "input" in document:
        message = "The field state is missing."
        hint = "This looks like a request of OpenAI's: send it to /v1/decisions."
        raise refuse("missing_field", ("state",), message, hint)
    if document.get("assets"):
        raise refuse("invalid_input", ("assets",), "Images are not read here.", "Leave out assets.")
    state = as_text(get(document, "state", ()), ("state",))
    questions = as_object(get(document, "questions", ()), ("questions",))
    if not 1 <= len(questions) <= MOST_QUESTIONS:
        message = f"There are {len(questions)} questions; 1 to {MOST_QUESTIONS} are accepted."
        raise refuse("too_many_questions", ("questions",), message)
    return [_ask(state, name, row) for name, row in questions.items()]


def respond(asked: Sequence[Asked], answers: Sequence[Answer], model: str) -> dict[str, Any]:
    """Return the response to a document, its answers in the order of the questions."""
    usage = {"input_tokens": count_tokens([one.question for one in asked]), "output_tokens": 0}
    told = {one.id: _tell(one, answer) for one, answer in zip(asked, answers, strict=True)}
    return {"model": model, "answers": told, "usage": usage}


def list_models(name: str, version: str, *, is_jev: bool = True) -> dict[str, Any]:
    """Return what is served, for TypeSafe's clients and OpenAI's at once.

    Args:
        name, version: of the model.
        is_jev: whether TypeSafe's own name stands for it.
    """
    described = {"name": name, "description": f"mqan {version}", "release_date": RELEASED}
    listed = {"id": name, "object": "model", "created": 0, "owned_by": "mqan"}
    names = [described, *([{**described, "name": JEV}] if is_jev else [])]
    return {"models": names, "object": "list", "data": [listed]}


def _ask(state: str, name: str, row: Any) -> Asked:
    place: Place = ("questions", name)
    if not name:
        raise refuse("invalid_input", place, "A question has an empty id.", "Name it.")
    row = as_object(row, place)
    kind = get(row, "type", place)
    readers = {"noul": _noul, "choice": _choice, "score": _score}
    if not isinstance(kind, str) or kind not in readers:
        message = "The type of a question is not noul, choice or score."
        raise refuse("invalid_input", (*place, "type"), message, "Send one of these.")
    place = (*place, kind)
    given = row.get("instructions")
    instructions = _described(given, (*place, "instructions"))
    text, choices, criteria = readers[kind](row, instructions, place)
    return Asked(name, kind, criteria, choose(state, text, choices))


def _noul(row: dict[str, Any], instructions: str, place: Place) -> tuple[str, list[ChoiceField], list[Any]]:
    place = (*place, "criteria")
    given = row.get("criteria")
    criteria = {} if given is None else as_object(given, place)
    for name in criteria:
        if name not in ("true", "false"):
            raise refuse("unknown_field", place, "Criteria are of true and false only.", "Leave out the others.")
    meaning = {name: _described(criteria.get(name), (*place, name)) for name in ("true", "false")}
    if not instructions:
        if not any(meaning.values()):
            message = "A question has neither instructions nor criteria."
            raise refuse("missing_field", (*place[:-1], "instructions"), message, "Send one of them.")
        instructions = f"Is it so: {meaning['true']}" if meaning["true"] else "Is this true?"
    return instructions, [ChoiceField(label="yes", description=meaning["true"]), _no(meaning["false"])], []


def _no(description: str) -> ChoiceField:
    return ChoiceField(label="no", description=description)


def _choice(row: dict[str, Any], instructions: str, place: Place) -> tuple[str, list[ChoiceField], list[Any]]:
    criteria = as_object(get(row, "criteria", place), (*place, "criteria"))
    if not 1 <= len(criteria) <= MOST_CHOICES:
        message = f"There are {len(criteria)} options; 1 to {MOST_CHOICES} are accepted."
        raise refuse("wrong_number_of_choices", (*place, "criteria"), message)
    choices = [
        ChoiceField(label=label, description=_described(text, (*place, "criteria", label)))
        for label, text in criteria.items()
    ]
    return instructions or "Which of these is right?", choices, list(criteria)


def _score(row: dict[str, Any], instructions: str, place: Place) -> tuple[str, list[ChoiceField], list[Any]]:
    place_of_levels = (*place, "criteria")
    levels = as_list(get(row, "criteria", place), place_of_levels, 1, MOST_LEVELS)
    choices = [ChoiceField(label=as_text(level, (*place_of_levels, str(i)))) for i, level in enumerate(levels)]
    return instructions or "Which of these levels is right?", choices, levels


def _described(value: Any, place: Place) -> str:
    return "" if value is None else unless_blank(as_text(value, place))


def _tell(asked: Asked, answer: Answer) -> dict[str, Any]:
    found = shares(answer)
    told: dict[str, Any] = {"type": asked.type}
    if asked.type == "noul":
        told["noul"] = min(1.0, found[0])
    elif asked.type == "choice":
        likeliest = max(range(len(found)), key=lambda i: found[i])
        told["choice"] = asked.criteria[likeliest]
        told["confidence"] = choice_confidence(found)
        told["probabilities"] = dict(zip(asked.criteria, found, strict=True))
    else:
        told["score"] = expected(found)
        told["confidence"] = score_confidence(found)
        told["legend"] = {str(i): level for i, level in enumerate(asked.criteria)}
        told["probabilities"] = {str(i): share for i, share in enumerate(found)}
    return told | told_beside(answer)
