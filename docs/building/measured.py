"""Write measured numbers into the documents, from the files that hold them: ``python docs/building/measured.py``.

In a document, ``<!-- = NAME -->`` comes before a number or a table and ``<!-- / -->`` after it. The scores of the
default model come from its manifest and from its card, which ``mqan evaluate --record`` writes; those of speed from
benchmarks/results.
"""

import json
import re
import statistics
import sys
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any, Final

from mqan_data.mixture import dataset_of, is_made

REPOSITORY: Final = Path(__file__).resolve().parents[2]
DOCUMENTS: Final = ("README.md", "docs/how-it-compares.md", "docs/how-to/yes-no.md", "docs/how-to/adapt.md")
_BUNDLE: Final = "serving/bundles/default"
_BENCHMARKS: Final = "benchmarks/results/README.md"
_ADAPTERS: Final = "benchmarks/results/adapters.json"
_FRONTIER: Final = "benchmarks/results/frontier.json"
_PLACE: Final = re.compile(r"(<!-- = (.+?) -->)(.*?)(<!-- / -->)", re.DOTALL)
_HEADING: Final = re.compile(r"^#+ (.+)$")
_WORDS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SETS: Final = {
    "banking77": "Banking77 (intents)",
    "dbpedia14": "DBpedia (kinds of things)",
    "isear": "ISEAR (emotions)",
    "hate_davidson": "hate speech",
    "searchsnippets": "search snippets (topics)",
    "politeness": "politeness",
    "youtube_spam": "YouTube spam",
    "mean": "mean",
}
_COMPARED: Final = ("majority", "cosine", "accuracy")

Table = list[dict[str, str]]


def read_tables(path: Path) -> dict[str, Table]:
    """Return the first table under each heading of a document, its rows by column."""
    found: dict[str, Table] = {}
    heading, columns = "", list[str]()
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := _HEADING.match(line):
            heading, columns = match[1], []
        elif not line.startswith("|"):
            columns = []
        elif not columns and heading not in found:
            columns, found[heading] = _cells(line), []
        elif columns and not set(line) <= set("|-: "):
            found[heading].append(dict(zip(columns, _cells(line), strict=True)))
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def values_of(repository: Path) -> dict[str, str]:
    """Return what a document can show, by name."""
    manifest: Mapping[str, Any] = json.loads((repository / _BUNDLE / "manifest.json").read_text(encoding="utf-8"))
    card = read_tables(repository / _BUNDLE / "README.md")
    by_set = {row["set"]: row for row in card["Label sets that were not trained on: right answers"]}
    varied = {row["set"]: row for row in card["Label sets that were not trained on: the same questions, varied"]}
    users = {row["kind"]: row for row in card["Questions that users report"]}["all"]
    people = {row["kind"]: row for row in card["Questions of every kind on everyday texts"]}
    sources = manifest["training"]["tasks"]
    sets = [row for name, row in by_set.items() if name != "mean"]
    better = sum(float(row["accuracy"]) > float(row["cosine"]) for row in sets)
    on_gpu = read_tables(repository / _BENCHMARKS)["On a GPU"]
    scores = {
        f"{name}.{metric}": _digits(value) for name, of in manifest["scores"].items() for metric, value in of.items()
    }
    return {
        **scores,
        "decascore": _digits(sum(float(row["score"]) for row in card["decaNLP by its own metrics"])),
        "version": manifest["version"],
        "datasets": str(len({dataset_of(name) for name in sources if not is_made(name)})),
        "users": _digits(users["share"], 0),
        "users asked": users["questions"],
        "everyday asked": people["all"]["questions"],
        **{f"everyday: {kind}": _digits(row["right"], 0) for kind, row in people.items()},
        "yes/no": _digits(varied["mean"]["yes/no: accuracy"], 0),
        "yes/no, exactly": _digits(varied["mean"]["yes/no: accuracy"]),
        "choices": _digits(by_set["mean"]["accuracy"]),
        "cosine": _digits(by_set["mean"]["cosine"]),
        "better than cosine": _WORDS[better],
        "worse than cosine": _WORDS[len(sets) - better],
        "label sets": _label_sets(by_set),
        "choosers": _choosers(json.loads((repository / _FRONTIER).read_text(encoding="utf-8"))),
        "adapters": _adapters(json.loads((repository / _ADAPTERS).read_text(encoding="utf-8"))),
        "answers on a GPU": list(on_gpu[-1].values())[-1],
    }


def _digits(value: str | float, number: int = 1) -> str:
    return str(Decimal(str(value)).quantize(Decimal(1).scaleb(-number), ROUND_HALF_UP))


def _label_sets(by_set: Mapping[str, Mapping[str, str]]) -> str:
    """Return the table of label sets, the best of each row in bold."""
    lines = ["", "", "| set | labels | majority | cosine | mqan |", "|---|---:|---:|---:|---:|"]
    for name, title in _SETS.items():
        found = by_set[name]
        best = max(float(found[column]) for column in _COMPARED)
        cells = [f"**{_digits(v)}**" if float(v) == best else _digits(v) for v in map(found.__getitem__, _COMPARED)]
        lines.append(f"| {' | '.join([title, found['labels'], *cells])} |".replace("|  |", "| |"))
    return "\n".join([*lines, "", ""])


def _choosers(measured: Mapping[str, Any]) -> str:
    """Return the table of what chooses among labels, the best of each row in bold, and the time of each."""
    names = {"sparrow": "Sparrow nano", "cosine": "cosine", "mqan": "mqan"}
    lines = ["", "", f"| set | questions | {' | '.join(names.values())} |", f"|---|{'---:|' * (1 + len(names))}"]
    titles = {**_SETS, "everyday": "everyday texts"}
    for title, of_set in measured["sets"].items():
        best = max(of_set[name]["right"] for name in names)
        shown = {name: _digits(of_set[name]["right"]) for name in names}
        cells = [f"**{shown[name]}**" if of_set[name]["right"] == best else shown[name] for name in names]
        lines.append(f"| {titles[title]} | {measured['questions'][title]} | {' | '.join(cells)} |")
    times = [_digits(statistics.median(of_set[name]["ms"] for of_set in measured["sets"].values())) for name in names]
    return "\n".join([*lines, f"| milliseconds, median of the sets | | {' | '.join(times)} |", "", ""])


def _adapters(measured: Mapping[str, Any]) -> str:
    """Return the table of adapters by rows a label; in brackets what the vectors of the texts teach alone."""
    counts = [str(count) for count in measured["counts"]]
    heading = f"| set | labels | none | {' | '.join(counts)} | seconds, kB |"
    lines = ["", "", heading, f"|---|{'---:|' * (3 + len(counts))}"]
    for found in measured["sets"].values():
        cells = [f"{_digits(found[count]['adapter'])} ({_digits(found[count]['vectors'])})" for count in counts]
        most, rows = found[counts[-1]], found["labels"] * measured["counts"][-1]
        cells.append(f"{_digits(most['seconds'] + rows * found['ms a row'] / 1000)}, {_digits(most['kB'], 0)}")
        lines.append(f"| {found['title']} | {found['labels']} | {_digits(found['alone'])} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", ""])


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return a document with the numbers as they are.

    Raises:
        KeyError: it names a number that there is not.
    """
    return _PLACE.sub(lambda place: place[1] + values[place[2]] + place[4], text)


def main() -> int:
    """Write the numbers; print the documents that changed."""
    values = values_of(REPOSITORY)
    for name in DOCUMENTS:
        path = REPOSITORY / name
        before = path.read_text(encoding="utf-8")
        if (after := filled(before, values)) != before:
            path.write_text(after, encoding="utf-8")
            print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
