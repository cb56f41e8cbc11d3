"""The report page: scores and examples."""

import html
import re
from pathlib import Path

from mqan_evaluation.decanlp_section import beside_paper
from mqan_evaluation.report import write_report
from mqan_evaluation.sections import Cell, Section
from mqan_evaluation.suite import Measured

CONTEXT = "Ada wrote <script>notes</script> on the Analytical Engine & nobody knew who would pay."
QUESTION = "Is this review happy or angry?"


ROW: dict[str, Cell] = {"task": "sst", "metric": "em", "score": 81.25, "others": "nem 90.0", "trained on": "no"}
SECTION = Section("tasks", "Scores", [ROW], notes=["imdb: skipped"])
MEASURED = Measured("tiny 1", "in a test", None, 1, [SECTION, *beside_paper(SECTION)])


def record(answer: str | None, gold: str, probability: float) -> dict[str, object]:
    return {
        "section": "sst",
        "id": "1",
        "context": CONTEXT,
        "question": QUESTION,
        "gold": [gold],
        "answer": answer,
        "probability": probability,
        "right": answer == gold,
    }


def test_the_page_holds_scores_and_examples(tmp_path: Path) -> None:
    answers = [
        record("<i>sure</i> and right", "<i>sure</i> and right", 0.99),
        record("unsure and right", "unsure and right", 0.11),
        record("nonsense", "something else", 0.87),
        record(None, "never asked", 0.0),
    ]
    path = tmp_path / "report.html"
    write_report(path, MEASURED, answers)
    page = path.read_text(encoding="utf-8")
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())
    for wanted in ("tiny 1", "sst em 81.25 nem 90.0 no", "sst 81.25 86.4 88.1 86.2 86.4", "imdb: skipped"):
        assert wanted in text, wanted
    assert "decaScore is the sum over 10 tasks, and 1 of them are here." in text
    assert "&lt;i&gt;sure&lt;/i&gt;" in page
    assert "<i>" not in page
    assert "<script" not in page
    assert "script" in page
    in_order = ["Right, the surest first", "unsure and right", "Wrong, the surest first", "nonsense"]
    assert sorted(in_order, key=page.index) == in_order
    assert "never asked" not in page
    assert not re.search(r"""(src|href)=["']?http""", page), "the page must not load anything"
