"""``mqan evaluate ROWS``: the scores of rows as text in a terminal, as a page of HTML and as JSON."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from mqan_cli.asked import LEAST
from mqan_cli.files import write_text
from mqan_client.display import css_of, marked

_WRONG: Final = 5  # rows that are shown in the terminal
_CONFUSED: Final = 5
_AROUND: Final = 60  # characters of the text beside what was shown as evidence


def show_scores(scores: dict[str, Any], html: Path | None, to: Path | None) -> None:
    """Print the scores of rows; write them as a page and as JSON, too, where a file is given."""
    print("\n".join(_lines(scores, html)))
    if html is not None:
        write_text(html, _page(scores))
    if to is not None:
        write_text(to, json.dumps(scores, indent=2, ensure_ascii=False) + "\n")


def _sentences(scores: dict[str, Any]) -> tuple[str, str]:
    low, high = scores["interval"]
    left = "".join(f"; {count} left out: {reason}" for reason, count in scores["left_out"].items())
    are_right = "right (refusals count; " if scores["refusals"] else "answered rightly ("
    right = (
        f"{share(scores['accuracy'])} of {scores['rows']} rows are {are_right}"
        f"{share(low)} to {share(high)} with 95 % confidence), F1 {share(scores['f1'])}{left}"
    )
    found, wanted = scores["threshold"], share(scores["wanted"])
    if found is None:
        return right, f"No {LEAST} leaves answers of which {wanted} are right."
    how = f"With {LEAST} {found['threshold']:.4f}" if found["threshold"] else f"Without {LEAST}"
    rows = f"{found['rows']} of {scores['rows']} rows are answered"
    return right, f"{how}, {rows}, {share(found['accuracy'])} of them rightly; {wanted} is wanted."


def _tables(scores: dict[str, Any]) -> Iterator[tuple[str, list[list[str]]]]:
    if scores["labels"]:
        columns = ("precision", "recall", "f1")
        lines = [[o["label"], str(o["rows"]), *(share(o[name]) for name in columns)] for o in scores["labels"]]
        yield "Each label", [["label", "rows", *columns], *lines]
    pairs = [(n, gold, said) for gold, of in scores["confusion"].items() for said, n in of.items() if gold != said]
    if pairs:
        worst = sorted(pairs, key=lambda pair: -pair[0])[:_CONFUSED]
        yield "Most often confused", [["right", "answered", "rows"], *([g, s, str(n)] for n, g, s in worst)]
    bins = [
        [f"{b['from']:.2f} to {b['to']:.2f}", str(b["rows"]), f"{b['probability']:.2f}", share(b["accuracy"])]
        for b in scores["calibration"]
    ]
    heading = f"Probability and truth; calibration error {scores['calibration_error']:.2f}"
    yield heading, [["probability", "rows", "mean", "right"], *bins]
    curve = [[f"{at['threshold']:.2f}", share(at["answered"]), share(at["accuracy"])] for at in scores["curve"]]
    yield "What a least probability leaves", [[LEAST, "answered", "right of them"], *curve]


def _lines(scores: dict[str, Any], html: Path | None) -> Iterator[str]:
    first, last = _sentences(scores)
    yield first
    for heading, rows in _tables(scores):
        yield f"\n{heading}\n"
        yield from aligned(rows)
    yield f"\n{last}"
    if scores["wrong"]:
        is_all = len(scores["wrong"]) <= _WRONG
        shown = "the surest first" if is_all else f"the surest {_WRONG} ({html or '--html FILE'} has all)"
        yield f"\nWrong: {len(scores['wrong'])}, {shown}"
    for one in scores["wrong"][:_WRONG]:
        yield f"\n  row {one['number']}: {_told(one['said'])} ({one['probability']:.2f}), not {_told(one['gold'])}"
        yield f"    {_excerpt(one)}"


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        yield f"  {'  '.join(cells)}"


def _page(scores: dict[str, Any]) -> str:
    from mqan_serving.pages import template_of

    def text_of(one: dict[str, Any]) -> str:
        return marked(one["text"], [(*span, "<mark>") for span in one["spans"]])

    given = {"sentences": _sentences(scores), "tables": _tables(scores), "told": _told, "text_of": text_of}
    return template_of("mqan_cli", "scores.html").render(scores, **given, style=css_of("evidence"))


def _excerpt(one: dict[str, Any]) -> str:
    start, end = (one["spans"] or [(0, 0)])[0]
    text = one["text"]
    lit = f"[{text[start:end]}]" if end > start else ""
    before, after = text[max(0, start - _AROUND) : start], text[end : end + _AROUND]
    cut = ("..." if start > _AROUND else ""), ("..." if len(text) > end + _AROUND else "")
    return " ".join(f"{cut[0]}{before}{lit}{after}{cut[1]}".split())


def _told(labels: Sequence[str]) -> str:
    return "; ".join(labels) or "no answer"


def share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"
