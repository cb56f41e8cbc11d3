"""How figures look; the learning curves of several runs: ``mqan curves RUN RUN`` (McCann et al. 2018, figure 4).

A run's scores are in its ``validation.jsonl``, a line for each step and task that was validated:
``{"step": 100, "seconds": 61.5, "task": "wnut17", "scores": {"nf1": 50.1, "em": 44.0}, "num_examples": 300}``, the
task's own metric first.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

FORMATS: Final = (".svg", ".png", ".pdf")
# Told apart by everybody, also without colour: Okabe and Ito's colours, and another mark each.
_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_MARKS: Final = ("o", "s", "^", "D", "v", "P", "X")
SETTINGS: Final[dict[Any, Any]] = {
    "font.size": 10,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "mqan",  # the same numbers give the same file
    "axes.spines.top": False,
    "axes.spines.right": False,
}
VALIDATION_LOG: Final = "validation.jsonl"
_NAMES: Final = {
    "em": "exact match (%)",
    "nf1": "normalised F1 (%)",
    "bleu": "BLEU (0 to 100)",
    "avg_rouge": "average ROUGE (0 to 100)",
    "corpus_f1": "corpus F1 (%)",
    "joint_goal_em": "dialogue state exact match (%)",
    "lfem": "logical form exact match (%)",
    "unanswerable_f1": "F1 of saying unanswerable (%)",
}
_PANEL_INCHES: Final = (4.6, 3.3)
_MAX_COLUMNS: Final = 3
_MAX_MARKS: Final = 25  # on a line
_MIN_TOP: Final = 1.0  # of the vertical axis: less than a point is noise, and should look it


@dataclass(frozen=True, slots=True)
class Curve:
    """The validation scores of a task in one run, from 0 to 100, after ascending steps."""

    metric: str
    steps: tuple[int, ...]
    scores: tuple[float, ...]
    num_examples: int


def read_runs(given: Sequence[str]) -> dict[str, dict[str, Curve]]:
    """Read the curves of runs, a task each, given as ``FOLDER`` or ``LABEL=FOLDER``; by default the folder's name."""
    runs: dict[str, dict[str, Curve]] = {}
    for text in given:
        label, separator, folder = text.partition("=")
        if not separator or Path(text).is_dir():
            label, folder = Path(text).resolve().name, text
        if not label or label in runs:
            raise ValueError(f"{text}: every run needs a label of its own: give LABEL=FOLDER")
        runs[label] = read_curves(Path(folder))
    return runs


def read_curves(folder: Path) -> dict[str, Curve]:
    """Read the curve of each task of a run; of a step that was validated twice the later scores count."""
    path = folder / VALIDATION_LOG
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}; give the folder of a run, as `mqan train --output` had it")
    if not path.is_file():
        raise ValueError(
            f"{folder} has no {VALIDATION_LOG}: it is no run of `mqan train`, or was not validated yet "
            "(the recipe's `validate_every` says after how many steps)"
        )
    records: dict[str, dict[int, tuple[str, float, int]]] = {}
    *lines, _ = path.read_text(encoding="utf-8").split("\n")  # the last one is empty, or not whole yet
    for number, line in enumerate(lines, 1):
        try:
            record: Any = json.loads(line)
            metric, value = next(iter(record["scores"].items()))
            found = metric, float(value), int(record["num_examples"])
            records.setdefault(str(record["task"]), {})[int(record["step"])] = found
        except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
            raise ValueError(f"{path}:{number}: not the validation of a step: {line[:80]!r}") from error
    if not records:
        raise ValueError(f"{path} is empty: the run was not validated yet")
    curves = {}
    for task, of_step in records.items():
        steps = tuple(sorted(of_step))
        metric, _, num_examples = of_step[steps[-1]]
        curves[task] = Curve(metric, steps, tuple(of_step[step][1] for step in steps), num_examples)
    return curves


def draw_curves(runs: Mapping[str, Mapping[str, Curve]], path: Path) -> None:
    """Draw one panel a task, with a line for each run that has the task, as SVG, PNG or PDF."""
    check_format(path)
    tasks = list(dict.fromkeys(task for curves in runs.values() for task in curves))
    for task in tasks:
        metrics = {curves[task].metric for curves in runs.values() if task in curves}
        if len(metrics) > 1:
            raise ValueError(f"{task} was scored by {' and by '.join(sorted(metrics))}: these curves do not compare")
    num_columns = min(len(tasks), _MAX_COLUMNS)
    num_rows = math.ceil(len(tasks) / num_columns)
    width, height = _PANEL_INCHES
    with matplotlib.rc_context(SETTINGS):
        figure = Figure((width * num_columns, height * num_rows), layout="constrained")
        for place, task in enumerate(tasks, 1):
            _draw_task(figure.add_subplot(num_rows, num_columns, place), task, runs)
        save_figure(figure, path)


def _draw_task(axes: Axes, task: str, runs: Mapping[str, Mapping[str, Curve]]) -> None:
    found = [(i, label, curves[task]) for i, (label, curves) in enumerate(runs.items()) if task in curves]
    for i, label, curve in found:
        looks = {"markevery": math.ceil(len(curve.steps) / _MAX_MARKS), "markersize": 4, "clip_on": False}
        draw_line(axes, i, curve.steps, curve.scores, label, f"curve-{task}-{label}", **looks)
        axes.set_ylabel(_NAMES.get(curve.metric, curve.metric))
    numbers = " or ".join(f"{number:,}" for number in dict.fromkeys(curve.num_examples for _, _, curve in found))
    axes.set_title(f"{task}, {numbers} validation examples", fontsize=10)
    axes.set_xlabel("training steps (batches)")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.set_xlim(left=0)
    axes.set_ylim(0, max(axes.get_ylim()[1], _MIN_TOP))
    finish_panel(axes)


def check_format(path: Path) -> None:
    if path.suffix not in FORMATS:
        raise ValueError(f"{path}: the file's ending must be one of {', '.join(FORMATS)}")


def draw_line(
    axes: Axes, number: int, x: Sequence[float], y: Sequence[float], label: str, gid: str, **more: Any
) -> None:
    colour, mark = _COLOURS[number % len(_COLOURS)], _MARKS[number % len(_MARKS)]
    axes.plot(x, y, label=label, color=colour, marker=mark, linewidth=1.6, gid=gid, **more)


def finish_panel(axes: Axes) -> None:
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.legend(frameon=False, loc="best")


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure, without the date, in a folder that is made if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    figure.savefig(path, dpi=160, metadata=undated.get(path.suffix))
