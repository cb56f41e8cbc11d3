"""How figures look: their settings, lines that everybody can tell apart, and files that are the same each time."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
