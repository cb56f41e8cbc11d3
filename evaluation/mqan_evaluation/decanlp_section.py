"""The tasks of decaNLP by their own metrics (McCann et al. 2018), of the default model and of the paper's network.

Of the paper's network nothing is left out silently: every example of a split is answered and scored, contexts of any
length included; an example that cannot be read (a blank context) counts as answered wrongly and is reported, and so is
every row that gave the reader no example.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

from mqan_core.answer.types import Answer, Source
from mqan_core.example import Example
from mqan_data.files import MissingFileError, in_words
from mqan_data.formats.dataset_file import load_dataset
from mqan_data.metrics import UNANSWERABLE, score
from mqan_data.mixture import validation_examples
from mqan_data.tasks import ALL, FOLDER_OF_JSON_LINES, Task, tasks_named
from mqan_evaluation import judging
from mqan_evaluation.sections import Cell, Measuring, Section

_NAMED: Final = 5  # examples that cannot be read

# Table 2 of McCann et al. 2018: single-task S2S and MQAN, multitask MQAN, the same with an anti-curriculum.
_PAPER_COLUMNS: Final = ("S2S, single", "MQAN, single", "MQAN, joint", "MQAN, anti-curriculum")
PAPER: Final[Mapping[str, tuple[float, float, float, float]]] = {
    "squad": (48.2, 75.5, 70.8, 74.3),
    "iwslt.en.de": (25.0, 25.5, 16.1, 13.7),
    "cnn_dailymail": (19.0, 24.0, 23.9, 24.6),
    "multinli": (67.5, 72.8, 70.5, 69.2),
    "sst": (86.4, 88.1, 86.2, 86.4),
    "qasrl": (63.5, 75.2, 75.8, 77.6),
    "zre": (20.0, 15.6, 28.0, 34.7),
    "woz": (85.3, 84.4, 80.6, 84.1),
    "wikisql": (60.0, 72.6, 62.0, 58.7),
    "mwsc": (43.9, 52.4, 48.8, 48.4),
}
TASKS: Final = ("squad", "iwslt", "cnn_dailymail", "multinli", "sst", "qasrl", "zre", "woz", "wikisql", "mwsc")
COMPARED: Final = ("squad", "sst", "qasrl", "woz", "wikisql", "mwsc")
"""Tasks whose data and metric are those of the paper; their sum is compared."""
_OF_DIALOGUES = "joint_goal_em"
_WITH_REFUSALS = ("corpus_f1", "unanswerable_f1")  # metrics that know the answer "unanswerable"


def choose_tasks(
    names: Sequence[str] | None, own: Sequence[str], data: Path, limit: int | None
) -> tuple[list[Task], Mapping[str, str]]:
    """Divide tasks into those to score and those to skip, with the reason; what is to be scored can be read.

    Without ``names`` they are the model's ``own``. Those that ``all`` stands for may lack their files, and so may own
    folders of JSON lines.
    """
    wanted = names or own
    if not wanted:
        raise ValueError("the bundle does not say what it was trained on: name the tasks with --tasks")
    chosen: list[Task] = []
    skipped: dict[str, str] = {}
    for task in tasks_named(wanted):
        if "validation" not in task.splits:
            skipped[task.name] = "has no validation split"
            continue
        try:
            if not any(True for _ in islice(task.read(data / task.folder, "validation"), limit)):
                raise ValueError(f"{task.name}, validation: its files give no examples")
        except MissingFileError as error:
            if ALL not in wanted and (names or not task.name.startswith(FOLDER_OF_JSON_LINES)):
                raise
            skipped[task.name] = str(error).removeprefix(f"{task.name}: ")
        else:
            chosen.append(task)
    if not chosen:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
        raise ValueError(f"there is no task to score: {reasons or 'no name is given'}")
    return chosen, skipped


def paper_section(measuring: Measuring, tasks: Sequence[Task], skipped: Mapping[str, str]) -> Section:
    """Answer and score the first examples of validation splits; ``skipped`` says which are not asked, and why."""
    rows: list[Mapping[str, Cell]] = []
    notes: list[str] = []
    for task in tasks:
        dropped: Counter[str] = Counter()
        examples = list(islice(task.read(measuring.data / task.folder, "validation", dropped), measuring.limit))
        started = time.perf_counter()
        answers = measuring.ask(task.name, examples)
        seconds = time.perf_counter() - started
        texts = ["" if answer is None else answer.text for answer in answers]
        (metric, value), *others = score(task.metric, texts, examples).items()
        own = measuring.answerer.sources
        rows.append(
            {
                "task": task.name,
                "examples": len(examples),
                "metric": metric,
                "score": round(value, 2),
                "others": ", ".join(f"{name} {number:.1f}" for name, number in others),
                **_source_mix(answers),
                "answers/s": round(len(examples) / seconds, 1) if seconds else None,
                "trained on": ("yes" if task.name in own else "no") if own else None,
            }
        )
        unread = [e.id for e, answer in zip(examples, answers, strict=True) if answer is None]
        if unread:
            notes.append(f"{task.name}: {len(unread)} examples have no text to ask about: {unread[:_NAMED]}")
        if dropped:
            notes.append(f"{task.name}: {in_words(dropped)}")
    notes += [f"{name}: skipped: {reason}" for name, reason in skipped.items()]
    return Section("tasks", "Validation sets by their own metrics", rows, notes=notes)


def beside_paper(section: Section) -> list[Section]:
    """Return the scores of the tasks of decaNLP beside the paper's; nothing where none of them was measured."""
    rows: list[dict[str, Cell]] = [
        {"task": row["task"], "score": row["score"], **dict(zip(_PAPER_COLUMNS, PAPER[str(row["task"])], strict=True))}
        for row in section.rows
        if row["task"] in PAPER
    ]
    if not rows:
        return []
    is_whole = len(rows) == len(PAPER)
    total = round(sum(float(row["score"] or 0) for row in rows), 1) if is_whole else None
    notes = [] if is_whole else [f"decaScore is the sum over {len(PAPER)} tasks, and {len(rows)} of them are here."]
    return [Section("paper", "Beside McCann et al. (2018), table 2", rows, {"decaScore": total}, notes)]


def _source_mix(answers: Sequence[Answer | None]) -> dict[str, Cell]:
    sources = Counter(token.source for answer in answers if answer is not None for token in answer.tokens)
    total = max(sources.total(), 1)
    return {source.value: round(100 * sources[source] / total, 1) for source in Source}


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
        return validation_examples(measuring.data, name, measuring.limit or judging.ALL, measuring.seed)
    examples = validation_examples(measuring.data, name, judging.ALL, measuring.seed)
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
    text = judging.said(answer)
    return text if text is not None else UNANSWERABLE if metric in _WITH_REFUSALS else ""
