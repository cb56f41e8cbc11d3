"""Short cases that are judged by what they tell: how urgent, how content, thanks or complaint, spam or not."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from mqan_core.example import Example
from mqan_data.formats.dataset_file import Label
from mqan_data.formats.rows import LabelRow
from mqan_data.questions.labels import ask_labels
from mqan_data.settings import parse, read_yaml
from mqan_data.synthetic.kind import LabelSet

_PATH = Path(__file__).resolve().with_suffix(".yaml")
_HELD_BACK = 8  # each so many of the cases is for validation only


@dataclass(frozen=True, slots=True)
class _Cases:
    """Labels, as in ``LabelSet``, the cases of each, and whether somebody reports them."""

    kind: str
    labels: Mapping[str, Label]
    questions: tuple[str, ...]
    cases: Mapping[str, tuple[str, ...]]
    yes_no: tuple[str, ...] = ()
    kinds: str = ""
    ordered: bool = False
    reported: bool = False


@dataclass(frozen=True, slots=True)
class _Surroundings:
    before: tuple[str, ...]
    reports: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _File:
    sets: Mapping[str, _Cases]
    surroundings: _Surroundings


@cache
def _file() -> _File:
    return parse(_File, read_yaml(_PATH), str(_PATH))


def ask_judgements(chance: Random, rng: np.random.Generator, *, held_back: bool) -> Example:
    """Write a case with what stands around it, and ask how it is to be judged."""
    names = list(_file().sets)
    cases = _file().sets[chance.choice([*names, names[0], names[0]])]
    label = chance.choice(list(cases.cases))
    texts = [t for n, t in enumerate(cases.cases[label]) if (n % _HELD_BACK == _HELD_BACK - 1) == held_back]
    text = chance.choice(texts)
    around = _file().surroundings
    before = chance.choice((*around.before, *(around.reports if cases.reported else ())))
    after = chance.choice(around.after)
    context = f"{before}{text}{after}"
    part = LabelSet(
        cases.kind, cases.labels, cases.questions, cases.kinds, yes_no=cases.yes_no, ordered=cases.ordered
    ).part()
    asked = ask_labels(LabelRow({"text": context}, (label,)), part, rng)
    evidence = ((len(before), len(before) + len(text)),) if asked.answers else None
    return replace(asked, evidence=evidence)
