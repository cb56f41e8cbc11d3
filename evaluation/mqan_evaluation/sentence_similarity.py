"""The baseline of label sets: the label whose vector is nearest to the text's, by a packaged sentence encoder."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import torch

from mqan_training.sentence_encoder import packaged_encoder, sentence_vectors


class SentenceSimilarity:
    """Chooses the label with the highest cosine similarity to the text.

    Args:
        folder: of the encoder; None for the packaged one.

    Raises:
        MissingVectorsError: there is no encoder.
        ModuleNotFoundError: ``transformers`` is not installed (the extra ``embed``).
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.vectors = sentence_vectors(packaged_encoder() if folder is None else folder)

    def choose(self, texts: Sequence[str], labels: Sequence[Sequence[str]]) -> list[str]:
        """Return the nearest of its labels for each text."""
        names = list(dict.fromkeys(label for some in labels for label in some))
        place = {name: i for i, name in enumerate(names)}
        similarity_TL = self.vectors(texts) @ self.vectors(names).T
        return [
            some[int(torch.argmax(row[[place[label] for label in some]]))]
            for row, some in zip(similarity_TL, labels, strict=True)
        ]


@cache
def packaged_similarity() -> SentenceSimilarity:
    """Return the packaged encoder, opened once."""
    return SentenceSimilarity()
