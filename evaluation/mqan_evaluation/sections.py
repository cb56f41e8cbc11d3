"""A section of the suite: a table, numbers for a file, and the answers that they come from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqan_core.answer.calibration import Temperatures
from mqan_core.answer.finish import several
from mqan_core.answer.types import Answer
from mqan_core.example import Example
from mqan_evaluation.answerers import Answerer, answer_all
from mqan_evaluation.judging import judge, said

Cell = str | float | int | None


@dataclass(frozen=True, slots=True)
class Section:
    """One table of the suite, chosen by its name.

    The first row names the columns. Numbers are per cent unless their column says otherwise. ``summary`` has single
    numbers, such as a mean; ``notes`` has what else is to be said, a line each.
    """

    name: str
    title: str
    rows: Sequence[Mapping[str, Cell]]
    summary: Mapping[str, Cell] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def is_number(self, column: str) -> bool:
        return any(isinstance(row[column], int | float) for row in self.rows)


def shown(value: Cell) -> str:
    """Return a cell as tables show it, empty for None."""
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else value


def calibrated(answer: Answer, temperatures: Temperatures) -> Answer:
    """Return an answer as a bundle with these maps gives it."""
    mapped = temperatures.calibrate(answer)
    return several(mapped) if answer.is_multiple else mapped


@dataclass(slots=True)
class Measuring:
    """The model and data that every section needs, and the answers that it leaves, in the order of judging.

    ``limit`` is the most examples of a set; ``progress`` gets the number of questions of each batch that was answered.
    """

    answerer: Answerer
    data: Path
    limit: int | None = None
    seed: int = 1
    threads: int = 1
    temperatures: Temperatures = field(default_factory=Temperatures)
    answers: list[dict[str, Any]] = field(default_factory=list, repr=False)
    progress: Callable[[int], None] = lambda done: None

    def ask(
        self,
        section: str,
        examples: Sequence[Example],
        is_right: Callable[[Example, Answer | None], bool] = lambda example, answer: judge(example, answer)[0] == 1,
    ) -> list[Answer | None]:
        """Answer examples and keep the answers under a name, judged by a rule."""
        answers = answer_all(self.answerer, examples, self.progress, self.threads)
        for example, answer in zip(examples, answers, strict=True):
            record: dict[str, Any] = {
                "section": section,
                "id": example.id,
                "context": example.context,
                "question": example.question,
                "choices": [choice.label for choice in example.choices],
                "gold": list(example.answers),
                "is_read": answer is not None,
                "right": is_right(example, answer),
            }
            if answer is not None:
                record |= {
                    "answer": said(answer),
                    "probability": calibrated(answer, self.temperatures).probability,
                    "refusal": answer.refusal,
                    "sources": [token.source.value for token in answer.tokens],
                    "spans": [[span.source.value, span.start, span.end] for span in answer.spans],
                }
            self.answers.append(record)
        return answers
