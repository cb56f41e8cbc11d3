"""An answer as callers are told it: the documents whose forms are in ``documents.py``, as plain dicts.

REST sends them as JSON, gRPC as messages with the same fields; formats and tools take what they need from them.
"""

from collections.abc import Sequence
from typing import Any

from mqan_core.answer.trace import StreamedWord
from mqan_core.answer.types import Answer, AnswerSpan, AnswerToken, ParsedQuery, ParsedState, Place, Source, Span
from mqan_serving.contract.model import Named, version_of


def document_of(
    answer: Answer, model: Named, *, is_cited: bool = False, text_index: int = 0, text_id: str | None = None
) -> dict[str, Any]:
    """Return the document of ``AnswerDocument``: what every transport, format and tool says of an answer.

    Citations name the context by its place and id among the texts of a call.
    """
    document = _quoted(answer) | {
        "truncated": answer.truncated,
        "answered": answer.answered,
        "confidence": answer.confidence,
        "none": answer.refusal,
        "choices": [
            {"label": choice.label, "probability": share, "evidence": list(map(place_document, choice.evidence))}
            for choice, share in zip(answer.choices, answer.shares, strict=True)
        ],
        "chosen": list(answer.chosen),
        "expected": answer.expected,
        "places": list(map(place_document, answer.places)),
        "alternatives": list(map(_quoted, answer.alternatives)),
        "steps": [
            {
                "context": _weights(step.context),
                "question": _weights(step.question),
                "candidates": [
                    {"text": one.text, "probability": one.probability, "source": one.source.value}
                    for one in step.candidates
                ],
            }
            for step in answer.explanation
        ],
        "parsed": None if answer.parsed is None else _parsed(answer.parsed),
        "parse_error": answer.parse_error,
        "windows": answer.num_windows,
        "model": version_of(model),
    }
    if answer.adapter is not None:
        document["adapter"] = {"name": answer.adapter.name, "sha256": answer.adapter.sha256}
    return document | {"citations": cite(answer, text_index, text_id)} if is_cited else document


def _quoted(answer: Answer) -> dict[str, Any]:
    return {
        "answer": answer.text,
        "probability": answer.probability,
        "tokens": list(map(token_document, answer.tokens)),
        "spans": list(map(quotation_document, answer.spans)),
    }


def word_document(word: StreamedWord) -> dict[str, Any]:
    """Return the document of a word of an answer that is not whole yet; nothing takes it back."""
    return token_document(word.token) | {"delta": word.delta}


def token_document(token: AnswerToken) -> dict[str, Any]:
    masses, span = token.masses, token.span
    return {
        "text": token.text,
        "probability": token.probability,
        "source": token.source.value,
        "masses": {"context": masses.context, "question": masses.question, "vocabulary": masses.vocabulary},
        "span": None if span is None else {"start": span.start, "end": span.end},
    }


def quotation_document(span: AnswerSpan) -> dict[str, Any]:
    return {"source": span.source.value, "start": span.start, "end": span.end, "text": span.text}


def place_document(place: Place) -> dict[str, Any]:
    return quotation_document(place.span) | {"probability": place.probability}


def cite(answer: Answer, text_index: int = 0, text_id: str | None = None) -> list[dict[str, Any]]:
    """Return the quotations of the context in an answer, and for labels the words that decide for them, each once."""
    spans = [*answer.spans, *(place.span for choice in answer.choices for place in choice.evidence)]
    return [
        {
            "type": "char_location",
            "cited_text": span.text,
            "document_index": text_index,
            "document_title": text_id,
            "start_char_index": span.start,
            "end_char_index": span.end,
        }
        for span in dict.fromkeys(spans)
        if span.source is Source.CONTEXT
    ]


def _weights(weights: Sequence[tuple[Span, float]]) -> list[dict[str, Any]]:
    return [{"start": span.start, "end": span.end, "weight": weight} for span, weight in weights]


def _parsed(parsed: ParsedQuery | ParsedState) -> dict[str, Any]:
    def quoted(value: Any) -> list[dict[str, Any]]:
        return list(map(quotation_document, value.spans))

    if isinstance(parsed, ParsedState):
        return {
            "slots": {slot.name: {"value": slot.text, "spans": quoted(slot)} for slot in parsed.slots},
            "requests": [{"slot": wanted.name, "spans": quoted(wanted)} for wanted in parsed.requests],
        }
    conditions = [
        {"column": one.value.name, "operator": one.operator, "value": one.value.text, "spans": quoted(one.value)}
        for one in parsed.conditions
    ]
    return {"select": parsed.select, "aggregation": parsed.aggregation, "conditions": conditions, "sql": parsed.sql}
