"""Write what the suite measured on a bundle into it: scores and calibration into its manifest, and its model card."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from textwrap import shorten
from typing import Any, Final

import numpy as np

from mqan_core.answer.calibration import Calibration
from mqan_core.bundle import open_bundle, write_manifest
from mqan_core.manifest import MODEL_CARD, Manifest
from mqan_data.formats.dataset_file import dataset_names, load_dataset
from mqan_data.mixture import dataset_of
from mqan_evaluation.label_views import MOST_NAMED
from mqan_evaluation.sections import Cell, Section
from mqan_evaluation.suite import CASES, DECANLP, Measured

_COLUMNS: Final = {  # section -> {column: metric} of what goes into the manifest
    "labels": {"accuracy": "accuracy"},
    "fields": {"nF1": "nf1", "refusal F1": "refusal_f1"},
    "made": {"nF1": "nf1", "refusal F1": "refusal_f1"},
    "squad2_dev": {"nF1": "nf1", "refusal F1": "refusal_f1"},
    "instructions": {"accuracy": "accuracy"},
    "reviews": {"labels in question": "accuracy", "as choices": "accuracy_of_choices"},
    "cases": {"share": "accuracy"},
    "long": {"exact": "em", "nF1": "nf1"},
}
_NAMES: Final = ("set", "task", "kind")  # columns that a row is named by
_NUM_WRONG: Final = 10
_EXCERPT: Final = 160  # characters
_INSULTING: Final = ("hate_davidson", "stormfront", "tweeteval")  # their texts are not quoted

_WHOLE: Final = (
    ", on whole sets (of synthetic texts 200 questions a kind, of long texts 260; to calibrate 60 a dataset)"
)
_CARD: Final = """---
license: other
language: en
pipeline_tag: question-answering
tags: [mqan, pointer-generator, question-answering, zero-shot-classification, information-extraction, attribution]
---

# {name} {version}

It answers a question about an English text and says where every word of the answer came from. The question is the
task: a fact, a field, one of the caller's labels, yes or no. If the text has no answer, the model refuses.

A pretrained sentence encoder (all-MiniLM-L6-v2: six layers, hidden size 384) reads question, choices and text as one
sequence of word pieces (subword tokens). The decoder is the multi-pointer-generator of MQAN (McCann et al. 2018).

## Intended use and limits

- English texts. Long ones are read in overlapping windows of 384 word pieces.
- Questions whose answer is in the text, choices among labels, short fields.
- It does not reason over several steps, count or calculate, and has no knowledge beyond the text. Its summaries and
  translations are poor.
- Check `probability` and the quotations. Do not let it make decisions about people on its own.

## Scores

Measured on {date} with `{command}`, {where}{limit}. Accuracy, shares and F1 are in per cent.

How to read the tables:

- nF1 is word F1 after the normalisation of SQuAD (case, punctuation and articles are ignored); "exact" is exact match.
- "Majority" always gives the most frequent class. "Cosine" takes the label whose sentence embedding is nearest to the
  text's. "Refused": answers "not in the text" or "none of these"; "never refusing" takes the best label in their place.
  "Unread": examples over the model's limits.
- "Refusal F1", "precision" and "recall" are of the refusals; "always refusing" is the F1 of refusing every question.
- "Reversed: same": share of answers that stay when the order of the labels is reversed.
- "Labels in question": the labels stand in the question's text, not in `choices`; of more than {named} labels, {named}
  with the right one among them, so that there it is an easier question. The list is read as choices.
- "Largest change": the largest difference in accuracy, in points, between another wording of the question and the
  first.
- "Without answer": share of the examples that have no answer.
- "Kind": `choices/3-5` are questions with 3 to 5 labels, `several/3-5` those where several of the labels can be right.
  Of several labels, those apply whose calibrated probability is over one half.
- "ECE" is the expected calibration error, from 0 to 1, before and after calibration. Calibration divides the
  logit of a probability by "temperature" and adds "offset"; both are fitted on validation data. So is `refusal_offset`
  of the manifest, by which the score of refusing a free question is moved before the decision. "At 0.9 or more":
  number of answers with a probability of at least 0.9.

{tables}
## What it gets wrong

Wrong answers, drawn at random from the sets above (no insults).

{errors}

## Training

`mqan train training/recipes/{recipe}.yaml --data DIR{start}`: {steps:,} steps of at most {batch:,} word pieces,
{time} on a {device}.{began} Each time a text is used, a new question is sampled: other labels, other
wordings, questions that it does not answer. The datasets in the tables "not trained on" are not in the training data
in any form; of the synthetic texts (`made_`), other layouts are.

It was trained on these datasets, by licence. Restrictions of a licence may also apply to this model.

{licences}
"""


def record_suite(
    folder: Path,
    measured: Measured,
    answers: Sequence[Mapping[str, Any]],
    *,
    command: str,
    refusal_offset: float | None = None,
) -> None:
    """Replace the scores and the calibration of a bundle's manifest, and its model card.

    Args:
        folder: of the bundle.
        measured: what the suite found; its maps of probabilities take the place of the bundle's where it fitted any.
        answers: its records of answers, from which wrong ones are shown.
        command: what measured them.
        refusal_offset: that it was measured with; None for the one that it has.

    Raises:
        BundleError: the bundle is damaged.
    """
    manifest = open_bundle(folder).manifest
    maps = {name: Calibration(**found) for name, found in measured.calibration.items()} or manifest.calibration
    offset = manifest.refusal_offset if refusal_offset is None else refusal_offset
    manifest = replace(manifest, scores=scores_of(measured.sections), calibration=maps, refusal_offset=offset)
    card, path = card_of(manifest, measured, answers, command), folder / MODEL_CARD
    before = path.read_bytes() if path.exists() else b""
    try:
        path.write_text(card, encoding="utf-8")
        write_manifest(folder, manifest)
    except BaseException:  # interrupted: the manifest has the hash of the old card
        path.write_bytes(before)
        raise


def scores_of(sections: Sequence[Section]) -> dict[str, dict[str, float]]:
    """Return the scores of a manifest: set -> {metric: value}."""
    scores: dict[str, dict[str, float]] = {}
    for section in sections:
        for row in section.rows:
            name = str(next(row[column] for column in _NAMES if column in row))
            if section.name == CASES and name != "all":
                continue
            columns = {"score": str(row["metric"])} if section.name == DECANLP else _COLUMNS.get(section.name, {})
            values = {
                metric: float(value)
                for column, metric in columns.items()
                if isinstance(value := row[column], int | float)
            }
            if values:
                scores[f"{section.name}: {name}" if name in ("all", "mean") else name] = values
    return scores


def card_of(manifest: Manifest, measured: Measured, answers: Sequence[Mapping[str, Any]], command: str) -> str:
    """Return a bundle's model card in Markdown."""
    training = manifest.training
    limit = f", at most {measured.limit} examples a set (WOZ: whole dialogues)" if measured.limit else _WHOLE
    return _CARD.format(
        name=manifest.name,
        version=manifest.version,
        date=datetime.now(UTC).date().isoformat(),
        command=command,
        where=measured.where,
        limit=limit,
        named=MOST_NAMED,
        tables="\n".join(_table(section) for section in measured.sections),
        errors=_wrong_answers(measured, answers),
        recipe=training.get("recipe", ""),
        steps=training.get("steps", 0),
        batch=training.get("batch_pieces", 2500),
        time=_time(float(training.get("seconds", 0))),
        start=" --from BUNDLE" if training.get("began_from") else "",
        began=f" It began with the weights of {origin}." if (origin := training.get("began_from")) else "",
        device="GPU" if training.get("device") == "cuda" else "CPU",
        licences="\n".join(_licences([str(name) for name in training.get("tasks", ())])),
    )


def _time(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.0f} minutes"


def _table(section: Section) -> str:
    columns = list(section.rows[0])
    lines = [
        f"### {section.title}\n",
        f"| {' | '.join(columns)} |",
        f"|{'|'.join('---:' if _is_number(section, column) else '---' for column in columns)}|",
        *(f"| {' | '.join(_cell(row[column]) for column in columns)} |" for row in section.rows),
    ]
    if section.summary:
        lines += ["", ", ".join(f"{name}: {_cell(value)}" for name, value in section.summary.items())]
    return "\n".join([*lines, ""])


def _is_number(section: Section, column: str) -> bool:
    return any(isinstance(row[column], int | float) for row in section.rows)


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else value


def _wrong_answers(measured: Measured, answers: Sequence[Mapping[str, Any]]) -> str:
    """Return wrong answers of several sets, drawn at random, as a table; none of the questions that users report."""
    shown = {str(row.get("task") or row.get("set")) for section in measured.sections for row in section.rows}
    shown.difference_update((CASES, *_INSULTING))
    wrong: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for answer in answers:
        if answer["section"] in shown and answer["is_read"] and not answer["right"]:
            wrong[str(answer["section"])].append(answer)
    rng = np.random.default_rng(0)
    names = [list(wrong)[i] for i in rng.permutation(len(wrong))[:_NUM_WRONG]]
    lines = ["| set | text | question | answer | right |", "|---|---|---|---|---|"]
    for name in names:
        found = wrong[name][int(rng.integers(len(wrong[name])))]
        gold = found["gold"][0] if found["gold"] else "(not in the text)"
        given = found["answer"] if found["answer"] is not None else "(not in the text)"
        cells = (found["context"], _asked(found), given, gold)
        lines.append(f"| {' | '.join([name, *map(_excerpt, cells)])} |")
    return "\n".join(lines)


def _asked(answer: Mapping[str, Any]) -> str:
    choices = ", ".join(answer["choices"])
    return f"{answer['question']} ({choices})" if choices else str(answer["question"])


def _excerpt(text: str) -> str:
    """Return the beginning of a text as it can stand in a cell."""
    words = shorten(" ".join(text.split()), _EXCERPT, placeholder=" ...")
    return re.sub(r"([\\|<*_`\[])", r"\\\1", words)


def _licences(names: Sequence[str]) -> Iterator[str]:
    """Yield a line for each licence, with the datasets under it."""
    groups: dict[str, list[str]] = defaultdict(list)
    known = set(dataset_names())
    for name in names:
        own = dataset_of(name)
        if own not in known:
            groups["synthetic, or the maker's own"].append(name)
        else:
            dataset = load_dataset(own)
            groups[dataset.licence + ("" if dataset.commercial else " (not for commercial use)")].append(name)
    for licence, datasets in sorted(groups.items()):
        yield f"- {licence}: {', '.join(datasets)}"
