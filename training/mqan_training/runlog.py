"""What a run writes while it goes on, beside checkpoints: JSON lines, TensorBoard and messages.

log.jsonl          one line every ``log_every`` steps: losses, rate, speed
validation.jsonl   one line for each task of each validation: its scores
tensorboard/       the same numbers to look at
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from torch.utils.tensorboard import SummaryWriter

_STEPS = "log.jsonl"
_VALIDATION = "validation.jsonl"

console = Console(stderr=True)


class RunLog:
    """The files of one run; opening them drops what a cut run wrote of steps that are taken again."""

    def __init__(self, folder: Path, step: int) -> None:
        self._folder = folder
        for name in (_STEPS, _VALIDATION):
            _cut(folder / name, step)
        self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)

    def numbers(self, step: int, source: str, losses: Mapping[str, float], others: Mapping[str, float]) -> None:
        """Record the losses of one step, of a batch of one source or ("") of several, and other numbers."""
        of_source = {f"{source}/{name}" if source else name: value for name, value in losses.items()}
        for name, value in {**of_source, **others}.items():
            self._writer.add_scalar(name, value, step)
        self._append(_STEPS, {"step": step, **({"task": source} if source else {}), **losses, **others})

    def validation(self, step: int, seconds: float, task: str, scores: Mapping[str, float], num_examples: int) -> None:
        """Record the scores of one task after a step and so many seconds of training."""
        for metric, value in scores.items():
            self._writer.add_scalar(f"validation/{task}/{metric}", value, step)
        record = {"step": step, "seconds": seconds, "task": task, "scores": dict(scores), "num_examples": num_examples}
        self._append(_VALIDATION, record)
        text = " ".join(f"{metric} {value:.1f}" for metric, value in scores.items())
        console.print(f"step {step} {task}: {text} on {num_examples} examples")

    def close(self) -> None:
        self._writer.close()

    def _append(self, name: str, record: Mapping[str, Any]) -> None:
        with (self._folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def _cut(path: Path, step: int) -> None:
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
