"""A run on a mixture: the same batches from the same seed, and a run that was cut goes on as if it had not been."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from mqan_core.example import Choice, Example
from mqan_core.text.layout import Layout
from mqan_core.text.vocab import Vocabulary
from mqan_core.text.word_pieces import WordPieces
from mqan_data.formats.dataset_file import load_dataset
from mqan_data.kept import KeptPools
from mqan_data.mixture import dataset_of
from mqan_training import mixture_run, stream
from mqan_training.checkpoint import load_checkpoint, step_folder
from mqan_training.collate import TrainingBatch, collate
from mqan_training.errors import DivergedError, MissingEncoderError
from mqan_training.losses import Losses, network_losses
from mqan_training.mixture_run import Start, prepare_run, save_run, take_step, train_mixture
from mqan_training.model.bert import Bert
from mqan_training.model.pretrained import PretrainedNetwork
from mqan_training.recipe import Recipe, is_mixture, load_recipe
from mqan_training.runlog import RunLog
from mqan_training.stream import MixtureStream, generator_pieces, shares_of

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


class Meetings:
    """Who met whom, as quotations, as choices and as refusals."""

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


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of our own, in the files of a pretrained one."""
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


def recipe_of(encoder: Path, **changes: object) -> Recipe:
    values = {
        "name": "tiny",
        "sources": {"meetings": 1, "counts": 2},
        "steps": 12,
        "warmup_steps": 3,
        "reader_rate": 1e-3,
        "decoder_rate": 3e-3,
        "batch_pieces": 200,
        "num_generated": 20,
        "checkpoint_every": 4,
        "validate_every": 6,
        "log_every": 1,
        "encoder": str(encoder),
        "decoder": {"width": 8, "num_heads": 2, "head_width": 4, "ffn_width": 8},
    }
    return Recipe.model_validate(values | changes)


SOURCES = (Meetings(), Counts())
SMALL = {"_POOL": 256, "_COUNTED": 1000}  # examples drawn at once: the real numbers only take time here


@pytest.fixture(autouse=True)
def small_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number in SMALL.items():
        monkeypatch.setattr(stream, name, number)


def run(recipe: Recipe, folder: Path, *, resume: bool = False) -> Path:
    examples = [Meetings().draw(i, np.random.default_rng(i)) for i in range(6)]
    return train_mixture(recipe, SOURCES, {"meetings": examples}, folder, resume=resume)


def losses_of(folder: Path) -> list[float]:
    lines = (folder / "log.jsonl").read_text().splitlines()
    return [json.loads(line)["answer"] for line in lines]


def test_a_cut_run_goes_on_as_if_it_had_not_been(encoder: Path, tmp_path: Path) -> None:
    whole = run(recipe_of(encoder), tmp_path / "whole")
    run(recipe_of(encoder, steps=10), tmp_path / "cut")
    resumed = run(recipe_of(encoder), tmp_path / "cut", resume=True)
    assert losses_of(tmp_path / "cut") == losses_of(tmp_path / "whole")
    one, other = (load_file(folder / "model.safetensors") for folder in (whole, resumed))
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(other[name], tensor, rtol=0, atol=0, msg=name)
    scores = [json.loads(line) for line in (tmp_path / "cut" / "validation.jsonl").read_text().splitlines()]
    assert {(s["step"], s["task"]) for s in scores} == {(6, "meetings"), (10, "meetings"), (12, "meetings")}


def test_a_run_that_is_cut_in_its_last_validation_is_scored_when_it_goes_on(
    encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = mixture_run.validate_run

    def cut(given: mixture_run.MixtureRun, log: RunLog) -> None:
        if given.step == 9:
            monkeypatch.setattr(mixture_run, "validate_run", real)
            raise KeyboardInterrupt
        real(given, log)

    monkeypatch.setattr(mixture_run, "validate_run", cut)
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
    untrained = prepare_run(recipe, SOURCES, {}, tmp_path, None).average.state()
    saved = load_checkpoint(run(recipe, tmp_path))
    name = "span.weight"
    torch.testing.assert_close(saved.average[name], (2 * untrained[name] + 9 * saved.weights[name]) / 11)


def test_a_run_that_diverges_ends_before_it_is_saved(
    encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def diverge(network: PretrainedNetwork, batch: TrainingBatch, teacher: Bert | None) -> Losses:
        losses = network_losses(network, batch, teacher)
        return losses._replace(answer=losses.answer * float("nan"))

    monkeypatch.setattr(mixture_run, "network_losses", diverge)
    with pytest.raises(DivergedError, match="step 1: answer and norm not finite: .* lower reader_rate"):
        run(recipe_of(encoder, steps=1), tmp_path)
    assert not list(tmp_path.glob("step-*"))


def test_a_run_goes_on_by_its_own_recipe(encoder: Path, tmp_path: Path) -> None:
    run(recipe_of(encoder, steps=1), tmp_path)
    other = {"seed": 2, "decoder": {"width": 12, "num_heads": 2, "head_width": 4, "ffn_width": 8}}
    with pytest.raises(ValueError, match=r"another recipe: seed was 1, is 2; decoder\.width was 8, is 12; to"):
        run(recipe_of(encoder, **other), tmp_path, resume=True)
    with pytest.raises(ValueError, match=r"sources\.more was not there, is 1\.0"):
        run(recipe_of(encoder, sources={"meetings": 1, "counts": 2, "more": 1}), tmp_path, resume=True)
    with pytest.raises(ValueError, match="the sources are in another order"):
        run(recipe_of(encoder, sources={"counts": 2, "meetings": 1}), tmp_path, resume=True)
    changed: dict[str, object] = {
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


def test_a_killed_run_leaves_whole_checkpoints(encoder: Path, tmp_path: Path) -> None:
    """Killed at any moment, also while it writes: what is there can be gone on from."""
    script = (
        "import sys; from pathlib import Path; from mqan_training import stream;"
        "from tests.training.test_mixture_run import SMALL, recipe_of, run; vars(stream).update(SMALL);"
        "run(recipe_of(Path(sys.argv[1]), steps=100000, checkpoint_every=2), Path(sys.argv[2]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(encoder), str(tmp_path / "run")], cwd=Path(__file__).parents[2]
    )
    try:
        deadline = time.monotonic() + 120
        while len(list((tmp_path / "run").glob("step-*"))) < 2:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    newest = max(p for p in (tmp_path / "run").glob("step-*") if not p.name.endswith(".tmp"))
    step = load_checkpoint(newest).step
    resumed = run(recipe_of(encoder, steps=step + 2), tmp_path / "run", resume=True)
    assert load_checkpoint(resumed).step == step + 2


def test_batches_come_from_seed_and_place_alone(encoder: Path) -> None:
    recipe = recipe_of(encoder)
    layout = Layout(WordPieces(PIECES))
    vocabulary = Vocabulary(generator_pieces(SOURCES, recipe), refuses=True)
    streams = [MixtureStream(SOURCES, recipe, vocabulary, layout) for _ in range(2)]
    first = [[e.request.context for e in batch] for batch in streams[0].pool(1)]
    assert first == [[e.request.context for e in batch] for batch in streams[1].pool(1)]
    assert first != [[e.request.context for e in batch] for batch in streams[0].pool(2)]
    assert max(sum(e.cost for e in batch) for batch in streams[0].pool(1)) <= recipe.batch_pieces
    batches = streams[0].batches(1, 2)
    number, index, batch = next(batches)
    batches.close()
    assert (number, index) == (1, 3)
    expected = collate(streams[0].pool(1)[2], layout, vocabulary.num_generated)
    for one, other in zip(batch.tensors(), expected.tensors(), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert batch.inputs.rows_N.tolist() == list(range(len(first[2])))


def test_shares_are_weights_times_roots_of_sizes(encoder: Path) -> None:
    recipe = recipe_of(encoder, temperature=2)
    expected = np.array([40**0.5, 2 * 10**0.5])
    np.testing.assert_allclose(shares_of(SOURCES, recipe), expected / expected.sum())


def test_a_step_changes_the_reader_and_the_decoder(encoder: Path, tmp_path: Path) -> None:
    prepared = prepare_run(recipe_of(encoder), SOURCES, {}, tmp_path, None)
    before = {name: p.detach().clone() for name, p in prepared.network.named_parameters()}
    *_, batch = next(prepared.stream.batches(0, 0))
    take_step(prepared, batch)
    changed = {name for name, p in prepared.network.named_parameters() if not torch.equal(p, before[name])}
    assert {"bert.layers.0.query.weight", "decoder.generator.weight", "span.weight", "null.weight"} <= changed
    assert ("similarity.map.weight" in changed) == bool(len(batch.text_pieces))  # a matrix of zeros does not decay


def test_a_run_may_begin_with_other_weights(encoder: Path, tmp_path: Path) -> None:
    recipe = recipe_of(encoder, steps=4)
    given = load_checkpoint(run(recipe_of(encoder, seed=9), tmp_path / "before"))
    start = Start(given.weights, given.pieces, "another 1")
    begun = prepare_run(recipe, SOURCES, {}, tmp_path / "run", None, start)
    assert begun.vocabulary.pieces[-len(given.pieces) :] == given.pieces
    for name, tensor in begun.network.state_dict().items():
        torch.testing.assert_close(tensor, start.weights[name], rtol=0, atol=0, msg=name)
    save_run(begun)
    resumed = prepare_run(recipe, SOURCES, {}, tmp_path / "run", tmp_path / "run" / "step-0000000")
    assert resumed.origin == "another 1"
    wider = recipe_of(encoder, decoder={"width": 12, "num_heads": 2, "head_width": 4, "ffn_width": 8})
    with pytest.raises(ValueError, match="weights to start from do not fit"):
        prepare_run(wider, SOURCES, {}, tmp_path / "run", None, start)


def test_a_share_of_the_weights_that_it_begins_with_may_be_kept(encoder: Path, tmp_path: Path) -> None:
    given = load_checkpoint(run(recipe_of(encoder, seed=9), tmp_path / "before"))
    start = Start(given.weights, given.pieces, "another 1")
    found = {}
    for share in (0.0, 0.75):
        recipe = recipe_of(encoder, steps=3, start_share=share)
        folder = train_mixture(recipe, SOURCES, {}, tmp_path / str(share), start=start)
        found[share] = load_checkpoint(folder).average
    for name, tensor in found[0.75].items():
        expected = 0.25 * found[0.0][name] + 0.75 * start.weights[name]
        torch.testing.assert_close(tensor, expected, rtol=0, atol=1e-6, msg=name)
    newest = step_folder(tmp_path / "0.75", 3)
    with pytest.raises(ValueError, match="has ended, and its weights hold the share"):
        prepare_run(recipe_of(encoder, steps=5, start_share=0.75), SOURCES, {}, tmp_path / "0.75", newest, start)
    with pytest.raises(ValueError, match="began with another 1, not with another 2"):
        prepare_run(recipe, SOURCES, {}, tmp_path / "0.75", newest, dataclasses.replace(start, origin="another 2"))
    with pytest.raises(ValueError, match="another 1 has other words than when"):
        prepare_run(recipe, SOURCES, {}, tmp_path / "0.75", newest, dataclasses.replace(start, pieces=("x",)))
    with pytest.raises(ValueError, match="start_share is of the weights that --from gives; resume with it, too"):
        prepare_run(recipe, SOURCES, {}, tmp_path / "run", None)


def test_a_run_is_not_written_over(encoder: Path, tmp_path: Path) -> None:
    run(recipe_of(encoder, steps=1), tmp_path)
    with pytest.raises(ValueError, match="already holds a run"):
        run(recipe_of(encoder), tmp_path)


def test_a_source_without_a_weight_is_refused(encoder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no weight for the sources counts"):
        run(recipe_of(encoder, sources={"meetings": 1}), tmp_path)


@pytest.mark.parametrize("change", [{"hidden_act": "relu"}, {"num_hidden_layers": 2}, {"hidden_size": 8}])
def test_a_folder_that_holds_no_such_bert_is_refused(encoder: Path, tmp_path: Path, change: dict[str, object]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SIZES | change))
    (tmp_path / "model.safetensors").write_bytes((encoder / "model.safetensors").read_bytes())
    with pytest.raises(MissingEncoderError, match=str(tmp_path)):
        Bert.from_folder(tmp_path)


def test_recipes_say_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("name: x\nsteps: 0\nsources: {sst: 1}\ncolour: red\n")
    assert is_mixture(path)
    with pytest.raises(ValueError, match=r"r\.yaml: steps: .*; colour: Extra inputs"):
        load_recipe(path)
    assert load_recipe(Path("training/recipes/default.yaml"), {"decoder.width": "64"}).decoder.width == 64
    assert not is_mixture(Path("training/recipes/debug.yaml"))


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ("{sst: -1, woz: 2}", r"sources: .*the weight of sst is -1\.0; it must"),
        ("{sst: .nan}", "sources: .*the weight of sst is nan; it must"),
        ("{sst: .inf}", "sources: .*the weight of sst is inf; it must"),
        ("{sst: 0}", "sources: .*there must be a source with a weight above 0"),
        ("{}", "sources: .*there must be a source with a weight above 0"),
    ],
)
def test_weights_that_make_no_mixture_are_refused(tmp_path: Path, sources: str, message: str) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(f"name: x\nsteps: 1\nsources: {sources}\n")
    with pytest.raises(ValueError, match=message):
        load_recipe(path)


def test_the_permissive_recipe_has_no_dataset_that_forbids_commercial_use() -> None:
    default, permissive = (load_recipe(Path(f"training/recipes/{name}.yaml")) for name in ("default", "permissive"))
    allowed = {
        name for name in default.sources if name.startswith("made_") or load_dataset(dataset_of(name)).commercial
    }
    assert set(permissive.sources) == allowed < set(default.sources)


class Unread(Meetings):
    """A source whose rows cannot be read any more."""

    def __len__(self) -> int:
        raise AssertionError("the sources were read")


def test_a_run_begins_with_a_pool_that_was_drawn_before(encoder: Path, tmp_path: Path) -> None:
    recipe = recipe_of(encoder)
    kept = KeptPools(tmp_path, "key")
    first = prepare_run(recipe, SOURCES, {}, tmp_path / "run", None, kept=kept)
    batches = first.stream.batches(0, 0)
    drawn = next(batches)[2]
    batches.close()
    again = prepare_run(recipe, [Unread()], {}, tmp_path / "run", None, kept=kept)
    assert again.vocabulary.pieces == first.vocabulary.pieces
    batches = again.stream.batches(0, 0)
    for found, wanted in zip(next(batches)[2].tensors(), drawn.tensors(), strict=True):
        assert torch.equal(found, wanted)
    batches.close()
    with pytest.raises(AssertionError, match="were read"):
        prepare_run(recipe, [Unread()], {}, tmp_path / "run", None, kept=KeptPools(tmp_path, "another key"))


def test_old_pools_go_and_the_first_stays(tmp_path: Path) -> None:
    kept = KeptPools(tmp_path, "key")
    for number in range(8):
        kept.write_pool(number, b"x")
    assert [n for n in range(8) if kept.read_pool(n)] == [0, 3, 4, 5, 6, 7]
