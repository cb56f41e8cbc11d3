"""How ``mqan ask`` shows an answer: as text coloured by where its words came from, or as the REST document."""

import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import mqan_client
    from mqan_core.answer import Answer, AnswerSpan, Candidate, ChoiceProbability, Span

    AnyAnswer = Answer | mqan_client.Answer
    AnyChoice = ChoiceProbability | mqan_client.ChoiceProbability
    AnySpan = AnswerSpan | mqan_client.AnswerSpan
    AnySpanOfWord = Span | mqan_client.Span
    AnyCandidate = Candidate | mqan_client.Candidate

STYLES = {"context": "bold green", "question": "bold cyan", "vocabulary": "yellow"}
_KINDS = {"context": "from the context", "question": "from the question", "vocabulary": "the model's own word"}


def to_document(
    answer: "AnyAnswer",
    shares: Sequence[float],
    steps: Sequence[dict[str, Any]],
    name: str,
    version: str,
    parsed: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return an answer as the document that the REST API answers with.

    Args:
        answer: of an engine or of a client.
        shares: the probability of each of its choices.
        steps: what its steps looked at, from ``step_document``.
        name, version: of the model.
        parsed: what it was read as, as the REST API has it.
    """
    tokens = [
        {
            "text": token.text,
            "probability": token.probability,
            "source": token.source.value,
            "masses": dataclasses.asdict(token.masses),
            "span": None if token.span is None else dataclasses.asdict(token.span),
        }
        for token in answer.tokens
    ]
    known: Sequence[AnyChoice] = answer.choices
    choices = [
        {"label": choice.label, "probability": share, "spans": _quotations(choice.spans)}
        for choice, share in zip(known, shares, strict=True)
    ]
    return {
        "answer": answer.text,
        "probability": answer.probability,
        "tokens": tokens,
        "spans": _quotations(answer.spans),
        "truncated": answer.truncated,
        "answered": answer.answered,
        "confidence": answer.confidence,
        "choices": choices,
        "steps": list(steps),
        "parsed": parsed,
        "parse_error": answer.parse_error,
        "model": {"name": name, "version": version},
    }


def step_document(
    context: "Sequence[tuple[AnySpanOfWord, float]]",
    question: "Sequence[tuple[AnySpanOfWord, float]]",
    candidates: "Sequence[AnyCandidate]",
) -> dict[str, Any]:
    """Return what a step looked at as the document that the REST API has of it."""
    weights = {
        name: [{"start": span.start, "end": span.end, "weight": weight} for span, weight in part]
        for name, part in (("context", context), ("question", question))
    }
    said = [{"text": c.text, "probability": c.probability, "source": c.source.value} for c in candidates]
    return {**weights, "candidates": said}


def _quotations(spans: "Sequence[AnySpan]") -> list[dict[str, Any]]:
    return [{"source": span.source.value, "start": span.start, "end": span.end, "text": span.text} for span in spans]


def show(document: dict[str, Any]) -> None:
    """Print the answer to standard output, coloured on a terminal, and where it came from to standard error.

    Where there is none an empty line is printed, and the reason to standard error.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    answer = document["answer"]
    if console.is_terminal:
        styled = Text(visible(answer))
        for start, end, source in colour(answer, document["tokens"]):
            styled.stylize(STYLES[source], start, end)
        console.print(styled)
    else:
        print(answer)
    notes = Console(stderr=True, highlight=False, soft_wrap=True)
    if not document["answered"]:
        notes.print(Text("  none of the choices is right" if document["choices"] else "  not in the text"))
    if document["parsed"] is not None:
        notes.print(Text(f"  parsed: {visible(document['parsed'].get('sql') or _in_short(document['parsed']))}"))
    if document["parse_error"] is not None:
        notes.print(Text(f"  not parsed: {visible(document['parse_error'])}"))
    for choice in document["choices"]:
        notes.print(Text(f"  {choice['probability']:.3f} {visible(choice['label'])}"))
    evidence = [span for choice in document["choices"] for span in choice["spans"]]
    for span in evidence or document["spans"]:
        quotation = visible(span["text"]).replace("\n", " ")
        notes.print(Text(f"  {span['source']} {span['start']}-{span['end']}: {quotation}", STYLES[span["source"]]))
    sources = dict.fromkeys(token["source"] for token in document["tokens"] if not document["choices"])
    for source in sources.keys() - {span["source"] for span in document["spans"]}:
        words = " ".join(token["text"] for token in document["tokens"] if token["source"] == source)
        notes.print(Text(f"  {_KINDS[source]}: {visible(words)}", STYLES[source]))
    cut = ", cut at the limit of tokens" if document["truncated"] else ""
    model = document["model"]
    notes.print(Text(f"  probability {document['confidence']:.3f}{cut}, {model['name']} {model['version']}", "dim"))


def _in_short(state: dict[str, Any]) -> str:
    """Return a change of state without its places, as JSON."""
    told = {slot: value["value"] for slot, value in state["slots"].items()}
    return json.dumps({"slots": told, "requests": [wanted["slot"] for wanted in state["requests"]]}, ensure_ascii=False)


def show_json(document: dict[str, Any]) -> None:
    """Print the whole document to standard output."""
    speaks_unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print(json.dumps(document, ensure_ascii=not speaks_unicode, indent=2))


def colour(answer: str, tokens: list[dict[str, Any]]) -> list[tuple[int, int, str]]:
    """Return where each token stands in the answer, with its source."""
    ranges = []
    position = 0
    for token in tokens:
        start = answer.find(token["text"], position)
        if start >= 0 and token["text"]:
            position = start + len(token["text"])
            ranges.append((start, position, token["source"]))
    return ranges


def visible(text: str) -> str:
    """Replace control characters, which a quoted text could use to steer the terminal; keep the length."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)
