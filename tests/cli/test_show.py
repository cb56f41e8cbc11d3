"""What ``mqan ask`` prints."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace

from mqan_cli.show import html_page
from mqan_client import (
    Alternative,
    Answer,
    AnswerSpan,
    AnswerToken,
    Candidate,
    ChoiceProbability,
    Masses,
    ModelVersion,
    ParsedState,
    Place,
    PointerWeight,
    RequestedSlot,
    SlotValue,
    Source,
    Span,
    Step,
)
from mqan_client.documents import document_of, read
from mqan_serving.default_bundle import default_bundle

_SPAN = AnswerSpan(Source.CONTEXT, 3, 8, "Paris")
_TOKEN = AnswerToken("Paris", 0.75, Source.CONTEXT, Masses(0.5, 0.25, 0.25), Span(3, 8))
_WEIGHTS = (PointerWeight(Span(3, 8), 0.5),)
_WHOLE = Answer(
    "Paris",
    0.5,
    (_TOKEN,),
    (_SPAN,),
    True,
    ModelVersion("tiny", "1"),
    confidence=0.75,
    none=0.125,
    choices=(ChoiceProbability("Paris", 0.75, (Place(_SPAN, 0.5),)),),
    chosen=("Paris",),
    expected=1.5,
    windows=2,
    places=(Place(_SPAN, 0.5),),
    alternatives=(Alternative("In", 0.25, (_TOKEN,), (_SPAN,)),),
    steps=(Step(_WEIGHTS, _WEIGHTS, (Candidate("paris", 0.5, Source.QUESTION),)),),
    parsed=ParsedState({"area": SlotValue("north", (_SPAN,))}, (RequestedSlot("phone", ()),)),
    parse_error="none",
)


def test_the_document_is_the_whole_answer() -> None:
    assert read(Answer, json.loads(json.dumps(document_of(_WHOLE)))) == _WHOLE


def test_a_page_marks_what_decides_for_a_label() -> None:
    label = AnswerSpan(Source.QUESTION, 0, 5, "Paris")  # of a label this is always there
    page = html_page("In Paris.", "Which?", document_of(replace(_WHOLE, spans=(label,))))
    assert "<div class=text>In <mark class=evidence>Paris</mark>.</div>" in page
    free = replace(_WHOLE, choices=(), chosen=())
    assert "In <mark class=context>Paris</mark>." in html_page("In Paris.", "Where?", document_of(free))


def test_a_page_is_the_text_with_what_was_found_and_needs_nothing_else() -> None:
    text = "<b>👩‍👧 In Paris & Rome.</b>"
    start = text.index("Paris")
    span, quotation = Span(start, start + 5), AnswerSpan(Source.CONTEXT, start, start + 5, "Paris")
    steps = (
        Step((PointerWeight(span, 0.5),), (), (Candidate("paris", 0.75, Source.CONTEXT),)),
        Step((), (), (Candidate("", 0.9, Source.VOCABULARY),)),
    )
    token = replace(_TOKEN, span=span)
    free = replace(_WHOLE, tokens=(token,), spans=(quotation,), steps=steps, choices=(), chosen=())
    page = html_page(text, "Where <is> it?", document_of(free))
    before, after = "&lt;b&gt;👩‍👧 In ", " &amp; Rome.&lt;/b&gt;"
    assert f"<div class=text>{before}<mark class=context>Paris</mark>{after}</div>" in page
    assert f'{before}<span style="background: rgba(255, 130, 0, 0.375)" title="0.500">Paris</span>{after}' in page
    assert "<h1>Where &lt;is&gt; it?</h1>" in page
    assert "Candidates: the end 0.900" in page
    assert "<b>" not in page
    assert "http" not in page


def test_a_page_puts_nothing_between_the_words_of_an_answer() -> None:
    tokens = tuple(replace(_TOKEN, text=text) for text in ("2024", "-", "118", "Ada"))
    free = replace(_WHOLE, text="2024-118, Ada", tokens=tokens, choices=(), chosen=(), steps=())
    page = html_page("In Paris.", "Which?", document_of(free))
    assert re.sub("<[^>]*>", "", page[page.index("<p>") : page.index(" <small>")]) == "2024-118, Ada"


def test_what_the_output_has_no_characters_for_is_escaped() -> None:
    asked = ["ask", "Where does she live?", "--text", "Zoë lives in Zürich.", "--bundle", str(default_bundle())]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MQAN_")}
    told = subprocess.run(
        [sys.executable, "-m", "mqan_cli.main", *asked, "--provider", "cpu"],
        env=environment | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (told.returncode, told.stdout) == (0, "Z\\xfcrich\n"), told.stderr
    assert "Z\\xfcrich" in told.stderr
