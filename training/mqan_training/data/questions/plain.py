"""Questions that rows bring along."""

from collections.abc import Sequence

import numpy as np

from mqan_training.data.questions.asked import Asked, one_of
from mqan_training.data.shapes.dataset_file import QuestionsPart
from mqan_training.data.shapes.rows import QuestionRow


def ask_plain(row: QuestionRow, part: QuestionsPart, rng: np.random.Generator, rows: Sequence[QuestionRow]) -> Asked:
    """Return the question in one of its wordings; now and then of another text, which does not answer it."""
    question = one_of(rng, row.questions)
    if part.refusals and rng.random() < part.refusals:
        other = rows[int(rng.integers(len(rows)))]
        folded = other.text.casefold()
        if other.text != row.text and not any(answer.casefold() in folded for answer in row.answers):
            return Asked(other.text, question, ())
    return Asked(row.text, question, row.answers, row.start)


def canonical_plain(row: QuestionRow) -> Asked:
    """Return the question in its first wording."""
    return Asked(row.text, row.questions[0], row.answers, row.start)
