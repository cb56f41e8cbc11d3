"""Time bundles against what a user would pick instead, on questions of SQuAD's and SST's validation sets.

Beside bundles: DistilBERT for question answering in ONNX, with float32 and with 8-bit products. All answer the same
questions, one at a time, on one core, in turns. A model that can choose is offered SST's two labels; the others are
told them by the question alone. DistilBERT has random weights (speed does not depend on them) and reads the pieces of
BERT's vocabulary; the time to cut texts is counted for all.

    python benchmarks/peer.py --data DIR [BUNDLE...]
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from peers.distilbert import make_distilbert
from squad import read_questions
from turns import TURN, UNTIMED, flat, take_turns

from mqan_core.ask.options import Options
from mqan_core.example import Choice
from mqan_runtime.engine import Engine

Ask = Callable[[str, str], object]

BOUNDED = "DistilBERT, 8-bit"
TASKS = {"squad": (25, 400), "sst": (4, 200)}  # one question of so many, and at most so many
LABELS = (Choice("negative"), Choice("positive"))


def main() -> int:
    """Print the figures; exit 1 when a bundle is less than ``--at-least`` times faster than 8-bit DistilBERT."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundles", nargs="*", type=Path, default=[Path("serving/bundles/default")])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--at-least", type=float, default=3.0, help="required ratio of answers a second on SQuAD")
    given = parser.parse_args()
    torch.set_num_threads(1)
    engines = {str(folder): Engine.open(folder, provider="cpu", num_threads=1) for folder in given.bundles}
    float32, int8 = make_distilbert()
    peers = {"DistilBERT, float32": float32, BOUNDED: int8}
    is_fast = True
    for task, (every, most) in TASKS.items():
        texts = read_questions(given.data, every, task)[:most]
        own = {name: partial(ask, engine, task == "sst") for name, engine in engines.items()}
        times = time_all(own | peers, texts)
        bound = statistics.mean(times[BOUNDED])
        print(f"{len(times[BOUNDED])} questions of {task}, one at a time, one core, texts included")
        for name, values in times.items():
            mean, median = statistics.mean(values), statistics.median(values)
            print(f"  {name:35} mean {mean:7.2f} ms   median {median:7.2f} ms   {bound / mean:5.1f} times {BOUNDED}")
            is_fast &= task != "squad" or name not in own or bound / mean >= given.at_least
    return 0 if is_fast else 1


def ask(engine: Engine, may_choose: bool, context: str, question: str) -> object:
    """Answer a question of SST by its labels, where the model can choose, and any other freely."""
    choices = LABELS if may_choose and engine.bundle.manifest.reader == "pieces" else ()
    return engine.answer([engine.read(context, question, Options(choices=choices))], [engine.max_answer_tokens])


def time_all(asks: dict[str, Ask], texts: Sequence[tuple[str, str]]) -> dict[str, list[float]]:
    """Return the milliseconds of each answer, by what answered."""

    def each(ask: Ask) -> Callable[[], object]:
        remaining = iter(texts)
        return lambda: ask(*next(remaining))

    ways = {name: each(ask) for name, ask in asks.items()}
    turns = take_turns(ways, len(texts) // TURN * (TURN - UNTIMED))
    return {name: flat(of_way) for name, of_way in turns.items()}


if __name__ == "__main__":
    sys.exit(main())
