"""``mqan train --from BUNDLE``: what was learnt is where a new task starts, and nothing else differs."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from mqan_cli.main import app
from mqan_training.checkpoint import Checkpoint, load_checkpoint
from mqan_training.embeddings import load_vectors
from mqan_training.network import Network

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


def test_vectors_are_taken_or_made_not_both(tiny_bundle: Path, recipe: Path) -> None:
    result = run("embed", recipe, "--same-as", tiny_bundle, "--beside", tiny_bundle)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "--same-as takes vectors as they are" in result.stderr
