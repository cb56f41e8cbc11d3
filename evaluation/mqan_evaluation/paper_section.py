"""The paper's network on validation sets, by their own metrics: ``mqan evaluate`` of format 7, or of its checkpoint.

Nothing is left out silently: every example of a split is answered and scored, contexts of any length included; an
example that cannot be read (a blank context) counts as answered wrongly and is reported, and so is every row that gave
the reader no example.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from mqan_core.answer.types import Source
from mqan_core.ask.request import read_request
from mqan_data.errors import MissingFileError
from mqan_data.files import in_words
from mqan_data.metrics import score
from mqan_data.tasks import ALL, FOLDER_OF_JSON_LINES, Task, tasks_named
from mqan_evaluation.answerers import Ask, Decision, decide_all
from mqan_evaluation.sections import Cell, Measuring, Section
from mqan_training.checkpoint import load_checkpoint
from mqan_training.model.network import Network
from mqan_training.trained import load_network

_MOST_TOKENS: Final = 100  # of an answer of a checkpoint
_NAMED: Final = 5  # examples that cannot be read


class PaperAnswerer:
    """A checkpoint of the paper's network.

    Args:
        network: in evaluation mode.
        title: name of the model.
        sources: names of the tasks that it was trained on.
    """

    where = "in torch"

    def __init__(self, network: Network, title: str, sources: Sequence[str]) -> None:
        self.network = network
        self.title = title
        self.sources = tuple(sources)

    @classmethod
    def open(cls, folder: Path) -> "PaperAnswerer":
        """Read a checkpoint.

        Raises:
            CheckpointError: it is missing or damaged, or has a pretrained reader.
        """
        loaded = load_checkpoint(folder)
        return cls(load_network(loaded), f"{loaded.recipe.name}, step {loaded.step:,}", tuple(loaded.recipe.sources))

    def answer(self, asked: Sequence[Ask]) -> list[Decision | None]:
        """Answer a batch of questions."""
        read = partial(read_request, self.network.vocabulary)
        return decide_all(
            asked,
            lambda ask: read(ask.context, ask.question),
            lambda requests: self.network.greedy_answers(requests, _MOST_TOKENS),
        )


def choose_tasks(
    names: Sequence[str] | None, own: Sequence[str], data: Path, limit: int | None
) -> tuple[list[Task], Mapping[str, str]]:
    """Divide tasks into those to score and those to skip, with the reason; what is to be scored can be read.

    Those that ``all`` stands for may lack their files, and so may folders of JSON lines of the model's own tasks.

    Args:
        names: what to score; None for the model's own tasks.
        own: tasks that the model was trained on.
        data: folder of the datasets.
        limit: most examples of a task.

    Raises:
        ValueError: there is no such task, none to score, or one without examples.
        DatasetError: the files of a task are malformed, or missing where it was asked for by name.
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
            num_examples = sum(1 for _ in islice(task.read(data / task.folder, "validation"), limit))
        except MissingFileError as error:
            if ALL not in wanted and (names or not task.name.startswith(FOLDER_OF_JSON_LINES)):
                raise
            skipped[task.name] = str(error).removeprefix(f"{task.name}: ")
        else:
            if not num_examples:
                raise ValueError(f"{task.name}, validation: its files give no examples")
            chosen.append(task)
    if not chosen:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
        raise ValueError(f"there is no task to score: {reasons or 'no name is given'}")
    return chosen, skipped


def paper_section(measuring: Measuring, tasks: Sequence[Task], skipped: Mapping[str, str]) -> Section:
    """Answer and score validation splits.

    Args:
        measuring: the model and the data; of each task the first examples are asked.
        tasks: what to ask.
        skipped: tasks that are not asked, and why.
    """
    rows: list[Mapping[str, Cell]] = []
    notes: list[str] = []
    for task in tasks:
        dropped: Counter[str] = Counter()
        examples = list(islice(task.read(measuring.data / task.folder, "validation", dropped), measuring.limit))
        started = time.perf_counter()
        decisions = measuring.ask(task.name, examples)
        seconds = time.perf_counter() - started
        texts = ["" if decision is None else decision.text or "" for decision in decisions]
        (metric, value), *others = score(task.metric, texts, examples).items()
        own = measuring.answerer.sources
        rows.append(
            {
                "task": task.name,
                "examples": len(examples),
                "metric": metric,
                "score": round(value, 2),
                "others": ", ".join(f"{name} {number:.1f}" for name, number in others),
                **_source_mix(decisions),
                "answers/s": round(len(examples) / seconds, 1) if seconds else None,
                "trained on": ("yes" if task.name in own else "no") if own else None,
            }
        )
        unread = [e.id for e, decision in zip(examples, decisions, strict=True) if decision is None]
        if unread:
            notes.append(f"{task.name}: {len(unread)} examples have no text to ask about: {unread[:_NAMED]}")
        if dropped:
            notes.append(f"{task.name}: {in_words(dropped)}")
    notes += [f"{name}: skipped: {reason}" for name, reason in skipped.items()]
    return Section("tasks", "Validation sets by their own metrics", rows, notes=notes)


def _source_mix(decisions: Sequence[Decision | None]) -> dict[str, Cell]:
    """Return where the words of the answers came from, in per cent (the paper's figure 3)."""
    answers = [decision.answer for decision in decisions if decision is not None and decision.answer is not None]
    sources = Counter(token.source for answer in answers for token in answer.tokens)
    total = max(sources.total(), 1)
    return {source.value: round(100 * sources[source] / total, 1) for source in Source}
