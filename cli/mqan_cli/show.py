"""An answer as ``mqan ask`` shows it: as text coloured by where its words came from, as JSON, and as one HTML file."""

import io
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

from mqan_client.display import NAMES, css_of, marked, placed, terminal_style_of

_SHADE: Final = "255, 130, 0"
_STRONGEST: Final = 0.75  # opacity of the shade of weight 1


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
        for start, end, source in words_of(document):
            styled.stylize(terminal_style_of(source), start, end)
        console.print(styled)
    else:
        print(answer)
    notes = Console(stderr=True, highlight=False, soft_wrap=True)
    if not document["answered"]:
        notes.print(Text(f"  {without_answer(document)}"))
    if document["parsed"] is not None:
        notes.print(Text(f"  parsed: {visible(document['parsed'].get('sql') or _in_short(document['parsed']))}"))
    if document["parse_error"] is not None:
        notes.print(Text(f"  not parsed: {visible(document['parse_error'])}"))
    for choice in document["choices"]:
        notes.print(Text(f"  {choice['probability']:.3f} {visible(choice['label'])}"))
    if document["choices"]:
        notes.print(Text(f"  {document['none']:.3f} (none of them)"))
    for span in evidence_of(document):
        quotation = visible(span["text"]).replace("\n", " ")
        style = terminal_style_of("evidence" if document["choices"] else span["source"])
        notes.print(Text(f"  {span['source']} {span['start']}-{span['end']}: {quotation}", style))
    sources = dict.fromkeys(token["source"] for token in document["tokens"] if not document["choices"])
    for source in sources.keys() - {span["source"] for span in document["spans"]}:
        words = " ".join(token["text"] for token in document["tokens"] if token["source"] == source)
        notes.print(Text(f"  {NAMES[source]}: {visible(words)}", terminal_style_of(source)))
    cut = ", cut at the limit of tokens" if document["truncated"] else ""
    model = document["model"]
    notes.print(Text(f"  probability {document['confidence']:.3f}{cut}, {model['name']} {model['version']}", "dim"))


def evidence_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the quotations of an answer; for labels the words that decide for them, as their own were only chosen."""
    if document["choices"]:
        return [place for choice in document["choices"] for place in choice["evidence"]]
    spans: list[dict[str, Any]] = document["spans"]
    return spans


def without_answer(document: dict[str, Any]) -> str:
    from mqan_core.ask.options import is_yes_no

    labels = [choice["label"] for choice in document["choices"]]
    return "none of the choices is right" if labels and not is_yes_no(labels) else "not in the text"


def _in_short(state: dict[str, Any]) -> str:
    told = {slot: value["value"] for slot, value in state["slots"].items()}
    return json.dumps({"slots": told, "requests": [wanted["slot"] for wanted in state["requests"]]}, ensure_ascii=False)


def show_json(document: dict[str, Any] | list[dict[str, Any]]) -> None:
    speaks_unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print(json.dumps(document, ensure_ascii=not speaks_unicode, indent=2))


def show_record(document: dict[str, Any]) -> None:
    """Print a record to standard output, and the fields without a value, and why, to standard error."""
    show_json(document["record"])
    for name in document["missing"]:
        field = document["fields"][name]
        quoted = f" {visible(field['text'])!r}" if field["text"] else ""
        print(f"  {visible(name)}: {field['reason']}{quoted}", file=sys.stderr)


def escape_unknown_characters() -> None:
    """Let standard output and error show what their encoding does not have as escapes, as ``\\xfc``, from now on."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def words_of(document: dict[str, Any]) -> Iterator[tuple[int, int, str]]:
    """Yield where each token stands in the answer, with its source."""
    return placed(document["answer"], ((token["text"], token["source"]) for token in document["tokens"]))


def visible(text: str) -> str:
    """Replace control characters, which a quoted text could use to steer the terminal; keep the length."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)


def html_page(text: str, question: str, document: dict[str, Any]) -> str:
    """Return the page of an answer, a document of REST with ``steps``."""
    from mqan_serving.pages import template_of

    mark = f"<mark class={'evidence' if document['choices'] else 'context'}>"
    quoted = [(span["start"], span["end"], mark) for span in evidence_of(document) if span["source"] == "context"]
    words = [(start, end, f'<span class="word {of}" title="{NAMES[of]}">') for start, end, of in words_of(document)]
    told = {
        "words": marked(document["answer"], words),
        "quoted": marked(text, quoted),
        "without_answer": without_answer(document),
        "refusal": document["none"],
    }
    given = {"text": text, "question": question, "names": NAMES, "css_of": css_of, "shaded": _shaded}
    return template_of("mqan_cli", "answer.html").render(document, **told, **given)


def _shaded(text: str, weights: Iterable[dict[str, Any]]) -> str:
    marks = []
    for found in weights:
        style = f"background: rgba({_SHADE}, {_STRONGEST * found['weight']:.3f})"
        marks.append((found["start"], found["end"], f'<span style="{style}" title="{found["weight"]:.3f}">'))
    return marked(text, marks)
