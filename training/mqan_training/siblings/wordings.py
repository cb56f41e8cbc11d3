"""How the siblings' tasks are asked for where they are served: in decaNLP's words, and in plain ones.

A sentence is the whole context. A pair is a premise in the context and a hypothesis in the question, as in decaNLP, or
both in the context, one below the other.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from mqan_core.wordings import FIRST, SECOND, Wording
from mqan_training.siblings.tasks import sibling_task

LEVELS: Final = ("0", "1", "2", "3", "4", "5")  # of a similarity, as STS-B has it
RELEVANCE: Final = ("not relevant", "relevant")  # of a candidate of a ranking

_ANY_REVIEW: Final = "Is this review negative or positive?"
_OF_SENTENCES: Final[Mapping[str, Sequence[str]]] = {
    "sst-1": ("Is this sentence very negative, negative, neutral, positive, or very positive?",),
    "sst-2": ("Is this sentence negative or positive?", _ANY_REVIEW),
    "subj": ("Is this sentence subjective or objective?",),
    "imdb": ("Is this movie review negative or positive?", _ANY_REVIEW),
    "books": ("Is this review of a book negative or positive?", _ANY_REVIEW),
    "dvds": ("Is this review of a DVD negative or positive?", _ANY_REVIEW),
    "electronics": ("Is this review of an electronic device negative or positive?", _ANY_REVIEW),
    "kitchen": ("Is this review of a kitchen appliance negative or positive?", _ANY_REVIEW),
    "cola": ("Is this sentence acceptable or unacceptable?", "Is this sentence grammatical?"),
}
_BELOW: Final = f"{FIRST}\n{SECOND}"
_OF_PAIRS: Final[Mapping[str, Sequence[Wording]]] = {
    "qqp": (Wording("Do the two questions ask the same?", _BELOW),),
    "mrpc": (Wording("Do the two sentences mean the same?", _BELOW),),
    "sts-b": (Wording("How similar are the two sentences, from 0 to 5?", _BELOW),),
    "qnli": (Wording("Does the sentence answer the question?", f"Question: {FIRST}\nSentence: {SECOND}"),),
    "qnli-ranking": (
        Wording("How relevant is the sentence to the question?", f"Question: {FIRST}\nSentence: {SECOND}"),
    ),
}


def wordings_of(tasks: Sequence[str]) -> dict[str, tuple[Wording, ...]]:
    """Return how each of the tasks of a model is asked for.

    A question has to say which task is meant: one that several of the tasks have gets the task's name before it.
    """
    own = {task: _own(task) for task in tasks}
    shared = Counter(wording for wordings in own.values() for wording in wordings)
    return {
        task: tuple(
            wording if shared[wording] == 1 else Wording(f"{task}: {wording.question}", wording.context)
            for wording in wordings
        )
        for task, wordings in own.items()
    }


def labels_of(task: str) -> tuple[str, ...]:
    """Return the classes that a task is served with."""
    found = sibling_task(task)
    return {"similarity": LEVELS, "ranking": RELEVANCE}.get(found.form, found.labels)


def _own(task: str) -> tuple[Wording, ...]:
    if task in _OF_SENTENCES:
        return tuple(Wording(question, FIRST) for question in _OF_SENTENCES[task])
    if task in _OF_PAIRS:
        return tuple(_OF_PAIRS[task])
    *labels, last = sibling_task(task).labels
    named = f"{', '.join(labels)}, or {last}" if len(labels) > 1 else f"{labels[0]} or {last}"
    return (
        Wording(f'Hypothesis: "{SECOND}" -- {named}?', f'Premise: "{FIRST}"'),
        Wording("Does the hypothesis follow from the premise?", f"Premise: {FIRST}\nHypothesis: {SECOND}"),
    )
