"""How an answer reads."""

from html.parser import HTMLParser

from mqan_client import (
    Answer,
    AnswerSpan,
    AnswerToken,
    ChoiceProbability,
    Masses,
    ModelVersion,
    Record,
    RecordField,
    Source,
    Span,
    display,
)
from mqan_serving.pages import load_playground

_MODEL = ModelVersion("m", "1")
_MASSES = Masses(1.0, 0.0, 0.0)


class _Text(HTMLParser):
    """Collects the text and the titles of a document, and refuses what is not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.titles: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.titles += [value or "" for name, value in attrs if name == "title"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.text += " " if tag == "td" else ""

    def handle_data(self, data: str) -> None:
        self.text += data


def _read(answer: Answer | Record) -> _Text:
    reader = _Text()
    reader.feed(answer._repr_html_())
    reader.close()
    assert reader.open == []
    return reader


def test_a_free_answer_shows_its_sources() -> None:
    token = AnswerToken("<b>1889</b>", 0.9, Source.CONTEXT, _MASSES, Span(3, 14))
    made = AnswerToken("about", 0.5, Source.VOCABULARY, _MASSES, None)
    span = AnswerSpan(Source.CONTEXT, 3, 14, "<b>1889</b>")
    answer = Answer("about <b>1889</b>", 0.45, (made, token), (span,), False, _MODEL, confidence=0.45)
    assert str(answer) == "about <b>1889</b> (0.45)\n  context 3-14: <b>1889</b>"
    shown = _read(answer)
    assert "about <b>1889</b> (0.45)" in shown.text
    assert shown.titles == ["vocabulary, 0.50", "context 3-14, 0.90"]


def test_nothing_is_put_between_the_words_of_an_answer() -> None:
    names = ["2024", "-", "118", "$", "120", ".", "50"]
    tokens = tuple(AnswerToken(name, 0.9, Source.CONTEXT, _MASSES, None) for name in names)
    answer = Answer("2024-118, $120.50", 0.45, tokens, (), False, _MODEL, confidence=0.45)
    assert _read(answer).text.startswith("2024-118, $120.50 (0.45)")


def test_labels_are_shown_with_their_probabilities() -> None:
    choices = (ChoiceProbability("a & b", 0.75, ()), ChoiceProbability("c", 0.25, ()))
    answer = Answer("a & b", 0.75, (), (), False, _MODEL, confidence=0.75, choices=choices, chosen=("a & b",))
    assert str(answer) == "a & b (0.75)\n  a & b: 0.75\n  c: 0.25"
    assert _read(answer).text.split() == ["a", "&", "b", "0.75", "c", "0.25"]


def test_no_answer_says_so() -> None:
    answer = Answer("", 0.1, (), (), False, _MODEL, answered=False, confidence=0.8)
    assert str(answer) == "no answer (0.80)"
    assert _read(answer).text == "no answer (0.80)"


def test_a_prompt_shows_one_line() -> None:
    answer = Answer("in\nParis", 0.4, (), (), False, _MODEL, confidence=0.4)
    assert repr([answer]) == r"[<Answer 'in\nParis' (0.40)>]"
    found = RecordField("<5>", "<5>", (AnswerSpan(Source.CONTEXT, 0, 3, "<5>"),), True, 0.9, "?", None, None)
    record = Record({"total": "<5>"}, ("due",), {"total": found}, _MODEL)
    assert repr(record) == "<Record {'total': '<5>'}, missing: due>"
    assert _read(record).text.split() == ["total", "<5>", "<5>", "0.90"]


def test_pages_notebooks_and_terminals_have_one_table_of_marks() -> None:
    assert display.css_of("context").endswith(f"solid {display.COLOURS[0]};color:inherit")
    assert display.css_of("evidence", 2) == f"border-bottom:2px dotted {display.COLOURS[1]};color:inherit"
    assert display.colour_of(len(display.COLOURS) + 1) == display.COLOURS[0]
    assert display.terminal_style_of("vocabulary", 3) == f"italic {display.COLOURS[2]}"
    assert all(colour in load_playground(9000).html for colour in display.COLOURS)
