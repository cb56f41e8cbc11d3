"""Time the engine against eager torch with the same weights, on one core: ``make bench``.

The case: a context of 150 tokens, a question of 14, 4 decoding steps, one request at a time. The weights are random
(speed does not depend on them) and of the sizes of the shipped model's MQAN, without the contextual encoder before it,
but for ``--generated``, how many words it generates.
Both run in this process, taking turns.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import random
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from peers.eager import Eager
from turns import flat, ratio, take_turns

from mqan_core.bundle import Manifest, describe_files, open_bundle, write_manifest
from mqan_core.request import Request, read_request
from mqan_core.vocab import END_ID, Vocabulary
from mqan_export.export import dimensions_of, write_files
from mqan_runtime.engine import Engine
from mqan_training.config import ModelConfig
from mqan_training.model.embeddings import StaticVectors
from mqan_training.model.network import Network

NUM_WORDS, NUM_GENERATED, STATIC_WIDTH = 20_000, 8_000, 300
CONTEXT_TOKENS, QUESTION_TOKENS, STEPS = 150, 14, 4
MODEL = ModelConfig(self_alignment=True, pointer_shift=True, attention_block=200)


def main() -> int:
    """Run the benchmark; exit 1 when the engine is less than ``--at-least`` times faster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=120)
    parser.add_argument("--generated", type=int, default=NUM_GENERATED, help="words of the generator")
    parser.add_argument("--at-least", type=float, default=3.0, help="required ratio eager / engine")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(
        f"building and exporting a network of the shipped model's sizes ({arguments.generated:,} generated words) ...",
        flush=True,
    )
    network = make_network(arguments.generated)
    with tempfile.TemporaryDirectory() as folder:
        engine = make_engine(network, Path(folder))
    request = make_request(engine)
    eager = Eager(network, STEPS).read(request)
    batch = engine.pad([request], [STEPS - 1])
    ways: dict[str, Callable[[], object]] = {
        "eager torch": eager,
        "engine": lambda: engine.loop.run(batch),
        "engine with text": lambda: engine.answer([engine.read(request.context, request.question)], [STEPS - 1]),
    }
    times = take_turns(ways, arguments.runs)
    sizes = f"{CONTEXT_TOKENS} context and {QUESTION_TOKENS} question tokens, {STEPS} steps"
    print(f"{sizes}, one core, {len(flat(times['engine']))} runs")
    for name, turns in times.items():
        low, *_, high = statistics.quantiles(flat(turns), n=10)
        print(f"  {name:18} median {statistics.median(flat(turns)):6.2f} ms   10-90 % {low:.2f} - {high:.2f} ms")
    faster = ratio(times["eager torch"], times["engine"])
    print(f"  eager torch / engine, turn by turn: median {faster:.1f} (at least {arguments.at_least:g} required)")
    return 0 if faster >= arguments.at_least else 1


def make_network(num_generated: int = NUM_GENERATED) -> Network:
    """Build a network of the shipped model's sizes, but for the words it generates, with random weights."""
    num_words = max(NUM_WORDS, num_generated)
    words = [f"w{i}" for i in range(num_words)]
    rows = np.random.default_rng(0).integers(-127, 128, (num_words, STATIC_WIDTH), dtype=np.int8)
    vectors = StaticVectors(tuple(words), rows, np.full(num_words, 0.01, np.float32))
    torch.manual_seed(0)
    pieces = [f" {word} " for word in words[: num_generated - 1]]
    network = Network(MODEL, vectors, Vocabulary(pieces, words)).eval()
    with torch.no_grad():
        network.mqan.decoder.generator.bias[END_ID] = -100.0  # never ends early: every run takes all steps
    return network


def make_engine(network: Network, folder: Path) -> Engine:
    """Export a network to a bundle and open it."""
    context, question = make_texts()
    write_files(network, folder, "# benchmark\n", [read_request(network.vocabulary, context, question)])
    write_manifest(folder, Manifest("benchmark", "0", dimensions_of(network), 128, describe_files(folder)))
    return Engine(open_bundle(folder), provider="cpu", num_threads=1)


def make_texts() -> tuple[str, str]:
    """Make a context of at least the stated size, about a third of its words repeated, and a question."""
    rng = random.Random(1)
    context = " ".join(f"w{rng.randrange(120)}x{'abcdefgh'[rng.randrange(8)]}" for _ in range(CONTEXT_TOKENS // 3 + 1))
    return context, " ".join(f"word{chr(97 + i)}" for i in range(QUESTION_TOKENS))


def make_request(engine: Engine) -> Request:
    """Make a request of the stated size."""
    context, question = make_texts()
    context_text = engine.read(context, question)
    cut = context_text.context_tokens[CONTEXT_TOKENS - 1].end
    return engine.read(context[:cut], question)


if __name__ == "__main__":
    sys.exit(main())
