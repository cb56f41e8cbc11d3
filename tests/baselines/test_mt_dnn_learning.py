"""MT-DNN: algorithm 1, its schedule, its runs, adaptation and tables, on a small encoder."""

import json
import random
import shutil
from pathlib import Path

import pytest
import torch

from mqan_baselines.formats import Row
from mqan_baselines.mt_dnn.adaptation import adapt
from mqan_baselines.mt_dnn.learning import (
    batch_loss,
    epoch_batches,
    evaluate,
    load_network,
    pack_rows,
    run,
    train_tasks,
)
from mqan_baselines.mt_dnn.network import pretrained_network
from mqan_baselines.mt_dnn.packing import Sequences, packer_of, stack
from mqan_baselines.mt_dnn.tables import ROWS, train_rows
from mqan_baselines.recipes import MtDnnRecipe
from mqan_baselines.tasks import baseline_task
from mqan_training.checkpoint import CheckpointError
from mqan_training.model.bert import MissingEncoderError
from mqan_training.optim import DivergedError
from tests.baselines.models import MT_DNN_TASKS as TASKS
from tests.baselines.models import mt_dnn_recipe


@pytest.fixture(scope="module")
def joint(
    tiny_encoder: Path, baseline_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[MtDnnRecipe, Path]:
    recipe = mt_dnn_recipe(
        tiny_encoder,
        fine_tune_epochs=1,
        adaptation={"tasks": ["sick"], "shares": [0.05, 1.0], "epochs": 1, "least_steps": 3},
    )
    folder = tmp_path_factory.mktemp("mt-dnn")
    run(recipe, baseline_data, folder / "mt-dnn")
    return recipe, folder


def test_an_epoch_is_all_batches_of_all_tasks_once_shuffled() -> None:
    lengths = {"a": [3] * 100, "b": [4] * 37}
    generator = random.Random(1)
    first, second = (epoch_batches(lengths, 8, generator) for _ in range(2))
    assert len(first) == 13 + 5
    for name, of in lengths.items():
        assert sorted(i for task, places in first if task == name for i in places) == list(range(len(of)))
    order = [task for task, _ in first]
    assert order not in (sorted(order), sorted(order, reverse=True))
    assert first != second


def test_each_task_learns_by_its_own_loss(tiny_encoder: Path, baseline_data: Path) -> None:
    recipe = mt_dnn_recipe(tiny_encoder, pair_head="linear")
    network = pretrained_network(recipe).eval()
    packer = packer_of(tiny_encoder, 48)
    generator = random.Random(1)
    losses = {}
    for name in TASKS:
        task = baseline_task(name)
        items = pack_rows(task, task.rows(baseline_data, "test")[:6], packer)
        losses[name] = batch_loss(network, task, items, recipe, generator).item()
    # Untrained output layers say nearly the same of all: log 2 for two classes, (y - 1/2)^2 for scores of 0.9 and 0.1,
    # log 3 for three candidates.
    expected = {"cola": 0.693, "rte": 0.693, "sts-b": 0.16, "qnli-ranking": 1.099, "qnli": 0.693}
    assert losses == pytest.approx(expected, abs=0.08)


def test_candidates_are_drawn_and_the_right_one_is_always_there(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = mt_dnn_recipe(tiny_encoder, candidates=2)
    task = baseline_task("qnli-ranking")
    row = Row(("who", "a", "b", "c", "d"))
    items = pack_rows(task, [row], packer_of(tiny_encoder, 48))
    network, generator = pretrained_network(recipe).eval(), random.Random(1)
    seen: set[tuple[int, ...]] = set()
    forward = network.forward

    def noted(name: str, sequences: Sequences) -> torch.Tensor:
        seen.update(tuple(pieces) for pieces in sequences.pieces_NS.tolist())
        assert len(sequences.pieces_NS) == 2
        assert tuple(sequences.pieces_NS[0].tolist()) == items[0].sequences[0].pieces
        return forward(name, sequences)

    monkeypatch.setattr(network, "forward", noted)
    for _ in range(30):
        batch_loss(network, task, items, recipe, generator)
    assert len(seen) == 4


@pytest.mark.gpu
def test_a_gpu_finds_the_losses_of_a_cpu_and_its_model_is_read_on_a_cpu(
    tiny_encoder: Path, baseline_data: Path, tmp_path: Path
) -> None:
    recipe = mt_dnn_recipe(tiny_encoder, epochs=1, fine_tune_epochs=1, prediction_dropout=0.1)
    networks = [pretrained_network(recipe).to(device).eval() for device in ("cpu", "cuda")]
    packer = packer_of(tiny_encoder, 48)
    for name in TASKS:
        task = baseline_task(name)
        items = pack_rows(task, task.rows(baseline_data, "test")[:6], packer)
        ours, theirs = (batch_loss(network, task, items, recipe, random.Random(1)) for network in networks)
        assert theirs.is_cuda
        assert theirs.item() == pytest.approx(ours.item(), abs=1e-3)
    run(recipe, baseline_data, tmp_path)
    network, _ = load_network(tmp_path / "joint")
    assert network.device.type == "cpu"


def test_a_pair_is_read_the_same_alone_and_padded_beside_others(joint: tuple[MtDnnRecipe, Path]) -> None:
    network, recipe = load_network(joint[1] / "mt-dnn" / "joint")
    packer = packer_of(Path(recipe.encoder), recipe.most_pieces)
    pairs = [
        packer.pack("the film", "a story of two friends at all"),
        packer.pack("a dull odd flat mess of old plot", "no"),
    ]
    with torch.no_grad():
        together = network("rte", stack(pairs))
        for i, pair in enumerate(pairs):
            torch.testing.assert_close(network("rte", stack([pair]))[0], together[i], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(together.exp().sum(dim=-1), torch.ones(2))


def test_joint_training_lowers_every_loss(tiny_encoder: Path, baseline_data: Path, tmp_path: Path) -> None:
    recipe = mt_dnn_recipe(tiny_encoder, dropout=0.0, prediction_dropout=0.0)
    packer = packer_of(tiny_encoder, 48)
    of_task = {
        name: pack_rows(baseline_task(name), baseline_task(name).rows(baseline_data, "train"), packer) for name in TASKS
    }
    network = pretrained_network(recipe)

    def losses() -> dict[str, float]:
        network.eval()
        with torch.no_grad():
            return {
                n: batch_loss(network, baseline_task(n), i, recipe, random.Random(1)).item() for n, i in of_task.items()
            }

    before = losses()
    train_tasks(network, of_task, recipe, 20, tmp_path)
    after = losses()
    assert [name for name in TASKS if after[name] >= before[name]] == [], (before, after)
    assert after["cola"] < 0.3
    logged = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert logged[-1]["step"] == 20 * sum(-(-len(items) // 8) for items in of_task.values())
    assert evaluate(network, baseline_task("cola"), of_task["cola"])["matthews"] > 80


def test_a_joint_run_keeps_its_model_and_its_scores(joint: tuple[MtDnnRecipe, Path], baseline_data: Path) -> None:
    recipe, folder = joint
    results = run(recipe, baseline_data, folder / "mt-dnn")
    assert results == json.loads((folder / "mt-dnn" / "results.json").read_text())["results"]
    assert set(results["tasks"]) == set(results["joint"]) == set(TASKS)
    assert results["tasks"]["qnli"].keys() == {"accuracy", "paired", "num_test"}
    assert results["tasks"]["qnli-ranking"].keys() == {"paired", "top1", "num_test"}
    assert results["tasks"]["sts-b"]["num_test"] == 16
    network, loaded = load_network(folder / "mt-dnn" / "rte")
    assert loaded == recipe
    task = baseline_task("rte")
    items = pack_rows(task, task.rows(baseline_data, "test"), packer_of(Path(recipe.encoder), 48))
    assert evaluate(network, task, items)["accuracy"] == results["tasks"]["rte"]["accuracy"]


def test_alone_each_task_has_its_own_encoder(tiny_encoder: Path, baseline_data: Path, tmp_path: Path) -> None:
    results = run(mt_dnn_recipe(tiny_encoder, joint=False, tasks=("cola", "sts-b"), epochs=1), baseline_data, tmp_path)
    assert "joint" not in results
    assert not (tmp_path / "joint").exists()
    ours, theirs = (load_network(tmp_path / name)[0] for name in ("cola", "sts-b"))
    assert list(ours.heads) == ["cola"]
    assert not torch.equal(ours.encoder.layers[0].query.weight, theirs.encoder.layers[0].query.weight)  # type: ignore[union-attr, arg-type]


def test_adaptation_draws_both_curves_and_goes_on_where_it_was(
    joint: tuple[MtDnnRecipe, Path], baseline_data: Path
) -> None:
    recipe, folder = joint
    text = adapt(recipe, baseline_data, folder)
    lines = text.splitlines()
    assert [line.split("|")[1:3] for line in lines[2:]] == [[" sick ", " 2 "], [" sick ", " 48 "]]
    drawn = (folder / "adaptation" / "figure-2.svg").read_text()
    assert 'id="curve-sick-MT-DNN"' in drawn
    assert 'id="curve-sick-BERT"' in drawn
    logs = {path: path.read_bytes() for path in (folder / "adaptation").rglob("log.jsonl")}
    assert len(logs) == 4
    assert json.loads(min(logs.values()).splitlines()[-1])["step"] >= 3
    assert adapt(recipe, baseline_data, folder) == text
    assert logs == {path: path.read_bytes() for path in (folder / "adaptation").rglob("log.jsonl")}


def test_adaptation_without_a_joint_model_or_to_a_known_task_is_refused(
    joint: tuple[MtDnnRecipe, Path], baseline_data: Path, tmp_path: Path
) -> None:
    recipe, folder = joint
    with pytest.raises(CheckpointError, match="holds no model"):
        adapt(recipe, baseline_data, tmp_path)
    with pytest.raises(ValueError, match="no `adaptation`"):
        adapt(recipe.model_copy(update={"adaptation": None}), baseline_data, tmp_path)
    known = MtDnnRecipe(**{**recipe.model_dump(), "tasks": ("cola",), "adaptation": {"tasks": ("rte",)}})
    with pytest.raises(ValueError, match="rte: joint training has seen"):
        adapt(known, baseline_data, folder)


def test_joint_training_sees_no_test_row_of_what_is_adapted_to(
    tiny_encoder: Path, baseline_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = Path(shutil.copytree(baseline_data, tmp_path / "data"))
    with (data / "nli_extra" / "sick" / "SICK_trial.txt").open("a") as file:
        first, second = baseline_task("rte").rows(data, "train")[0].texts
        file.write(f"99\t{first}\t{second}\t3.5\tNEUTRAL\n")
    recipe = mt_dnn_recipe(tiny_encoder, tasks=("rte",), epochs=1)
    run(recipe, data, tmp_path / "alone")
    assert "left out" not in capsys.readouterr().err
    to_adapt = MtDnnRecipe(**{**recipe.model_dump(), "adaptation": {"tasks": ("sick",)}})
    run(to_adapt, data, tmp_path / "mt-dnn")
    assert "test file: 1 of rte" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(ValueError, match=r"other settings \(left_out_for\)"):
        run(to_adapt, data, tmp_path / "alone")


def test_sequences_that_the_encoder_does_not_read_are_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    recipe = mt_dnn_recipe(tiny_encoder, most_pieces=65)
    with pytest.raises(ValueError, match="most_pieces is 65, and max_position_embeddings of .* is 64: lower"):
        run(recipe, tmp_path / "nowhere", tmp_path)
    with pytest.raises(MissingEncoderError, match="holds no BERT"):
        run(mt_dnn_recipe(tmp_path), tmp_path / "nowhere", tmp_path)


def test_a_run_that_diverges_and_one_without_test_rows_are_told(
    tiny_encoder: Path, baseline_data: Path, tmp_path: Path
) -> None:
    recipe = mt_dnn_recipe(tiny_encoder, tasks=("cola",), rate=1e30)
    with pytest.raises(DivergedError, match="of cola .*not finite: the run has diverged; lower rate"):
        run(recipe, baseline_data, tmp_path)
    assert not list(tmp_path.rglob("model.*"))
    data = Path(shutil.copytree(baseline_data, tmp_path / "data"))
    for name in ("in_domain_dev.tsv", "out_of_domain_dev.tsv"):
        (data / "cola" / name).write_text("")
    with pytest.raises(ValueError, match="no rows: test of cola"):
        run(recipe, data, tmp_path)


def test_the_table_has_every_row_beside_the_published(tiny_encoder: Path, baseline_data: Path, tmp_path: Path) -> None:
    recipe = mt_dnn_recipe(tiny_encoder, tasks=("cola", "rte"), epochs=1)
    text = train_rows(recipe, baseline_data, tmp_path)
    lines = text.splitlines()
    assert [line.split(" | ")[0] for line in lines[2:6]] == [f"| {row}" for row in ROWS]
    assert "(79.1)" in lines[4]
    heads = [load_network(tmp_path / name / "joint")[0].heads["rte"] for name in ("mt-dnn", "mt-dnn-without-san")]
    assert [type(head).__name__ for head in heads] == ["SanHead", "ClassHead"]
    assert train_rows(recipe, baseline_data, tmp_path) == text
