"""Shared-memory LSTMs learn, keep what they learnt, and are drawn."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import torch._dynamo
import torch._inductor.config
from torch._dynamo.utils import counters

from mqan_baselines.mt_dnn.learning import load_network as load_mt_dnn
from mqan_baselines.shared_memory.architectures import SharedMemoryNetwork
from mqan_baselines.shared_memory.learning import Texts, compile_steps, load_network, run, train_tasks
from mqan_baselines.shared_memory.picture import draw_followed, follow
from mqan_baselines.shared_memory.tables import ARCHITECTURES, comparison
from mqan_baselines.shared_memory.words import Lexicon, start_vectors
from mqan_training.checkpoint import CheckpointError
from mqan_training.model.embeddings import MissingVectorsError, quantized_vectors, write_vectors
from mqan_training.optim import DivergedError
from tests.baselines.models import memory_recipe


@pytest.fixture(scope="module")
def texts(baseline_data: Path) -> Texts:
    return Texts(memory_recipe(), baseline_data)


@pytest.fixture(scope="module")
def runs(texts: Texts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for architecture in ARCHITECTURES:
        run(memory_recipe(), architecture, texts, folder / architecture)
    return folder


@pytest.mark.filterwarnings("ignore")  # inductor's own
@pytest.mark.parametrize("compiler", ["g++", "/bin/false"])
def test_what_is_compiled_reads_and_learns_the_same(texts: Texts, compiler: str) -> None:
    """With a compiler that does not work it reads as it stands."""
    recipe = memory_recipe(tasks=("sst-2",))
    torch.manual_seed(1)
    network = SharedMemoryNetwork(recipe, "lstm", {"sst-2": 2}, len(texts.lexicon(("sst-2",))))
    texts_NT, lengths_N, classes_N = texts.of_task["sst-2"]["train"].batch(range(3))

    def gradients() -> list[torch.Tensor]:
        network.zero_grad()
        torch.nn.functional.cross_entropy(network("sst-2", texts_NT, lengths_N), classes_N).backward()
        return [p.grad.to_dense() for p in network.parameters() if p.grad is not None]

    plain = gradients()
    torch._dynamo.reset()
    counters.clear()
    settings = {"cpp.cxx": (None, compiler), "force_disable_caches": True}
    with torch._dynamo.config.patch(suppress_errors=False), torch._inductor.config.patch(settings):
        compile_steps(network)
        compiled = gradients()
    assert bool(counters["aot_autograd"]["ok"]) == (compiler == "g++")
    for one, other in zip(plain, compiled, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_learns_what_can_be_learnt(runs: Path, architecture: str) -> None:
    results = json.loads((runs / architecture / "results.json").read_text())["results"]
    for found in results["tasks"].values():
        assert found["test"] >= 80  # a word tells the class; a guess is right in half of the cases
        assert ("joint_test" in found) == architecture.startswith("arc")


def test_a_run_that_has_ended_is_not_run_again(runs: Path, texts: Texts) -> None:
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("*") if path.is_file()}
    results = run(memory_recipe(), "arc-ii", texts, runs / "arc-ii")
    assert results == json.loads((runs / "arc-ii" / "results.json").read_text())["results"]
    assert before == {path: path.stat().st_mtime_ns for path in runs.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match=r"other settings \(rate\)"):
        run(memory_recipe(rate=0.2), "arc-ii", texts, runs / "arc-ii")


def test_fine_tuning_that_does_not_help_changes_nothing(texts: Texts, runs: Path, tmp_path: Path) -> None:
    network, lexicon, _, _ = load_network(runs / "arc-ii" / "joint")
    texts.lexicon(("sst-2", "subj"))
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    best = train_tasks(network, {"subj": texts.of_task["subj"]}, memory_recipe(rate=1e-9), 5, tmp_path)
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())
    assert best >= 80
    assert len(lexicon) == network.words.num_embeddings


def test_a_damaged_model_and_none_are_told(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="holds no model"):
        load_network(tmp_path)
    folder = tmp_path / "copy"
    folder.mkdir()
    for name in ("model.safetensors", "model.json"):
        (folder / name).write_bytes((runs / "lstm" / "sst-2" / name).read_bytes())
    with pytest.raises(ValueError, match="of the kind 'shared-memory'"):
        load_mt_dnn(folder)
    with (folder / "model.safetensors").open("ab") as file:
        file.write(b"x")
    with pytest.raises(CheckpointError, match="does not have the SHA-256"):
        load_network(folder)


def test_a_model_that_does_not_fit_its_weights_and_damaged_results_are_told(
    runs: Path, texts: Texts, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(runs / "lstm" / "sst-2", tmp_path / "copy"))
    document = json.loads((folder / "model.json").read_text())
    changes: tuple[dict[str, object], ...] = (
        {"tasks": []},
        {"tasks": {"sst-2": ["a", "b", "c"]}},
        {"words": 3},
        {"architecture": "arc-ii"},
    )
    for change in changes:
        (folder / "model.json").write_text(json.dumps(document | change))
        with pytest.raises(CheckpointError, match="copy: malformed model"):
            load_network(folder)
    for recipe in (1, {**document["recipe"], "colour": "red"}):
        (folder / "model.json").write_text(json.dumps(document | {"recipe": recipe}))
        with pytest.raises(CheckpointError, match="copy: malformed model"):
            load_network(folder)
    for content in ("", "[]", "{}", '{"settings": 1, "results": {}}'):
        (tmp_path / "results.json").write_text(content)
        with pytest.raises(CheckpointError, match=r"results\.json: malformed results"):
            run(memory_recipe(), "lstm", texts, tmp_path)


def test_a_run_that_diverges_and_an_empty_split_are_told(baseline_data: Path, texts: Texts, tmp_path: Path) -> None:
    with pytest.raises((DivergedError, ValueError), match="diverged; lower"):
        run(memory_recipe(rate=1e38), "arc-ii", texts, tmp_path)
    assert not list(tmp_path.rglob("model.*"))
    data = Path(shutil.copytree(baseline_data, tmp_path / "data"))
    (data / "sst" / "dev_binary_sent.csv").write_text("label,sentence\n")
    with pytest.raises(ValueError, match="no rows: test of sst-2"):
        Texts(memory_recipe(), data)


def test_the_table_has_ours_beside_the_published() -> None:
    tasks = {"sst-1": {"test": 40.0, "num_test": 9}, "subj": {"test": 90.25, "num_test": 8}}
    better = {"sst-1": {"test": 42.0, "num_test": 9}, "subj": {"test": 91.25, "num_test": 8}}
    results = {"lstm": {"tasks": tasks, "seconds": 360.0}, "arc-ii": {"tasks": better, "seconds": 7200.0}}
    lines = comparison(("sst-1", "subj"), results).splitlines()  # type: ignore[arg-type]
    assert lines[2] == "| LSTM, alone | 40.0 (45.9) | 90.2 (91.6) | +0.0 | 0.10 |"
    assert lines[3] == "| ARC-II | 42.0 (49.5) | 91.2 (95.0) | +1.5 | 2.00 |"
    assert lines[-1].endswith("sst-1 9, subj 8.")


def test_a_text_is_drawn_word_by_word(runs: Path, tmp_path: Path) -> None:
    text = "A warm film, and no Plot"
    followed = [follow(name, runs / name / "sst-2", "sst-2", text) for name in ("lstm", "arc-ii")]
    assert followed[0].words == ("A", "warm", "film", ",", "and", "no", "Plot")
    assert followed[0].gates is None
    assert followed[1].gates is not None
    assert followed[1].gates.shape == (7, 8)
    np.testing.assert_allclose(followed[1].probabilities.sum(axis=1), 1, rtol=1e-5)
    network, lexicon, _, recipe = load_network(runs / "arc-ii" / "sst-2")
    with torch.no_grad():
        logits_NC = network("sst-2", torch.tensor([lexicon.numbers(text, recipe.most_words)]), torch.tensor([7]))
    np.testing.assert_allclose(followed[1].probabilities[-1], torch.softmax(logits_NC, -1)[0], rtol=1e-5)
    path = tmp_path / "figure.svg"
    draw_followed(followed, path)
    drawn = path.read_text()
    assert 'id="score-lstm"' in drawn
    assert 'id="score-arc-ii"' in drawn
    assert "fusion gate of arc-ii" in drawn
    assert "fusion gate of lstm" not in drawn
    assert "Plot" in drawn
    with pytest.raises(ValueError, match="ending must be"):
        draw_followed(followed, tmp_path / "figure.gif")
    with pytest.raises(ValueError, match="has no task 'imdb'"):
        follow("x", runs / "lstm" / "sst-2", "imdb", text)
    with pytest.raises(ValueError, match="no word"):
        follow("x", runs / "lstm" / "sst-2", "sst-2", "  ")


def test_word_vectors_begin_as_the_file_says(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((2, 3), np.float32)
    vectors = quantized_vectors(["b", "z"], rows)
    write_vectors(tmp_path / "v.safetensors", vectors)
    weight_WD = torch.zeros(4, 3)
    assert start_vectors(weight_WD, Lexicon(["a", "b"]), tmp_path / "v.safetensors") == 1
    np.testing.assert_array_equal(weight_WD[3], vectors.dequantized()[0])
    assert not weight_WD[:3].any()
    with pytest.raises(ValueError, match="width 3; the recipe says embedding_width 5"):
        start_vectors(torch.zeros(4, 5), Lexicon(["a", "b"]), tmp_path / "v.safetensors")
    with pytest.raises(MissingVectorsError):
        start_vectors(weight_WD, Lexicon(["a"]), tmp_path / "none.safetensors")
