"""A question as callers send it: its fields, how it is read from a document, and the options that it stands for.

This is the one description of a question: the body of a REST call, an item of many, and a message of gRPC are all read
by ``question_of``.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final, Literal

from pydantic import BaseModel, PrivateAttr, ValidationError
from pydantic_core import from_json

from mqan_core.answer.adapter import Adapter
from mqan_core.answer.types import Source
from mqan_core.ask.options import ALL_SOURCES, MOST_ALTERNATIVES, MOST_CHOICES, MOST_LEVELS, YES_NO, Options
from mqan_core.errors import InputError
from mqan_core.example import Choice
from mqan_core.forms.parsed import check_parse
from mqan_core.text.layout import estimate_work
from mqan_core.text.tokens import measure
from mqan_serving.contract.errors import refuse, shown_field
from mqan_serving.contract.model import described

_CHARS_OF_LABEL: Final = 200  # that are read in the time that a label takes beside its own
_SAMPLE: Final = 4096  # characters of a text whose words are counted to estimate how many it has
# pydantic's names for the forms of choices
_FORMS: Final = ("str", "ChoiceField", "list[union[str,ChoiceField]]", "AdapterField")
_MOST_ENTRIES: Final = {"choices": MOST_CHOICES, "scale": MOST_LEVELS, "sources": len(ALL_SOURCES)}
# The code of each kind of error that validation can report; the rest is a wrong type.
_CODE_OF_PROBLEM: Final = {
    "missing": "missing_field",
    "extra_forbidden": "unknown_field",
    "string_unicode": "invalid_text",
}
_AS_JSON: Final = {"list_type": "Input should be a valid array", "model_type": "Input should be an object"}
SourceName = Literal["context", "question", "vocabulary"]
ParseName = Literal["sql", "dialogue_state"]


def _flag(description: str) -> Any:
    return described(description, default=False)


def _optional(description: str, *examples: Any, **given: Any) -> Any:
    return described(description, *examples, default=None, **given)


class ChoiceField(BaseModel, extra="forbid", strict=True, frozen=True):
    """A label to choose from."""

    label: str = described("What the answer says when it is chosen.", "billing")
    description: str = described("What the label covers, read with it.", "invoices, payments, refunds", default="")


class AdapterField(BaseModel, extra="forbid", strict=True, frozen=True):
    """An adapter that decides between its own labels."""

    adapter: str = described("Its name; `GET /v1/model` lists them.", "support-teams")


class Question(BaseModel, extra="forbid", strict=True, frozen=True):
    """A question about a context."""

    choices: list[str | ChoiceField] | AdapterField | None = _optional(
        f"A closed set of 1 to {MOST_CHOICES} labels to choose from. Their order does not matter. Without "
        "them, labels that the question lists apart (`Choose from: a, b or c.`) are choices. An adapter, which "
        "`mqan adapt` makes of rows, has labels of its own, and its own question, which is read in the place of "
        "`question`.",
        ["billing", "shipping", {"label": "technical support", "description": "faults of the product"}],
    )
    multiple: bool = _flag("Whether several choices can be right: each is judged by itself.")
    yes_no: bool = _flag('Whether the answer is to be "yes" or "no", or that the text does not say.')
    none: bool = _flag(
        "Whether none of the choices may be the answer, too. Otherwise one of them is, but where they are "
        "yes and no, or with `multiple` or `min_probability`."
    )
    scale: list[str] | None = _optional(
        f"2 to {MOST_LEVELS} levels, low to high, to choose from; the response has an expected value.",
        ["bad", "fair", "good"],
    )
    sources: list[SourceName] | None = _optional(
        "Where the words of a free answer may come from; with context alone no word can be invented. "
        "Unset: everywhere.",
        ["context"],
    )
    contiguous: bool = _flag("Whether the answer is to be one contiguous quotation of the context.")
    all: bool = _flag("Whether every place of the context that answers is wanted; see `places`.")
    alternatives: int = described(
        f"How many of the next best quotations are wanted, 0 to {MOST_ALTERNATIVES}; there may be fewer.", 3, default=0
    )
    explain: bool = _flag("Whether the response is to say what each step looked at; see `steps`.")
    parse: ParseName | None = _optional(
        'What a free answer is to be read as: "sql", a query of WikiSQL, or "dialogue_state", a change of '
        "state of WOZ; see `parsed`.",
        "sql",
    )
    min_probability: float | None = _optional("Below this, 0 to 1, there is no answer: answered is false.", 0.5)

    context: str = described("The text that the question is about.", "The tower is 330 m tall.")
    question: str = described("The question, in natural language. It is also the task.", "How tall is the tower?")
    max_answer_tokens: int | None = _optional("Most tokens the answer may have. Unset: the server's limit.", 20)
    timeout_ms: int | None = _optional(
        "Milliseconds until the answer is of no use. Unset or above the server's limit: that limit.", 2000, ge=1
    )
    model: str | None = _optional(
        "Name of the model that is to answer, of several; GET /v1/models lists them. Unset, empty or "
        "`default`: the server chooses.",
        "default",
    )
    citations: bool = _flag("Whether the response is to have `citations` in the shape of Anthropic's.")
    stream: bool = _flag(
        "Whether the answer is to come word by word, as server-sent events: `word` for each word as soon "
        "as it is decided, then `answer` with the whole, or `error`."
    )

    _adapter: Adapter | None = PrivateAttr(None)

    def decided_by(self, adapter: Adapter, **given: Any) -> "Question":
        """Return the question with other fields, and an adapter that decides between its choices."""
        changed = self.model_copy(update=given)
        for name in ("options", "work"):
            changed.__dict__.pop(name, None)  # of the question as it was
        changed._adapter = adapter
        return changed

    @cached_property
    def options(self) -> Options:
        """The options that the fields stand for, whether or not they make sense together; or an ``InputError``."""
        kinds = {"choices": self.choices is not None, "yes_no": self.yes_no, "scale": self.scale is not None}
        given = [name for name, is_given in kinds.items() if is_given]
        if len(given) > 1:
            message = f"{' and '.join(given)} ask for different answers to one question."
            hint = "Leave all but one of them out; ask twice for both."
            raise InputError("incompatible_options", given[1], message, hint)
        if self.yes_no and self.multiple:
            message = "multiple cannot be combined with yes_no: one of yes and no is right, not both."
            raise InputError("incompatible_options", "multiple", message, "Leave out multiple or yes_no.")
        for name in ("choices", "scale"):
            if getattr(self, name) == []:
                message = f"{name} is an empty list."
                raise InputError("wrong_number_of_choices", name, message, "Send the labels, or leave the field out.")
        options = Options(
            choices=self._choices(),
            multiple=self.multiple,
            is_scale=self.scale is not None,
            sources=ALL_SOURCES if self.sources is None else frozenset(map(Source, self.sources)),
            contiguous=self.contiguous,
            every=self.all,
            alternatives=self.alternatives,
            explain=self.explain,
            min_probability=self.min_probability,
            reads_lists=self.parse is None,
            none=self.none or (self._adapter is not None and self._adapter.head.none),
            adapter=self._adapter,
        )
        if self.parse is not None:
            check_parse(options)
        return options

    @property
    def labels(self) -> list[str]:
        choices = None if isinstance(self.choices, AdapterField) else self.choices
        given = (*(choices or ()), *(self.scale or ()))
        return [one if isinstance(one, str) else f"{one.label} {one.description}" for one in given]

    @property
    def num_chars(self) -> int:
        """Characters that are read, or as many as what is read takes the time of."""
        chars_of_labels = sum(_CHARS_OF_LABEL + len(label) for label in self.labels)
        return len(self.context) + len(self.question) + chars_of_labels

    @cached_property
    def work(self) -> int:
        """About how long it takes to read, that of question and labels once for each part of the context."""
        labels = self.labels
        num_labels = _estimate(" ".join(labels)) + len(labels)
        return estimate_work(_estimate(self.question), num_labels, _estimate(self.context))

    def _choices(self) -> tuple[Choice, ...]:
        if self.yes_no:
            return YES_NO
        if self.scale is not None:
            return tuple(Choice(level) for level in self.scale)
        if isinstance(self.choices, AdapterField):
            raise refuse("unknown_adapter", "choices", "There are no adapters here.")
        return tuple(
            Choice(choice) if isinstance(choice, str) else Choice(choice.label, choice.description)
            for choice in self.choices or ()
        )


def _estimate(text: str) -> int:
    sample = text[:_SAMPLE]
    return round(measure(sample).num_tokens * len(text) / max(1, len(sample)))


def question_schema() -> dict[str, Any]:
    """Return the JSON schema of a question, whole: an OpenAPI document has no place for its definitions."""
    schema = Question.model_json_schema()
    definitions = schema.pop("$defs", {})

    def whole(part: Any) -> Any:
        if isinstance(part, dict):
            if "$ref" in part:
                return whole(definitions[part["$ref"].rpartition("/")[2]])
            return {name: whole(inner) for name, inner in part.items()}
        return [whole(inner) for inner in part] if isinstance(part, list) else part

    found: dict[str, Any] = whole(schema)
    return found


def json_body(schema: Any, **example: Any) -> dict[str, Any]:
    """Return how a request body looks, for the API document; ``example`` has one where there is one."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema, **example}}}}


def read_object(body: bytes, *, allow_inf_nan: bool = True) -> dict[str, Any]:
    try:
        document = from_json(body, allow_inf_nan=allow_inf_nan)
    except ValueError as error:
        try:
            body.decode("utf-8")
        except UnicodeDecodeError as undecoded:
            message = f"The body is not valid UTF-8: byte {undecoded.start} cannot be decoded."
            raise refuse("malformed_request", "body", message) from None
        escape = "a \\u escape is incomplete or half of a surrogate pair ({})" if "hex escape" in str(error) else "{}"
        message = f"The body is not valid JSON: {escape.format(error)}."
        raise refuse("malformed_request", "body", message) from None
    if not isinstance(document, dict):
        raise refuse("malformed_request", "body", "The body is not a JSON object.")
    return document


def question_of(document: dict[str, Any]) -> Question:
    """Return the question that a document is, or raise ``InputError`` for the field that is wrong."""
    # Validation would make an error for each unknown field and each wrong entry: seconds for 1 MB of them.
    for name in document:
        if name not in Question.model_fields:
            raise _explain("extra_forbidden", [name], "")
    check_lists({name: len(given) for name, given in document.items() if isinstance(given, list)})
    try:
        return Question.model_validate(document)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
    found = [(tuple(part for part in problem["loc"] if part not in _FORMS), problem) for problem in problems]
    beside = [(place, problem) for place, problem in found if place[:2] == found[0][0][:2]]
    place, problem = max(beside, key=lambda one: len(one[0]))  # of several forms, the one that fits best
    raise _explain(problem["type"], place, _AS_JSON.get(problem["type"], problem["msg"]))


def check_lists(lengths: Mapping[str, int]) -> None:
    """Refuse lists of a question that are too long, before each entry of a list of any length is read."""
    for name, most in _MOST_ENTRIES.items():
        if lengths.get(name, 0) > most:
            message = f"{name} has {lengths[name]} entries; at most {most} are accepted."
            code = "wrong_type" if name == "sources" else "wrong_number_of_choices"
            raise InputError(code, name, message, f"Send at most {most}.")


def _explain(problem: str, place: Sequence[int | str], detail: str) -> InputError:
    field = str(place[0]) if place and _is_place(place[0]) else "body"
    if field == "timeout_ms":
        return refuse("invalid_timeout", field, "timeout_ms is not a whole number of milliseconds above 0.")
    path = _path(place)
    code = _CODE_OF_PROBLEM.get(problem, "wrong_type")
    near = get_close_matches(path, Question.model_fields, n=1) if len(place) == 1 and _is_place(place[0]) else []
    meant = f"; did you mean {near[0]}?" if near else "."
    unknown = f"The field {path}" if all(map(_is_place, place)) else f"A field of {path}"
    message = {
        "missing_field": f"The field {path} is missing.",
        "unknown_field": f"{unknown} is unknown{meant}",
        "invalid_text": f"The field {path} is not valid Unicode text.",
        "wrong_type": f"The field {path} has the wrong type: {detail}.",
    }[code]
    return refuse(code, field, message)


def _is_place(part: int | str) -> bool:
    return isinstance(part, int) or bool(shown_field(part, ""))


def _path(place: Sequence[int | str]) -> str:
    path = ""
    for part in place:
        if isinstance(part, int):
            path += f"[{part}]"
        elif _is_place(part):
            path += f".{part}" if path else part
    return path or "the body"
