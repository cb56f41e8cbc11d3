"""The report page: scores, sources, examples, and heat maps whose masses are those of the answer."""

import html
import re
from pathlib import Path

import pytest

from mqan_core.ask.request import read_request
from mqan_evaluation.heatmap import heatmap
from mqan_evaluation.report import write_report
from mqan_evaluation.sections import Cell, Section
from mqan_runtime.engine import Engine
from mqan_runtime.rows import ReadRequest
from mqan_training.model.network import Network

CONTEXT = "Ada wrote <script>notes</script> on the Analytical Engine & nobody knew who would pay."
QUESTION = "Is this review happy or angry?"


def test_a_heatmap_shows_where_each_word_was_read(tiny_network: Network, tiny_bundle: Path) -> None:
    request = read_request(tiny_network.vocabulary, CONTEXT, QUESTION)
    found = heatmap(tiny_network, request, 7)
    expected = Engine.open(tiny_bundle, provider="cpu", precision="float32").answer([ReadRequest(request)], [7])[0]
    assert found.answer == expected.text
    assert len(found.words) == len(expected.tokens) > 0
    for word, token in zip(found.words, expected.tokens, strict=True):
        assert word.text == token.text
        assert word.vocabulary == pytest.approx(token.masses.vocabulary, abs=1e-4)
        assert sum(word.context) == pytest.approx(token.masses.context, abs=1e-4)
        assert sum(word.question) == pytest.approx(token.masses.question, abs=1e-4)
        assert len(word.context) == len(found.request.context_tokens)
        assert len(word.question) == len(found.request.question_tokens)


ROW: dict[str, Cell] = {
    "task": "sst",
    "metric": "em",
    "score": 81.25,
    "others": "nem 90.0",
    "examples": 4,
    "trained on": "no",
}
SECTION = Section("tasks", "", [{**ROW, "vocabulary": 25.0, "context": 50.0, "question": 25.0}])


def record(answer: str | None, gold: str, probability: float) -> dict[str, object]:
    return {
        "section": "sst",
        "id": "1",
        "context": CONTEXT,
        "question": QUESTION,
        "gold": [gold],
        "answer": answer,
        "probability": probability,
    }


def test_the_page_holds_scores_sources_and_examples(tiny_network: Network, tmp_path: Path) -> None:
    predictions = [
        record("<i>sure</i> and right", "<i>sure</i> and right", 0.99),
        record("unsure and right", "unsure and right", 0.11),
        record("nonsense", "something else", 0.87),
        record(None, "never asked", 0.0),
    ]
    path = tmp_path / "report.html"
    write_report(path, "tiny 1", SECTION, predictions, tiny_network)
    page = path.read_text(encoding="utf-8")
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    for wanted in ("tiny 1", "sst (not trained on)", "81.2", "nem 90.0", "86.4", "88.1", "25 % / 50 % / 25 %"):
        assert wanted in text, wanted
    assert "No decaScore: it is the sum over ten tasks, and 1 of them are here." in text
    assert "&lt;i&gt;sure&lt;/i&gt;" in page
    assert "<i>" not in page
    assert "<script" not in page
    assert "script" in page
    assert page.index("Sure and right") < page.index("unsure and right") < page.index("Sure and wrong")
    assert page.index("Sure and wrong") < page.index("nonsense")
    assert "never asked" not in page
    assert page.count('class="map"') == 2
    assert not re.search(r"""(src|href)=["']?http""", page), "the page must not load anything"


def test_without_the_network_there_are_no_heatmaps(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(path, "tiny 1", SECTION, [record("sure and right", "sure and right", 0.99)], None)
    page = path.read_text(encoding="utf-8")
    assert "sure and right" in page
    assert 'class="map"' not in page
