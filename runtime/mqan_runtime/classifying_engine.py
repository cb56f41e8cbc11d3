"""Answers the questions of fixed tasks with a bundle of format 8: text in, a class out. Needs no torch."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqan_core.answer import Answer, AnswerToken, ChoiceProbability, Masses, Source
from mqan_core.attribution import TraceField
from mqan_core.classifying import ClassifyingBundle, ClassTask, open_classifying_bundle, piece_of
from mqan_core.errors import InputError
from mqan_core.options import PLAIN, Options
from mqan_core.outcome import withhold
from mqan_core.request import check_words
from mqan_core.text import measure
from mqan_runtime.classifiers import Floats, open_classifier
from mqan_runtime.row_engine import Ended, Row, RowEngine
from mqan_runtime.session import Precision, Provider
from mqan_runtime.step_loop import Decoding

_OWN_WORD: Final = Masses(context=0.0, question=0.0, vocabulary=1.0)  # a class is of the model, not of the caller
_MOST_SHOWN: Final = 20  # wordings in a message


@dataclass(frozen=True, slots=True, eq=False)
class ClassRequest:
    """A question of a task, about one text or a pair.

    Attributes:
        task: that it asks for.
        texts: what the model reads.
        min_probability: below it there is no answer.
        num_context_tokens, num_question_tokens: of what the caller sent.
    """

    task: ClassTask
    texts: tuple[str, ...]
    min_probability: float | None
    num_context_tokens: int
    num_question_tokens: int

    @property
    def num_read(self) -> int:
        """Tokens that are read."""
        return self.num_context_tokens + self.num_question_tokens


class TurnLoop:
    """Takes the steps of requests that wait for each other's turn: a step reads one of them whole.

    Args:
        classify: what reads a request.
    """

    def __init__(self, classify: Any) -> None:
        self._classify = classify

    def step(self, decoding: Decoding) -> list[tuple[Any, Any]]:
        """Read the first that has not left; it leaves."""
        row = decoding.live_keys[0]
        decoding.num_steps += 1
        found = self._classify(row.request)
        decoding.drop(row)
        return [(row, found)]

    def merge(self, decodings: Sequence[Decoding]) -> Decoding:
        """Return what waits in several as one."""
        rows = [row for decoding in decodings for row in decoding.live_keys]
        return in_turn(rows, max(decoding.num_steps for decoding in decodings))

    def trace_so_far(self, decoding: Decoding, row: int) -> npt.NDArray[np.float32]:
        """Return that nothing is decided before the end, [0, F]."""
        return np.empty((0, len(TraceField)), np.float32)


def in_turn(rows: Sequence[Row[ClassRequest]], num_steps: int = 0) -> Decoding:
    """Return requests that wait for their turns; they hold no buffers."""
    sizes = {
        "B": len(rows),
        "C": max(row.request.num_context_tokens for row in rows),
        "Q": max(row.request.num_question_tokens for row in rows),
    }
    live = np.ones(len(rows), np.bool_)
    return Decoding(list(rows), live, np.ones(len(rows), np.int64), sizes, {}, {}, num_steps)


class ClassifyingEngine(RowEngine[ClassRequest]):
    """A bundle of fixed tasks, ready to answer.

    It may be called from any thread, for one decoding from one at a time.

    Args:
        bundle: what to run.
        provider, num_threads: as of ``open``.

    Attributes:
        bundle: what is run.
        classifier: the system that runs it.
        provider: execution provider that really runs it.
        loop: gives requests their turns.
    """

    precision = "float32"
    max_answer_tokens = 1

    def __init__(self, bundle: ClassifyingBundle, *, provider: Provider = "auto", num_threads: int = 1) -> None:
        self.bundle = bundle
        self.classifier = open_classifier(bundle, provider, num_threads)
        self.provider = self.classifier.provider
        self.loop = TurnLoop(lambda request: self.classifier.probabilities(request.task, request.texts))

    @classmethod
    def open(
        cls, folder: Path, *, provider: Provider = "auto", num_threads: int = 1, precision: Precision = "auto"
    ) -> "ClassifyingEngine":
        """Open and verify a bundle and make it ready; arguments and errors are those of ``open_engine``."""
        if precision == "int8":
            raise ValueError(f"{folder}: such a bundle has graphs in float32 only: set precision to auto or float32")
        return cls(open_classifying_bundle(folder), provider=provider, num_threads=num_threads)

    def read(self, context: str, question: str, options: Options = PLAIN) -> ClassRequest:
        """Find the task that a question asks for, and what it is about.

        Raises:
            InputError: context or question holds nothing to read, the question is none of those that the model takes,
                the context does not fit the question's template or is too long, or more is asked for than a class.
        """
        options.check()
        _refuse_more(options)
        sizes = [check_words(name, measure(text)) for name, text in (("context", context), ("question", question))]
        task, texts = self._find(context, question)
        length, most = self.classifier.count(texts), self.bundle.manifest.most_read
        if length > most:
            message = f"The context has {length} of the units that this model reads; it reads at most {most}."
            raise InputError("context_too_long", "context", message, "Send a shorter text.")
        return ClassRequest(task, texts, options.min_probability, *(size.num_tokens for size in sizes))

    def begin(self, rows: Sequence[Row[ClassRequest]]) -> Generator[None, None, Decoding]:
        yield from ()
        return in_turn(rows)

    def write(self, ended: Ended[ClassRequest]) -> Answer:
        return answer_of(ended.row.request, ended.decoded)

    def read_decided(self, row: Row[ClassRequest], trace: npt.NDArray[np.float32], first: int) -> list[AnswerToken]:
        return []  # a class is known at the end

    def _find(self, context: str, question: str) -> tuple[ClassTask, tuple[str, ...]]:
        """Return the task that a question asks for, and the text or pair that it asks about."""
        worded = [(task, wording) for task in self.bundle.manifest.tasks for wording in task.wordings]
        asked = [(task, wording) for task, wording in worded if wording.accepts(question)]
        for task, wording in asked:
            texts = wording.texts(context, question)
            if texts is not None:
                return task, texts
        if asked:
            expected = " or ".join(repr(wording.context) for _, wording in asked)
            message = f"The context does not have the form that goes with this question: {expected}."
            hint = "Put each text where {first} and {second} stand; what stands around them may occur once only."
            raise InputError("unexpected_context", "context", message, hint)
        known = [one.wording.question for one in self.bundle.questions]
        shown = "; ".join(known[:_MOST_SHOWN]) + ("; and others" if len(known) > _MOST_SHOWN else "")
        message = "This model answers the questions of its own tasks, and this is none of them."
        raise InputError("unknown_question", "question", message, f"Ask one of these, word for word: {shown}")


def answer_of(request: ClassRequest, found_C: Floats) -> Answer:
    """Turn the probabilities of a task's classes into an answer: the likeliest, which is the model's own word."""
    shares = (found_C.astype(np.float64) / found_C.astype(np.float64).sum()).tolist()
    labels = request.task.labels
    best = max(range(len(labels)), key=shares.__getitem__)
    label, probability = labels[best], shares[best]
    token = AnswerToken(label, piece_of(label), probability, Source.VOCABULARY, _OWN_WORD, None)
    expected = sum(level * share for level, share in enumerate(shares, start=1)) if request.task.is_scale else None
    answer = Answer(
        label,
        probability,
        (token,),
        (),
        truncated=False,
        choices=tuple(ChoiceProbability(name, share, share, 1.0) for name, share in zip(labels, shares, strict=True)),
        chosen=(label,),
        expected=expected,
    )
    return withhold(answer, request.min_probability)


def _refuse_more(options: Options) -> None:
    """Refuse what a model of fixed tasks cannot do."""
    for field in options.fields:
        if field != "min_probability":
            message = f"This model answers with the classes of its own tasks: it does not take {field}."
            hint = f"Leave {field} out; GET /v1/model lists the questions and their classes."
            raise InputError("option_not_supported", field, message, hint)
