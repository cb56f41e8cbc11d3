"""What ``mqan ask`` prints."""

import json
import os
import subprocess
import sys

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
