"""The one check of what callers send, for every transport. What it refuses it explains; it never cuts or repairs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from pydantic import Field, ValidationError
from pydantic_core import from_json

from mqan_core.ask.options import Options
from mqan_core.ask.request import Check
from mqan_core.errors import InputError
from mqan_core.text.layout import count_read
from mqan_core.text.tokens import Size, has_words, measure
from mqan_serving.service.asked import AskedFor, ChoiceField, check_lists
from mqan_serving.service.errors import ERRORS

RequestT = TypeVar("RequestT")

_CHARS_OF_LABEL = 200  # that are read in the time that a label takes beside its own
_SAMPLE = 4096  # characters of a text whose words are counted to estimate how many it has


class Question(AskedFor):
    """A question about a context."""

    context: str = Field(description="The text that the question is about.", examples=["The tower is 330 m tall."])
    question: str = Field(
        description="The question, in natural language. It is also the task.", examples=["How tall is the tower?"]
    )
    max_answer_tokens: int | None = Field(
        default=None, description="Most tokens the answer may have. Unset: the server's limit.", examples=[20]
    )
    timeout_ms: int | None = Field(
        default=None,
        ge=1,
        description="Milliseconds until the answer is of no use. Unset or above the server's limit: that limit.",
        examples=[2000],
    )
    citations: bool = Field(
        default=False, description="Whether the response is to have `citations` in the shape of Anthropic's."
    )
    stream: bool = Field(
        default=False,
        description="Whether the answer is to come word by word, as server-sent events: `word` for each word as soon "
        "as it is decided, then `answer` with the whole, or `error`.",
    )

    @property
    def num_chars(self) -> int:
        """Characters that are read, or as many as what is read takes the time of."""
        chars_of_labels = sum(_CHARS_OF_LABEL + len(label) for label in self.labels)
        return len(self.context) + len(self.question) + chars_of_labels

    @cached_property
    def num_pieces(self) -> int:
        """About how many pieces are read, those of question and labels once for each part of the context."""
        labels = self.labels
        num_labels = _estimate(" ".join(labels)) + len(labels)
        return count_read(_estimate(self.question), num_labels, _estimate(self.context))


def _estimate(text: str) -> int:
    """Return about how many words a text has, by its beginning."""
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


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of requests; published with the model."""

    max_request_bytes: int
    max_context_tokens: int
    max_question_tokens: int
    max_answer_tokens: int
    max_word_length: int
    max_metadata_bytes: int
    max_timeout_ms: int
    max_concurrent_requests: int
    max_queued_requests: int


_LONGEST_NAME = 40  # of a field that is named
_FORMS = ("str", ChoiceField.__name__)  # pydantic's names for the forms of a choice
# The code of each kind of error that reading a JSON document can report; the rest is a wrong type.
_CODE_OF_PROBLEM = {
    "missing": "missing_field",
    "extra_forbidden": "unknown_field",
    "string_unicode": "invalid_text",
    "json_invalid": "malformed_request",
}


_BYTES_PER_PAIR = 32  # what HTTP/2 and gRPC add for each


def check_metadata(pairs: Iterable[tuple[str | bytes, str | bytes]], limit: int) -> None:
    """Check the size of HTTP headers or gRPC metadata.

    Args:
        pairs: names and values.
        limit: most bytes of all of them.

    Raises:
        InputError: they are too large.
    """
    num_bytes = sum(len(name) + len(value) + _BYTES_PER_PAIR for name, value in pairs)
    if num_bytes > limit:
        message = f"The headers or metadata have {num_bytes} bytes; at most {limit} are accepted."
        raise InputError("metadata_too_large", "metadata", message, ERRORS["metadata_too_large"].hint)


class Validator:
    """Checks requests against the limits of one server.

    Args:
        limits: the published limits.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    def parse_json(self, body: bytes) -> Question:
        """Read a question from a JSON document.

        Raises:
            InputError: it is not one JSON object in UTF-8 with the right fields of the right types.
        """
        self.check_size(len(body))
        try:
            body.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                "malformed_request",
                "body",
                f"The body is not valid UTF-8: byte {error.start} cannot be decoded.",
                ERRORS["malformed_request"].hint,
            ) from None
        try:
            document = from_json(body)
        except ValueError:
            document = None  # validation says what is wrong with it
        if isinstance(document, dict):
            # Validation would make an error for each unknown field and each wrong entry: seconds for 1 MB of them.
            for name in document:
                if name not in Question.model_fields:
                    raise _explain("extra_forbidden", [name], "")
            check_lists({name: len(value) for name, value in document.items() if isinstance(value, list)})
        try:
            return Question.model_validate_json(body)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_input=False)
        beside = [problem for problem in problems if problem["loc"][:2] == problems[0]["loc"][:2]]
        problem = max(beside, key=lambda problem: len(problem["loc"]))  # of several forms, the one that fits best
        raise _explain(problem["type"], problem["loc"], problem["msg"])

    def check_size(self, num_bytes: int) -> None:
        """Check the size of a request as it was sent.

        Raises:
            InputError: it is too large.
        """
        limit = self.limits.max_request_bytes
        if num_bytes > limit:
            message = f"The request has {num_bytes} bytes; at most {limit} are accepted."
            raise InputError("request_too_large", "body", message, ERRORS["request_too_large"].hint)

    def read(self, question: Question, read: Callable[[str, str, Options, Check], RequestT]) -> tuple[RequestT, int]:
        """Read a question, and check each of its texts before its tokens are made.

        Args:
            question: what was asked.
            read: the engine's.

        Returns:
            The engine's request, and the most tokens that its answer may have.

        Raises:
            InputError: a text is blank, cannot be encoded or has too many tokens, a word is too long, a number is out
                of range, or what is asked for makes no sense together.
        """
        request = read(question.context, question.question, question.options, self._check_text)
        limit = self.limits.max_answer_tokens
        wanted = question.max_answer_tokens
        if wanted is None:
            return request, limit
        if not 1 <= wanted <= limit:
            code = "max_answer_tokens_out_of_range"
            message = f"max_answer_tokens is {wanted}; 1 to {limit} are accepted."
            hint = "Choose a number in this range or leave the field out."
            raise InputError(code, "max_answer_tokens", message, hint)
        return request, wanted

    def _check_text(self, field: str, text: str, size: Size) -> None:
        if not has_words(text):
            code = f"empty_{field}"
            what = "empty" if not text else "white space only" if not text.strip() else "invisible characters only"
            raise InputError(code, field, f"The {field} is {what}.", ERRORS[code].hint)
        try:
            num_bytes = len(text.encode("utf-8"))
        except UnicodeEncodeError as error:
            message = f"The {field} has a lone surrogate at code point {error.start}, which is not a character."
            raise InputError("invalid_text", field, message, ERRORS["invalid_text"].hint) from None
        self.check_size(num_bytes)
        most = self.limits.max_context_tokens if field == "context" else self.limits.max_question_tokens
        if size.num_tokens > most:
            code = f"{field}_too_long" if field != "choice" else "choices_too_long"
            message = f"The {field} has {size.num_tokens} tokens; at most {most} are accepted."
            raise InputError(code, field, message, ERRORS[code].hint)
        if size.longest > self.limits.max_word_length:
            raise InputError(
                "word_too_long",
                field,
                f"The {field} has a word of {size.longest} characters at code point {size.longest_start}; "
                f"at most {self.limits.max_word_length} are accepted.",
                ERRORS["word_too_long"].hint,
            )


def _explain(problem: str, place: Sequence[int | str], detail: str) -> InputError:
    field = str(place[0]) if place and _is_place(place[0]) else "body"
    path = _path(place)
    if field == "timeout_ms":
        code = "invalid_timeout"
        message = "timeout_ms is not a whole number of milliseconds above 0."
    elif not place and problem != "json_invalid":
        code = "malformed_request"
        message = "The body is not a JSON object."
    else:
        code = _CODE_OF_PROBLEM.get(problem, "wrong_type")
        unknown = f"The field {path}" if all(map(_is_place, place)) else f"A field of {path}"
        message = {
            "missing_field": f"The field {path} is missing.",
            "unknown_field": f"{unknown} is unknown.",
            "invalid_text": f"The field {path} is not valid Unicode text.",
            "malformed_request": _explain_json(detail),
            "wrong_type": f"The field {path} has the wrong type: {detail}.",
        }[code]
    return InputError(code, field, message, ERRORS[code].hint)


def _is_place(part: int | str) -> bool:
    return isinstance(part, int) or (part.isidentifier() and len(part) <= _LONGEST_NAME)


def _path(place: Sequence[int | str]) -> str:
    """Return a place in a document as it is written, ``choices[0].label``; without names that nobody would read."""
    path = ""
    for part in place:
        if isinstance(part, int):
            path += f"[{part}]"
        elif _is_place(part) and part not in _FORMS:
            path += f".{part}" if path else part
    return path or "the body"


def _explain_json(detail: str) -> str:
    detail = detail.removeprefix("Invalid JSON: ")
    if "hex escape" in detail:
        detail = f"a \\u escape is incomplete or half of a surrogate pair ({detail})"
    return f"The body is not valid JSON: {detail}."
