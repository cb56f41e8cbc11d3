"""Learning curves: every run and task is drawn, and a run without scores is told what is missing."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mqan_cli.main import app
from mqan_training.curves import draw_curves, read_curves, read_runs

Log = list[dict[str, Any]]


def record(step: int, task: str, value: float, metric: str = "nf1", num_examples: int = 30) -> dict[str, Any]:
    scores = {metric: value, "nem": value / 2}
    return {"step": step, "seconds": step / 2, "task": task, "scores": scores, "num_examples": num_examples}


def write_run(folder: Path, log: Log) -> Path:
    folder.mkdir()
    (folder / "validation.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in log))
    return folder


@pytest.fixture
def pretrained(tmp_path: Path) -> Path:
    log = [record(100 * i, "wnut17", 40.0 + 5 * i) for i in (1, 2, 3)]
    return write_run(tmp_path / "pretrained", [*log, record(300, "squad", 60.5, num_examples=1200)])


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return write_run(tmp_path / "scratch", [record(100 * i, "wnut17", 10.0 * i) for i in (1, 2, 3)])


def texts(path: Path) -> list[str]:
    return ["".join(element.itertext()).strip() for element in ET.parse(path).iter() if element.tag.endswith("}text")]


def paths(path: Path) -> list[str]:
    lines = [group for group in ET.parse(path).iter() if group.get("id", "").startswith("curve-")]
    return [str(next(element for element in group if element.tag.endswith("}path")).get("d")) for group in lines]


def test_each_task_has_a_panel_and_each_run_a_line(pretrained: Path, scratch: Path, tmp_path: Path) -> None:
    path = tmp_path / "new" / "curves.svg"
    result = CliRunner().invoke(app, ["curves", str(pretrained), f"random start={scratch}", "--output", str(path)])
    assert (result.exit_code, result.stdout) == (0, f"{path}\n"), result.output
    shown = texts(path)
    for title in ("wnut17, 30 validation examples", "squad, 1,200 validation examples"):
        assert shown.count(title) == 1
    assert shown.count("normalised F1 (%)") == shown.count("training steps (batches)") == 2
    assert shown.count("pretrained") == 2, "in the legends of both panels"
    assert shown.count("random start") == 1, "it has no squad"
    drawn = paths(path)
    assert len(drawn) == len(set(drawn)) == 3
    assert [line.count("L") for line in drawn] == [2, 2, 0], "a point for each validation"


def test_steps_are_sorted_and_the_last_scores_of_a_step_count(tmp_path: Path) -> None:
    log = [record(200, "sst", 3.0, "em"), record(100, "sst", 1.0, "em"), record(200, "sst", 2.0, "em")]
    folder = write_run(tmp_path / "run", log)
    with (folder / "validation.jsonl").open("a") as file:
        file.write('{"step": 300, "ta')  # being written
    curve = read_curves(folder)["sst"]
    assert (curve.metric, curve.steps, curve.scores, curve.num_examples) == ("em", (100, 200), (1.0, 2.0), 30)


def test_a_label_may_be_given_and_a_folder_may_hold_a_sign(tmp_path: Path) -> None:
    write_run(tmp_path / "rate=3", [record(1, "sst", 1.0)])
    assert list(read_runs([str(tmp_path / "rate=3"), f"b={tmp_path / 'rate=3'}"])) == ["rate=3", "b"]
    with pytest.raises(ValueError, match="every run needs a label of its own: give LABEL=FOLDER"):
        read_runs([str(tmp_path / "rate=3")] * 2)


def test_what_is_missing_is_told_in_one_line(pretrained: Path, tmp_path: Path) -> None:
    (tmp_path / "early").mkdir()
    result = CliRunner().invoke(app, ["curves", str(pretrained), str(tmp_path / "early")])
    assert result.exit_code == 1
    assert (
        f"mqan: {tmp_path / 'early'} has no validation.jsonl: it is no run of `mqan train`, or was not" in result.stderr
    )
    with pytest.raises(ValueError, match="there is no folder nowhere; give the folder of a run"):
        read_runs(["nowhere"])
    with pytest.raises(ValueError, match=r"validation\.jsonl is empty: the run was not validated yet"):
        read_curves(write_run(tmp_path / "empty", []))


@pytest.mark.parametrize(
    "line", ["[]", "{}", "not JSON", '{"step": 1, "task": "sst", "scores": {}, "num_examples": 3}']
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str) -> None:
    folder = write_run(tmp_path / "run", [record(1, "sst", 1.0)])
    with (folder / "validation.jsonl").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(ValueError, match=r"validation\.jsonl:2: not the validation of a step"):
        read_curves(folder)


def test_what_cannot_be_drawn_is_refused(pretrained: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", [record(100, "wnut17", 10.0, "em")])
    with pytest.raises(ValueError, match="wnut17 was scored by em and by nf1: these curves do not compare"):
        draw_curves(read_runs([str(pretrained), str(other)]), tmp_path / "curves.svg")
    with pytest.raises(ValueError, match=r"curves\.gif: the file's ending must be one of \.svg, \.png, \.pdf"):
        draw_curves(read_runs([str(pretrained)]), tmp_path / "curves.gif")
