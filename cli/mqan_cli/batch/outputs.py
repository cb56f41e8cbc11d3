"""What ``mqan batch`` writes when all rows are answered: a table, and a page to look the rows through."""

import csv
import json
import os
from collections.abc import Iterable, Mapping
from html import escape
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

from mqan_cli.batch.plan import ERROR, Plan
from mqan_cli.batch.running import Entry
from mqan_client.display import COLOURS, marked

ENDINGS: Final = (".csv", ".tsv", ".jsonl", ".parquet")
_GROUP_ROWS: Final = 10_000  # of Parquet, in memory at a time

Flat = dict[str, Any]


def write_table(path: Path, entries: Iterable[Entry], plan: Plan) -> None:
    """Write a table by the ending of its path, where nothing stands until it is whole; the entries are read twice."""
    new = path.with_name(f".{path.name}.new")
    if path.suffix == ".parquet":
        _write_parquet(new, entries, plan)
    else:
        with new.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            if path.suffix == ".jsonl":
                file.writelines(json.dumps(_flat(entry, plan), ensure_ascii=False) + "\n" for entry in entries)
            else:
                columns = list(_columns(entries, plan))
                writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",", lineterminator="\n")
                writer.writerow(columns)
                for flat in (_flat(entry, plan) for entry in entries):
                    writer.writerow([_shown(flat.get(column)) for column in columns])
    os.replace(new, path)


def _flat(entry: Entry, plan: Plan) -> Flat:
    flat: Flat = dict(entry["row"])
    for name in plan.names:
        cell = entry["cells"].get(name, {})
        start, end = (cell.get("spans") or [(None, None)])[0]
        parts = {**cell, "start": start, "end": end}
        flat |= {column: parts.get(what) for what, column in plan.columns_of(name).items()}
    return {**flat, ERROR: entry["error"]}


def _columns(entries: Iterable[Entry], plan: Plan) -> dict[str, set[type]]:
    of_input: dict[str, set[type]] = {}
    of_answers: dict[str, set[type]] = {column: set() for column in plan.columns}
    for entry in entries:
        for column, value in _flat(entry, plan).items():
            (of_answers if column in of_answers else of_input).setdefault(column, set()).add(type(value))
    return of_input | of_answers


def _shown(value: Any) -> str:
    """Return a value as a cell: of a list its entries, with semicolons between them."""
    if value is None or isinstance(value, str):
        return value or ""
    is_list = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return "; ".join(value) if is_list else json.dumps(value, ensure_ascii=False)


def _write_parquet(path: Path, entries: Iterable[Entry], plan: Plan) -> None:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    known = ((bool,), pa.bool_()), ((int,), pa.int64()), ((float,), pa.float64()), ((float, int), pa.float64())
    kinds = {frozenset(types): kind for types, kind in (*known, ((list,), pa.list_(pa.string())))}
    found = {name: frozenset(types - {type(None)}) for name, types in _columns(entries, plan).items()}
    schema = pa.schema([(name, kinds.get(types, pa.string())) for name, types in found.items()])
    flats = (_flat(entry, plan) for entry in entries)
    with ParquetWriter(path, schema) as writer:
        while group := list(islice(flats, _GROUP_ROWS)):
            rows = [{f.name: _typed(flat.get(f.name), f.type == pa.string()) for f in schema} for flat in group]
            writer.write_table(pa.Table.from_pylist(rows, schema))


def _typed(value: Any, is_text: bool) -> Any:
    if value is None or not is_text:
        return [_typed(one, True) for one in value] if isinstance(value, list) else value
    return (value if isinstance(value, str) else json.dumps(value)).encode("utf-8", "replace").decode()


def write_page(path: Path, entries: Iterable[Entry], plan: Plan, model: str) -> None:
    from mqan_serving.pages import template_of

    colours = dict(zip(plan.names, cycle(range(len(COLOURS))), strict=False))
    rows = ({**entry, "text": _marked(entry, colours)} for entry in entries)
    given = {"title": path.stem, "model": model, "colours": COLOURS, "of": colours, "asked": plan.wordings}
    page = template_of("mqan_cli", "batch.html").stream(given, rows=rows, shown=_shown)
    with path.open("w", encoding="utf-8", errors="backslashreplace") as file:
        file.writelines(page)


def _marked(entry: Entry, colours: Mapping[str, int]) -> str:
    openings = {name: f'<mark class=c{colour} title="{escape(name)}">' for name, colour in colours.items()}
    cells = entry["cells"].items()
    return marked(entry["text"], [(*span, openings[name]) for name, cell in cells for span in cell["spans"]])
