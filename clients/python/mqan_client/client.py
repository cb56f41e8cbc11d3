"""The client that waits for answers, over the transport that the URL names.

| URL | transport |
|---|---|
| ``grpc://127.0.0.1:9000`` | gRPC |
| ``grpcs://answers.example`` | gRPC over TLS |
| ``http://127.0.0.1:8000`` | REST |
| ``https://answers.example`` | REST over TLS |
"""

from collections.abc import Generator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack
from urllib.parse import urlsplit

from mqan_client.errors import ClientError
from mqan_client.many import DEFAULT_CONCURRENCY, Progress, ask_many
from mqan_client.records import Record, Schema, schema_of
from mqan_client.results import Answer, Model, StreamedWord
from mqan_client.transport import (
    Asked,
    AskedQuestion,
    Call,
    Retries,
    T,
    authorization,
    in_tuples,
    question_of,
    questions_of,
    shown_url,
)

if TYPE_CHECKING:
    from mqan_client.rest import RestTransport
    from mqan_client.rpc import RpcTransport

DEFAULT_URL = "grpc://127.0.0.1:9000"
DEFAULT_TIMEOUT_S = 30.0
_DEFAULT_PORTS = {"grpc": 9000, "grpcs": 443}
_SCHEMES = ("grpc", "grpcs", "http", "https")


class Client:
    """Asks a server and waits for the answer. May be shared between threads.

    Args:
        url: the server; see the table above.
        timeout_s: longest duration of a call, retries included; over REST connecting, sending and the wait for
            the response may take as long each.
        retries: when to ask again while the server is full or cannot be reached.
        api_key: names the caller, where the server asks for that. Without TLS whoever is between can read it.

    Raises:
        ValueError: the URL names no transport or no host, or the key has characters that no key has.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        retries: Retries | None = None,
        api_key: str | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._transport = _open(url, retries or Retries(), authorization(api_key))

    def answer(self, context: str, question: str, *, timeout_s: float | None = None, **asked: Unpack[Asked]) -> Answer:
        """Answer a question about a context.

        Args:
            context: the text that the question is about.
            question: the question, in natural language.
            timeout_s: longest duration of this call; the client's when None.
            asked: what else is asked for: ``choices`` (labels, or ``Choice`` with descriptions), of which ``multiple``
                may be right, or ``none``; ``yes_no``; ``scale`` (levels, low to high); ``sources`` that words may come
                from; ``contiguous``, one unbroken quotation only; ``all``, every place that answers; ``alternatives``,
                how many of the next best quotations; ``explain``, what each step looked at; ``parse`` ("sql" or
                "dialogue_state"), what the answer is to be read as; ``min_probability``, below which there is no
                answer; ``max_answer_tokens``.

        Raises:
            ClientError: there is no answer; the class says whose fault it is.
        """
        return self._call(self._transport.answer(question_of(context, question, asked)), timeout_s)

    def answer_stream(
        self, context: str, question: str, *, timeout_s: float | None = None, **asked: Unpack[Asked]
    ) -> Generator[StreamedWord | Answer, None, None]:
        """Answer a question about a context word by word.

        Yields each word as soon as it is decided, then the whole answer, whose tokens these words are; no word is taken
        back. Whoever closes the iterator cancels the call. Answers that are decided whole come with all their words
        at once: choices, ``contiguous``, ``all``, ``min_probability``.

        >>> for part in client.answer_stream("The tower is 330 m tall.", "How tall is it?"):
        ...     print(part.delta if isinstance(part, StreamedWord) else f" ({part.probability:.2f})", end="")

        Args:
            context: the text that the question is about.
            question: the question, in natural language.
            timeout_s: longest duration of this call, until the last word is taken; the client's when None.
            asked: what else is asked for, as of ``answer``.

        Raises:
            ClientError: there is no answer; the class says whose fault it is. After the first word nothing is asked
                again.
        """
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        return self._transport.answer_stream(question_of(context, question, asked), timeout_s)

    def answer_questions(
        self, context: str, questions: Iterable[str | AskedQuestion], *, timeout_s: float | None = None
    ) -> list[Answer | ClientError]:
        """Answer several questions about one context in one call.

        The server answers them side by side. A question that cannot be answered does not stop the others: its error is
        the result.

        >>> client.answer_questions(invoice, ["What is the total?", {"question": "Is it paid?", "yes_no": True}])

        Args:
            context: the text that the questions are about.
            questions: up to 256; each a string, or a mapping with ``question`` and what else ``answer`` takes.
            timeout_s: longest duration of this call; the client's when None.

        Returns:
            An ``Answer`` or a ``ClientError`` for each question, in their order.

        Raises:
            InvalidRequestError: there are no questions or too many, or one cannot be sent.
            ClientError: there is no response; the class says whose fault it is.
        """
        call = self._transport.answer_questions(context, questions_of(context, questions))
        return self._call(call, timeout_s)

    def answer_many(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        progress: Progress | None = None,
        timeout_s: float | None = None,
        **asked: Unpack[Asked],
    ) -> list[Answer | ClientError]:
        """Answer many questions, each about its own context.

        Several questions are on their way at a time. One that fails does not end the call: its error is the result.

        Args:
            pairs: a context and a question each.
            concurrency: most questions on their way at a time.
            progress: called with 1 for each one that is done, as ``tqdm(total=len(pairs)).update`` is.
            timeout_s: longest duration of each question; the client's when None.
            asked: what else is asked for with each, as of ``answer``.

        Returns:
            An ``Answer`` or a ``ClientError`` for each pair, in their order.

        Raises:
            ValueError: the concurrency is below 1.
            InvalidRequestError: what is asked for is an empty list, or a string where a list belongs.
        """
        asked = in_tuples(asked)

        def ask(context: str, question: str) -> Answer:
            return self.answer(context, question, timeout_s=timeout_s, **asked)

        return ask_many(ask, pairs, concurrency, progress)

    def fill_record(self, context: str, schema: Schema, *, timeout_s: float | None = None) -> Record:
        """Fill a record of named fields from a text, each value with its place in the text.

        Args:
            context: the text.
            schema: a JSON Schema of an object, or a class that has ``model_json_schema()``, such as a model of
                pydantic. ``ask`` in a field is its question; without it the question is made from ``description``, or
                from the name and the type.
            timeout_s: longest duration of this call; the client's when None.

        Raises:
            InvalidRequestError: the schema is not supported; the message names the field.
            ClientError: there is no record; the class says whose fault it is.
        """
        return self._call(self._transport.fill_record(context, schema_of(schema)), timeout_s)

    def get_model(self, *, timeout_s: float | None = None) -> Model:
        """Describe the served model and its limits.

        Raises:
            ClientError: the server does not say.
        """
        return self._call(self._transport.get_model(), timeout_s)

    def _call(self, call: Call[T], timeout_s: float | None) -> T:
        return self._transport.call(call, self._timeout_s if timeout_s is None else timeout_s)

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _open(url: str, retries: Retries, headers: dict[str, str]) -> "RestTransport | RpcTransport":
    scheme, target = split_url(url)
    if scheme in ("http", "https"):
        from mqan_client.rest import RestTransport  # each transport loads its own library

        return RestTransport(url, retries, headers)
    from mqan_client.rpc import RpcTransport

    return RpcTransport(target, retries, headers, tls=scheme == "grpcs")


def split_url(url: str) -> tuple[str, str]:
    """Return the scheme of a server's URL, and its host with the port.

    Raises:
        ValueError: the URL names no transport or no host, or has a user name or password.
    """
    if not url.isprintable() or " " in url:  # urlsplit() leaves line ends out, and who calls the URL does not
        raise ValueError(
            f"{shown_url(url)!r} is not a server's URL: it has characters that no URL has, such as a line end"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
        (parts.hostname or "").encode("idna")
    except ValueError:  # whose text may have a part of a password
        raise ValueError(f"{shown_url(url)!r} is not a server's URL: its host or port is none") from None
    if parts.username is not None:  # gRPC would not send it, and HTTP in place of the API key
        raise ValueError(f"{shown_url(url)!r} had a user name or a password: leave them out, and give an API key")
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise ValueError(f"{shown_url(url)!r} is not a server's URL: expected {'://..., '.join(_SCHEMES)}://HOST:PORT")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return parts.scheme, f"{host}:{_DEFAULT_PORTS.get(parts.scheme, 80) if port is None else port}"
