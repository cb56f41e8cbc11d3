"""Score the paper's network on validation sets: ``mqan evaluate`` of a bundle of format 7, or its checkpoint.

Nothing is left out silently: every example of a split is answered and scored, contexts of any length included; an
example that cannot be read (a blank context) counts as answered wrongly and is reported, and so is every row that gave
the reader no example.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from mqan_core.answer import Answer, Source
from mqan_core.errors import InputError
from mqan_core.example import Example
from mqan_runtime.interface import AnswerEngine
from mqan_training.data.metrics import score
from mqan_training.data.readers.task import Task

Read = Callable[[str, str], Any]  # a context and a question into what the model answers
T = TypeVar("T")
AnswerBatch = Callable[[Sequence[Any]], list[Answer]]

_BATCH_ROWS = 32
_BATCH_TOKENS = 12_000  # rows times the longest context, so that long contexts come in small batches


@dataclass(slots=True)
class Result:
    """Scores of one task.

    Attributes:
        task: name of the task.
        scores: metric -> value, the task's own metric first.
        source_mix: share of the answers' words by source (the paper's figure 3).
        num_examples: how many were scored.
        unreadable: ids of examples that could not be asked.
        seconds: time to answer them.
        predictions: one record an example.
        dropped: what the reader left out, by reason.
        trained_on: whether the model names the task among those it was trained on; None where it names none.
    """

    task: str
    scores: dict[str, float]
    source_mix: dict[str, float]
    num_examples: int
    unreadable: list[str]
    seconds: float
    predictions: list[dict[str, Any]] = field(repr=False)
    dropped: dict[str, int] = field(default_factory=dict)
    trained_on: bool | None = None

    @property
    def label(self) -> str:
        """Name of the task, marked where the model was not trained on it."""
        return f"{self.task} (not trained on)" if self.trained_on is False else self.task


def evaluate_task(
    answer_batch: AnswerBatch,
    read: Read,
    task: Task,
    data: Path,
    *,
    limit: int | None = None,
    own_tasks: Sequence[str] = (),
    threads: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Result:
    """Answer and score the validation split of a task.

    Args:
        answer_batch: the model.
        read: reads a text as the model does.
        task: what to ask.
        data: folder of the datasets.
        limit: score the first examples only.
        own_tasks: what the model was trained on; empty if it does not say.
        threads: how many batches are answered side by side.
        progress: called with the number of answered examples and of all.

    Raises:
        DatasetError: the files are missing or malformed.
        ValueError: the task has no validation split, or no examples in it.
    """
    dropped: Counter[str] = Counter()
    examples = list(islice(task.read(data / task.folder, "validation", dropped), limit))
    if not examples:
        raise ValueError(f"{task.name}, validation: its files give no examples")
    requests: list[Any] = []
    unreadable = []
    for example in examples:
        try:
            requests.append(read(example.context, example.question))
        except InputError:
            requests.append(None)
            unreadable.append(example.id)
    started = time.perf_counter()
    answers = _answer_all(answer_batch, requests, threads, progress)
    seconds = time.perf_counter() - started
    texts = [answer.text if answer else "" for answer in answers]
    sources = Counter(token.source for answer in answers if answer for token in answer.tokens)
    total = max(sources.total(), 1)
    return Result(
        task.name,
        score(task.metric, texts, examples),
        {source.value: sources[source] / total for source in Source},
        len(examples),
        unreadable,
        seconds,
        [_record(example, answer) for example, answer in zip(examples, answers, strict=True)],
        dict(dropped),
        task.name in own_tasks if own_tasks else None,
    )


def answer_with_engine(engine: AnswerEngine) -> AnswerBatch:
    """Return a function that answers batches with a bundle."""
    return lambda requests: engine.answer(requests, [engine.max_answer_tokens] * len(requests))


def write_results(folder: Path, results: Sequence[Result]) -> None:
    """Write ``metrics.json`` and ``predictions.jsonl``."""
    folder.mkdir(parents=True, exist_ok=True)
    metrics = [
        {
            "task": result.task,
            "trained_on": result.trained_on,
            "scores": result.scores,
            "source_mix": result.source_mix,
            "num_examples": result.num_examples,
            "unreadable": result.unreadable,
            "dropped": result.dropped,
            "seconds": result.seconds,
        }
        for result in results
    ]
    (folder / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    with (folder / "predictions.jsonl").open("w", encoding="utf-8") as file:
        for result in results:
            for record in result.predictions:
                row = {"task": result.task, **record}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _answer_all(
    answer_batch: AnswerBatch,
    requests: Sequence[Any],
    threads: int,
    progress: Callable[[int, int], None],
) -> list[Answer | None]:
    """Answer requests in batches of similar length; the answers come back in the order of the requests."""
    readable = [i for i, request in enumerate(requests) if request is not None]
    batches = batches_by_length(readable, lambda i: requests[i].num_context_tokens, _BATCH_ROWS, _BATCH_TOKENS)
    answers: dict[int, Answer] = {}
    with ThreadPoolExecutor(threads) as executor:
        texts = ([requests[i] for i in batch] for batch in batches)
        for batch, found in zip(batches, executor.map(answer_batch, texts), strict=True):
            answers.update(zip(batch, found, strict=True))
            progress(len(answers), len(requests))
    return [answers.get(i) for i in range(len(requests))]


def batches_by_length(items: Iterable[T], length: Callable[[T], int], most_rows: int, most_units: int) -> list[list[T]]:
    """Divide items into batches of similar length, the longest first.

    Args:
        items: what to divide.
        length: of an item.
        most_rows: of a batch.
        most_units: rows of a batch times the length of its longest.
    """
    pending = sorted(items, key=length)
    batches = []
    while pending:
        rows = max(1, min(most_rows, most_units // max(length(pending[-1]), 1)))
        batches.append(pending[-rows:])
        del pending[-rows:]
    return batches


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
