"""Tables 3 and 4 of the paper: four architectures on movie or product reviews, beside the published figures."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mqan_baselines.recipes import Architecture
from mqan_baselines.scores import markdown_table

ARCHITECTURES: Final[tuple[Architecture, ...]] = ("lstm", "me-lstm", "arc-i", "arc-ii")
_NAMES: Final = {"lstm": "LSTM, alone", "me-lstm": "ME-LSTM, alone", "arc-i": "ARC-I", "arc-ii": "ARC-II"}
PUBLISHED: Final[Mapping[str, Mapping[str, float]]] = {
    "lstm": {
        "sst-1": 45.9, "sst-2": 85.8, "subj": 91.6, "imdb": 88.5,
        "books": 78.0, "dvds": 79.5, "electronics": 81.2, "kitchen": 81.8,
    },
    "me-lstm": {
        "sst-1": 46.4, "sst-2": 85.5, "subj": 91.0, "imdb": 88.7,
        "books": 77.5, "dvds": 80.2, "electronics": 81.5, "kitchen": 82.1,
    },
    "arc-i": {
        "sst-1": 48.6, "sst-2": 87.0, "subj": 93.8, "imdb": 89.8,
        "books": 81.2, "dvds": 82.0, "electronics": 84.5, "kitchen": 84.3,
    },
    "arc-ii": {
        "sst-1": 49.5, "sst-2": 87.8, "subj": 95.0, "imdb": 91.2,
        "books": 82.8, "dvds": 83.0, "electronics": 85.5, "kitchen": 84.0,
    },
}  # fmt: skip
"""Accuracies of tables 3 and 4 (Liu et al. 2016)."""


def comparison(tasks: Sequence[str], results: Mapping[Architecture, Mapping[str, Any]]) -> str:
    """Return a table of what ``learning.run`` returned: a row an architecture, beside ours the published accuracy.

    The column ``gain`` is the mean difference from our LSTMs that were trained alone.
    """
    heads = ["", *(f"{task}, ours (published)" for task in tasks), "gain over LSTM", "hours"]
    rows = []
    alone = results.get("lstm", {}).get("tasks", {})
    for architecture, result in results.items():
        cells = [_NAMES[architecture]]
        for task in tasks:
            published = PUBLISHED[architecture].get(task)
            cells.append(f"{result['tasks'][task]['test']:.1f} ({published if published is not None else 'none'})")
        gains = [result["tasks"][task]["test"] - alone[task]["test"] for task in tasks if task in alone]
        cells += [f"{sum(gains) / len(gains):+.1f}" if gains else "", f"{result['seconds'] / 3600:.2f}"]
        rows.append(cells)
    counts = next(iter(results.values()))["tasks"]
    told = ", ".join(f"{task} {counts[task]['num_test']:.0f}" for task in tasks)
    return f"{markdown_table(heads, rows)}\nAccuracy in %; texts reported on: {told}.\n"
