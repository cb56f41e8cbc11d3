"""Labels for sentences that have none: a sentence encoder, fine-tuned on a task of a few classes, gives them.

A network as small as MQAN learns more from many sentences with a larger model's labels than from the few with people's:
Tang et al. (2019), "Distilling Task-Specific Knowledge from BERT into Simple Neural Networks". Written as a folder of
JSON lines, which a recipe reads as the task ``jsonl:./FOLDER``.
"""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from mqan_core.example import Example
from mqan_training.cpu import has_bfloat16
from mqan_training.readers.registry import task_named
from mqan_training.runlog import console
from mqan_training.sentence_encoder import load_encoder
from mqan_training.sentences import letters_and_digits, phrases, sentences, texts_of

FloatArray = npt.NDArray[np.float32]

_BATCH = 32
_BATCH_TO_LABEL = 64
_SORTED_TOGETHER = 50  # batches of nearly one length are drawn from so many at a time
_MAX_PIECES = 96  # of a text that is trained on, and of one that is labelled
_HEAD_RATE = 1e-3
_WARMUP = 0.1  # share of the steps
_SMOOTHING = 0.1  # so that probabilities still tell sure from unsure
_MOST_CLASSES = 20  # a task with more answers is none of classes
_HELD_OUT = 500  # labelled sentences for validation: how often a network agrees with the encoder


class TextClassifier(nn.Module):
    """A transformer encoder, the mean of its outputs and one linear layer.

    Args:
        folder: of a sentence-transformers or Hugging Face encoder with its tokenizer.
        num_classes: K.

    Raises:
        ModuleNotFoundError: ``transformers`` is not installed (the extra ``embed``).
    """

    def __init__(self, folder: Path, num_classes: int) -> None:
        super().__init__()
        self._tokenizer, self.encoder = load_encoder(folder)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(self.encoder.config.hidden_size, num_classes)

    def forward(self, texts: Sequence[str]) -> Tensor:
        """Return the logits [N, K] of N texts; what is longer than 96 word pieces is cut."""
        options = {"padding": True, "truncation": True, "max_length": _MAX_PIECES, "return_tensors": "pt"}
        encoded = self._tokenizer(list(texts), **options)
        with torch.autocast("cpu", torch.bfloat16, enabled=has_bfloat16()):
            states = self.encoder(**encoded).last_hidden_state.float()
        mask = encoded["attention_mask"].unsqueeze(-1).float()
        logits: Tensor = self.head(self.dropout((states * mask).sum(dim=1) / mask.sum(dim=1)))
        return logits

    @torch.no_grad()
    def probabilities(self, texts: Sequence[str]) -> FloatArray:
        """Return the probabilities [N, K] of the classes."""
        self.eval()
        by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        result = np.zeros((len(texts), self.head.out_features), np.float32)
        for first in range(0, len(texts), _BATCH_TO_LABEL):
            places = by_length[first : first + _BATCH_TO_LABEL]
            result[places] = self([texts[i] for i in places]).softmax(dim=-1).numpy()
        return result


def fine_tune(
    classifier: TextClassifier, texts: Sequence[str], classes: Sequence[int], *, epochs: int, rate: float, seed: int
) -> None:
    """Train a classifier in place with AdamW, at a rate that rises to ``rate`` and falls linearly to 0.

    Args:
        classifier: what to train.
        texts: N texts.
        classes: the class of each, from 0.
        epochs: how often each is seen.
        rate: highest rate of the encoder; the last layer has one of its own.
        seed: of the order of the examples.
    """
    generator = random.Random(seed)  # noqa: S311
    groups = [
        {"params": classifier.encoder.parameters(), "lr": rate},
        {"params": classifier.head.parameters(), "lr": _HEAD_RATE},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    batches = [batch for _ in range(epochs) for batch in _batches(texts, generator)]
    warmup = max(1, round(_WARMUP * len(batches)))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warmup, 1 - step / len(batches))
    )
    classifier.train()
    for number, places in enumerate(batches, 1):
        target = torch.tensor([classes[i] for i in places])
        logits = classifier([texts[i] for i in places])
        loss = nn.functional.cross_entropy(logits, target, label_smoothing=_SMOOTHING)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(classifier.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if number % _SORTED_TOGETHER == 0 or number == len(batches):
            console.print(f"fine-tuning: step {number} of {len(batches)}, loss {loss.item():.3f}")


def _batches(texts: Sequence[str], generator: random.Random) -> list[list[int]]:
    """Return the places of all texts in batches of nearly one length, shuffled."""
    order = list(range(len(texts)))
    generator.shuffle(order)
    batches = []
    for first in range(0, len(order), _BATCH * _SORTED_TOGETHER):
        together = sorted(order[first : first + _BATCH * _SORTED_TOGETHER], key=lambda i: len(texts[i]))
        batches += [together[start : start + _BATCH] for start in range(0, len(together), _BATCH)]
    generator.shuffle(batches)
    return batches


@dataclass(frozen=True, slots=True)
class PseudoLabels:
    """What ``pseudo_label`` wrote.

    Attributes:
        accuracy: share of the task's validation examples that the encoder got right.
        num_read: sentences or phrases that it read.
        num_kept: those that were written, by class.
    """

    accuracy: float
    num_read: int
    num_kept: Mapping[str, int]


def pseudo_label(
    task_name: str,
    sources: Mapping[str, int],
    data: Path,
    encoder: Path,
    output: Path,
    *,
    num_phrases: int,
    min_probability: float,
    epochs: int,
    rate: float,
    seed: int,
) -> PseudoLabels:
    """Fine-tune an encoder on a task, and label sentences of other tasks' training contexts with it.

    Args:
        task_name: a task with validation examples, that always asks the same question and has few answers.
        sources: how many sentences to draw from which tasks.
        data: folder of the datasets.
        encoder: folder of a sentence encoder.
        output: folder to write ``train.jsonl`` and ``val.jsonl`` (500 sentences) to.
        num_phrases: if not 0, label so many phrases instead of the sentences, half of them from the task's own training
            texts, the others from the sentences: what a few words mean together is learnt from them sooner than from
            whole sentences (Socher et al. 2013 had people label the phrases of SST).
        min_probability: sentences of whose class the encoder is less sure are left out.
        epochs, rate, seed: of fine-tuning.

    Raises:
        MissingVectorsError: there is no encoder in the folder.
        ValueError: the task does not ask one question, has more than 20 answers, or too few sentences are left.
    """
    torch.manual_seed(seed)
    training, validation = (_examples(task_name, data, split) for split in ("train", "validation"))
    question, classes = _question_and_classes(task_name, training)
    task = task_named(task_name)
    others = texts_of(task, data, [split for split in task.splits if split != "train"])
    drawn = _draw(sources, data, others | texts_of(task, data, ["train"]), seed)
    kind = "phrases" if num_phrases else "sentences"
    if num_phrases:
        drawn = _draw_phrases([e.context for e in training], drawn, num_phrases, others, seed)
    if len(drawn) <= _HELD_OUT:
        raise ValueError(
            f"the sources have {len(drawn)} {kind} that {task_name} has not itself; {_HELD_OUT} are held "
            "out, so draw more"
        )
    classifier = TextClassifier(encoder, len(classes))
    labels = [classes.index(example.answers[0]) for example in training]
    fine_tune(classifier, [e.context for e in training], labels, epochs=epochs, rate=rate, seed=seed)
    right = classifier.probabilities([e.context for e in validation]).argmax(axis=1)
    accuracy = float(np.mean([classes[k] == e.answers[0] for k, e in zip(right, validation, strict=True)]))
    console.print(f"the encoder gets {accuracy:.1%} of {len(validation)} validation examples of {task_name} right")

    probabilities = classifier.probabilities(drawn)
    rows = [
        {"context": text, "question": question, "answer": classes[int(row.argmax())]}
        for text, row in zip(drawn, probabilities, strict=True)
        if row.max() >= min_probability
    ]
    if len(rows) <= _HELD_OUT:
        raise ValueError(
            f"{len(rows)} of {len(drawn)} {kind} have a class of probability {min_probability} or more; "
            f"{_HELD_OUT} are held out, so draw more, or ask for less"
        )
    output.mkdir(parents=True, exist_ok=True)
    _write(output / "val.jsonl", rows[:_HELD_OUT])
    _write(output / "train.jsonl", rows[_HELD_OUT:])
    kept = {name: sum(row["answer"] == name for row in rows) for name in classes}
    return PseudoLabels(accuracy, len(drawn), kept)


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


def _draw(sources: Mapping[str, int], data: Path, known: set[str], seed: int) -> list[str]:
    """Return sentences of the sources, shuffled, each once and none that the task has itself in any spelling."""
    generator = random.Random(seed)  # noqa: S311
    drawn: dict[str, None] = {}
    for name, number in sources.items():
        pool = sentences(e.context for e in _examples(name, data, "train"))
        found = [sentence for sentence in pool if letters_and_digits(sentence) not in known]
        generator.shuffle(found)
        drawn.update(dict.fromkeys(found[:number]))
    result = list(drawn)
    generator.shuffle(result)
    return result


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
