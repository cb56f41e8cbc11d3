"""A section of the suite: a table, numbers for a file, and the answers that they come from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqan_core.answer.calibration import Temperatures
from mqan_core.example import Example
from mqan_evaluation.answerers import Answerer, Decision, answer_all, ask_of, labels_offered
from mqan_evaluation.judging import judge

Cell = str | float | int | None


@dataclass(frozen=True, slots=True)
class Section:
    """One table of the suite.

    Attributes:
        name: what it is chosen by.
        title: what it shows, in words.
        rows: by column; the first row names the columns. Numbers are per cent unless their column says otherwise.
        summary: single numbers, such as a mean.
        notes: what else is to be said, a line each.
    """

    name: str
    title: str
    rows: Sequence[Mapping[str, Cell]]
    summary: Mapping[str, Cell] = field(default_factory=dict)
    notes: Sequence[str] = ()


@dataclass(slots=True)
class Measuring:
    """The model and data that every section needs, and the answers that it leaves.

    Attributes:
        limit: most examples a set; None for all.
        seed: decides which.
        threads: batches that are answered side by side.
        temperatures: what probabilities are mapped by; empty for none.
        answers: one record an answer, in the order in which they were judged.
        progress: called with the number of questions of each batch that was answered.
    """

    answerer: Answerer
    data: Path
    limit: int | None = None
    seed: int = 1
    threads: int = 1
    temperatures: Temperatures = field(default_factory=Temperatures)
    answers: list[dict[str, Any]] = field(default_factory=list, repr=False)
    progress: Callable[[int], None] = lambda done: None

    def ask(self, section: str, examples: Sequence[Example]) -> list[Decision | None]:
        """Answer examples and keep the answers under a name."""
        return self.ask_judged(section, examples, lambda example, decision: judge(example, decision)[0] == 1)

    def ask_judged(
        self, section: str, examples: Sequence[Example], is_right: Callable[[Example, Decision | None], bool]
    ) -> list[Decision | None]:
        """Answer examples and keep the answers, judged by a rule of one's own."""
        decisions = answer_all(self.answerer, [ask_of(example) for example in examples], self.progress, self.threads)
        for example, decision in zip(examples, decisions, strict=True):
            self._keep(section, example, decision, is_right(example, decision))
        return decisions

    def _keep(self, section: str, example: Example, decision: Decision | None, is_right: bool) -> None:
        record: dict[str, Any] = {
            "section": section,
            "id": example.id,
            "context": example.context,
            "question": example.question,
            "choices": [choice.label for choice in example.choices],
            "gold": list(example.answers),
            "is_read": decision is not None,
            "right": is_right,
        }
        if decision is not None:
            record |= {
                "answer": decision.text,
                "probability": self.probability(example, decision),
                "refusal": decision.refusal,
            }
            if decision.answer is not None:
                record["sources"] = [token.source.value for token in decision.answer.tokens]
                record["spans"] = [[span.source.value, span.start, span.end] for span in decision.answer.spans]
        self.answers.append(record)

    def probability(self, example: Example, decision: Decision) -> float:
        """Return the calibrated probability of what was decided."""
        return self.temperatures.decided(
            decision.probability,
            decision.refusal,
            decision.choices,
            labels=labels_offered(example, decision),
            multiple=example.multiple,
            is_refusal=decision.text is None,
        )
