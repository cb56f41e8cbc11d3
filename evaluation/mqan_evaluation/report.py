"""The evaluation report: one HTML page with every table and examples of the answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import jinja2

from mqan_evaluation.sections import shown
from mqan_evaluation.suite import Measured

_EXAMPLES: Final = 4  # right and wrong ones of each set


def write_report(path: Path, measured: Measured, answers: Sequence[Mapping[str, Any]]) -> None:
    """Write the page, with examples of the answers to what a table names."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mqan_evaluation"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    rows = [row for section in measured.sections for row in section.rows]
    names = dict.fromkeys(str(row.get("task") or row.get("set")) for row in rows)
    sets = [_examples(name, [a for a in answers if a["section"] == name]) for name in names]
    page = environment.get_template("report.html").render(
        measured=measured, shown=shown, sets=[one for one in sets if one["right"] or one["wrong"]]
    )
    path.write_text(page, encoding="utf-8")


def _examples(name: str, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    answered = [record for record in records if record.get("answer") is not None]
    by_confidence = sorted(answered, key=lambda record: -record["probability"])
    right, wrong = ([record for record in by_confidence if record["right"] is is_right] for is_right in (True, False))
    return {"name": name, "right": right[:_EXAMPLES], "wrong": wrong[:_EXAMPLES]}
