"""What the documents of REST say, as the client's own types."""

from dataclasses import fields
from typing import Any

from mqan_client.errors import ClientError, ServerError, question_error
from mqan_client.parsed import Condition, ParsedQuery, ParsedState, RequestedSlot, SlotValue
from mqan_client.results import (
    AcceptedQuestion,
    Alternative,
    Answer,
    AnswerSpan,
    AnswerToken,
    Candidate,
    ChoiceProbability,
    Limits,
    Masses,
    Model,
    ModelVersion,
    Place,
    PointerWeight,
    Score,
    Source,
    Span,
    Step,
    StreamedWord,
)


def read_word(document: Any) -> StreamedWord:
    """Return a word of a stream.

    Raises:
        ServerError: the document is none of a mqan server.
    """
    try:
        (token,) = _read_tokens({"tokens": [document]})
        return StreamedWord(token, document["delta"])
    except (KeyError, TypeError, ValueError) as error:
        raise unknown_response(error) from None


def read_answer(document: Any) -> Answer:
    """Return an answer.

    Raises:
        ServerError: the document is none of a mqan server.
    """
    try:
        return Answer(
            document["answer"],
            document["probability"],
            _read_tokens(document),
            read_spans(document["spans"]),
            document["truncated"],
            ModelVersion(**document["model"]),
            # a server before 0.17 knows none of these
            document.get("answered", True),
            document.get("confidence", document["probability"]),
            tuple(
                ChoiceProbability(choice["label"], choice["probability"], read_spans(choice["spans"]))
                for choice in document.get("choices", ())
            ),
            tuple(document.get("chosen", ())),
            document.get("expected"),
            document.get("windows", 1),
            tuple(Place(_read_span(place), place["probability"]) for place in document.get("places", ())),
            tuple(
                Alternative(other["answer"], other["probability"], _read_tokens(other), read_spans(other["spans"]))
                for other in document.get("alternatives", ())
            ),
            tuple(map(_read_step, document.get("steps", ()))),
            _read_parsed(document.get("parsed")),
            document.get("parse_error"),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise unknown_response(error) from None


def read_answers(document: Any) -> list[Answer | ClientError]:
    """Return what became of the questions about one text.

    Raises:
        ServerError: the document is none of a mqan server.
    """
    try:
        [text] = document["texts"]
        return [
            question_error(**item["error"]) if item["answer"] is None else read_answer(item["answer"])
            for item in text["answers"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise unknown_response(error) from None


def _read_parsed(document: Any) -> ParsedQuery | ParsedState | None:
    if document is None:
        return None
    if "sql" in document:
        conditions = tuple(
            Condition(**{**found, "spans": read_spans(found["spans"])}) for found in document["conditions"]
        )
        return ParsedQuery(document["select"], document["aggregation"], conditions, document["sql"])
    slots = {name: SlotValue(told["value"], read_spans(told["spans"])) for name, told in document["slots"].items()}
    requests = (RequestedSlot(wanted["slot"], read_spans(wanted["spans"])) for wanted in document["requests"])
    return ParsedState(slots, tuple(requests))


def _read_step(document: Any) -> Step:
    context, question = (
        tuple(PointerWeight(Span(found["start"], found["end"]), found["weight"]) for found in document[text])
        for text in ("context", "question")
    )
    found = document["candidates"]
    return Step(context, question, tuple(Candidate(c["text"], c["probability"], Source(c["source"])) for c in found))


def _read_tokens(document: Any) -> tuple[AnswerToken, ...]:
    return tuple(
        AnswerToken(
            token["text"],
            token["probability"],
            Source(token["source"]),
            Masses(**token["masses"]),
            None if token["span"] is None else Span(**token["span"]),
        )
        for token in document["tokens"]
    )


def read_spans(documents: Any) -> tuple[AnswerSpan, ...]:
    """Return quotations."""
    return tuple(map(_read_span, documents))


def _read_span(span: Any) -> AnswerSpan:
    return AnswerSpan(Source(span["source"]), span["start"], span["end"], span["text"])


def read_model(document: Any) -> Model:
    """Return the description of a model.

    Raises:
        ServerError: the document is none of a mqan server.
    """
    try:
        return Model(
            document["model"]["name"],
            document["model"]["version"],
            document["sha256"],
            document["provider"],
            Limits(**{field.name: document["limits"][field.name] for field in fields(Limits)}),
            document["num_generated"],
            document["num_words"],
            tuple(Score(**score) for score in document["scores"]),
            str(document.get("server_version", "")),
            tuple(
                AcceptedQuestion(q["task"], q["question"], q["context"], tuple(q["labels"]))
                for q in document.get("questions", ())
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise unknown_response(error) from None


def unknown_response(error: Exception) -> ServerError:
    """Return the error of a document that cannot be read."""
    message = f"The response is not one of a mqan server: {error!r}. Check the URL."
    return ServerError(message, code="unknown_response")
