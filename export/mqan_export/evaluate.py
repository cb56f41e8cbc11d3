"""Score a bundle or a checkpoint on validation sets: ``mqan evaluate``.

Nothing is left out silently: every example of a split is answered and scored, contexts of any length included; an
example that cannot be read (a blank context) counts as answered wrongly and is reported.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mqan_core.answer import Answer, Source
from mqan_core.errors import InputError
from mqan_core.example import Example
from mqan_core.request import Request, read_request
from mqan_core.vocab import Vocabulary
from mqan_export.engine import Engine
from mqan_training.dataset import rename_classes
from mqan_training.metrics import score
from mqan_training.readers.registry import task_named
from mqan_training.readers.task import Task

AnswerBatch = Callable[[Sequence[Request]], list[Answer]]

_BATCH_ROWS = 32
_BATCH_TOKENS = 12_000  # rows times the longest context, so that long contexts come in small batches


@dataclass(frozen=True, slots=True)
class Renaming:
    """Other names for the classes that a task's question offers.

    Attributes:
        names: the classes as the question has them, in order.
        new_names: their new names, in the same order.
        order: place i of the new question offers class ``order[i]``.
    """

    names: tuple[str, ...]
    new_names: tuple[str, ...]
    order: tuple[int, ...]

    def __str__(self) -> str:
        return " or ".join(self.new_names[i] for i in self.order)

    def apply(self, example: Example) -> Example:
        """Return the example with its classes renamed."""
        renamed = [rename_classes(example.question, a, self.names, self.new_names, self.order) for a in example.answers]
        return replace(example, question=renamed[0][0], answers=tuple(answer for _, answer in renamed))


_SENTIMENT = ("negative", "positive")
ZERO_SHOT: Mapping[str, tuple[Renaming, ...]] = {
    "sst": tuple(
        Renaming(_SENTIMENT, new_names, order)
        for new_names in (_SENTIMENT, ("angry", "happy"), ("unsupportive", "supportive"), ("furious", "thrilled"))
        for order in ((0, 1), (1, 0))
        if (new_names, order) != (_SENTIMENT, (0, 1))
    )
}
"""Renamings that the default recipe never trains on (the reversed order of the usual names apart)."""


@dataclass(slots=True)
class Result:
    """Scores of one task.

    Attributes:
        task: name of the task.
        variant: how the question was changed; empty for the task as it is.
        scores: metric -> value, the task's own metric first.
        source_mix: share of the answers' words by source (the paper's figure 3).
        num_examples: how many were scored.
        unreadable: ids of examples that could not be asked.
        seconds: time to answer them.
        predictions: one record an example.
    """

    task: str
    variant: str
    scores: dict[str, float]
    source_mix: dict[str, float]
    num_examples: int
    unreadable: list[str]
    seconds: float
    predictions: list[dict[str, Any]] = field(repr=False)


def evaluate_task(
    answer_batch: AnswerBatch,
    vocabulary: Vocabulary,
    task: Task,
    data: Path,
    *,
    limit: int | None = None,
    renaming: Renaming | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Result:
    """Answer and score the validation split of a task, or its first ``limit`` examples.

    Raises:
        DatasetError: the files are missing or malformed.
        ValueError: the task has no validation split.
    """
    examples = list(_first(task.read(data / task.folder, "validation"), limit))
    if renaming is not None:
        examples = [renaming.apply(example) for example in examples]
    requests: list[Request | None] = []
    unreadable = []
    for example in examples:
        try:
            requests.append(read_request(vocabulary, example.context, example.question))
        except InputError:
            requests.append(None)
            unreadable.append(example.id)
    started = time.perf_counter()
    answers = _answer_all(answer_batch, requests, progress)
    seconds = time.perf_counter() - started
    texts = [answer.text if answer else "" for answer in answers]
    sources = Counter(token.source for answer in answers if answer for token in answer.tokens)
    total = max(sources.total(), 1)
    return Result(
        task.name,
        str(renaming) if renaming else "",
        score(task.metric, texts, examples),
        {source.value: sources[source] / total for source in Source},
        len(examples),
        unreadable,
        seconds,
        [_record(example, answer) for example, answer in zip(examples, answers, strict=True)],
    )


def answer_with_engine(engine: Engine) -> AnswerBatch:
    """Return a function that answers batches with a bundle."""
    return lambda requests: engine.answer(requests, [engine.max_answer_tokens] * len(requests))


def write_results(folder: Path, results: Sequence[Result]) -> None:
    """Write ``metrics.json`` and ``predictions.jsonl``."""
    folder.mkdir(parents=True, exist_ok=True)
    metrics = [
        {
            "task": result.task,
            "variant": result.variant,
            "scores": result.scores,
            "source_mix": result.source_mix,
            "num_examples": result.num_examples,
            "unreadable": result.unreadable,
            "seconds": result.seconds,
        }
        for result in results
    ]
    (folder / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    with (folder / "predictions.jsonl").open("w", encoding="utf-8") as file:
        for result in results:
            for record in result.predictions:
                row = {"task": result.task, "variant": result.variant, **record}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _first(examples: Iterator[Example], limit: int | None) -> Iterator[Example]:
    for number, example in enumerate(examples):
        if limit is not None and number >= limit:
            return
        yield example


def _answer_all(
    answer_batch: AnswerBatch, requests: Sequence[Request | None], progress: Callable[[int, int], None]
) -> list[Answer | None]:
    """Answer requests in batches of similar length; the answers come back in the order of the requests."""
    answers: list[Answer | None] = [None] * len(requests)
    pending: list[tuple[int, Request]] = [(i, r) for i, r in enumerate(requests) if r is not None]
    pending.sort(key=lambda pair: pair[1].num_context_tokens)
    done = 0
    while pending:
        rows = max(1, min(_BATCH_ROWS, _BATCH_TOKENS // pending[-1][1].num_context_tokens))
        batch = pending[-rows:]
        del pending[-rows:]
        for (i, _), answer in zip(batch, answer_batch([request for _, request in batch]), strict=True):
            answers[i] = answer
        done += len(batch)
        progress(done, len(requests))
    return answers


def _record(example: Example, answer: Answer | None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "id": example.id,
        "context": example.context,
        "question": example.question,
        "gold": list(example.answers),
    }
    if answer is None:
        return {**record, "answer": None}
    return {
        **record,
        "answer": answer.text,
        "probability": answer.probability,
        "sources": [token.source.value for token in answer.tokens],
        "spans": [[span.source.value, span.start, span.end] for span in answer.spans],
    }


def default_tasks(names: Sequence[str]) -> list[Task]:
    """Return the tasks of these names that have a validation split.

    Raises:
        ValueError: a name is unknown.
    """
    return [task for task in map(task_named, names) if "validation" in task.splits]
