"""Right answers and time of what can be installed and chooses among labels, on labels and texts nobody was shown.

The sets of labels that are held back, and the choices of everyday texts for validation. Each chooser answers the same
questions, one at a time, in processor time of one core: this model, the nearest label by the sentence encoder that it
started from, and Sparrow (`pip install sparrow-decider` into an environment of its own; ``--sparrow`` is its Python).

    python benchmarks/frontier.py --data DIR --sparrow PYTHON --limit 200 --write benchmarks/results/frontier.json
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import torch
from latency import processor

from mqan_core.ask.options import Options
from mqan_core.example import Example
from mqan_data.formats.dataset_file import load_dataset
from mqan_data.formats.reading import read_rows
from mqan_data.formats.rows import EverydayRow
from mqan_data.mixture import validation_examples
from mqan_data.questions import everyday
from mqan_evaluation.judging import ALL, sampled
from mqan_evaluation.label_sections import SentenceSimilarity, held_back_sets
from mqan_runtime.engine import Engine

Choose = Callable[[Example], tuple[str, float]]  # the label, and the seconds of processor time that it took

_SEED: Final = 1  # that of the model card
_SPARROW: Final = """
import json, sys, time
from sparrow_decider import Decider
decider = Decider.load()
for line in sys.stdin:
    asked = json.loads(line)
    begun = time.process_time()
    of = {"q": {"type": "choice", "instructions": asked["question"], "criteria": dict(asked["labels"])}}
    told = decider.ask(asked["text"], of)
    seconds = time.process_time() - begun
    print(json.dumps([told, seconds]), flush=True)
"""


def main() -> int:
    """Print a table and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=Path, default=Path("serving/bundles/default"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sparrow", type=Path, help="a Python that has sparrow-decider")
    parser.add_argument("--limit", type=int, default=200, help="questions of a set")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    sets = questions(given.data, given.limit)
    choosers: dict[str, Choose] = {
        "mqan": by_engine(Engine.open(given.bundle, provider="cpu", num_threads=1)),
        "cosine": by_cosine(SentenceSimilarity()),
    }
    if given.sparrow:
        choosers["sparrow"] = by_sparrow(given.sparrow)
    found = {
        title: {name: measure(choose, asked) for name, choose in choosers.items()} for title, asked in sets.items()
    }
    for title, of_set in found.items():
        told = "   ".join(f"{name} {one['right']:.1f} % in {one['ms']:.1f} ms" for name, one in of_set.items())
        print(f"{title:20} {len(sets[title]):5}   {told}")
    if given.write:
        counts = {title: len(asked) for title, asked in sets.items()}
        document = {
            "day": f"{datetime.now(UTC):%Y-%m-%d}",
            "processor": processor(),
            "questions": counts,
            "sets": found,
        }
        given.write.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


def questions(data: Path, limit: int) -> dict[str, list[Example]]:
    """Return what is asked, by set: each question has labels of which one is right."""
    found = {name: sampled(validation_examples(data, name, ALL, _SEED), limit, _SEED) for name in held_back_sets()}
    rows = read_rows(data, load_dataset("everyday"), "questions", "validation")
    choices = [row for row in rows if isinstance(row, EverydayRow) and row.kind == "choice" and row.answers]
    return {**found, "everyday": sampled([everyday.canonical(row) for row in choices], 2 * limit, _SEED)}


def measure(choose: Choose, examples: Sequence[Example]) -> dict[str, float]:
    """Return the share of right answers in per cent, and the median milliseconds of one."""
    right, times = [], []
    for example in examples:
        label, seconds = choose(example)
        times.append(seconds)
        right.append(label in example.answers)
    return {"right": round(100 * statistics.mean(right), 2), "ms": round(1000 * statistics.median(times), 2)}


def timed(choose: Callable[[Example], str]) -> Choose:
    """Return what says how long a choice takes this process."""

    def choose_timed(example: Example) -> tuple[str, float]:
        begun = time.process_time()
        label = choose(example)
        return label, time.process_time() - begun

    return choose_timed


def by_engine(engine: Engine) -> Choose:
    """Choose by a bundle, which may not refuse."""

    def choose(example: Example) -> str:
        [answer] = engine.answer(
            [engine.read(example.context, example.question, Options(choices=example.choices))], [1]
        )
        return max(answer.choices, key=lambda choice: choice.probability).label

    return timed(choose)


def by_cosine(similarity: SentenceSimilarity) -> Choose:
    """Choose the label whose vector is nearest to the text's; vectors of labels that were met are kept."""
    known: dict[str, torch.Tensor] = {}

    def choose(example: Example) -> str:
        labels = [choice.label for choice in example.choices]
        new = [label for label in dict.fromkeys(labels) if label not in known]
        if new:
            known.update(zip(new, similarity.vectors(new), strict=True))
        [text] = similarity.vectors([example.context])
        return max(labels, key=lambda label: float(known[label] @ text))

    return timed(choose)


def by_sparrow(python: Path) -> Choose:
    """Choose by Sparrow in a process of its own, which says how long it took."""
    process = subprocess.Popen(
        [python, "-c", _SPARROW], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )

    def choose(example: Example) -> tuple[str, float]:
        assert process.stdin is not None
        assert process.stdout is not None
        labels = [(choice.label, choice.description or choice.label) for choice in example.choices]
        asked: dict[str, Any] = {"text": example.context, "question": example.question, "labels": labels}
        process.stdin.write(json.dumps(asked) + "\n")
        told, seconds = json.loads(process.stdout.readline())
        return told["q"]["choice"], seconds

    return choose


if __name__ == "__main__":
    sys.exit(main())
