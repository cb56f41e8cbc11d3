"""The rows that are measured: what is asked about each of them, what is right, and what the model says."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from mqan_cli.answering import find_folder, find_server
from mqan_cli.asked import Document, fields_of, read_choices
from mqan_cli.batch.answering import ROWS_TOGETHER, answering, open_worker
from mqan_cli.batch.inputs import Row, Rows
from mqan_cli.batch.plan import Plan, check_plan
from mqan_cli.errors import CommandError

if TYPE_CHECKING:
    from mqan_data.mixture import OwnRows

_NAME: Final = "answer"
_WORTH_PROCESSES: Final = 200  # rows
_MOST_LABELS: Final = 255
_VERDICTS: Final = {"yes": "yes", "true": "yes", "1": "yes", "no": "no", "false": "no", "0": "no"}


@dataclass(frozen=True, slots=True)
class Task:
    """A question about every row, and the column that says what is right.

    ``labels`` are what there is to choose from; none for a free answer. With ``empty_is_none`` an empty cell says that
    there is no answer; otherwise such a row is left out.
    """

    column: str
    asked: Document
    labels: tuple[str, ...]
    empty_is_none: bool
    is_multiple: bool = False

    def gold(self, row: Row) -> tuple[str, ...] | None:
        """Return the right answers of a row, none where there is no answer; None where the row does not say."""
        cell = row.values.get(self.column)
        golds = _labels(cell) if self.labels else _cells(cell)
        if self.asked.get("yes_no"):
            golds = [_VERDICTS[one.casefold()] for one in golds]
        return tuple(golds) if golds or self.empty_is_none else None


@dataclass(frozen=True, slots=True)
class Judged:
    """A row as it was answered: ``gold`` and ``said`` are labels, or free answers; empty for no answer."""

    number: int
    text: str
    gold: tuple[str, ...]
    said: tuple[str, ...]
    probability: float
    spans: tuple[tuple[int, int], ...]
    exact: float
    f1: float


def read_task(
    rows: Sequence[Row],
    *,
    none: bool,
    label: str | None = None,
    answer: str | None = None,
    yes_no: str | None = None,
    question: str | None = None,
    labels: str | None = None,
    scale: str | None = None,
    adapter: str | None = None,
) -> Task:
    """Return what is asked; the labels are those of the column ``label`` and those that ``labels`` describes.

    With ``adapter`` it asks by its question and labels, whatever these options say.
    """
    columns = [column for column in (label, answer, yes_no) if column is not None]
    if len(columns) != 1:
        raise typer.BadParameter("name the column that says what is right, with one of --label, --answer and --yes-no")
    [column] = columns
    if adapter is not None and label is None:
        raise typer.BadParameter("an adapter has labels: name their column with --label", param_hint="--adapter")
    if label is None and question is None:
        raise typer.BadParameter("say what is asked about each row", param_hint="--question")
    cells = [row.values.get(column) for row in rows if row.error is None]
    if not any(column in row.values for row in rows):
        raise CommandError(f"there is no column {column}; there are {', '.join(rows[0].values) if rows else 'no rows'}")
    asked: Document = {"question": question or f"Which {column.replace('_', ' ')}?"}
    if answer is not None:
        return Task(column, asked, (), none)
    found = {one for cell in cells for one in _labels(cell)}
    if yes_no is not None:
        wrong = {one for one in found if one.casefold() not in _VERDICTS}
        _refuse_labels(wrong, rows, column, "neither yes nor no", "--yes-no")
        return Task(column, asked | {"yes_no": True}, ("yes", "no"), none)
    if scale is not None:
        levels = fields_of(scale=scale)["scale"]
        _refuse_labels(found - set(levels), rows, column, "none of them", "--scale")
        return Task(column, asked | (_by(adapter) or {"scale": levels}), tuple(levels), none)
    described = read_choices(labels or "")
    choices = {one if isinstance(one, str) else one["label"]: one for one in described}
    choices |= {one: one for one in sorted(found - choices.keys())}
    if not 2 <= len(choices) <= _MOST_LABELS:
        told = f"its column has {len(choices)} labels; 2 to {_MOST_LABELS} can be asked for"
        raise typer.BadParameter(told, param_hint="--label")
    is_multiple = any(len(_labels(cell)) > 1 for cell in cells)
    by_labels: Document = {"choices": list(choices.values())}
    if is_multiple or none:
        by_labels["multiple" if is_multiple else "none"] = True
    return Task(column, asked | (_by(adapter) or by_labels), tuple(choices), none, is_multiple)


def _refuse_labels(wrong: Set[str], rows: Sequence[Row], column: str, told: str, option: str) -> None:
    for number, row in enumerate(rows if wrong else (), 1):
        if row.error is None and (here := wrong & set(_labels(row.values.get(column)))):
            raise typer.BadParameter(f"{min(here)!r} in row {number} is {told}", param_hint=option)


def _by(adapter: str | None) -> Document:
    # whether several labels can be right is the adapter's to say; asked so, its answers are lists in any case
    return {} if adapter is None else {"choices": {"adapter": adapter}, "multiple": True}


def judge_rows(
    rows: Sequence[Row], task: Task, server: str | None, bundle: Path | None
) -> tuple[list[Judged], Counter[str]]:
    """Ask about every row that says what is right; return the answers, and how many rows were left out, by reason."""
    from mqan_core.example import Choice, Example
    from mqan_data.metrics import exact_and_f1

    plan = Plan({_NAME: task.asked}, None, (_NAME,))
    check_plan(plan)
    asked: list[tuple[int, Row, tuple[str, ...]]] = []
    left_out: Counter[str] = Counter()
    for number, row in enumerate(rows, 1):
        gold = None if row.error else task.gold(row)
        if gold is None:
            left_out[row.error or f"the column {task.column} is empty"] += 1
        else:
            asked.append((number, row, gold))
    judged: list[Judged] = []
    choices = tuple(map(Choice, task.labels))
    entries = _answered([row for _, row, _ in asked], plan, find_server(server, bundle), bundle)
    for (number, _, gold), entry in zip(asked, entries, strict=True):
        if (cell := entry["cells"].get(_NAME)) is None:
            left_out[entry["error"]] += 1
            continue
        value, spans = cell["value"], tuple((start, end) for start, end in cell["spans"])
        said = tuple(value) if isinstance(value, list) else () if value is None else (value,)
        example = Example("", "", entry["text"], "", gold, choices=choices, multiple=task.is_multiple)
        scores = exact_and_f1(example, ", ".join(said) or None, said)
        judged.append(Judged(number, entry["text"], gold, said, cell["probability"], spans, *scores))
    if not judged:
        reasons = "; ".join(f"{reason} ({count})" for reason, count in left_out.items())
        raise CommandError(f"no row can be measured: {reasons or 'there are none'}")
    return judged, left_out


def _answered(rows: Sequence[Row], plan: Plan, url: str | None, bundle: Path | None) -> Iterator[dict[str, Any]]:
    if url is None and len(rows) < _WORTH_PROCESSES:
        worker = open_worker(find_folder(bundle), plan)
        for start in range(0, len(rows), ROWS_TOGETHER):
            yield from map(json.loads, worker.answer_rows(rows[start : start + ROWS_TOGETHER]))
        return
    with answering(iter(rows), url, Path() if url else find_folder(bundle), plan, None) as parts:
        yield from (json.loads(line) for lines in parts for line in lines)


def _labels(cell: Any) -> list[str]:
    return list(dict.fromkeys(_cells(cell if isinstance(cell, list) else str("" if cell is None else cell).split(";"))))


def _cells(cell: Any) -> list[str]:
    cells = cell if isinstance(cell, list) else [cell]
    return [text for one in cells if one is not None and (text := str(one).strip())]


def read_own_rows(inputs: Sequence[str], text: str | None, asked: Mapping[str, str | None], *, none: bool) -> "OwnRows":
    """Read the rows of ``mqan train --rows`` as questions to train on; arguments are the options of the command."""
    from mqan_core.example import Choice
    from mqan_data.formats.rows import EverydayRow
    from mqan_data.mixture import OwnRows

    rows = list(Rows(inputs, text, ()))
    task = read_task(rows, none=none, **asked)
    listed = task.asked.get("choices") or task.asked.get("scale") or ()
    choices = tuple(Choice(one) if isinstance(one, str) else Choice(**one) for one in listed)
    kinds = {"yes_no": "yes_no", "multiple": "several", "scale": "scale", "choices": "choice"}
    kind = next((kind for name, kind in kinds.items() if name in task.asked), "free")
    found = [
        EverydayRow(row.text, kind, task.asked["question"], gold, choices)
        for row in rows
        if row.error is None and (gold := task.gold(row)) is not None
    ]
    if not found:
        raise CommandError("no row has a text and says what is right")
    return OwnRows(found)
