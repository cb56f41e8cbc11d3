"""A trained sibling system to a bundle of format 8: ``mqan export FOLDER BUNDLE``.

The bundle is opened aside and asked about rows of each task's test file: its probabilities have to be torch's, and its
scores are measured. The manifest is written last.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from torch import Tensor

from mqan_core.bundle import ENCODER, MANIFEST, MODEL_CARD, VOCABULARY, describe_files, write_manifest
from mqan_core.classifying import ClassifyingBundle, ClassifyingManifest, ClassTask, open_classifying_bundle
from mqan_export.classifying_card import class_card
from mqan_export.parity import ParityError
from mqan_export.trained_sibling import TrainedSibling, load_sibling
from mqan_runtime.classifiers import Classifier, open_classifier
from mqan_training.siblings.batches import draw
from mqan_training.siblings.formats import Row
from mqan_training.siblings.scores import score_task
from mqan_training.siblings.tasks import SiblingTask, sibling_task
from mqan_training.siblings.wordings import LEVELS, labels_of, wordings_of

MAX_DIFFERENCE: Final = 1e-5  # of a probability
_TOGETHER: Final = 16  # texts, in torch


@dataclass(frozen=True, slots=True)
class ClassifyingParity:
    """What was compared.

    Attributes:
        num_texts: texts and pairs that torch and the bundle classified.
        max_difference: largest difference of a probability.
        scores: task -> {metric: value}, of the bundle.
    """

    num_texts: int
    max_difference: float
    scores: dict[str, dict[str, float]]


def export_classifying_bundle(
    model: Path, folder: Path, data: Path, num_rows: int, *, name: str | None, version: str, model_card: str | None
) -> tuple[ClassifyingManifest, ClassifyingParity]:
    """Write the bundle of a model that ``mqan siblings`` trained.

    Args:
        model: its folder.
        folder: where the bundle goes; what is there of an earlier bundle is replaced.
        data: folder of the datasets.
        num_rows: rows of each task's test file to compare and to measure on.
        name: name of the model; the recipe's if None.
        version: version of the model.
        model_card: text of the bundle's README; made of what was measured if None.

    Raises:
        CheckpointError: the folder holds no such model.
        BundleError: the name or the version cannot be those of a bundle.
        ParityError: the bundle and torch disagree. What was in the folder stays, as after all other errors.
        MissingFileError, DatasetError: a task's test file is missing or malformed.
        ValueError: a task has no test rows.
    """
    trained = load_sibling(model)
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / ".unchecked"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    try:
        manifest = _write_unchecked(trained, aside, name or trained.name, version)
        rows = {task: _rows(sibling_task(task), data, num_rows, trained.seed) for task in trained.tasks}
        found = compare(trained, open_classifying_bundle(aside), rows)
        measured_on = {task: len(some) for task, some in rows.items()}
        training = {**trained.training, "measured_on": measured_on}
        manifest = replace(manifest, scores=found.scores, training=training)
        card = class_card(manifest) if model_card is None else model_card
        (aside / MODEL_CARD).write_text(card, encoding="utf-8")
        manifest = replace(manifest, files=describe_files(aside, manifest.expected_files))
        (folder / MANIFEST).unlink(missing_ok=True)
        for file in manifest.files:
            (aside / file).replace(folder / file)
    finally:
        shutil.rmtree(aside)
    write_manifest(folder, manifest)
    return manifest, found


def compare(trained: TrainedSibling, bundle: ClassifyingBundle, rows: dict[str, list[Row]]) -> ClassifyingParity:
    """Let torch and a bundle classify the same rows.

    Raises:
        ParityError: a probability differs by more than ``MAX_DIFFERENCE``.
    """
    classifier = open_classifier(bundle, "cpu", 1)
    worst, num_texts, scores = 0.0, 0, {}
    for task in bundle.manifest.tasks:
        form = sibling_task(task.name).form
        texts = [texts for row in rows[task.name] for texts in texts_of(row, form == "ranking")]
        ours = _classify(classifier, task, texts)
        batches = [texts[at : at + _TOGETHER] for at in range(0, len(texts), _TOGETHER)]
        theirs = [found for batch in batches for found in trained.probabilities(task.name, batch)]
        worst = max(worst, _largest_difference(task, texts, ours, theirs))
        num_texts += len(texts)
        scores[task.name] = _measure(sibling_task(task.name), rows[task.name], ours)
    return ClassifyingParity(num_texts, worst, scores)


def texts_of(row: Row, is_ranking: bool) -> list[tuple[str, ...]]:
    """Return what of a row is classified: itself, or of a ranking the question with each candidate."""
    return [(row.texts[0], candidate) for candidate in row.texts[1:]] if is_ranking else [row.texts]


def _write_unchecked(trained: TrainedSibling, folder: Path, name: str, version: str) -> ClassifyingManifest:
    """Write all files of a bundle, without scores; return its manifest."""
    wordings = wordings_of(trained.tasks)
    tasks = tuple(
        ClassTask(task, labels_of(task), wordings[task], sibling_task(task).form == "similarity")
        for task in trained.tasks
    )
    graphs = {task.name: task.graph for task in tasks}
    for graph, model in trained.graphs():
        content = model.SerializeToString(deterministic=True)
        (folder / graphs.get(graph, ENCODER)).write_bytes(content)
    (folder / VOCABULARY).write_text(json.dumps(trained.lists, ensure_ascii=False), encoding="utf-8")
    (folder / MODEL_CARD).write_text("", encoding="utf-8")
    manifest = ClassifyingManifest(
        name=name,
        version=version,
        kind=trained.kind,
        tasks=tasks,
        most_read=trained.most_read,
        files={},
        memory=trained.memory,
    )
    manifest = replace(manifest, files=describe_files(folder, manifest.expected_files))
    write_manifest(folder, manifest)
    return manifest


def _rows(task: SiblingTask, data: Path, number: int, seed: int) -> list[Row]:
    rows = draw(task.rows(data, "test"), number, seed, task.together)
    if not rows:
        raise ValueError(f"{task.name}: there are no test rows in {data} to compare on")
    return rows


def _classify(classifier: Classifier, task: ClassTask, texts: Sequence[tuple[str, ...]]) -> list[list[float]]:
    return [classifier.probabilities(task, some).tolist() for some in texts]


def _largest_difference(
    task: ClassTask, texts: Sequence[tuple[str, ...]], ours: Sequence[Sequence[float]], theirs: Sequence[Tensor]
) -> float:
    worst = 0.0
    for some, found, expected in zip(texts, ours, theirs, strict=True):
        difference = max(abs(a - b) for a, b in zip(found, expected.tolist(), strict=True))
        if not difference <= MAX_DIFFERENCE:
            raise ParityError(
                f"{task.name}: a probability of {some[0][:60]!r} differs by {difference:.1e} from torch's, at most "
                f"{MAX_DIFFERENCE:.0e} is allowed"
            )
        worst = max(worst, difference)
    return worst


def _measure(task: SiblingTask, rows: Sequence[Row], found: Sequence[Sequence[float]]) -> dict[str, float]:
    """Return the scores of a task by what the bundle said."""
    if task.form == "similarity":
        outputs = [[sum(i * share for i, share in enumerate(shares)) / (len(LEVELS) - 1)] for shares in found]
    else:
        outputs = [list(shares[1:]) if task.form == "ranking" else list(shares) for shares in found]
    of_texts = iter(outputs)
    of_rows = [[next(of_texts) for _ in texts_of(row, task.form == "ranking")] for row in rows]
    return score_task(task, [row.gold for row in rows], of_rows)
