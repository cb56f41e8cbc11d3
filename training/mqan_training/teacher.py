"""The teacher of label questions: what the model knew when it began, together with the encoder as it was pretrained.

Both are right about as often on labels that the model never saw, and wrong on others; their product is right more often
than either. A run learns it from questions made for that (``mqan_training.data.taught``), at the cost of none when it
answers.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import torch

from mqan_core.example import Choice, Example
from mqan_core.layout import Layout
from mqan_core.request import read_request
from mqan_core.vocab import Vocabulary
from mqan_training.data.mixture import DatasetSource
from mqan_training.data.shapes.dataset_file import LabelsPart
from mqan_training.data.source import Source
from mqan_training.data.taught import TAUGHT, LabelNames, TaughtSource, drawn_texts, label_questions, names_of
from mqan_training.model.pretrained import PretrainedNetwork
from mqan_training.runlog import console
from mqan_training.sentence_encoder import sentence_vectors
from mqan_training.torch_answers import decide

SCALE: Final = 16.0  # of cosine similarity beside log-probabilities: what was best on label sets that are held back
_FILE: Final = "taught.jsonl"  # in the run's folder, so that a run that is resumed learns the same
_BATCH = 32


def with_teacher(
    sources: Sequence[Source],
    number: int,
    folder: Path,
    encoder: Path,
    network: PretrainedNetwork | None,
    reading: tuple[Vocabulary, Layout],
    seed: int,
) -> list[Source]:
    """Return the sources and one of taught questions; these are read from the run's folder, or made and written there.

    Args:
        sources: of texts and label sets.
        number: of taught questions.
        folder: of the run.
        encoder: folder of the sentence encoder.
        network: what the run begins with; None where it knows nothing yet, and the encoder teaches alone.
        reading: what the network reads texts with.
        seed: decides the questions.

    Raises:
        ValueError: no source has label sets.
    """
    path = folder / _FILE
    if path.is_file():
        lines = path.read_text(encoding="utf-8").splitlines()
        return [*sources, TaughtSource([_read(json.loads(line)) for line in lines])]
    rng = np.random.default_rng([seed, 9])
    labelled = {source.name: source for source in sources if isinstance(source, DatasetSource) and _sets(source)}
    if not labelled:
        raise ValueError(f"{TAUGHT}: none of the sources has label sets to learn from")
    console.print(f"making {number:,} questions for the teacher; this is done once a run")
    sets = [some for source in labelled.values() for some in _sets(source)]
    texts = drawn_texts({name: partial(_draw, source, rng) for name, source in labelled.items()}, number, rng)
    similarity = _similarity(encoder)
    examples = label_questions(texts, sets, similarity, rng)
    taught = _taught(examples, similarity, network, reading)
    folder.mkdir(parents=True, exist_ok=True)
    written = "".join(json.dumps(_written(example)) + "\n" for example in taught)
    partial_path = path.with_suffix(".part")
    partial_path.write_text(written, encoding="utf-8")
    partial_path.replace(path)
    return [*sources, TaughtSource(taught)]


def _sets(source: DatasetSource) -> list[LabelNames]:
    parts = (part for part in source.dataset.parts.values() if isinstance(part, LabelsPart))
    return [names_of(part) for part in parts if not part.closed and not part.ordered and len(part.labels) > 1]


def _draw(source: Source, rng: np.random.Generator) -> Example:
    return source.draw(int(rng.integers(len(source))), rng)


def _similarity(encoder: Path) -> Callable[[Sequence[str], Sequence[str]], npt.NDArray[np.float32]]:
    vectors = sentence_vectors(encoder)
    known: dict[str, torch.Tensor] = {}

    def similarity(texts: Sequence[str], labels: Sequence[str]) -> npt.NDArray[np.float32]:
        missing = [text for text in dict.fromkeys((*texts, *labels)) if text not in known]
        if missing:
            known.update(zip(missing, vectors(missing), strict=True))
        texts_TM, labels_LM = (torch.stack([known[text] for text in some]) for some in (texts, labels))
        return cast(npt.NDArray[np.float32], (texts_TM @ labels_LM.T).numpy())

    return similarity


@torch.no_grad()
def _taught(
    examples: Sequence[Example],
    similarity: Callable[[Sequence[str], Sequence[str]], npt.NDArray[np.float32]],
    network: PretrainedNetwork | None,
    reading: tuple[Vocabulary, Layout],
) -> list[Example]:
    """Return the examples with the teacher's probabilities."""
    labels = list(dict.fromkeys(choice.label for example in examples for choice in example.choices))
    place = {label: i for i, label in enumerate(labels)}
    similarity([example.context for example in examples], labels)  # all at once
    taught = []
    order = sorted(range(len(examples)), key=lambda i: len(examples[i].context) + 10 * len(examples[i].choices))
    for first in range(0, len(order), _BATCH):
        batch = [examples[i] for i in order[first : first + _BATCH]]
        near_TL = similarity([example.context for example in batch], labels)
        own = [np.zeros(1)] * len(batch) if network is None else _own(network, reading, batch)
        for example, log_p, near in zip(batch, own, near_TL, strict=True):
            scores = log_p + SCALE * near[[place[choice.label] for choice in example.choices]]
            powers = np.exp(scores - scores.max())
            shares = (powers / powers.sum()).round(5).tolist()
            taught.append(replace(example, teacher=tuple(shares)))
    return taught


def _own(
    network: PretrainedNetwork, reading: tuple[Vocabulary, Layout], batch: Sequence[Example]
) -> list[npt.NDArray[np.float64]]:
    vocabulary, layout = reading
    was_training = network.training
    network.eval()
    requests = [read_request(vocabulary, e.context, e.question, e.choices) for e in batch]
    decided = decide(network, vocabulary, layout, requests, 1)
    network.train(was_training)
    return [np.log(np.array(some.choices) + 1e-6) for some in decided]


def _written(example: Example) -> dict[str, Any]:
    labels = [choice.label for choice in example.choices]
    return {
        "id": example.id,
        "context": example.context,
        "question": example.question,
        "choices": labels,
        "teacher": example.teacher,
    }


def _read(row: Mapping[str, Any]) -> Example:
    choices = tuple(map(Choice, row["choices"]))
    return Example(
        TAUGHT, row["id"], row["context"], row["question"], (), choices=choices, teacher=tuple(row["teacher"])
    )
