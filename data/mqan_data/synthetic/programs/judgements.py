"""Short cases that are judged by what they tell: how urgent, how content, thanks or complaint, spam or not."""

from dataclasses import replace
from random import Random

import numpy as np

from mqan_core.example import Example
from mqan_data.formats.rows import LabelRow
from mqan_data.questions import labels
from mqan_data.settings import parse
from mqan_data.synthetic.kind import LabelSet
from mqan_data.synthetic.programs.told import load, part_of

_HELD_BACK = 8  # each so many of the cases is for validation only


def ask_judgements(chance: Random, rng: np.random.Generator, *, held_back: bool) -> Example:
    """Write a case with what stands around it, and ask how it is to be judged."""
    file = load("judgements")
    names = list(file["sets"])
    name = chance.choice([*names, names[0], names[0]])
    cases = file["sets"][name]
    label = chance.choice(list(cases["cases"]))
    text = chance.choice(part_of(cases["cases"][label], _HELD_BACK, held_back=held_back))
    before = chance.choice((*file["before"], *(file["reports"] if "reported" in cases else ())))
    row = LabelRow({"text": f"{before}{text}{chance.choice(file['after'])}"}, (label,))
    labels_of = {key: value for key, value in cases.items() if key not in ("cases", "reported")}
    asked = labels.draw(row, parse(LabelSet, labels_of, name).part(), rng)
    return replace(asked, evidence=((len(before), len(before) + len(text)),) if asked.answers else None)
