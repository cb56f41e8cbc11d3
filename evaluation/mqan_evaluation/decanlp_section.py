"""The ten tasks of decaNLP by their own metrics (McCann et al. 2018, table 1)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from mqan_core.answer.types import Answer
from mqan_core.example import Example
from mqan_data.formats.dataset_file import load_dataset
from mqan_data.metrics import UNANSWERABLE, score
from mqan_data.mixture import validation_examples
from mqan_evaluation.judging import ALL, said
from mqan_evaluation.paper_section import PAPER
from mqan_evaluation.sections import Cell, Measuring, Section

TASKS: Final = ("squad", "iwslt", "cnn_dailymail", "multinli", "sst", "qasrl", "zre", "woz", "wikisql", "mwsc")
COMPARED: Final = ("squad", "sst", "qasrl", "woz", "wikisql", "mwsc")
"""Tasks whose data and metric are those of the paper; their sum is compared."""

_OF_DIALOGUES = "joint_goal_em"
_WITH_REFUSALS = ("corpus_f1", "unanswerable_f1")  # metrics that know the answer "unanswerable"


def decanlp_section(measuring: Measuring, names: Sequence[str] = TASKS) -> Section:
    """Measure tasks of decaNLP beside what the paper's MQAN reaches on all of them together."""
    rows: list[dict[str, Cell]] = []
    for name in names:
        (task,) = (task for task in load_dataset(name).tasks.values() if task.mixed)
        metric = task.metric
        examples = task_examples(measuring, name, metric)
        texts = [_text(answer, metric) for answer in measuring.ask(name, examples)]
        golds = [replace(e, answers=e.answers or (UNANSWERABLE,)) for e in examples]
        (own, value), *others = score(metric, texts, golds).items()
        rows.append(
            {
                "task": name,
                "metric": own,
                "examples": len(examples),
                "score": round(value, 2),
                "paper: joint": PAPER[task.name][2],
                "paper: better of joint and anti-curriculum": max(PAPER[task.name][2:]),
                "others": ", ".join(f"{other} {number:.1f}" for other, number in others),
            }
        )
    scores = {str(row["task"]): float(row["score"] or 0) for row in rows}
    together = sum(scores[name] for name in COMPARED) if set(COMPARED) <= set(scores) else None
    summary: dict[str, Cell] = {
        "sum of squad, sst, qasrl, woz, wikisql and mwsc": None if together is None else round(together, 2)
    }
    return Section("decanlp", "decaNLP by its own metrics", rows, summary)


def task_examples(measuring: Measuring, name: str, metric: str) -> list[Example]:
    """Return the examples of a task; where a metric follows dialogues, whole ones."""
    if metric != _OF_DIALOGUES or measuring.limit is None:
        return validation_examples(measuring.data, name, measuring.limit or ALL, measuring.seed)
    examples = validation_examples(measuring.data, name, ALL, measuring.seed)
    chosen: list[Example] = []
    for example in examples:
        dialogue = (example.reference or {}).get("dialogue")
        if len(chosen) >= measuring.limit and dialogue != (chosen[-1].reference or {}).get("dialogue"):
            break
        chosen.append(example)
    return chosen


def _text(answer: Answer | None, metric: str) -> str:
    if answer is None:
        return ""
    text = said(answer)
    return text if text is not None else UNANSWERABLE if metric in _WITH_REFUSALS else ""
