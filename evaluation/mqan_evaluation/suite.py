"""A model for questions of every kind, measured in one run of ``mqan evaluate``.

Probabilities are fitted first, so that what follows can say how far they can be trusted.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from mqan_core.answer.calibration import Calibration
from mqan_data.synthetic.kind import kind_names
from mqan_evaluation import decanlp_section, field_sections
from mqan_evaluation.cases import case_section
from mqan_evaluation.everyday_section import NAME as EVERYDAY
from mqan_evaluation.everyday_section import everyday_section
from mqan_evaluation.field_sections import long_section
from mqan_evaluation.fit_temperatures import calibration_section, trust_rows
from mqan_evaluation.label_sections import held_back_sets, label_sections
from mqan_evaluation.sections import Measuring, Section

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
