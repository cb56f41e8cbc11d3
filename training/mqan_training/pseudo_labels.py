"""Labels for sentences that have none: a sentence encoder, fine-tuned on a task of a few classes, gives them.

A network as small as MQAN learns more from many sentences with a larger model's labels than from the few with people's:
Tang et al. (2019), "Distilling Task-Specific Knowledge from BERT into Simple Neural Networks". Written as a folder of
JSON lines, which a recipe reads as the task ``jsonl:./FOLDER``.
"""

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from mqan_core.example import Example
from mqan_training.data.readers.registry import task_named
from mqan_training.data.sentences import excerpt, letters_and_digits, phrases, sentences, splices, texts_of
from mqan_training.runlog import console
from mqan_training.sentence_encoder import fingerprint
from mqan_training.text_classifier import TextClassifier, fine_tune

FloatArray = npt.NDArray[np.float32]

_MOST_CLASSES = 20  # a task with more answers is none of classes
_HELD_OUT = 500  # labelled sentences for validation: how often a network agrees with the encoder
_DRAWS = 20  # for each excerpt that is asked for
_BESIDE_WORDS = 60  # of an excerpt that is trained on: most fit into the pieces that the encoder reads


@dataclass(frozen=True, slots=True)
class WhatToLabel:
    """Which texts are labelled, and what is known of them.

    Attributes:
        sources: how many to draw from which tasks' training contexts.
        num_phrases: if not 0, so many phrases instead of sentences, half of them from the task's own training texts,
            the others from the sentences: what a few words mean together is learnt from them sooner than from whole
            sentences (Socher et al. 2013 had people label the phrases of SST).
        num_splices: if not 0, so many texts that are put together of pieces of the task's own training texts, and
            nothing of ``sources``: new texts like the task's own, which Tang et al. get by masks and a tagger.
        excerpt_words: if not 0, runs of sentences of up to so many words instead of single sentences.
        source_accuracy: how probably a sentence or excerpt has the class of the text that it was drawn from, where
            that has one of the task's classes; what the encoder says is multiplied by it (Bayes' rule). None: not used.
        min_probability: those of whose class is less sure are left out.
    """

    sources: Mapping[str, int]
    num_phrases: int = 0
    num_splices: int = 0
    excerpt_words: int = 0
    source_accuracy: float | None = None
    min_probability: float = 0.0

    @property
    def kind(self) -> str:
        kinds = {"splices": self.num_splices, "phrases": self.num_phrases, "excerpts": self.excerpt_words}
        return next((kind for kind, number in kinds.items() if number), "sentences")


@dataclass(frozen=True, slots=True)
class FineTuning:
    """How the encoder is fine-tuned.

    Attributes:
        epochs: how often the task's own training texts are seen.
        rate: highest rate of the encoder.
        seed: of fine-tuning and of the draw.
        beside: texts of other tasks with the same classes, an excerpt of each, that are seen once together with the
            task's own before these are seen alone.
        kept_in: file that keeps the fine-tuned encoder's weights; if it is there, they are read instead of learnt. It
            must have been made from the same encoder for the same task with the same values of all of the above.
    """

    epochs: int
    rate: float
    seed: int
    beside: Mapping[str, int] = field(default_factory=dict)
    kept_in: Path | None = None


@dataclass(frozen=True, slots=True)
class PseudoLabels:
    """What ``pseudo_label`` wrote.

    Attributes:
        accuracy: share of the task's validation examples that the encoder got right.
        num_read: sentences, excerpts or phrases that it read.
        num_kept: those that were written, by class.
    """

    accuracy: float
    num_read: int
    num_kept: Mapping[str, int]


def pseudo_label(
    task_name: str, what: WhatToLabel, data: Path, encoder: Path, output: Path, how: FineTuning
) -> PseudoLabels:
    """Fine-tune an encoder on a task, and label sentences of other tasks' training contexts with it.

    Args:
        task_name: a task with validation examples, that always asks the same question and has few answers.
        what: the texts to label.
        data: folder of the datasets.
        encoder: folder of a sentence encoder.
        output: folder to write ``train.jsonl`` and ``val.jsonl`` (500 sentences) to.
        how: the encoder is fine-tuned.

    Raises:
        MissingVectorsError: there is no encoder in the folder.
        ValueError: the task does not ask one question, has more than 20 answers, one beside it has other answers, or
            too few sentences are left, or the kept file holds no weights of this encoder with these classes, or some
            that were fine-tuned on another task or in another way.
    """
    torch.manual_seed(how.seed)
    training, validation = (_examples(task_name, data, split) for split in ("train", "validation"))
    question, classes = _question_and_classes(task_name, training)
    task = task_named(task_name)
    others = texts_of(task, data, [split for split in task.splits if split != "train"])
    own_texts = [e.context for e in training]
    if what.num_splices:
        found = splices(own_texts, what.num_splices, random.Random(how.seed))  # noqa: S311
        drawn = {text: "" for text in found if letters_and_digits(text) not in others}
    else:
        drawn = _draw(what, data, others | texts_of(task, data, ["train"]), how.seed)
        if what.num_phrases:
            found = _draw_phrases(own_texts, list(drawn), what.num_phrases, others, how.seed)
            drawn = dict.fromkeys(found, "")
    if len(drawn) <= _HELD_OUT:
        raise ValueError(
            f"found {len(drawn)} {what.kind} that {task_name} has not itself; {_HELD_OUT} are held out, so draw more"
        )
    own = [(e.context, classes.index(e.answers[0])) for e in training]
    classifier = _fine_tuned(encoder, task_name, own, classes, data, how)
    right = classifier.probabilities([e.context for e in validation]).argmax(axis=1)
    accuracy = float(np.mean([classes[k] == e.answers[0] for k, e in zip(right, validation, strict=True)]))
    console.print(f"the encoder gets {accuracy:.1%} of {len(validation)} validation examples of {task_name} right")

    probabilities = classifier.probabilities(list(drawn))
    if what.source_accuracy is not None:
        probabilities = with_labels_of_sources(probabilities, list(drawn.values()), classes, what.source_accuracy)
    rows = [
        {"context": text, "question": question, "answer": classes[int(row.argmax())]}
        for text, row in zip(drawn, probabilities, strict=True)
        if row.max() >= what.min_probability
    ]
    if len(rows) <= _HELD_OUT:
        raise ValueError(
            f"{len(rows)} of {len(drawn)} {what.kind} have a class of probability {what.min_probability} or more; "
            f"{_HELD_OUT} are held out, so draw more, or ask for less"
        )
    output.mkdir(parents=True, exist_ok=True)
    _write(output / "val.jsonl", rows[:_HELD_OUT])
    _write(output / "train.jsonl", rows[_HELD_OUT:])
    kept = {name: sum(row["answer"] == name for row in rows) for name in classes}
    return PseudoLabels(accuracy, len(drawn), kept)


def with_labels_of_sources(
    probabilities: FloatArray, labels: Sequence[str], classes: Sequence[str], accuracy: float
) -> FloatArray:
    """Return the probabilities [N, K] by Bayes' rule, with what the texts say that N excerpts were drawn from.

    Args:
        probabilities: [N, K] by an encoder that saw an excerpt alone.
        labels: the class of the text that each was drawn from; one that is no class says nothing.
        classes: the K classes.
        accuracy: how probably an excerpt has the class of its text.
    """
    weight = np.ones_like(probabilities)
    for row, label in zip(weight, labels, strict=True):
        if label in classes:
            row[:] = (1 - accuracy) / (len(classes) - 1)
            row[classes.index(label)] = accuracy
    product = probabilities * weight
    result: FloatArray = product / product.sum(axis=1, keepdims=True)
    return result


def _examples(task_name: str, data: Path, split: str) -> list[Example]:
    task = task_named(task_name)
    return list(task.read(data / task.folder, split))


def _question_and_classes(task_name: str, examples: Sequence[Example]) -> tuple[str, list[str]]:
    questions = {example.question for example in examples}
    if len(questions) != 1:
        raise ValueError(f"{task_name} asks {len(questions)} different questions; sentences are labelled under one")
    (question,) = questions
    classes = sorted({example.answers[0] for example in examples})
    if len(classes) > _MOST_CLASSES:
        raise ValueError(f"{task_name} has {len(classes)} different answers; at most {_MOST_CLASSES} can be classes")
    return question, classes


def _fine_tuned(
    encoder: Path, task_name: str, own: Sequence[tuple[str, int]], classes: Sequence[str], data: Path, how: FineTuning
) -> TextClassifier:
    """Return the encoder, fine-tuned on a task's own texts and the numbers of their classes, or as it was kept."""
    beside = list(_excerpts_beside(how, classes, data))
    classifier = TextClassifier(encoder, len(classes))
    if how.kept_in is not None and how.kept_in.exists():
        classifier.load_weights(how.kept_in, _made_with(encoder, task_name, classes, how))
        return classifier
    if beside:
        texts, labels = zip(*own, *beside, strict=True)
        fine_tune(classifier, texts, labels, epochs=1, rate=how.rate, seed=how.seed)
    texts, labels = zip(*own, strict=True)
    fine_tune(classifier, texts, labels, epochs=how.epochs, rate=how.rate, seed=how.seed)
    if how.kept_in is not None:
        classifier.save_weights(how.kept_in, _made_with(encoder, task_name, classes, how))
    return classifier


def _made_with(encoder: Path, task_name: str, classes: Sequence[str], how: FineTuning) -> dict[str, str]:
    """Return what decides on the weights of a fine-tuned encoder, by setting."""
    return {
        "encoder": fingerprint(encoder),
        "task": task_name,
        "classes": json.dumps(classes),
        "epochs": str(how.epochs),
        "rate": str(how.rate),
        "seed": str(how.seed),
        "beside": json.dumps(dict(how.beside)),
    }


def _excerpts_beside(how: FineTuning, classes: Sequence[str], data: Path) -> Iterator[tuple[str, int]]:
    """Yield an excerpt of each text that is trained on beside the task, and the number of its class."""
    generator = random.Random(how.seed)  # noqa: S311
    for name, number in how.beside.items():
        examples = _examples(name, data, "train")
        if other := {e.answers[0] for e in examples} - set(classes):
            raise ValueError(f"{name} has answers that are no classes of the task: {', '.join(sorted(other)[:3])}")
        for example in generator.sample(examples, min(number, len(examples))):
            parts = list(sentences([example.context])) or [example.context]
            yield excerpt(parts, _BESIDE_WORDS, generator), classes.index(example.answers[0])


def _draw(what: WhatToLabel, data: Path, known: set[str], seed: int) -> dict[str, str]:
    """Return sentences or excerpts of the sources, shuffled, each once, with the answer of the text that each is from.

    None has a sentence that the task has itself, in any spelling.
    """
    generator = random.Random(seed)  # noqa: S311
    drawn: dict[str, str] = {}
    for name, number in what.sources.items():
        found: dict[str, str] = {}
        texts = []
        for example in _examples(name, data, "train"):
            parts = [s for s in sentences([example.context]) if letters_and_digits(s) not in known]
            texts += [(parts, example.answers[0])] if parts else []
        if what.excerpt_words and texts:
            for _ in range(_DRAWS * number):
                if len(found) == number:
                    break
                parts, answer = generator.choice(texts)
                found.setdefault(excerpt(parts, what.excerpt_words, generator), answer)
        else:
            for parts, answer in texts:
                for part in parts:
                    found.setdefault(part, answer)
        chosen = list(found)
        generator.shuffle(chosen)
        for text in chosen[:number]:
            drawn.setdefault(text, found[text])
    order = list(drawn)
    generator.shuffle(order)
    return {text: drawn[text] for text in order}


def _draw_phrases(own: Sequence[str], drawn: Sequence[str], number: int, known: set[str], seed: int) -> list[str]:
    """Return phrases of texts, half of them from a task's own, shuffled, none that is a text of its other splits."""
    generator = random.Random(seed)  # noqa: S311
    num_own = number // 2 if drawn else number
    found = [*phrases(own, num_own, generator), *phrases(drawn, number - num_own, generator)]
    result = [phrase for phrase in dict.fromkeys(found) if letters_and_digits(phrase) not in known]
    generator.shuffle(result)
    return result


def _write(path: Path, rows: Iterable[Mapping[str, str]]) -> None:
    aside = path.with_suffix(".tmp")
    aside.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    aside.replace(path)
