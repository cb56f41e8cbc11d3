"""An encoder-decoder of flan-t5-small's shape, with random weights and 8-bit products, in CTranslate2 on one core."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peers.word_pieces import open_tokenizer

MOST_PIECES = 384  # of a question and its context, as for DistilBERT
ANSWER_PIECES = 4  # always as many: random weights do not end an answer


def make_t5_small() -> Callable[[str, str], object]:
    """Return what answers.

    Raises:
        ModuleNotFoundError: ``ctranslate2`` is not installed.
    """
    import ctranslate2  # type: ignore[import-not-found, unused-ignore]  # of this comparison alone
    from ctranslate2.converters import TransformersConverter  # type: ignore[import-not-found, unused-ignore]
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer = open_tokenizer()
    tokenizer.bos_token, tokenizer.eos_token = (
        tokenizer.cls_token,
        tokenizer.sep_token,
    )  # which T5 has, and BERT has not
    shape: dict[str, Any] = {
        "vocab_size": 32_128,
        "d_model": 512,
        "d_kv": 64,
        "d_ff": 1024,
        "num_layers": 8,
        "num_heads": 6,
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
        "decoder_start_token_id": 0,
    }
    network: Any = T5ForConditionalGeneration(T5Config(**shape))
    with tempfile.TemporaryDirectory() as folder:
        original, converted = Path(folder) / "torch", Path(folder) / "ctranslate2"
        network.save_pretrained(original)
        tokenizer.save_pretrained(original)
        TransformersConverter(str(original)).convert(str(converted), quantization="int8")
        translator = ctranslate2.Translator(str(converted), device="cpu", inter_threads=1, intra_threads=1)

    def ask(context: str, question: str) -> object:
        pieces = tokenizer.tokenize(f"question: {question} context: {context}")[:MOST_PIECES]
        options = {"beam_size": 1, "max_decoding_length": ANSWER_PIECES, "min_decoding_length": ANSWER_PIECES}
        return translator.translate_batch([pieces], **options)[0].hypotheses

    return ask
