"""Questions that rows bring along."""

import numpy as np

from mqan_core.example import Example
from mqan_data.formats.rows import QuestionRow
from mqan_data.questions.asked import ask, one_of


def draw(row: QuestionRow, _part: object, rng: np.random.Generator) -> Example:
    return ask(row.text, one_of(rng, row.questions), row.answers, row.start)


def draw_of_another(row: QuestionRow, other: QuestionRow, _part: object, rng: np.random.Generator) -> Example | None:
    """Ask the question of the text of another row; None where that holds the answer, too."""
    folded = other.text.casefold()
    if other.text == row.text or any(answer.casefold() in folded for answer in row.answers):
        return None
    return ask(other.text, one_of(rng, row.questions), ())


def canonical(row: QuestionRow, _part: object, _rng: object) -> Example:
    return ask(row.text, row.questions[0], row.answers, row.start)
