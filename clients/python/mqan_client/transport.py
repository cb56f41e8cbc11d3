"""Calls and questions as transports take them, and the policy of retries that both follow."""

import math
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Required, TypedDict, TypeVar, cast

from mqan_client.errors import (
    ClientError,
    DeadlineExceededError,
    InvalidRequestError,
    OverloadedError,
    UnavailableError,
)
from mqan_client.results import Source

T = TypeVar("T")

TOO_LATE = "No answer came in time."
# What may be asked for that is a list, and of what.
_LISTS = {"choices": "labels", "scale": "levels", "sources": "the sources that words may come from"}
# 23 days, for who waits as long as it takes: sockets, and what carries deadlines, count milliseconds in 32 bits.
_LONGEST_S = 2e6


@dataclass(frozen=True, slots=True)
class Choice:
    """A label to choose from, and what it stands for."""

    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its options; the fields are those of the contract."""

    context: str
    question: str
    max_answer_tokens: int | None = None
    choices: tuple[Choice, ...] = ()
    multiple: bool = False
    yes_no: bool = False
    scale: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    contiguous: bool = False
    all: bool = False
    alternatives: int = 0
    explain: bool = False
    parse: str | None = None
    min_probability: float | None = None
    none: bool = False


class Asked(TypedDict, total=False):
    """The options of a question: the fields of ``Question``."""

    max_answer_tokens: int | None
    choices: Sequence[str | Choice] | None
    multiple: bool
    yes_no: bool
    scale: Sequence[str] | None
    sources: Sequence[Source | str] | None
    contiguous: bool
    all: bool
    alternatives: int
    explain: bool
    parse: Literal["sql", "dialogue_state"] | None
    min_probability: float | None
    none: bool


class AskedQuestion(Asked, total=False):
    """A question among several, with what may be asked for beside it."""

    question: Required[str]


def questions_of(context: str, questions: Iterable[str | AskedQuestion]) -> list[Question]:
    """Return the questions about a context.

    Raises:
        InvalidRequestError: they are no list, or one is neither a string nor a mapping with ``question``, or asks for
            what is unknown.
    """
    if isinstance(questions, str | bytes | Mapping) or not isinstance(questions, Iterable):
        what = "one question" if isinstance(questions, str | bytes | Mapping) else f"{questions!r:.100}"
        message = f"The request cannot be sent: `questions` is {what}; give a list of them, or call `answer`."
        raise InvalidRequestError(message, code="wrong_type")
    found = []
    for i, given in enumerate(questions):
        if isinstance(given, str):
            found.append(Question(context, given))
            continue
        try:
            asked: dict[str, Any] = dict(given)
            question = asked.pop("question")
        except (TypeError, ValueError, KeyError):
            message = f"The request cannot be sent: question {i} is neither a string nor a mapping with `question`."
            raise InvalidRequestError(message, code="invalid_input") from None
        found.append(question_of(context, question, asked))  # type: ignore[arg-type]
    return found


def question_of(context: str, question: str, asked: Asked) -> Question:
    """Return a question with what is asked for.

    Raises:
        InvalidRequestError: a name is unknown, or a source is, or a list is empty or none.
    """
    lists: dict[str, Any] = {**in_tuples(asked)}
    try:
        return Question(
            context,
            question,
            **{
                **lists,
                "choices": tuple(c if isinstance(c, Choice) else Choice(c) for c in lists.get("choices", ())),
                "sources": tuple(Source(source) for source in lists.get("sources", ())),
            },
        )
    except (TypeError, ValueError) as error:
        raise InvalidRequestError(f"The request cannot be sent: {error}.", code="invalid_input") from None


def in_tuples(asked: Asked) -> Asked:
    """Return what is asked for with tuples for lists: many questions may take them, and an iterator gives only once.

    Raises:
        InvalidRequestError: a list is empty, or is a string, whose characters nobody means.
    """
    given: dict[str, Any] = dict(asked)
    for name, what in _LISTS.items():
        found = given.pop(name, None)
        if found is None:  # left out, as null is in the contract
            continue
        if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
            message = f"The request cannot be sent: `{name}` is {found!r:.100}; give a list of {what}."
            raise InvalidRequestError(message, code="wrong_type")
        given[name] = tuple(found)
        if not given[name]:
            message = f"The request cannot be sent: `{name}` is empty; give a list of {what}, or leave it out."
            raise InvalidRequestError(message, code="invalid_input")
    return cast("Asked", given)


@dataclass(frozen=True, slots=True)
class Retries:
    """When to ask again. A question always gets the same answer, so it may be asked twice.

    Attributes:
        max_attempts: most attempts of one call, the first included.
        initial_s: longest wait before the second attempt.
        max_s: longest wait before any attempt; what the server asks for, cut to as much, comes on top.
        factor: growth of the longest wait from attempt to attempt.
    """

    max_attempts: int = 5
    initial_s: float = 0.1
    max_s: float = 2.0
    factor: float = 2.0

    def longest_wait_s(self, num_attempts: int) -> float:
        """Return the longest wait after so many attempts."""
        try:
            return min(self.initial_s * self.factor ** (num_attempts - 1), self.max_s)
        except OverflowError:  # after more than 1,000 attempts
            return self.max_s


class Attempts:
    """Counts the attempts of one call and says how long to wait before the next.

    gRPC's own retries end with the first header of a response, and Ray's proxy sends one before the error that tells of
    its replica's death; so both transports ask again by this.

    Args:
        retries: how often, and after which waits.
        timeout_s: longest duration of the call, all attempts and waits included; infinity counts as 23 days.

    Raises:
        InvalidRequestError: it is not a number.
    """

    def __init__(self, retries: Retries, timeout_s: float) -> None:
        if math.isnan(timeout_s):
            raise InvalidRequestError("The request cannot be sent: timeout_s is not a number.", code="invalid_input")
        self._retries = retries
        self._deadline = time.monotonic() + min(timeout_s, _LONGEST_S)
        self._num_failed = 0

    def remaining_s(self) -> float:
        """Return the time left.

        Raises:
            DeadlineExceededError: there is none.
        """
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise DeadlineExceededError(TOO_LATE, code="deadline_exceeded")
        return remaining

    def wait_s(self, error: ClientError, retry_after: str | None = None) -> float:
        """Return how long to wait before the next attempt; raise ``error`` if there is to be none.

        Args:
            error: how the last attempt failed.
            retry_after: seconds that the server asks to wait; as it sent them.
        """
        self._num_failed += 1
        if not isinstance(error, OverloadedError | UnavailableError) or self._num_failed >= self._retries.max_attempts:
            raise error from None
        # Waits differ, so that callers refused together do not come back together.
        wait_s = self._retries.longest_wait_s(self._num_failed) * random.uniform(0.5, 1)  # noqa: S311  no secret
        if retry_after is not None and retry_after.isdecimal():
            wait_s += min(int(retry_after), self._retries.max_s)
        if time.monotonic() + wait_s >= self._deadline:
            raise error from None
        return wait_s


def shown_url(url: str) -> str:
    """Return a URL for a message: without a user name and a password."""
    scheme, slashes, rest = url.partition("//")
    return scheme + slashes + rest.rpartition("@")[2]


def authorization(api_key: str | None) -> dict[str, str]:
    """Return the header, or gRPC metadata, that carries a key.

    Raises:
        ValueError: no key looks like this.
    """
    if api_key is None:
        return {}
    if not api_key or not all("!" <= char <= "~" for char in api_key):
        raise ValueError("the API key is empty or has characters that no key has")
    return {"authorization": f"Bearer {api_key}"}


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A call of the contract as a transport makes it.

    Attributes:
        name: of REST the path, of gRPC the method.
        request: what is sent.
        read: makes the result of the response.
    """

    name: str
    request: Any
    read: Callable[[Any], T]
