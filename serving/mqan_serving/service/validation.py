"""The one check of requests against a server's limits. What it refuses it explains; it never cuts or repairs."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from mqan_core.ask.options import Options
from mqan_core.ask.request import Check
from mqan_core.text.tokens import Size, has_words
from mqan_serving.contract.errors import refuse
from mqan_serving.contract.model import LimitsDocument
from mqan_serving.contract.questions import Question

RequestT = TypeVar("RequestT")

_BYTES_PER_PAIR = 32  # what HTTP/2 and gRPC add for each


def check_metadata(pairs: Iterable[tuple[str | bytes, str | bytes]], limit: int) -> None:
    """Refuse HTTP headers or gRPC metadata that have more bytes, names and values, than the limit."""
    num_bytes = sum(len(name) + len(value) + _BYTES_PER_PAIR for name, value in pairs)
    if num_bytes > limit:
        message = f"The headers or metadata have {num_bytes} bytes; at most {limit} are accepted."
        raise refuse("metadata_too_large", "metadata", message)


def check_size(num_bytes: int, limit: int) -> None:
    if num_bytes > limit:
        raise refuse("request_too_large", "body", f"The request has {num_bytes} bytes; at most {limit} are accepted.")


class Validator:
    """Checks requests against the limits of one server."""

    def __init__(self, limits: LimitsDocument) -> None:
        self.limits = limits

    def read(self, question: Question, read: Callable[[str, str, Options, Check], RequestT]) -> tuple[RequestT, int]:
        """Let an engine read a question; return its request, and the most tokens that the answer may have, or raise."""
        request = read(question.context, question.question, question.options, self._check_text)
        limit = self.limits.max_answer_tokens
        wanted = limit if question.max_answer_tokens is None else question.max_answer_tokens
        if not 1 <= wanted <= limit:
            message = f"max_answer_tokens is {wanted}; 1 to {limit} are accepted."
            hint = "Choose a number in this range or leave the field out."
            raise refuse("max_answer_tokens_out_of_range", "max_answer_tokens", message, hint)
        return request, wanted

    def _check_text(self, field: str, text: str, size: Size) -> None:
        if not has_words(text):
            what = "empty" if not text else "white space only" if not text.strip() else "invisible characters only"
            raise refuse(f"empty_{field}", field, f"The {field} is {what}.")
        try:
            num_bytes = len(text.encode("utf-8"))
        except UnicodeEncodeError as error:
            message = f"The {field} has a lone surrogate at code point {error.start}, which is not a character."
            raise refuse("invalid_text", field, message) from None
        check_size(num_bytes, self.limits.max_request_bytes)
        most = self.limits.max_context_tokens if field == "context" else self.limits.max_question_tokens
        if size.num_tokens > most:
            code = f"{field}_too_long" if field != "choice" else "choices_too_long"
            message = f"The {field} has {size.num_tokens} tokens; at most {most} are accepted."
            raise refuse(code, field, message)
        if size.longest > self.limits.max_word_length:
            message = (
                f"The {field} has a word of {size.longest} characters at code point {size.longest_start}; "
                f"at most {self.limits.max_word_length} are accepted."
            )
            raise refuse("word_too_long", field, message)
