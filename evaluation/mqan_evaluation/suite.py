"""A model for questions of every kind, measured in one run of ``mqan evaluate``.

Probabilities are fitted first, so that what follows can say how far they can be trusted. What was measured on a bundle
can be written into it: scores and calibration into its manifest, and its model card.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from textwrap import shorten
from typing import Any, Final

import numpy as np

from mqan_core.answer.calibration import Calibration
from mqan_core.bundle import open_bundle, write_manifest
from mqan_core.manifest import MODEL_CARD, Manifest
from mqan_data.formats.dataset_file import dataset_names, load_dataset
from mqan_data.mixture import dataset_of
from mqan_data.questions.asked import YES_NO
from mqan_data.synthetic.kind import kind_names
from mqan_evaluation import decanlp_section, field_sections
from mqan_evaluation.cases import case_section
from mqan_evaluation.everyday_section import NAME as EVERYDAY
from mqan_evaluation.everyday_section import everyday_section
from mqan_evaluation.field_sections import long_section
from mqan_evaluation.fit_temperatures import calibration_section, trust_rows
from mqan_evaluation.label_sections import MOST_NAMED, held_back_sets, label_sections
from mqan_evaluation.sections import Measuring, Section, shown

CALIBRATION, LABELS, CASES, DECANLP, MADE = "calibration", "labels", "cases", "decanlp", "made"

_SECTIONS: Final[Mapping[str, Callable[[Measuring, list[str]], Sequence[Section]]]] = {
    EVERYDAY: lambda measuring, _: [everyday_section(measuring)],
    LABELS: label_sections,
    "fields": lambda measuring, sets: [field_sections.field_section(measuring, sets)],
    MADE: lambda measuring, _: [field_sections.made_section(measuring)],
    "squad2_dev": lambda measuring, _: [field_sections.squad2_section(measuring)],
    "instructions": lambda measuring, sets: [field_sections.instruction_section(measuring, sets)],
    CASES: lambda measuring, files: [case_section(measuring, Path(file)) for file in files],
    DECANLP: lambda measuring, sets: [decanlp_section.decanlp_section(measuring, sets)],
    "reviews": lambda measuring, _: [field_sections.review_section(measuring)],
    "long": lambda measuring, _: [long_section(measuring)],
}
SECTIONS: Final = (CALIBRATION, *_SECTIONS)

_COLUMNS: Final = {  # section -> {column: metric} of what goes into the manifest
    "labels": {"accuracy": "accuracy"},
    "fields": {"nF1": "nf1", "refusal F1": "refusal_f1"},
    "made": {"nF1": "nf1", "refusal F1": "refusal_f1"},
    "squad2_dev": {"nF1": "nf1", "refusal F1": "refusal_f1"},
    "instructions": {"accuracy": "accuracy"},
    "reviews": {"labels in question": "accuracy", "as choices": "accuracy_of_choices"},
    "cases": {"share": "accuracy"},
    EVERYDAY: {"right": "accuracy"},
    "long": {"exact": "em", "nF1": "nf1"},
}
_NAMES: Final = ("set", "task", "kind")  # columns that a row is named by
_NUM_WRONG: Final = 10
_NUM_FACTS: Final = 4  # of them by yes or no, where people's questions were asked
_EXCERPT: Final = 160  # characters
_LONG_EXCERPT: Final = 500  # of a text
_INSULTING: Final = ("hate_davidson", "stormfront", "tweeteval")  # their texts are not quoted

_WHOLE: Final = (
    ", on whole sets (of synthetic texts 200 questions a kind, of long texts 260; to calibrate 60 a dataset)"
)


@dataclass(slots=True)
class Measured:
    """The findings of a run: which model, where it ran, on which examples, and the tables in order.

    ``calibration`` has the maps of probabilities, as they stand in a bundle's manifest, where any were fitted.
    """

    title: str
    where: str
    limit: int | None
    seed: int
    sections: list[Section] = field(default_factory=list)
    calibration: dict[str, Calibration] = field(default_factory=dict)


def chosen_names(names: Sequence[str] | None, *, has_cases: bool) -> dict[str, list[str]]:
    """Return which sections to run, each with the sets to measure there; all where no names are given."""
    sets: dict[str, list[str]] = {section: [] for section in SECTIONS}
    sets |= {
        LABELS: list(held_back_sets()),
        "fields": list(field_sections.FIELDS),
        "instructions": list(field_sections.INSTRUCTIONS),
        DECANLP: list(decanlp_section.TASKS),
    }
    if names is None:
        return {section: of_it for section, of_it in sets.items() if section != CASES or has_cases}
    if CASES in names and not has_cases:
        raise ValueError("to ask the questions of users, give their file with --cases FILE")
    known = [*sets, *(name for of_it in sets.values() for name in of_it)]
    chosen: dict[str, list[str]] = {}
    for section, of_it in sets.items():
        if section in names:
            chosen[section] = of_it
        elif found := [name for name in of_it if name in names]:
            chosen[section] = found
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=2)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
            raise ValueError(f"the suite has no section and no set {name!r}: {hint}")
    return chosen


def run_suite(
    measuring: Measuring,
    names: Sequence[str] | None = None,
    *,
    cases: Path | None = None,
    trained_on: Sequence[str] = (),
    show: Callable[[Section], None] = lambda section: None,
) -> Measured:
    """Measure a model; where the suite fits maps of probabilities, ``measuring`` has them afterwards.

    ``names`` are sections, or sets of one, by default all; ``cases`` is a file of questions that users report. Maps are
    fitted on the datasets that the model was ``trained_on``, or on all that are not held back. ``show`` gets each table
    as soon as it is there.
    """
    chosen = chosen_names(names, has_cases=cases is not None)
    measured = Measured(measuring.answerer.title, measuring.answerer.where, measuring.limit, measuring.seed)

    def add(section: Section) -> None:
        measured.sections.append(section)
        show(section)

    if CALIBRATION in chosen:
        measuring.temperatures, section = calibration_section(measuring, trained_on)
        measured.calibration = dict(measuring.temperatures.maps)
        add(section)
    for name, measure in _SECTIONS.items():
        if name in chosen:
            for section in measure(measuring, [str(cases)] if name == CASES else chosen[name]):
                add(section)
    if trust := trust_rows(measuring.answers, _trusted(chosen)):
        add(Section("trust", "How far probabilities can be trusted", trust))
    return measured


def _trusted(chosen: dict[str, list[str]]) -> list[str]:
    made = [f"made_{kind}" for kind in kind_names()] if MADE in chosen else []
    decanlp = [name for name in ("squad", "sst") if name in chosen.get(DECANLP, ())]
    cases = [name for name in (EVERYDAY, CASES) if name in chosen]
    return [*decanlp, *chosen.get(LABELS, ()), *cases, *made]


def write_suite(folder: Path, measured: Measured, answers: Sequence[dict[str, Any]]) -> list[Path]:
    """Write ``suite.json`` and ``answers.jsonl``; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers, lines = folder / "suite.json", folder / "answers.jsonl"
    numbers.write_text(json.dumps(asdict(measured), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    with lines.open("w", encoding="utf-8") as file:
        for answer in answers:
            file.write(json.dumps(answer, ensure_ascii=False) + "\n")
    return [numbers, lines]


def record_suite(
    folder: Path,
    measured: Measured,
    answers: Sequence[Mapping[str, Any]],
    *,
    command: str,
    refusal_offset: float | None = None,
) -> None:
    """Replace the scores of a bundle, the maps and the offset that were fitted, if any, and its model card.

    The card shows some wrong ``answers`` and the ``command`` that measured them.
    """
    manifest = open_bundle(folder).manifest
    maps = measured.calibration or manifest.calibration
    offset = manifest.refusal_offset if refusal_offset is None else refusal_offset
    manifest = replace(manifest, scores=scores_of(measured.sections), calibration=maps, refusal_offset=offset)
    card, path = card_of(manifest, measured, answers, command), folder / MODEL_CARD
    before = path.read_bytes() if path.exists() else b""
    try:
        path.write_text(card, encoding="utf-8")
        write_manifest(folder, manifest)
    except BaseException:  # interrupted: the manifest has the hash of the old card
        path.write_bytes(before)
        raise


def scores_of(sections: Sequence[Section]) -> dict[str, dict[str, float]]:
    """Return the scores of a manifest: set -> {metric: value}."""
    scores: dict[str, dict[str, float]] = {}
    for section in sections:
        for row in section.rows:
            name = str(next(row[column] for column in _NAMES if column in row))
            if section.name == CASES and name != "all":
                continue
            columns = {"score": str(row["metric"])} if section.name == DECANLP else _COLUMNS.get(section.name, {})
            values = {
                metric: float(value)
                for column, metric in columns.items()
                if isinstance(value := row[column], int | float)
            }
            if values:
                in_section = section.name == EVERYDAY or name in ("all", "mean")
                scores[f"{section.name}: {name}" if in_section else name] = values
    return scores


def card_of(manifest: Manifest, measured: Measured, answers: Sequence[Mapping[str, Any]], command: str) -> str:
    training, seconds = manifest.training, float(manifest.training.get("seconds", 0))
    sets = "examples a set (everyday: ten times as many; WOZ: whole dialogues)"
    limit = f", at most {measured.limit} {sets}" if measured.limit else _WHOLE
    template = resources.files("mqan_evaluation").joinpath("templates/card.md").read_text(encoding="utf-8")
    return template.format(
        name=manifest.name,
        version=manifest.version,
        date=datetime.now(UTC).date().isoformat(),
        command=command,
        where=measured.where,
        limit=limit,
        named=MOST_NAMED,
        tables="\n".join(_table(section) for section in measured.sections),
        errors=_wrong_answers(measured, answers),
        recipe=training.get("recipe", ""),
        steps=training.get("steps", 0),
        batch=training.get("batch_pieces", 2500),
        time=f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.0f} minutes",
        start=" --from BUNDLE" if training.get("began_from") else "",
        began=f" It began with the weights of {origin}." if (origin := training.get("began_from")) else "",
        device="GPU" if training.get("device") == "cuda" else "CPU",
        licences="\n".join(_licences([str(name) for name in training.get("tasks", ())])),
    )


def _table(section: Section) -> str:
    columns = list(section.rows[0])
    lines = [
        f"### {section.title}\n",
        f"| {' | '.join(columns)} |",
        f"|{'|'.join('---:' if section.is_number(column) else '---' for column in columns)}|",
        *(f"| {' | '.join(shown(row[column]) for column in columns)} |" for row in section.rows),
    ]
    if section.summary:
        lines += ["", ", ".join(f"{name}: {shown(value)}" for name, value in section.summary.items())]
    return "\n".join([*lines, ""])


def _wrong_answers(measured: Measured, answers: Sequence[Mapping[str, Any]]) -> str:
    quoted = {str(row.get("task") or row.get("set")) for section in measured.sections for row in section.rows}
    quoted.difference_update((CASES, *_INSULTING))
    quoted.add(EVERYDAY)
    wrong: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for answer in answers:
        if answer["section"] in quoted and answer["is_read"] and not answer["right"]:
            wrong[str(answer["section"])].append(answer)
    rng = np.random.default_rng(0)

    def drawn(name: str, found: Sequence[Mapping[str, Any]], number: int) -> list[tuple[str, Mapping[str, Any]]]:
        return [(name, found[i]) for i in rng.permutation(len(found))[:number]]

    if people := wrong.get(EVERYDAY):
        facts = [answer for answer in people if list(answer["choices"]) == list(YES_NO)]
        others = [answer for answer in people if answer not in facts]
        shown_wrong = drawn(EVERYDAY, facts, _NUM_FACTS) + drawn(EVERYDAY, others, _NUM_WRONG - _NUM_FACTS)
    else:
        names = [list(wrong)[i] for i in rng.permutation(len(wrong))[:_NUM_WRONG]]
        shown_wrong = [one for name in names for one in drawn(name, wrong[name], 1)]
    lines = ["| set | text | question | answer | right |", "|---|---|---|---|---|"]
    for name, found in shown_wrong:
        gold = found["gold"][0] if found["gold"] else "(not in the text)"
        given = found["answer"] if found["answer"] is not None else "(not in the text)"
        asked = f"{found['question']} ({', '.join(found['choices'])})" if found["choices"] else str(found["question"])
        cells = (_excerpt(found["context"], _LONG_EXCERPT), *map(_excerpt, (asked, given, gold)))
        lines.append(f"| {' | '.join((name, *cells))} |")
    return "\n".join(lines)


def _excerpt(text: str, most: int = _EXCERPT) -> str:
    words = shorten(" ".join(text.split()), most, placeholder=" ...")
    return re.sub(r"([\\|<*_`\[])", r"\\\1", words)


def _licences(names: Sequence[str]) -> Iterator[str]:
    groups: dict[str, list[str]] = defaultdict(list)
    known = set(dataset_names())
    for name in names:
        own = dataset_of(name)
        if own not in known:
            groups["synthetic, or the maker's own"].append(name)
        else:
            dataset = load_dataset(own)
            groups[dataset.licence + ("" if dataset.commercial else " (not for commercial use)")].append(name)
    for licence, datasets in sorted(groups.items()):
        yield f"- {licence}: {', '.join(datasets)}"
