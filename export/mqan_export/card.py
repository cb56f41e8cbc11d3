"""Write measured scores into a bundle: its manifest and its model card."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from mqan_core.bundle import MODEL_CARD, describe_files, open_bundle, write_manifest
from mqan_export.evaluate import Result, differences

_SCORES = re.compile(r"<!-- scores -->.*?<!-- /scores -->", re.DOTALL)


def record_scores(folder: Path, results: Sequence[Result]) -> None:
    """Replace the scores in a bundle's manifest, and those between the marks in its model card.

    Raises:
        BundleError: the bundle is damaged.
        ValueError: the card has no ``<!-- scores -->`` marks, or a task was scored in part.
    """
    bundle = open_bundle(folder)
    path = folder / MODEL_CARD
    card = path.read_text(encoding="utf-8")
    if not _SCORES.search(card):
        raise ValueError(f"{path} has no <!-- scores --> ... <!-- /scores --> to write the scores into")
    table = f"<!-- scores -->\n{scores_table(results)}\n<!-- /scores -->"
    path.write_text(_SCORES.sub(lambda _: table, card), encoding="utf-8")
    scores = {f"{r.label} ({r.variant})" if r.variant else r.label: r.scores for r in results}
    write_manifest(folder, replace(bundle.manifest, scores=scores, files=describe_files(folder)))


def scores_table(results: Sequence[Result]) -> str:
    """Return the scores as a Markdown table, dated."""
    today = datetime.now(UTC).date().isoformat()
    lines = [
        f"Measured on {today} with `mqan evaluate --zero-shot` on the whole validation sets, in onnxruntime on a CPU.",
        "",
        "| task | wording | examples | scores | to trained wording | words from vocabulary / context / question |",
        "|---|---|---:|---|---:|---|",
    ]
    for result, difference in zip(results, differences(results), strict=True):
        scores = ", ".join(f"{metric} {value:.1f}" for metric, value in result.scores.items())
        mix = " / ".join(f"{100 * result.source_mix[s]:.0f} %" for s in ("vocabulary", "context", "question"))
        change = "" if difference is None else f"{difference:+.1f}"
        cells = (result.label, result.variant, f"{result.num_examples:,}", scores, change, mix)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
