"""``python -m mqan_baselines`` from the command line."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mqan_baselines.__main__ import app

_RECIPE = """
kind: shared-memory
name: tiny
tasks: [sst-2, subj]
embedding_width: 6
hidden_width: 6
segments: 3
segment_width: 3
steps: 4
tune_every: 2
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(_RECIPE)
    return path


def test_vectors_table_and_picture(recipe: Path, baseline_data: Path, tmp_path: Path) -> None:
    glove = tmp_path / "glove.txt"
    glove.write_text("warm 1 2 3 4 5 6\n")
    vectors = tmp_path / "v.safetensors"
    common = [str(recipe), "--data", str(baseline_data), "--set", f"vectors={vectors}"]
    runner = CliRunner()
    result = runner.invoke(app, ["embed", *common, "--glove", str(glove)])
    assert result.stdout == f"{vectors}: 1 words\n"
    run = [*common, "--output", str(tmp_path / "run")]
    result = runner.invoke(app, ["table", *run])
    assert result.exit_code == 0, result.output
    assert result.stdout == (tmp_path / "run" / "table.md").read_text()
    assert result.stdout.count("(95.0)") == 1  # ARC-II's published SUBJ
    result = runner.invoke(app, ["train", *run])  # ARC-II, which the table has trained already
    assert json.loads(result.stdout)["tasks"].keys() == {"sst-2", "subj"}
    picture = tmp_path / "p.svg"
    models = ["--model", f"LSTM={tmp_path / 'run/lstm/sst-2'}", "--model", str(tmp_path / "run/arc-ii/sst-2")]
    result = runner.invoke(app, ["follow", "A warm film", "--task", "sst-2", *models, "--output", str(picture)])
    assert result.stdout == f"{picture}\n"
    assert 'id="score-LSTM"' in picture.read_text()
    assert 'id="score-arc-ii/sst-2"' in picture.read_text()


def test_mt_dnn_is_trained_and_adapted(tiny_encoder: Path, baseline_data: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "glue.yaml"
    recipe.write_text(
        f"kind: mt-dnn\nname: tiny\ntasks: [rte]\nencoder: {tiny_encoder}\nepochs: 1\nmost_pieces: 48\n"
        "adaptation: {tasks: [sick], shares: [1.0], epochs: 1, least_steps: 1}\n"
    )
    run = [str(recipe), "--data", str(baseline_data), "--output", str(tmp_path / "run")]
    runner = CliRunner()
    result = runner.invoke(app, ["train", *run])
    assert json.loads(result.stdout)["tasks"]["rte"]["num_test"] == 16
    result = runner.invoke(app, ["adapt", *run])
    assert result.stdout.startswith("| task | rows | BERT | MT-DNN |")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "RECIPE", "--set", "steps=0"], "steps: Input should be greater than 0"),
        (["adapt", "RECIPE"], "this verb is for mt-dnn"),
        (["train", "RECIPE", "--data", "nowhere"], "sst: found no dev_binary_sent.csv in nowhere/sst"),
        (["follow", "x", "--task", "sst-2", "--model", "nowhere"], "nowhere holds no model"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(
    recipe: Path, tmp_path: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [str(recipe) if argument == "RECIPE" else argument for argument in arguments]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 1
    assert result.stderr.startswith("mqan_baselines: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
