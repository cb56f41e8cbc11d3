"""The examples of a run: those that it learns from, and those that it is scored on."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mqan_core.ask.request import Request, read_request
from mqan_core.example import Example
from mqan_core.text.vocab import Vocabulary
from mqan_data.metrics import score
from mqan_data.tasks import task_named
from mqan_training.config import TaskConfig, TrainConfig
from mqan_training.model.network import Network
from mqan_training.numbering import PieceTable, TaskData, number_examples
from mqan_training.runlog import console

_BATCH = 32
_SAMPLES_SHOWN = 3


def read_tasks(config: TrainConfig, data: Path, table: PieceTable) -> dict[str, TaskData]:
    """Read, tokenise and number the training examples, and say what was left out."""
    tasks = {}
    for named in config.tasks:
        task = task_named(named.name)
        cut_at = min(task.max_context_tokens, config.max_context_tokens) if task.max_context_tokens else None
        dropped: Counter[str] = Counter()
        examples = number_examples(
            task.name,
            task.read(data / task.folder, "train", dropped),
            table,
            cut_context_at=cut_at,
            max_context_tokens=config.max_context_tokens,
            max_answer_tokens=config.max_answer_tokens,
        )
        examples.dropped.update(dropped)
        left_out = ", ".join(f"{count} {reason}" for reason, count in examples.dropped.items()) or "none"
        console.print(f"{task.name}: {len(examples.items)} training examples, left out: {left_out}")
        tasks[task.name] = examples
    return tasks


def read_validation(
    config: TrainConfig, task: TaskConfig, data: Path, vocabulary: Vocabulary
) -> list[tuple[Example, Request]]:
    """Read the validation examples of a task that a run is scored on, always the same ones; none if it has none."""
    reader = task_named(task.name)
    if "validation" not in reader.splits:
        return []
    examples = [
        example
        for example in reader.read(data / reader.folder, "validation")
        if example.context.strip() and example.question.strip()
    ]
    if reader.metric != "joint_goal_em":  # that one needs whole dialogues, in order
        random.Random(config.seed).shuffle(examples)  # noqa: S311
    examples = examples[: config.validate_examples]
    return [(example, read_request(vocabulary, example.context, example.question)) for example in examples]


def validate(
    network: Network,
    validation: Mapping[str, Sequence[tuple[Example, Request]]],
    max_answer_tokens: int,
    record: Callable[[str, Mapping[str, float], int], None],
) -> None:
    """Answer the validation examples of every task, record the scores and show the first answers.

    Args:
        network: what answers.
        validation: examples by task; a task without any is left out.
        max_answer_tokens: longest answer.
        record: takes a task, its scores by metric and the number of its examples.
    """
    for task, pairs in validation.items():
        if not pairs:
            continue
        answers: dict[int, str] = {}
        by_length = sorted(range(len(pairs)), key=lambda i: pairs[i][1].num_context_tokens)
        for first in range(0, len(pairs), _BATCH):
            chosen = by_length[first : first + _BATCH]
            batch = network.greedy_answers([pairs[i][1] for i in chosen], max_answer_tokens)
            answers.update(zip(chosen, (answer.text for answer in batch), strict=True))
        scores = score(task_named(task).metric, [answers[i] for i in range(len(pairs))], [e for e, _ in pairs])
        record(task, scores, len(pairs))
        for i, (example, _) in enumerate(pairs[:_SAMPLES_SHOWN]):
            console.print(f"    {example.question[:80]!r} -> {answers[i]!r}, gold {example.answers[0]!r}", markup=False)
