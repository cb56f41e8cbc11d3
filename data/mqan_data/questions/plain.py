"""Questions that rows bring along."""

import numpy as np

from mqan_data.formats.rows import QuestionRow
from mqan_data.questions.asked import Asked, one_of


def ask_plain(row: QuestionRow, rng: np.random.Generator) -> Asked:
    """Return the question in one of its wordings."""
    return Asked(row.text, one_of(rng, row.questions), row.answers, row.start)


def ask_plain_of_another(row: QuestionRow, other: QuestionRow, rng: np.random.Generator) -> Asked | None:
    """Ask the question of the text of another row; None where that holds the answer, too."""
    folded = other.text.casefold()
    if other.text == row.text or any(answer.casefold() in folded for answer in row.answers):
        return None
    return Asked(other.text, one_of(rng, row.questions), ())


def canonical_plain(row: QuestionRow) -> Asked:
    """Return the question in its first wording."""
    return Asked(row.text, row.questions[0], row.answers, row.start)
