"""What benchmarks share: an engine whose answers never end by themselves, over an untrained network of the paper."""

from pathlib import Path

import numpy as np
import torch

from mqan_core.bundle import MODEL_CARD, Manifest, describe_files, open_bundle, write_manifest
from mqan_core.vocab import END_ID, Vocabulary
from mqan_export.export import dimensions_of, write_graphs, write_words
from mqan_runtime.engine import Engine
from mqan_training.config import ModelConfig
from mqan_training.model.embeddings import StaticVectors
from mqan_training.model.network import Network

NUM_WORDS, NUM_GENERATED, STATIC_WIDTH = 20_000, 8_000, 300


def make_endless(folder: Path) -> Engine:
    """Write such a network as a bundle and open it."""
    words = [f"w{i}" for i in range(NUM_WORDS)]
    rows = np.random.default_rng(0).integers(-127, 128, (NUM_WORDS, STATIC_WIDTH), dtype=np.int8)
    vectors = StaticVectors(tuple(words), rows, np.full(NUM_WORDS, 0.01, np.float32))
    torch.manual_seed(0)
    pieces = [f" {word} " for word in words[: NUM_GENERATED - 1]]
    network = Network(ModelConfig(), vectors, Vocabulary(pieces, words)).eval()
    with torch.no_grad():
        network.mqan.decoder.generator.bias[END_ID] = -100.0
    write_graphs(network, folder)
    write_words(network, folder)
    (folder / MODEL_CARD).write_text("# endless\n")
    write_manifest(folder, Manifest("endless", "0", dimensions_of(network), 128, describe_files(folder)))
    return Engine(open_bundle(folder), provider="cpu", num_threads=1)
