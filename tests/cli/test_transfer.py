"""``mqan train --from BUNDLE``: what was learnt is where a new task starts, and nothing else differs."""

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from mqan_cli.main import app
from mqan_core.bundle import open_bundle
from mqan_export.weights import pretrained_of_bundle
from mqan_training.checkpoint import Checkpoint, load_checkpoint
from mqan_training.model.embeddings import load_vectors, write_vectors
from mqan_training.model.network import Network

GENERATOR = "mqan.decoder.generator.weight"
NEW_WORDS = ("kočka", "pes", "kůň")
SENTENCES = [("The cat sleeps.", "kočka"), ("A dog barks.", "pes"), ("The horse eats.", "kůň"), ("One cat.", "kočka")]
NUM_STEPS, RATE = 3, 1e-4


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Translation of four sentences."""
    folder = tmp_path / "data" / "animals"
    folder.mkdir(parents=True)
    rows = [{"context": text, "question": "Which animal, in Czech?", "answer": word} for text, word in SENTENCES]
    for split in ("train", "val"):
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder.parent


@pytest.fixture
def recipe(tmp_path: Path, tiny_network: Network) -> Path:
    """A recipe with the tiny bundle's model, and room for the new words."""
    document = {
        "name": "animals",
        "steps": NUM_STEPS,
        "vectors": str(tmp_path / "vectors.safetensors"),
        "num_generated": tiny_network.vocabulary.num_generated + 20,
        "batch_tokens": 200,
        "validate_every": NUM_STEPS,
        "log_every": 1,
        "model": asdict(tiny_network.mqan.config),
        "optim": {"peak_rate": RATE, "warmup_steps": 1, "schedule": "constant"},
        "tasks": [{"name": "jsonl:animals"}],
    }
    path = tmp_path / "animals.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def train(recipe: Path, data: Path, output: Path, *more: object) -> Checkpoint:
    result = run("train", recipe, "--data", data, "--output", output, "--cache", output.parent / "cache", *more)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{output / f'step-{NUM_STEPS:07d}'}\n"
    return load_checkpoint(Path(result.stdout.strip()))


def generator_of(checkpoint: Checkpoint) -> torch.Tensor:
    return load_file(checkpoint.folder / "model.safetensors")[GENERATOR]


def test_missing_vectors_are_told_in_one_line(recipe: Path, data: Path, tmp_path: Path) -> None:
    result = run("train", recipe, "--data", data, "--output", tmp_path / "run", "--cache", tmp_path / "cache")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"mqan: no word vectors at {tmp_path / 'vectors.safetensors'}: make them with")
    assert result.stderr.count("\n") == 1


def test_a_run_from_a_bundle_differs_from_a_random_one_in_its_start_only(
    tiny_network: Network, tiny_bundle: Path, recipe: Path, data: Path, tmp_path: Path
) -> None:
    taken = run("embed", recipe, "--same-as", tiny_bundle)
    assert taken.exit_code == 0, taken.output
    pretrained = train(recipe, data, tmp_path / "pretrained", "--from", tiny_bundle)
    scratch = train(recipe, data, tmp_path / "scratch")

    known = tiny_network.vocabulary.pieces[1:]
    assert pretrained.pieces[: len(known)] == known
    added = [piece.strip() for piece in pretrained.pieces[len(known) :]]
    assert set(NEW_WORDS) <= set(added)
    assert set(NEW_WORDS) <= {piece.strip() for piece in scratch.pieces}

    learned, trained = tiny_network.state_dict()[GENERATOR], generator_of(pretrained)
    moved = (trained[: len(learned)] - learned).abs().max().item()
    assert 0 < moved < 10 * NUM_STEPS * RATE, "the learned rows are where training went on"
    assert len(trained) == len(learned) + len(added)
    fresh = generator_of(scratch)
    rows = min(len(fresh), len(learned))
    assert (fresh[:rows] - learned[:rows]).abs().max().item() > 100 * NUM_STEPS * RATE

    assert pretrained.config == scratch.config
    own = tiny_network.embedder.vectors
    for checkpoint in (pretrained, scratch):
        vectors = load_vectors(checkpoint.vectors_path)
        assert vectors.words == own.words
        assert (vectors.rows == own.rows).all()
        assert (vectors.scales == own.scales).all()
    assert (tmp_path / "pretrained" / "from.txt").read_text() == str(tiny_bundle)
    assert not (tmp_path / "scratch" / "from.txt").exists()
    losses = [json.loads(line)["loss"] for line in (tmp_path / "pretrained" / "log.jsonl").read_text().splitlines()]
    assert len(losses) == NUM_STEPS
    assert all(0 < loss < 100 for loss in losses)

    averaged = run("average", tiny_bundle, pretrained.folder, "--output", tmp_path / "mean")
    assert (averaged.exit_code, averaged.stdout) == (0, f"{tmp_path / 'mean'}\n"), averaged.output
    mean = load_checkpoint(tmp_path / "mean")
    assert (mean.config, mean.pieces, mean.step) == (pretrained.config, pretrained.pieces, NUM_STEPS)
    first, last = pretrained_of_bundle(open_bundle(tiny_bundle), "").weights, pretrained.best_weights()
    for name, weights in mean.best_weights().items():
        num_known = len(first[name])  # what only the later one knows is its own
        torch.testing.assert_close(weights[:num_known], (first[name] + last[name][:num_known]) / 2)
        assert torch.equal(weights[num_known:], last[name][num_known:])

    picture = tmp_path / "curves.svg"
    drawn = run("curves", tmp_path / "pretrained", f"random={tmp_path / 'scratch'}", "--output", picture)
    assert drawn.exit_code == 0, drawn.output
    for text in ("jsonl:animals, 4 validation examples", "pretrained", "random"):
        assert f">{text}</text>" in picture.read_text()


@pytest.mark.parametrize(
    ("setting", "message"),
    [("model.width=32", "is another model: width is 24, the recipe says 32"), ("num_generated=9", "can only grow")],
)
def test_a_recipe_that_does_not_fit_the_bundle_is_told(
    tiny_bundle: Path, recipe: Path, data: Path, tmp_path: Path, setting: str, message: str
) -> None:
    folders = ("--data", data, "--output", tmp_path / "run", "--cache", tmp_path / "cache")
    result = run("train", recipe, *folders, "--from", tiny_bundle, "--set", setting)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


def test_what_cannot_be_averaged_is_told(tiny_bundle: Path, recipe: Path, data: Path, tmp_path: Path) -> None:
    assert run("embed", recipe, "--same-as", tiny_bundle).exit_code == 0
    one = train(recipe, data, tmp_path / "one").folder
    grown = train(recipe, data, tmp_path / "grown", "--from", tiny_bundle).folder
    other_model = train(recipe, data, tmp_path / "norm", "--set", "model.norm=post").folder
    other_vectors = tmp_path / "scaled"
    shutil.copytree(grown, other_vectors)
    vectors = load_vectors(grown / "vectors.safetensors")
    write_vectors(other_vectors / "vectors.safetensors", replace(vectors, scales=2 * vectors.scales))
    for folders, output, message in (
        ([one], "mean", "takes at least two networks"),
        ([one, grown], "mean", f"{one} generates other pieces than {grown} begins with"),
        ([other_model, grown], "mean", f"{other_model} is another model than {grown}: norm"),
        ([other_vectors, grown], "mean", f"{other_vectors} reads other word vectors than {grown}"),
        ([tiny_bundle, grown], "grown", "exists already; choose another folder"),
        ([grown, tiny_bundle], "mean", "is not a checkpoint"),
    ):
        result = run("average", *folders, "--output", tmp_path / output)
        assert (result.exit_code, result.stdout) == (1, "")
        assert message in result.stderr
    assert not (tmp_path / "mean").exists()


def test_vectors_are_taken_or_made_not_both(tiny_bundle: Path, recipe: Path) -> None:
    result = run("embed", recipe, "--same-as", tiny_bundle, "--beside", tiny_bundle)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "--same-as takes vectors as they are" in result.stderr
