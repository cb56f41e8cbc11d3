"""Figure 3 of the paper, for any text: the score of the predicted class and the fusion gate, word by word."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import matplotlib
import numpy as np
import numpy.typing as npt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mqan_baselines.figures import SETTINGS, check_format, draw_line, save_figure
from mqan_baselines.shared_memory.learning import load_network
from mqan_core.text.tokens import read_tokens

FloatArray = npt.NDArray[np.float32]

_SETTINGS: Final[dict[Any, Any]] = {**SETTINGS, "font.size": 9, "axes.spines.top": True, "axes.spines.right": True}
_WORD_INCHES: Final = 0.42
_LEAST_INCHES, _MOST_INCHES = 5.0, 40.0
_ROW_INCHES: Final = 2.4


@dataclass(frozen=True, slots=True)
class Followed:
    """How a model read a text: after each of its words the classes' probabilities [T, C] and the last memory's gates.

    ``gates``, [T, H], are None for a model without memory.
    """

    label: str
    words: tuple[str, ...]
    labels: tuple[str, ...]
    probabilities: FloatArray
    gates: FloatArray | None


def follow(label: str, folder: Path, task: str, text: str) -> Followed:
    """Let the model in a folder read a text, of one that is too long the last words; ``label`` is to name the model."""
    network, lexicon, labels, recipe = load_network(folder)
    if task not in labels:
        raise ValueError(f"the model in {folder} has no task {task!r}; it has {', '.join(labels)}")
    words = tuple(text[token.start : token.end].strip() for token in read_tokens(text))[-recipe.most_words :]
    if not words:
        raise ValueError("the text holds no word to draw")
    with torch.no_grad():
        probabilities_TC, gates_TH = network.follow(task, torch.tensor(lexicon.numbers(text, recipe.most_words)))
    has_memory = bool(network.memories_of(task))
    return Followed(label, words, labels[task], probabilities_TC.numpy(), gates_TH.numpy() if has_memory else None)


def draw_followed(followed: Sequence[Followed], path: Path) -> None:
    """Draw models that read the same text, as SVG, PNG or PDF.

    Above, the score of one class after each word, a line a model; the class is the one that the last model predicts in
    the end. Below, for each model with memory, how far each neuron's gate is open: a column a word, a row a neuron.
    """
    check_format(path)
    with_memory = [(one.label, one.gates) for one in followed if one.gates is not None]
    words = followed[-1].words
    width = min(max(_LEAST_INCHES, _WORD_INCHES * len(words)), _MOST_INCHES)
    num_rows = 1 + len(with_memory)
    with matplotlib.rc_context(_SETTINGS):
        figure = Figure((width, _ROW_INCHES * num_rows + 0.8), layout="constrained")
        axes = figure.subplots(num_rows, 1, sharex=True, squeeze=False)[:, 0]
        _draw_scores(axes[0], followed)
        for place, (label, gates_TH) in zip(axes[1:], with_memory, strict=True):
            image = place.imshow(
                gates_TH.T, aspect="auto", origin="lower", cmap="viridis", vmin=0, vmax=1, interpolation="nearest"
            )
            place.set_ylabel("neuron")
            place.set_title(f"fusion gate of {label}", fontsize=9)
            figure.colorbar(image, ax=place, label="open (0 to 1)")
        axes[-1].set_xticks(range(len(words)), words, rotation=60, ha="right")
        save_figure(figure, path)


def _draw_scores(axes: Axes, followed: Sequence[Followed]) -> None:
    last = followed[-1]
    shown = int(last.probabilities[-1].argmax())
    for i, one in enumerate(followed):
        scores = one.probabilities[:, shown].tolist()
        draw_line(axes, i, range(len(scores)), scores, one.label, f"score-{one.label}", markersize=4)
    axes.axhline(1 / len(last.labels), color="#a00000", linewidth=0.8)  # what a guess would score
    axes.set_ylim(0, 1)
    axes.set_ylabel(f"probability of\n{last.labels[shown]}")
    axes.legend(frameon=False, loc="best")
