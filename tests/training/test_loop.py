"""A run: the same batches from the same seed, and a run that was cut goes on as if it had not been."""

import dataclasses
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from mqan_core.example import Choice, Example
from mqan_data.kept import KeptPools
from mqan_training import loop, stream
from mqan_training.checkpoint import load_checkpoint, step_folder
from mqan_training.loop import Run, save_run, train
from mqan_training.model.bert import Bert, MissingEncoderError
from mqan_training.recipe import Recipe
from mqan_training.runlog import RunLog
from mqan_training.start import start_from_checkpoint
from mqan_training.stream import shares_of
from tests.training.conftest import NAMES, PIECES, SIZES


class Meetings:
    name = "meetings"

    def __len__(self) -> int:
        return 40

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        one, two = rng.choice(NAMES, 2, replace=False).tolist()
        context = f"{one} met {two}" + " in the one" * (index % 5) + "."
        if rng.random() < 0.3:
            return Example(self.name, str(index), context, "who ?", (), None)
        labels = tuple(Choice(name) for name in rng.permutation(NAMES).tolist()) if rng.random() < 0.4 else ()
        return Example(self.name, str(index), context, "who met?", (one,), 0, choices=labels)


class Counts(Meetings):
    name = "counts"

    def __len__(self) -> int:
        return 10


DECODER: Mapping[str, float] = {"width": 8, "num_heads": 2, "head_width": 4, "ffn_width": 8}


def recipe_of(encoder: Path, *, decoder: Mapping[str, float] = DECODER, **changes: Any) -> Recipe:
    values = {
        "name": "tiny",
        "reader": {"kind": "pieces", "encoder": str(encoder), "decoder": dict(decoder)},
        "sources": {"meetings": 1, "counts": 2},
        "steps": 12,
        "warmup_steps": 3,
        "reader_rate": 1e-3,
        "decoder_rate": 3e-3,
        "pool_size": 256,
        "batch_size": 200,
        "num_generated": 20,
        "checkpoint_every": 4,
        "validate_every": 6,
        "log_every": 1,
    }
    return Recipe.model_validate(values | changes)


def two_processes_recipe(encoder: Path) -> Recipe:
    recipe = recipe_of(encoder, decoder={**DECODER, "dropout": 0.0}, epsilon=1e-4, autocast=False)
    return recipe.model_copy(update={"reader": recipe.pieces.model_copy(update={"dropout": 0.0})})


SOURCES = (Meetings(), Counts())
SMALL = {"_COUNTED": 1000}  # examples from which tokens are chosen: the real number only takes time here


@pytest.fixture(scope="module", autouse=True)
def small_pools() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, number in SMALL.items():
            patch.setattr(stream, name, number)
        yield


def run(recipe: Recipe, folder: Path, *, resume: bool = False) -> Path:
    examples = [Meetings().draw(i, np.random.default_rng(i)) for i in range(6)]
    return train(recipe, SOURCES, {"meetings": examples}, folder, resume=resume)


@pytest.fixture(scope="module")
def whole(encoder: Path, small_pools: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The last checkpoint of a run that was not cut."""
    return run(recipe_of(encoder), tmp_path_factory.mktemp("whole"))


def losses_of(folder: Path) -> list[float]:
    lines = (folder / "log.jsonl").read_text().splitlines()
    return [json.loads(line)["answer"] for line in lines]


def test_a_cut_run_goes_on_as_if_it_had_not_been(encoder: Path, whole: Path, tmp_path: Path) -> None:
    run(recipe_of(encoder, steps=10), tmp_path / "cut")
    resumed = run(recipe_of(encoder), tmp_path / "cut", resume=True)
    assert losses_of(tmp_path / "cut") == losses_of(whole.parent)
    one, other = (load_file(folder / "model.safetensors") for folder in (whole, resumed))
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(other[name], tensor, rtol=0, atol=0, msg=name)
    scores = [json.loads(line) for line in (tmp_path / "cut" / "validation.jsonl").read_text().splitlines()]
    assert {(s["step"], s["task"]) for s in scores} == {(6, "meetings"), (10, "meetings"), (12, "meetings")}


def test_a_run_that_is_cut_in_its_last_validation_is_scored_when_it_goes_on(
    encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = loop.validate_run

    def cut(given: Run, log: RunLog) -> None:
        if given.step == 9:
            monkeypatch.setattr(loop, "validate_run", real)
            raise KeyboardInterrupt
        real(given, log)

    monkeypatch.setattr(loop, "validate_run", cut)
    recipe = recipe_of(encoder, steps=9, log_every=100)
    with pytest.raises(KeyboardInterrupt):
        run(recipe, tmp_path)
    seconds = load_checkpoint(tmp_path / "step-0000008").training["seconds"]
    assert seconds > 0  # nothing was logged yet
    saved = load_checkpoint(run(recipe, tmp_path, resume=True))
    assert saved.training["seconds"] > seconds
    steps = [json.loads(line)["step"] for line in (tmp_path / "validation.jsonl").read_text().splitlines()]
    assert steps == [6, 9]


def test_the_last_step_counts_in_the_average(encoder: Path, tmp_path: Path) -> None:
    recipe = recipe_of(encoder, steps=9)
    begun = Run(recipe, SOURCES, {}, tmp_path, None)
    assert begun.average is not None
    untrained = begun.average.tensors
    saved = load_checkpoint(run(recipe, tmp_path))
    name = "span.weight"
    torch.testing.assert_close(saved.average[name], (2 * untrained[name] + 9 * saved.weights[name]) / 11)


def test_a_run_goes_on_by_its_own_recipe(encoder: Path, tmp_path: Path) -> None:
    run(recipe_of(encoder, steps=1), tmp_path)
    with pytest.raises(ValueError, match=r"another recipe: reader\.decoder\.width was 8, is 12; seed was 1, is 2; to"):
        run(recipe_of(encoder, seed=2, decoder={**DECODER, "width": 12}), tmp_path, resume=True)
    with pytest.raises(ValueError, match=r"sources\.more was not there, is 1\.0"):
        run(recipe_of(encoder, sources={"meetings": 1, "counts": 2, "more": 1}), tmp_path, resume=True)
    with pytest.raises(ValueError, match="the sources are in another order"):
        run(recipe_of(encoder, sources={"counts": 2, "meetings": 1}), tmp_path, resume=True)
    changed: dict[str, Any] = {
        "steps": 2,
        "cooldown_steps": 1,
        "log_every": 2,
        "checkpoint_every": 3,
        "validate_every": 3,
    }
    changed |= {"reader_rate": 1e-4, "decoder_rate": 1e-4, "grad_clip": 0.5, "name": "smaller"}  # after it diverged
    assert load_checkpoint(run(recipe_of(encoder, autocast=False, **changed), tmp_path, resume=True)).step == 2


def test_a_run_goes_on_with_its_own_encoder(encoder: Path, tmp_path: Path) -> None:
    run(recipe_of(encoder, steps=1), tmp_path / "run")
    moved, other = tmp_path / "moved", tmp_path / "other"
    for folder in (moved, other):
        shutil.copytree(encoder, folder)
    (other / "vocab.txt").write_text("\n".join([*PIECES[:-1], "zzz"]) + "\n")
    with pytest.raises(ValueError, match=r"vocab\.txt is not that of the encoder that the run in .* began with"):
        run(recipe_of(other, steps=2), tmp_path / "run", resume=True)
    assert load_checkpoint(run(recipe_of(moved, steps=2), tmp_path / "run", resume=True)).step == 2


def contexts(begun: Run, pool: int) -> list[list[str]]:
    return [[e.request.context for e in batch] for _, batch in begun.stream.pool(pool)]  # type: ignore[union-attr]


def test_batches_come_from_seed_and_place_alone(encoder: Path, tmp_path: Path) -> None:
    recipe = recipe_of(encoder)
    begun, again = (Run(recipe, SOURCES, {}, tmp_path, None) for _ in range(2))
    assert contexts(begun, 1) == contexts(again, 1) != contexts(begun, 2)
    pool = begun.stream.pool(1)
    assert max(sum(e.cost for e in batch) for _, batch in pool) <= recipe.batch_size
    batches = begun.stream.batches(1, 2)
    drawn = next(batches)
    batches.close()
    assert (drawn.pool, drawn.next, drawn.source, drawn.counts) == (1, 3, "", True)
    expected = begun.reader.collate(pool[2][1])  # type: ignore[arg-type]
    for one, other in zip(drawn.batch.tensors(), expected.tensors(), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_sources_that_take_turns_have_batches_of_their_own(encoder: Path, tmp_path: Path) -> None:
    phases = [{"steps": 5, "weights": {"counts": 1}}]
    changes: dict[str, Any] = {"order": "by_task", "phases": phases, "validate_every": 12}
    recipe = recipe_of(encoder, **changes)
    run(recipe, tmp_path / "whole")
    lines = [json.loads(line) for line in (tmp_path / "whole" / "log.jsonl").read_text().splitlines()]
    assert [line["task"] for line in lines] == ["counts"] * 5 + ["counts", "meetings", "counts"] * 2 + ["counts"]
    begun = Run(recipe, SOURCES, {}, tmp_path, None)
    for number, batch in begun.stream.pool(0):
        assert {e.task for e in batch} == {SOURCES[number].name}  # type: ignore[union-attr]
    run(recipe_of(encoder, **changes, steps=8), tmp_path / "cut")
    run(recipe, tmp_path / "cut", resume=True)
    assert losses_of(tmp_path / "cut") == losses_of(tmp_path / "whole")
    with pytest.raises(ValueError, match="is at step 12, and the recipe ends at 8"):
        run(recipe_of(encoder, **changes, steps=8), tmp_path / "cut", resume=True)


def test_shares_are_weights_times_roots_of_sizes() -> None:
    expected = np.array([40**0.5, 2 * 10**0.5])
    np.testing.assert_allclose(shares_of(SOURCES, {"meetings": 1, "counts": 2}, 2), expected / expected.sum())


def test_a_run_may_begin_with_other_weights(encoder: Path, whole: Path, tmp_path: Path) -> None:
    recipe = recipe_of(encoder, steps=4, seed=9)
    given = load_checkpoint(whole)
    start = start_from_checkpoint(given)
    begun = Run(recipe, SOURCES, {}, tmp_path / "run", None, start)
    assert begun.tokens[: len(given.tokens)] == given.tokens
    for name, tensor in begun.network.named_parameters():
        known = start.weights[name]
        torch.testing.assert_close(tensor[: len(known)] if known.dim() else tensor, known, rtol=0, atol=0, msg=name)
    save_run(begun)
    resumed = Run(recipe, SOURCES, {}, tmp_path / "run", tmp_path / "run" / "step-0000000")
    assert resumed.origin == str(given.folder)
    wider = recipe_of(encoder, seed=9, decoder={**DECODER, "width": 12})
    with pytest.raises(ValueError, match=r"does not fit the model of the recipe: project\.weight has the shape"):
        Run(wider, SOURCES, {}, tmp_path / "other", None, start)
    without = {name: tensor for name, tensor in start.weights.items() if name != "decoder.start"}
    with pytest.raises(ValueError, match=r"has no weights decoder\.start"):
        Run(recipe, SOURCES, {}, tmp_path / "other", None, dataclasses.replace(start, weights=without))


def test_a_run_that_has_no_checkpoint_yet_begins_with_the_same_again(encoder: Path, tmp_path: Path) -> None:
    (tmp_path / "from.txt").write_text("another 1")
    with pytest.raises(ValueError, match="no checkpoint yet and began with another 1: give that with --from again"):
        run(recipe_of(encoder), tmp_path, resume=True)
    run(recipe_of(encoder, steps=1), tmp_path)  # begins anew
    assert not (tmp_path / "from.txt").exists()


def test_a_share_of_the_weights_that_it_begins_with_may_be_kept(encoder: Path, whole: Path, tmp_path: Path) -> None:
    given = load_checkpoint(whole)
    start = dataclasses.replace(start_from_checkpoint(given), weights=given.weights, origin="another 1")
    found = {}
    for share in (0.0, 0.75):
        recipe = recipe_of(encoder, steps=3, seed=9, start_share=share)
        folder = train(recipe, SOURCES, {}, tmp_path / str(share), start=start)
        found[share] = load_checkpoint(folder).average
    for name, tensor in found[0.75].items():
        expected = 0.25 * found[0.0][name] + 0.75 * start.weights[name]
        torch.testing.assert_close(tensor, expected, rtol=0, atol=1e-6, msg=name)
    newest = step_folder(tmp_path / "0.75", 3)
    with pytest.raises(ValueError, match="has ended, and its weights hold the share"):
        Run(recipe_of(encoder, steps=5, seed=9, start_share=0.75), SOURCES, {}, tmp_path / "0.75", newest, start)
    with pytest.raises(ValueError, match="began with another 1, not with another 2"):
        Run(recipe, SOURCES, {}, tmp_path / "0.75", newest, dataclasses.replace(start, origin="another 2"))
    with pytest.raises(ValueError, match="another 1 has other words than when"):
        Run(recipe, SOURCES, {}, tmp_path / "0.75", newest, dataclasses.replace(start, tokens=("x",)))
    with pytest.raises(ValueError, match="start_share is of the weights that --from gives; resume with it, too"):
        Run(recipe, SOURCES, {}, tmp_path / "run", None)


def test_a_source_without_a_weight_is_refused(encoder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no weight for the sources counts"):
        run(recipe_of(encoder, sources={"meetings": 1}), tmp_path)


@pytest.mark.parametrize("change", [{"hidden_act": "relu"}, {"num_hidden_layers": 2}, {"hidden_size": 8}])
def test_a_folder_that_holds_no_such_bert_is_refused(encoder: Path, tmp_path: Path, change: dict[str, object]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SIZES | change))
    (tmp_path / "model.safetensors").write_bytes((encoder / "model.safetensors").read_bytes())
    with pytest.raises(MissingEncoderError, match=str(tmp_path)):
        Bert.from_folder(tmp_path)


class Unread(Meetings):
    def __len__(self) -> int:
        raise AssertionError("the sources were read")


def test_a_run_begins_with_a_pool_that_was_drawn_before(encoder: Path, tmp_path: Path) -> None:
    recipe = recipe_of(encoder)
    kept = KeptPools(tmp_path, "key")
    first = Run(recipe, SOURCES, {}, tmp_path / "run", None, kept=kept)
    batches = first.stream.batches(0, 0)
    drawn = next(batches).batch
    batches.close()
    again = Run(recipe, [Unread()], {}, tmp_path / "run", None, kept=kept)
    assert again.tokens == first.tokens
    batches = again.stream.batches(0, 0)
    for found, wanted in zip(next(batches).batch.tensors(), drawn.tensors(), strict=True):
        assert torch.equal(found, wanted)
    batches.close()
    with pytest.raises(AssertionError, match="were read"):
        Run(recipe, [Unread()], {}, tmp_path / "run", None, kept=KeptPools(tmp_path, "another key"))


def test_old_pools_go_and_the_first_stays(tmp_path: Path) -> None:
    kept = KeptPools(tmp_path, "key")
    for number in range(8):
        kept.write_pool(number, b"x")
    assert [n for n in range(8) if kept.read(f"pool-{n}")] == [0, 3, 4, 5, 6, 7]
