"""Other ways to ask the question of a label set that was never trained on: orders, wordings, synonyms, yes or no."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mqan_core.example import Choice, Example
from mqan_data.formats.dataset_file import LabelsPart, load_dataset, readable
from mqan_data.questions.asked import YES_NO, fitted
from mqan_data.settings import parse, read_yaml

MOST_NAMED = 20  # most labels that are named within a question
_WORDINGS = Path(__file__).with_name("label_sets.yaml")


@dataclass(frozen=True, slots=True)
class LabelSet:
    """Other wordings of a set's question, and another name of each label."""

    questions: tuple[str, ...]
    synonyms: Mapping[str, str]


def held_back_sets(path: Path = _WORDINGS) -> dict[str, LabelSet]:
    """Return the label sets that are measured, by the name of their dataset."""
    sets = {name: parse(LabelSet, body, f"{path}: {name}") for name, body in read_yaml(path).items()}
    for name, label_set in sets.items():
        labels = {readable(key, label.name) for key, label in labels_part(name).labels.items()}
        given = label_set.synonyms
        if set(given) != labels or len(set(given.values())) != len(labels) or not label_set.questions:
            raise ValueError(
                f"{path}: {name}: give `questions`, and `synonyms` with a name of its own for each label; "
                f"wrong or missing are {sorted(set(given) ^ labels)}"
            )
    return sets


def labels_part(name: str) -> LabelsPart:
    parts = list(load_dataset(name).parts.values())
    if len(parts) != 1 or not isinstance(parts[0], LabelsPart):
        raise ValueError(f"{name}: expected one part with labels")
    return parts[0]


def by_synonyms(example: Example, synonyms: Mapping[str, str]) -> Example:
    """Return the question with another name for each label."""
    return replace(
        example,
        choices=tuple(Choice(synonyms[choice.label], choice.description) for choice in example.choices),
        answers=tuple(synonyms[answer] for answer in example.answers),
    )


def named_in_question(example: Example, rng: np.random.Generator) -> tuple[Example, Example]:
    """Return the question with the labels in its own words and no choices, in a random order and in the reverse.

    Of more than ``MOST_NAMED`` labels so many are named, the right one among them.
    """
    labels = [choice.label for choice in example.choices]
    wrong = [label for label in labels if label not in example.answers]
    drawn = [wrong[i] for i in rng.permutation(len(wrong))[: MOST_NAMED - 1]]
    named = [*example.answers[:1], *drawn]
    order = [named[i] for i in rng.permutation(len(named))]
    first, second = (_naming(example.question, names) for names in (order, order[::-1]))
    return replace(example, question=first, choices=()), replace(example, question=second, choices=())


def _naming(question: str, labels: Sequence[str]) -> str:
    mark = "; " if any("," in label for label in labels) else ", "
    *first, last = labels
    return f"{question} Choose from: {mark.join(first)} or {last}."


def yes_or_no(example: Example, template: str, is_true: bool, rng: np.random.Generator) -> Example:
    """Return the question whether a label is right: of the right one, where "yes" is to be true, or of a wrong one.

    ``template`` is the question with ``{label}``; the example has one right choice.
    """
    wrong = [choice.label for choice in example.choices if choice.label not in example.answers]
    label = example.answers[0] if is_true else wrong[int(rng.integers(len(wrong)))]
    answer = YES_NO[0] if is_true else YES_NO[1]
    question = fitted(template, {"label": label})
    return replace(example, question=question, choices=tuple(map(Choice, YES_NO)), answers=(answer,))
