"""How much a few rows teach an adapter, on label sets that were not trained on: ``python benchmarks/adapters.py``.

Of each set some rows of each label are drawn, an adapter is fitted to them, and other rows are answered: by the model
alone, by the adapter, and by a logistic regression on the vectors of the texts alone. Writes results/adapters.json,
from which ``make numbers`` makes the table of the guide, and docs/adapters.svg; with ``--draw`` only that, of what was
measured before.
"""

import argparse
import json
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression

from mqan_baselines.figures import SETTINGS, draw_line, finish_panel, save_figure
from mqan_core.answer.adapter import AdapterHead, Floats, adapted_logits
from mqan_core.ask.options import Options
from mqan_core.example import Example
from mqan_data.formats.dataset_file import load_dataset
from mqan_data.mixture import DatasetSource
from mqan_runtime.adapters import Observed, fit_adapter, observe
from mqan_runtime.engine import Engine

SETS: Final = {
    "hint3": "HINT3 (intents)",
    "stackoverflow": "Stack Overflow (topics)",
    "meld": "MELD (emotions in talk)",
    "stormfront": "Stormfront (hate)",
    "searchsnippets": "search snippets (topics)",
    "isear": "ISEAR (emotions)",
}
COUNTS: Final = (2, 4, 8, 16, 32)
RESULTS: Final = Path(__file__).with_name("results") / "adapters.json"
PICTURE: Final = Path(__file__).parent.parent / "docs" / "adapters.svg"


def rows_of(name: str, data: Path, most: int, num_tests: int) -> tuple[list[Example], list[Example]]:
    """Return rows to draw from, up to so many of each label, and others to measure on."""
    dataset = load_dataset(name)
    part = next(iter(dataset.parts))
    alone = replace(dataset, parts={part: dataset.parts[part]})
    rng, tests = np.random.default_rng(0), list[Example]()
    taken: dict[str, list[Example]] = defaultdict(list)
    found: list[Example] = []
    for split in ("train", "validation", "test"):
        try:
            source = DatasetSource(data, replace(alone, held_back=False), split)
            order = rng.permutation(len(source))[: 40 * most + 4 * num_tests]
        except (OSError, ValueError):
            continue
        found += [source.draw(int(i), np.random.default_rng([1, int(i)]), is_fixed=True) for i in order]
    for example in (found[i] for i in rng.permutation(len(found))):
        if len(example.answers) != 1 or example.multiple or not example.choices:
            continue
        if len(tests) < num_tests:
            tests.append(example)
        elif len(taken[example.answers[0]]) < most:
            taken[example.answers[0]].append(example)
    seen = {example.context for example in tests}
    return [example for some in taken.values() for example in some if example.context not in seen], tests


def measure(engine: Engine, name: str, data: Path, draws: int, num_tests: int) -> dict[str, Any]:
    """Return the accuracy, in percent, of each way and each number of rows a label."""
    pool, tests = rows_of(name, data, COUNTS[-1], num_tests)
    first = tests[0]
    options = Options(choices=first.choices)
    begun = time.process_time()
    of_pool, of_tests = (
        observe(engine, [example.context for example in some], first.question, options) for some in (pool, tests)
    )
    seconds = time.process_time() - begun
    golds = np.array([example.answers[0] for example in pool])
    right = np.array([example.answers[0] for example in tests])
    labels = np.array(of_tests.labels)
    alone = float(np.mean(labels[of_tests.own[:, : len(labels)].argmax(axis=1)] == right))
    found: dict[str, Any] = {"labels": len(labels), "rows": len(tests), "alone": 100 * alone}
    found["ms a row"] = 1000 * seconds / (len(pool) + len(tests))
    for count in COUNTS:
        scores: dict[str, list[float]] = defaultdict(list)
        for draw in range(draws):
            rng = np.random.default_rng(draw)
            drawn = np.concatenate([rng.permutation(np.flatnonzero(golds == label))[:count] for label in labels])
            head = AdapterHead(first.question, options.choices, engine.bundle.sha256, len(drawn))
            begun = time.process_time()
            fitted = fit_adapter(of_pool[drawn], [(label,) for label in golds[drawn]], head)
            scores["seconds"].append(time.process_time() - begun)
            logits = adapted_logits(fitted.head, fitted.center_F, fitted.weights_FK, of_tests.own, of_tests.vectors)
            scores["adapter"].append(100 * np.mean(labels[logits[:, : len(labels)].argmax(axis=1)] == right))
            scores["vectors"].append(100 * np.mean(_by_vectors(of_pool[drawn], golds[drawn], of_tests) == right))
            scores["kB"].append(fitted.weights_FK.size * 4 / 1000)
        found[str(count)] = {way: float(np.mean(values)) for way, values in scores.items()}
    return found


def _by_vectors(seen: Observed, golds: Floats, tests: Observed) -> Floats:
    said: Floats = LogisticRegression(C=10, max_iter=300).fit(seen.vectors, golds).predict(tests.vectors)
    return said


def draw(document: dict[str, Any], path: Path) -> None:
    """Draw a panel for each set: right answers by the number of rows of each label."""
    counts = document["counts"]
    with matplotlib.rc_context(SETTINGS):
        figure = Figure((11, 6.4), layout="constrained")
        for place, (name, found) in enumerate(document["sets"].items(), 1):
            axes = figure.add_subplot(2, 3, place)
            for number, (way, label) in enumerate((("adapter", "adapter"), ("vectors", "vectors of texts alone"))):
                scores = [found[str(count)][way] for count in counts]
                draw_line(axes, number, counts, scores, label, f"{name}-{way}", markersize=4)
            axes.axhline(found["alone"], color="0.4", linestyle="--", linewidth=1.2, label="no rows")
            axes.set_xscale("log", base=2)
            axes.set_xticks(counts, [str(count) for count in counts])
            axes.set_title(f"{found['title']}, {found['labels']} labels", fontsize=10)
            axes.set_xlabel("rows of each label")
            axes.set_ylabel("right answers, %")
            finish_panel(axes)
        save_figure(figure, path)


def main() -> None:
    """Measure, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("serving/bundles/default"))
    parser.add_argument("--data", type=Path, default=Path("datasets"))
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--rows", type=int, default=400, help="to measure on, of each set")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--draw", action="store_true", help="draw what is in the output, and measure nothing")
    given = parser.parse_args()
    if given.draw:
        draw(json.loads(given.output.read_text(encoding="utf-8")), PICTURE)
        return
    engine = Engine.open(given.bundle, provider="cpu")
    sets: dict[str, Any] = {}
    for name in given.sets:
        sets[name] = {"title": SETS[name], **measure(engine, name, given.data, given.draws, given.rows)}
        print(name, json.dumps(sets[name]), flush=True)
        document = {"bundle": engine.bundle.sha256, "draws": given.draws, "counts": COUNTS, "sets": sets}
        given.output.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if given.output == RESULTS:
        draw(document, PICTURE)


if __name__ == "__main__":
    main()
