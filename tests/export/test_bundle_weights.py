"""Training can go on from a bundle: its weights are read back, and the network answers as the bundle does."""

import shutil
from pathlib import Path

import pytest
import torch

from mqan_core.ask.options import Options
from mqan_core.bundle import open_bundle
from mqan_core.errors import BundleError
from mqan_core.example import Choice
from mqan_core.manifest import MANIFEST
from mqan_core.text.layout import Layout
from mqan_core.text.vectors import quantize_rows
from mqan_core.text.vocab import Vocabulary
from mqan_export.bundle_weights import start_from_bundle
from mqan_runtime.engine import Engine
from mqan_training.model.bert import Bert, packaged_encoder
from mqan_training.model.pretrained import PretrainedNetwork
from mqan_training.piece_batches import word_ids
from mqan_training.recipe import load_recipe
from mqan_training.start import Trained, adopt
from mqan_training.torch_answers import answer_batch

TEXT = "The Eiffel Tower in Paris is 330 m tall. Gustave Eiffel's company built it from 1887 to 1889."
QUESTIONS = [
    (TEXT, "How tall is the tower?", ()),
    (TEXT, "Who built the tower?", ()),
    (TEXT, "Who is the king of Spain?", ()),
    ("it was never dull.", "Is this review negative or positive?", ()),
    (TEXT, "What is this about?", ("architecture", "cooking and recipes", "football")),
]


def test_the_network_answers_as_the_shipped_bundle(repository: Path) -> None:
    folder = repository / "serving" / "bundles" / "default"
    start, bundle = start_from_bundle(folder), open_bundle(folder)
    assert bundle.word_pieces is not None
    assert start.origin == f"{bundle.manifest.name} {bundle.manifest.version}"
    assert list(start.tasks) == bundle.manifest.training["tasks"]
    recipe = load_recipe(repository / "training" / "recipes" / "default.yaml")
    vocabulary = Vocabulary(start.tokens, refuses=True)
    bert = Bert.from_folder(packaged_encoder(), 0.0)
    network = PretrainedNetwork(recipe.pieces.decoder.model_config_of(), bert, vocabulary.num_generated).eval()
    adopt(network, start)
    layout = Layout(bundle.word_pieces)
    with torch.no_grad():
        pieces = torch.from_numpy(word_ids(layout.word_pieces, vocabulary.pieces))
        rows, scales = quantize_rows(network.decoder.project(network.word_vectors(pieces)).numpy())
    engine = Engine.open(folder, provider="cpu", precision="float32")
    engine.reader.refusal_offset = 0.0  # the manifest's is of the bundle, not of the network
    for text, question, labels in QUESTIONS:
        request = engine.read(text, question, Options(tuple(map(Choice, labels))))
        [expected] = engine.answer([request], [20])
        inputs = torch.from_numpy(rows * scales[:, None])
        [found] = answer_batch(Trained(network, vocabulary, layout), [request.request], 20, inputs)
        assert (found.text, found.spans) == (expected.text, expected.spans)
        # of its words: that of the whole answer is calibrated by the engine
        wanted = [token.probability for token in expected.tokens]
        assert [token.probability for token in found.tokens] == pytest.approx(wanted, abs=1e-4)


def test_a_graph_that_was_changed_is_refused(repository: Path, tmp_path: Path) -> None:
    shutil.copytree(repository / "serving" / "bundles" / "default", tmp_path, dirs_exist_ok=True)
    graph = tmp_path / "reader-float32.onnx"
    graph.write_bytes(graph.read_bytes()[:-1] + b"!")
    with pytest.raises(BundleError, match=r"reader-float32\.onnx"):
        start_from_bundle(tmp_path)


def test_a_folder_that_is_no_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=MANIFEST):
        start_from_bundle(tmp_path)
