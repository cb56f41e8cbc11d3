"""What a run writes while it goes on, beside checkpoints: JSON lines, TensorBoard and messages.

log.jsonl          one line every ``log_every`` steps: loss, rate, tokens a second, spreads, mix of sources
validation.jsonl   one line for each task of each validation: its scores
tensorboard/       the same numbers to look at
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from torch.utils.tensorboard import SummaryWriter

from mqan_training.model.network import Loss

_STEPS = "log.jsonl"
_VALIDATION = "validation.jsonl"

console = Console(stderr=True)


class RunLog:
    """The files of one run; opening them drops what a cut run wrote of steps that are taken again.

    Args:
        folder: of the run.
        step: steps that the run has taken.
    """

    def __init__(self, folder: Path, step: int) -> None:
        self._folder = folder
        for name in (_STEPS, _VALIDATION):
            _cut(folder / name, step)
        self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)

    def training_step(self, step: int, task: str, loss: Loss, rate: float, tokens_per_s: float) -> None:
        """Record one step of training."""
        values: dict[str, Any] = {
            "loss": float(loss.mean.detach()),
            "spread/context": loss.spread_context,
            "spread/question": loss.spread_question,
            "spread/first_word": loss.spread_state,
            "source/vocabulary": loss.source_mix[0],
            "source/context": loss.source_mix[1],
            "source/question": loss.source_mix[2],
        }
        for name, value in values.items():
            self._writer.add_scalar(f"{task}/{name}", value, step)
        self._writer.add_scalar("rate", rate, step)
        self._writer.add_scalar("tokens_per_s", tokens_per_s, step)
        self._append(_STEPS, {"step": step, "task": task, "rate": rate, "tokens_per_s": tokens_per_s, **values})

    def numbers(self, step: int, values: Mapping[str, float]) -> None:
        """Record the numbers of one step."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._append(_STEPS, {"step": step, **values})

    def validation(self, step: int, seconds: float, task: str, scores: Mapping[str, float], num_examples: int) -> None:
        """Record the scores of one task after a step and so many seconds of training."""
        for metric, value in scores.items():
            self._writer.add_scalar(f"validation/{task}/{metric}", value, step)
        record = {"step": step, "seconds": seconds, "task": task, "scores": dict(scores), "num_examples": num_examples}
        self._append(_VALIDATION, record)
        text = " ".join(f"{metric} {value:.1f}" for metric, value in scores.items())
        console.print(f"step {step} {task}: {text} on {num_examples} examples")

    def close(self) -> None:
        """Write out what TensorBoard still holds back."""
        self._writer.close()

    def _append(self, name: str, record: Mapping[str, Any]) -> None:
        with (self._folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def _cut(path: Path, step: int) -> None:
    """Drop the lines of steps after ``step``, which are taken again, and lines that were cut while written."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line + "\n")
        except ValueError:  # cut while written
            continue
    aside = path.with_suffix(".tmp")
    aside.write_text("".join(kept), encoding="utf-8")
    aside.replace(path)
