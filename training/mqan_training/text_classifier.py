"""A transformer encoder with one linear layer on it, fine-tuned to tell a few classes of texts apart."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from mqan_training.cpu import has_bfloat16
from mqan_training.runlog import console
from mqan_training.sentence_encoder import load_encoder

FloatArray = npt.NDArray[np.float32]

_BATCH = 32
_BATCH_TO_LABEL = 64
_SORTED_TOGETHER = 50  # batches of nearly one length are drawn from so many at a time
_MAX_PIECES = 96  # of a text that is trained on, and of one that is labelled
_HEAD_RATE = 1e-3
_WARMUP = 0.1  # share of the steps
_SMOOTHING = 0.1  # so that probabilities still tell sure from unsure


class TextClassifier(nn.Module):
    """A transformer encoder, the mean of its outputs and one linear layer.

    Args:
        folder: of a sentence-transformers or Hugging Face encoder with its tokenizer.
        num_classes: K.

    Raises:
        ModuleNotFoundError: ``transformers`` is not installed (the extra ``embed``).
    """

    def __init__(self, folder: Path, num_classes: int) -> None:
        super().__init__()
        self._tokenizer, self.encoder = load_encoder(folder)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(self.encoder.config.hidden_size, num_classes)

    def forward(self, texts: Sequence[str]) -> Tensor:
        """Return the logits [N, K] of N texts; what is longer than 96 word pieces is cut."""
        options = {"padding": True, "truncation": True, "max_length": _MAX_PIECES, "return_tensors": "pt"}
        encoded = self._tokenizer(list(texts), **options)
        with torch.autocast("cpu", torch.bfloat16, enabled=has_bfloat16()):
            states = self.encoder(**encoded).last_hidden_state.float()
        mask = encoded["attention_mask"].unsqueeze(-1).float()
        logits: Tensor = self.head(self.dropout((states * mask).sum(dim=1) / mask.sum(dim=1)))
        return logits

    def save_weights(self, file: Path, made_with: Mapping[str, str]) -> None:
        """Write all weights to a safetensors file, whole or not at all.

        Args:
            file: where.
            made_with: what they were fine-tuned on and how, by setting; goes into the metadata.
        """
        aside = file.with_name(file.name + ".tmp")
        file.parent.mkdir(parents=True, exist_ok=True)
        save_file(self.state_dict(), aside, dict(made_with))
        aside.replace(file)

    def load_weights(self, file: Path, made_with: Mapping[str, str]) -> None:
        """Read the weights that ``save_weights`` wrote.

        Args:
            file: where they are.
            made_with: what they have to be fine-tuned on and how.

        Raises:
            ValueError: the file holds none of this encoder with so many classes, they were made with other settings,
                or it does not say with which.
        """
        try:
            with safe_open(str(file), framework="pt") as opened:
                kept = opened.metadata() or {}
            if kept.keys() != made_with.keys():
                raise ValueError(
                    f"{file} does not say what its encoder was fine-tuned on: delete it, or name another file, and it "
                    "is fine-tuned again"
                )
            if other := [f"{key} {kept[key]}, not {value}" for key, value in made_with.items() if kept[key] != value]:
                raise ValueError(
                    f"{file} keeps an encoder that was fine-tuned with {'; '.join(other)}: ask for the same, or name "
                    "another file, or delete it, and it is fine-tuned again"
                )
            self.load_state_dict(load_file(file))
        except (SafetensorError, RuntimeError) as error:
            raise ValueError(
                f"{file} holds no weights of this encoder with {self.head.out_features} classes; give another file, "
                "or none, and it is fine-tuned again"
            ) from error

    @torch.no_grad()
    def probabilities(self, texts: Sequence[str]) -> FloatArray:
        """Return the probabilities [N, K] of the classes."""
        self.eval()
        by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        result = np.zeros((len(texts), self.head.out_features), np.float32)
        for first in range(0, len(texts), _BATCH_TO_LABEL):
            places = by_length[first : first + _BATCH_TO_LABEL]
            result[places] = self([texts[i] for i in places]).softmax(dim=-1).numpy()
        return result


def fine_tune(
    classifier: TextClassifier, texts: Sequence[str], classes: Sequence[int], *, epochs: int, rate: float, seed: int
) -> None:
    """Train a classifier in place with AdamW, at a rate that rises to ``rate`` and falls linearly to 0.

    Args:
        classifier: what to train.
        texts: N texts.
        classes: the class of each, from 0.
        epochs: how often each is seen.
        rate: highest rate of the encoder; the last layer has one of its own.
        seed: of the order of the examples.
    """
    generator = random.Random(seed)  # noqa: S311
    groups = [
        {"params": classifier.encoder.parameters(), "lr": rate},
        {"params": classifier.head.parameters(), "lr": _HEAD_RATE},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    batches = [batch for _ in range(epochs) for batch in _batches(texts, generator)]
    warmup = max(1, round(_WARMUP * len(batches)))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warmup, 1 - step / len(batches))
    )
    classifier.train()
    for number, places in enumerate(batches, 1):
        target = torch.tensor([classes[i] for i in places])
        logits = classifier([texts[i] for i in places])
        loss = nn.functional.cross_entropy(logits, target, label_smoothing=_SMOOTHING)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(classifier.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if number % _SORTED_TOGETHER == 0 or number == len(batches):
            console.print(f"fine-tuning: step {number} of {len(batches)}, loss {loss.item():.3f}")


def _batches(texts: Sequence[str], generator: random.Random) -> list[list[int]]:
    """Return the places of all texts in batches of nearly one length, shuffled."""
    order = list(range(len(texts)))
    generator.shuffle(order)
    batches = []
    for first in range(0, len(order), _BATCH * _SORTED_TOGETHER):
        together = sorted(order[first : first + _BATCH * _SORTED_TOGETHER], key=lambda i: len(texts[i]))
        batches += [together[start : start + _BATCH] for start in range(0, len(together), _BATCH)]
    generator.shuffle(batches)
    return batches
