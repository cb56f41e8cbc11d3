"""Short cases that are judged by what they tell: how urgent, how content, thanks or complaint, spam or not."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random

import numpy as np

from mqan_core.example import Example
from mqan_data.formats.dataset_file import Texts
from mqan_data.formats.rows import LabelRow
from mqan_data.questions.labels import ask_labels
from mqan_data.synthetic.kind import LabelSet
from mqan_data.synthetic.programs.told import load, part_of

_HELD_BACK = 8  # each so many of the cases is for validation only


@dataclass(frozen=True, slots=True)
class _Cases(LabelSet):
    """Labels with the cases of each, and whether somebody reports them."""

    cases: Mapping[str, Texts] = field(default_factory=dict)
    reported: bool = False


@dataclass(frozen=True, slots=True)
class Judgements:
    """The file: sets of labels, and what stands before and after a case."""

    sets: Mapping[str, _Cases]
    before: Texts
    reports: Texts
    after: Texts


def ask_judgements(chance: Random, rng: np.random.Generator, *, held_back: bool) -> Example:
    """Write a case with what stands around it, and ask how it is to be judged."""
    file = load(Judgements, "judgements")
    names = list(file.sets)
    cases = file.sets[chance.choice([*names, names[0], names[0]])]
    label = chance.choice(list(cases.cases))
    text = chance.choice(part_of(cases.cases[label], _HELD_BACK, held_back=held_back))
    before = chance.choice((*file.before, *(file.reports if cases.reported else ())))
    row = LabelRow({"text": f"{before}{text}{chance.choice(file.after)}"}, (label,))
    asked = ask_labels(row, cases.part(), rng)
    return replace(asked, evidence=((len(before), len(before) + len(text)),) if asked.answers else None)
