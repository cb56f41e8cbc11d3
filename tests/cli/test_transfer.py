"""``mqan train --from CHECKPOINT``: what was learnt is where a new task starts, and nothing else differs."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from mqan_cli.main import app
from mqan_training.checkpoint import VECTORS, Checkpoint, load_checkpoint, save_checkpoint
from mqan_training.model.embeddings import load_vectors, write_vectors
from mqan_training.model.network import Network
from mqan_training.optim import make_optimizer
from mqan_training.recipe import Recipe, WordsConfig

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
    """A recipe with the tiny network's model and vectors, and room for the new words."""
    write_vectors(tmp_path / "vectors.safetensors", tiny_network.embedder.vectors)
    document = {
        "name": "animals",
        "reader": {
            "kind": "words",
            "vectors": str(tmp_path / "vectors.safetensors"),
            "model": asdict(tiny_network.mqan.config),
        },
        "order": "by_task",
        "sources": {"jsonl:animals": 1},
        "steps": NUM_STEPS,
        "warmup_steps": 1,
        "reader_rate": RATE,
        "decoder_rate": RATE,
        "num_generated": tiny_network.vocabulary.num_generated + 20,
        "batch_size": 200,
        "validate_every": NUM_STEPS,
        "validate_sources": ["jsonl:animals"],
        "log_every": 1,
    }
    path = tmp_path / "animals.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def train(recipe: Path, data: Path, output: Path, *more: object) -> Checkpoint:
    result = run("train", recipe, "--data", data, "--output", output, *more)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{output / f'step-{NUM_STEPS:07d}'}\n"
    return load_checkpoint(Path(result.stdout.strip()))


def generator_of(checkpoint: Checkpoint) -> torch.Tensor:
    return load_file(checkpoint.folder / "model.safetensors")[GENERATOR]


def test_missing_vectors_are_told_in_one_line(recipe: Path, data: Path, tmp_path: Path) -> None:
    (tmp_path / "vectors.safetensors").unlink()
    result = run("train", recipe, "--data", data, "--output", tmp_path / "run")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"mqan: no word vectors at {tmp_path / 'vectors.safetensors'}: make them with")
    assert result.stderr.count("\n") == 1


@pytest.fixture
def source(tmp_path: Path, tiny_network: Network) -> Path:
    """A checkpoint of the tiny network, whose averaged weights are its own."""
    vectors = tmp_path / "vectors.safetensors"
    write_vectors(vectors, tiny_network.embedder.vectors)
    words = WordsConfig(kind="words", vectors=str(vectors), model=tiny_network.mqan.config)
    recipe = Recipe(name="tiny", reader=words, sources={"sst": 1}, order="by_task", steps=1)
    folder, drawn, tokens = tmp_path / "source", {"pool": 0, "index": 1}, tiny_network.vocabulary.pieces[1:]
    checkpoint = Checkpoint(folder, recipe, 1, drawn, tokens, tiny_network.state_dict(), {}, {"seconds": 0.0})
    optimizer = make_optimizer(tiny_network, recipe, ("embedder.", "mqan.encoder."))
    save_checkpoint(checkpoint, {VECTORS: vectors}, optimizer)
    return folder


def test_a_run_from_a_checkpoint_differs_from_a_random_one_in_its_start_only(
    tiny_network: Network, source: Path, recipe: Path, data: Path, tmp_path: Path
) -> None:
    pretrained = train(recipe, data, tmp_path / "pretrained", "--from", source)
    scratch = train(recipe, data, tmp_path / "scratch")

    known = tiny_network.vocabulary.pieces[1:]
    assert pretrained.tokens[: len(known)] == known
    added = [piece.strip() for piece in pretrained.tokens[len(known) :]]
    assert set(NEW_WORDS) <= set(added)
    assert set(NEW_WORDS) <= {piece.strip() for piece in scratch.tokens}

    learned, trained = tiny_network.state_dict()[GENERATOR], generator_of(pretrained)
    moved = (trained[: len(learned)] - learned).abs().max().item()
    assert 0 < moved < 10 * NUM_STEPS * RATE, "the learned rows are where training went on"
    assert len(trained) == len(learned) + len(added)
    fresh = generator_of(scratch)
    rows = min(len(fresh), len(learned))
    assert (fresh[:rows] - learned[:rows]).abs().max().item() > 100 * NUM_STEPS * RATE

    assert pretrained.recipe == scratch.recipe
    assert (pretrained.all_tasks(), scratch.all_tasks()) == (["jsonl:animals", "sst"], ["jsonl:animals"])
    own = tiny_network.embedder.vectors
    for checkpoint in (pretrained, scratch):
        vectors = load_vectors(checkpoint.vectors_path)
        assert vectors.words == own.words
        assert (vectors.rows == own.rows).all()
        assert (vectors.scales == own.scales).all()
    assert (tmp_path / "pretrained" / "from.txt").read_text() == str(source.resolve())
    assert not (tmp_path / "scratch" / "from.txt").exists()
    losses = [json.loads(line)["answer"] for line in (tmp_path / "pretrained" / "log.jsonl").read_text().splitlines()]
    assert len(losses) == NUM_STEPS
    assert all(0 < loss < 100 for loss in losses)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("reader.model.width=32", "is another model: width is 24, the recipe says 32"),
        ("num_generated=9", "can only grow"),
    ],
)
def test_a_recipe_that_does_not_fit_the_checkpoint_is_told(
    source: Path, recipe: Path, data: Path, tmp_path: Path, setting: str, message: str
) -> None:
    folders = ("--data", data, "--output", tmp_path / "run")
    result = run("train", recipe, *folders, "--from", source, "--set", setting)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr
