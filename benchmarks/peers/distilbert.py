"""DistilBERT with a head for spans, of its own sizes and with random weights, in onnxruntime on one core."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import quantize_dynamic

from mqan_training.model.bert import packaged_encoder

MOST_PIECES = 384  # of a question and its context, as usual for SQuAD; more are cut

Ask = Callable[[str, str], object]


def make_distilbert() -> tuple[Ask, Ask]:
    """Return what answers with float32 and with 8-bit products, made so by onnxruntime's own tool."""
    from transformers import DistilBertConfig, DistilBertForQuestionAnswering

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
        return _ask_with(whole), _ask_with(fast)


def _ask_with(file: Path) -> Ask:
    from transformers import AutoTokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    tokenizer: Any = AutoTokenizer.from_pretrained(packaged_encoder())  # over BERT's vocabulary

    def ask(context: str, question: str) -> object:
        read = tokenizer(question, context, truncation="only_second", max_length=MOST_PIECES, return_tensors="np")
        inputs = {name: read[name].astype(np.int64) for name in ("input_ids", "attention_mask")}
        start, end = session.run(None, inputs)
        return int(start.argmax()), int(end.argmax())

    return ask
