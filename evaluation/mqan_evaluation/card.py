"""Write what was measured on a bundle into it: its manifest and its model card."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from mqan_core.bundle import MODEL_CARD, describe_files, open_bundle, write_manifest
from mqan_evaluation.evaluate import FIRST, Result, differences
from mqan_training.data.metrics import normalized_exact_match

_EXCERPT = 160  # characters


def default_card(name: str, version: str) -> str:
    """Return a model card that says nothing yet, with marks for all that is measured."""
    sections = {"Scores": "scores", "Calibration error": "calibration", "What it gets wrong": "errors"}
    parts = [f"## {title}\n\n<!-- {mark} -->\nNot measured.\n<!-- /{mark} -->\n" for title, mark in sections.items()]
    return "\n".join([f"# {name} {version}\n", *parts])


def record_scores(folder: Path, results: Sequence[Result], *, command: str, where: str) -> None:
    """Replace the scores in a bundle's manifest and model card, and the examples of errors in a card with such marks.

    Args:
        folder: of the bundle.
        results: scores on whole validation sets; they take the place of all that the bundle has.
        command: what measured them.
        where: the engine and the device that they were measured on, in words.

    Raises:
        BundleError: the bundle is damaged.
        ValueError: the card has no ``<!-- scores -->`` marks.
    """
    has_errors = "<!-- errors -->" in (folder / MODEL_CARD).read_text(encoding="utf-8")
    scores = {f"{r.label} ({r.variant})" if r.variant else r.label: r.scores for r in results}
    record(folder, "scores", scores_table(results, command=command, where=where), scores=scores)
    if has_errors:
        record(folder, "errors", errors_table(results))


def record(folder: Path, mark: str, table: str, **changes: Any) -> None:
    """Replace what stands between two marks of a bundle's model card, and fields of its manifest.

    Args:
        folder: of the bundle.
        mark: name of the marks, ``<!-- NAME -->`` and ``<!-- /NAME -->``.
        table: what to put between them.
        changes: fields of the manifest and their new values.

    Raises:
        BundleError: the bundle is damaged.
        ValueError: the card has no such marks.
    """
    manifest = open_bundle(folder).manifest
    path = folder / MODEL_CARD
    check_marks(folder, mark)
    start, end = _marks(mark)
    card = re.sub(
        f"{start}.*?{end}", lambda _: f"{start}\n{table}\n{end}", path.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    path.write_text(card, encoding="utf-8")
    write_manifest(folder, replace(manifest, files=describe_files(folder), **changes))


def check_marks(folder: Path, mark: str) -> None:
    """Check that a bundle's model card has a place for what is to be measured; to be called before that is.

    Raises:
        ValueError: the card has no such marks.
    """
    path = folder / MODEL_CARD
    start, end = _marks(mark)
    if not re.search(f"{start}.*?{end}", path.read_text(encoding="utf-8"), flags=re.DOTALL):
        raise ValueError(
            f"{path} has no {start} ... {end} to write the {mark} into; `mqan export` without --model-card writes them"
        )


def _marks(mark: str) -> tuple[str, str]:
    return f"<!-- {mark} -->", f"<!-- /{mark} -->"


def scores_table(results: Sequence[Result], *, command: str, where: str) -> str:
    """Return the scores as a Markdown table, dated, with what measured them and where."""
    today = datetime.now(UTC).date().isoformat()
    lines = [
        f"Measured on {today} with `{command}` on the whole validation sets, {where}.",
        f"`--limit {FIRST}` scores the first {FIRST} examples of each, which takes seconds.",
        "",
        f"| task | wording | examples | scores | first {FIRST} | to trained wording "
        "| words from vocabulary / context / question |",
        "|---|---|---:|---|---:|---:|---|",
    ]
    for result, difference in zip(results, differences(results), strict=True):
        scores = ", ".join(f"{metric} {value:.1f}" for metric, value in result.scores.items())
        mix = " / ".join(f"{100 * result.source_mix[s]:.0f} %" for s in ("vocabulary", "context", "question"))
        change = "" if difference is None else f"{difference:+.1f}"
        first = f"{result.first_score:.1f}"
        cells = (result.label, result.variant, f"{result.num_examples:,}", scores, first, change, mix)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def errors_table(results: Sequence[Result], number: int = 10) -> str:
    """Return wrong answers, none exactly a right one, drawn at random from the tasks in turn, as a Markdown table."""
    rng = np.random.default_rng(0)
    wrong = [
        (result.task, [p for p in result.predictions if _is_wrong(p)])
        for result in results
        if not result.variant and result.trained_on is not False
    ]
    drawn = [(task, [found[i] for i in rng.permutation(len(found))[:number]]) for task, found in wrong]
    turns = [(task, found[turn]) for turn in range(number) for task, found in drawn if turn < len(found)]
    lines = ["| task | text | question | answer | right |", "|---|---|---|---|---|"]
    for task, prediction in turns[:number]:
        texts = (prediction["context"], prediction["question"], prediction["answer"] or "", prediction["gold"][0])
        lines.append(f"| {' | '.join([task, *map(_excerpt, texts)])} |")
    return "\n".join(lines)


def _is_wrong(prediction: Mapping[str, Any]) -> bool:
    return not any(normalized_exact_match(prediction["answer"] or "", gold) for gold in prediction["gold"])


def _excerpt(text: str) -> str:
    """Return the beginning of a text as it can stand in a cell."""
    words = shorten(" ".join(text.split()), _EXCERPT, placeholder=" ...")
    return re.sub(r"([\\|<*_`\[])", r"\\\1", words)
