"""An answer as one HTML file that needs nothing else: its words by their source, and what each step looked at."""

from collections.abc import Iterable
from html import escape
from typing import Any, Final

from mqan_cli.show import evidence_of, without_answer, words_of
from mqan_client.marks import COLOURS, NAMES, css_of, marked

_STYLE: Final = """
:root { color-scheme: light dark; font: 1rem/1.6 system-ui, sans-serif }
body { max-width: 50rem; margin: 2rem auto; padding: 0 1rem }
.text { white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid #8888; border-radius: .4rem;
  padding: .7rem 1rem }
.word { padding: 0 .2rem; font-size: 1.2rem }
mark { background: none }
small, .of { opacity: .75 }
details { margin: .4rem 0 }
""" + "".join(f".{shape} {{ {css_of(shape)} }}\n" for shape in NAMES)
COLOUR_CLASSES: Final = "".join(f".c{i} {{ border-color: {colour} }}\n" for i, colour in enumerate(COLOURS))
"""Of pages that mark several questions: ``c0`` for the first."""
_SHADE: Final = "255, 130, 0"
_STRONGEST: Final = 0.75  # opacity of the shade of weight 1


def html_page(text: str, question: str, document: dict[str, Any]) -> str:
    """Return the page of an answer, a document of REST with ``steps``."""
    spans = evidence_of(document)
    shape = "evidence" if document["choices"] else "context"
    quoted = [(span["start"], span["end"], f"<mark class={shape}>") for span in spans if span["source"] == "context"]
    steps = "".join(_step(i, step, text, question, document) for i, step in enumerate(document["steps"]))
    model = document["model"]
    return f"""<!doctype html>
<html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">
<title>{escape(question)}</title><style>{_STYLE}</style>
<h1>{escape(question)}</h1>
<p>{_answer(document)}</p>
{_choices(document)}<h2>The text, with what was quoted</h2>
<div class=text>{marked(text, quoted)}</div>
<h2>What each step looked at</h2>
<p class=of>The stronger the shade, the more of the step's probability came from pointing at the word.</p>
{steps}<p><small>{escape(model["name"])} {escape(model["version"])}</small></p>
</html>
"""


def _answer(document: dict[str, Any]) -> str:
    sure = f" <small>probability {document['confidence']:.3f}</small>"
    if not document["answered"]:
        return without_answer(document) + sure
    if document["choices"]:
        return f"<strong>{escape(document['answer'])}</strong>{sure}"
    text = document["answer"]
    words = [
        (start, end, f'<span class="word {source}" title="{NAMES[source]}">')
        for start, end, source in words_of(document)
    ]
    return marked(text, words) + sure


def _choices(document: dict[str, Any]) -> str:
    if not document["choices"]:
        return ""
    known = [(escape(choice["label"]), choice["probability"]) for choice in document["choices"]]
    known.append(("<em>none of them</em>", document["none"]))
    rows = (f"<li>{label} <meter value={share:.4f}></meter> {share:.3f}</li>" for label, share in known)
    return f"<ul>{''.join(rows)}</ul>\n"


def _step(number: int, step: dict[str, Any], text: str, question: str, document: dict[str, Any]) -> str:
    tokens = document["tokens"]
    if document["choices"]:
        name = "the choice"
    elif number < len(tokens):
        name = f"{escape(tokens[number]['text'])} <span class=of>{NAMES[tokens[number]['source']]}</span>"
    else:
        name = "the end of the answer" if document["answered"] else "that there is no answer"
    others = ", ".join(
        f"{escape(found['text']) or 'the end'} {found['probability']:.3f}" for found in step["candidates"]
    )
    opened = " open" if number == 0 else ""
    asked = f"<div class=text>{_shaded(question, step['question'])}</div>" if step["question"] else ""
    candidates = f"<p class=of>Candidates: {others}</p>" if others else ""
    shaded = _shaded(text, step["context"])
    return f"<details{opened}><summary>{name}</summary>{candidates}<div class=text>{shaded}</div>{asked}</details>\n"


def _shaded(text: str, weights: Iterable[dict[str, Any]]) -> str:
    marks = []
    for found in weights:
        style = f"background: rgba({_SHADE}, {_STRONGEST * found['weight']:.3f})"
        marks.append((found["start"], found["end"], f'<span style="{style}" title="{found["weight"]:.3f}">'))
    return marked(text, marks)
