"""The baseline of label sets: the label whose vector is nearest to the text's, by a packaged sentence encoder."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from mqan_training.sentence_encoder import load_encoder, packaged_encoder

_ROWS = 32
_MOST_PIECES = 256  # what the encoder was trained on


class SentenceSimilarity:
    """Chooses the label with the highest cosine similarity to the text, by the packaged encoder.

    Raises:
        MissingVectorsError: there is no encoder.
        ModuleNotFoundError: ``transformers`` is not installed (the extra ``embed``).
    """

    def __init__(self) -> None:
        from transformers.utils import logging  # as heavy as the encoder

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        self._tokenizer: Any
        self._model: Any
        self._tokenizer, self._model = load_encoder(packaged_encoder())
        self._model.eval()

    def choose(self, texts: Sequence[str], labels: Sequence[Sequence[str]]) -> list[str]:
        """Return the nearest of its labels for each text."""
        names = list(dict.fromkeys(label for some in labels for label in some))
        place = {name: i for i, name in enumerate(names)}
        similarity_TL = self.vectors(texts) @ self.vectors(names).T
        return [
            some[int(torch.argmax(row[[place[label] for label in some]]))]
            for row, some in zip(similarity_TL, labels, strict=True)
        ]

    @torch.no_grad()
    def vectors(self, texts: Sequence[str]) -> Tensor:
        """Return the mean of the last states of each text, of length 1, [texts, M]."""
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        rows: dict[int, Tensor] = {}
        for first in range(0, len(order), _ROWS):
            chosen = order[first : first + _ROWS]
            encoded = self._tokenizer(
                [texts[i] for i in chosen], padding=True, truncation=True, max_length=_MOST_PIECES, return_tensors="pt"
            )
            states_BSM = self._model(**encoded).last_hidden_state
            mask_BS1 = encoded["attention_mask"].unsqueeze(-1).float()
            means = (states_BSM * mask_BS1).sum(1) / mask_BS1.sum(1)
            rows.update(zip(chosen, functional.normalize(means, dim=-1), strict=True))
        return torch.stack([rows[i] for i in range(len(texts))])


@cache
def packaged_similarity() -> SentenceSimilarity:
    """Return the packaged encoder, opened once."""
    return SentenceSimilarity()
