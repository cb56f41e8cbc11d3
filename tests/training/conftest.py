"""A recipe that trains in seconds, for the tests that train."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from mqan_training.model.embeddings import quantized_vectors, write_vectors

RECIPE = """
name: tiny
reader:
  kind: words
  vectors: {vectors}
  model: {{width: 16, ffn_width: 12, num_heads: 2, head_width: 8, num_layers: 1, ngram_buckets: 64, ngram_width: 4}}
order: by_task
sources: {{sst: 2, mwsc: 1}}
phases:
  - steps: 6
    weights: {{sst: 1}}
steps: 30
schedule: linear
warmup_steps: 5
reader_rate: 3e-3
decoder_rate: 3e-3
average_decay: 0.9
num_generated: 60
batch_size: 260
max_answer_tokens: 8
validate_every: 15
validate_examples: 4
validate_sources: [sst, mwsc]
checkpoint_every: 5
log_every: 1
autocast: false
"""
TEXT = "the film is a dull warm odd long bright story of two old friends and no plot at all 1999 it's well-made"
WORDS = TEXT.split()


NAMES = "ann bob carl dora emil".split()  # noqa: SIM905
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *NAMES, *"met in who ? . a the one two three".split()]  # noqa: SIM905
SIZES = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "vocab_size": len(PIECES),
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 24,
}


def write_data(folder: Path) -> None:
    rng = random.Random(2)
    (folder / "sst").mkdir(parents=True)
    for split, num_rows in (("train", 60), ("dev", 6)):
        rows = [f"{rng.randint(0, 1)},{' '.join(rng.choices(WORDS, k=rng.randint(3, 12)))}" for _ in range(num_rows)]
        (folder / "sst" / f"{split}_binary_sent.csv").write_text("\n".join(["label,sentence", *rows, ""]))
    (folder / "mwsc").mkdir()
    schemas = []
    for _ in range(95):
        one, two = rng.sample(("Ann", "Bob", "Carl", "the cat", "the dog"), 2)
        schemas.append(f"{one} told {two} that [he/she] was late.\nWho was [late/early]?\n{one}/{two}\n\n")
    (folder / "mwsc" / "schema.txt").write_text("".join(schemas))


@pytest.fixture(scope="session")
def tiny_recipe(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tiny-recipe")
    write_data(folder / "data")
    words = sorted({word.lower() for word in [*WORDS, "negative", "positive", "ann", "review", "or"]})
    vectors = np.random.default_rng(0).standard_normal((len(words), 10), np.float32)
    write_vectors(folder / "vectors.safetensors", quantized_vectors(words, vectors))
    recipe = folder / "tiny.yaml"
    recipe.write_text(RECIPE.format(vectors=folder / "vectors.safetensors"))
    return recipe, folder / "data"


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    (folder / "config.json").write_text(json.dumps(SIZES))
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    torch.manual_seed(3)
    width, inner = 16, 24
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(PIECES), width),
        "embeddings.position_embeddings.weight": (512, width),
        "embeddings.token_type_embeddings.weight": (2, width),
    }
    layer = "encoder.layer.0"
    for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
        shapes |= {f"{layer}.{part}.weight": (width, width), f"{layer}.{part}.bias": (width,)}
    shapes |= {f"{layer}.intermediate.dense.weight": (inner, width), f"{layer}.intermediate.dense.bias": (inner,)}
    shapes |= {f"{layer}.output.dense.weight": (width, inner), f"{layer}.output.dense.bias": (width,)}
    for norm in ("embeddings.LayerNorm", f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"):
        shapes |= {f"{norm}.weight": (width,), f"{norm}.bias": (width,)}
    save_file({name: torch.randn(shape) * 0.1 for name, shape in shapes.items()}, folder / "model.safetensors")
    return folder
