"""The comparison of question answering with its baselines: the numbers, and the whole of it in small."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from mqan_baselines.__main__ import app
from mqan_baselines.comparison import compare as comparison
from mqan_baselines.comparison import systems
from mqan_baselines.comparison.recipe import ComparisonRecipe, load_comparison
from mqan_baselines.comparison.report import cell
from mqan_baselines.comparison.systems import (
    Reply,
    System,
    ask,
    ask_in_turns,
    describe,
    measure,
    measure_all,
    question_answering_system,
    questions_of,
)
from mqan_baselines.formats import Row
from mqan_baselines.tasks import Wording
from mqan_core.ask.options import choices_of
from mqan_core.ask.request import read_request
from mqan_training.checkpoint import load_checkpoint
from mqan_training.start import load_trained
from mqan_training.torch_answers import answer_batch
from tests.baselines.models import train_mt_dnn, train_shared_memory

LABELS = ("negative", "positive")
SENTIMENT = Wording("Is this sentence negative or positive?", "{first}")
ROWS = [Row(("a warm bright film",), 1), Row(("a dull flat plot",), 0), Row(("dull odd mess",), 0)]
_MEMORY = """
kind: shared-memory
name: memory
tasks: [imdb]
embedding_width: 6
hidden_width: 6
segments: 3
segment_width: 3
steps: 4
"""
_MT_DNN = """
kind: mt-dnn
name: glue
tasks: [cola]
epochs: 1
"""
_COMPARISON = """
name: tiny
tasks: [sst-2, rte]
renamed: {sst-2: {question: "Is this sentence bad or good?", labels: [bad, good]}}
trained_as: {sst-2: sst}
shared_memory: {recipe: memory.yaml}
mt_dnn: {recipe: glue.yaml, changes: {most_pieces: 48}}
few_shot: {task: sst-2, rows: [8], steps: 2}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    for name, text in (("memory", _MEMORY), ("glue", _MT_DNN), ("comparison", _COMPARISON)):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path / "comparison.yaml"


def test_accuracy_counts_what_is_refused_and_what_is_not_answered_as_wrong() -> None:
    questions = questions_of("sst-2", [*ROWS, Row(("long",), 1)], SENTIMENT, LABELS)
    replies = [
        Reply("positive", None, 4.0),
        Reply("negative", None, 2.0),
        Reply(None, None, 3.0),
        Reply(None, "context_too_long", 99.0),
    ]
    found = measure(questions, replies)
    assert found == {"accuracy": 50.0, "ms": 3.0, "refused": {"context_too_long": 1}}
    assert cell(found, 4) == "50.0 (66.7 of 3 answered)"
    described = describe(questions)
    assert (described["questions"], described["words"], described["most_frequent"]) == (4, 9.5, 50.0)


@pytest.fixture(scope="module")
def memory(baseline_data: Path, tmp_path_factory: pytest.TempPathFactory) -> System:
    return systems.shared_memory_system(train_shared_memory(tmp_path_factory.mktemp("memory"), baseline_data))


@pytest.fixture(scope="module")
def mt_dnn(baseline_data: Path, tmp_path_factory: pytest.TempPathFactory) -> System:
    folder = train_mt_dnn(tmp_path_factory.mktemp("mt-dnn"), baseline_data, tasks=("cola", "rte"), epochs=1)
    return systems.mt_dnn_system(folder)


@pytest.mark.parametrize("name", ["memory", "mt_dnn"])
def test_a_baseline_refuses_what_it_was_not_trained_to_answer(name: str, request: pytest.FixtureRequest) -> None:
    system: System = request.getfixturevalue(name)
    task = system.sources[0]
    (own,) = questions_of(task, [Row(("dull film",), 0)], SENTIMENT, LABELS)
    assert ask(system, own).refused is None
    renamed, unknown, long = replace(own, task=None), replace(own, task="mnli"), replace(own, texts=("film " * 61,))
    found = measure([renamed, unknown], ask_in_turns({name: system}, [renamed, unknown])[name])
    assert found == {"accuracy": None, "ms": None, "refused": {"unknown_question": 2}}
    assert cell(found, 2) == "cannot be asked"
    assert ask(system, long).refused == "context_too_long"


def test_a_baseline_and_question_answering_answer_the_same_question(memory: System, small_checkpoint: Path) -> None:
    systems = {"memory": memory, "asked": question_answering_system(small_checkpoint)}
    questions = questions_of("sst-2", ROWS * 5, SENTIMENT, LABELS)
    num_threads = torch.get_num_threads()
    found = measure_all(systems, questions)
    assert torch.get_num_threads() == num_threads
    assert found["memory"]["accuracy"] == 100
    assert found["asked"]["refused"] == {}
    assert found["asked"]["ms"] > 0
    replies = ask_in_turns(systems, questions)["asked"]
    assert len(replies) == len(questions)
    assert {reply.label for reply in replies} <= {*LABELS}


def test_question_answering_chooses_as_its_answers_do(small_checkpoint: Path) -> None:
    system, trained = question_answering_system(small_checkpoint), load_trained(load_checkpoint(small_checkpoint))
    labels = ("the harbour", "1923", "who wrote notes")
    for text in ("ada wrote notes", "storms had torn its walls", "it was closed in 1923"):
        (question,) = questions_of("x", [Row((text,))], SENTIMENT, labels)
        request = read_request(trained.vocabulary, question.context, question.question, choices_of(labels))
        (answer,) = answer_batch(trained, [request], 4)
        shares = {choice.label: choice.probability for choice in answer.choices}
        assert system.choose(question) == max(shares, key=shares.__getitem__)
    assert system.sources == ("clickbait", "isear_like")


def test_the_whole_comparison(
    recipe: Path, baseline_data: Path, tiny_encoder: Path, small_checkpoint: Path, tmp_path: Path
) -> None:
    output = tmp_path / "run"
    arguments = [str(recipe), "--data", str(baseline_data), "--output", str(output)]
    arguments += ["--checkpoint", str(small_checkpoint)]
    arguments += ["--limit", "12", "--price", "0.1", "--set", f"mt_dnn.changes.encoder={tiny_encoder}"]
    result = CliRunner().invoke(app, ["compare", *arguments])
    assert result.exit_code == 0, result.output
    assert result.stdout == (output / "comparison.md").read_text()
    document = json.loads((output / "comparison.json").read_text())
    assert list(document["systems"]) == ["ARC-II", "MT-DNN", "mqan"]
    for name, folder in (("ARC-II", "arc-ii"), ("MT-DNN", "mt-dnn")):
        size = (output / folder / "joint" / "model.safetensors").stat().st_size
        assert 0 <= size - document["systems"][name]["bytes"] < 10_000  # its header
    sentences, pairs = (document["tasks"][task]["systems"] for task in ("sst-2", "rte"))
    assert all(found["accuracy"] is not None for found in sentences.values())
    assert pairs["ARC-II"]["refused"] == {"unknown_question": 12}
    assert pairs["MT-DNN"]["ms"] > 0
    renamed = document["renamed"]["sst-2"]["systems"]
    assert renamed["MT-DNN"]["accuracy"] is renamed["ARC-II"]["accuracy"] is None
    assert renamed["mqan"]["accuracy"] is not None
    assert list(document["few_shot"]["rows"]) == ["8"]
    assert result.stdout.count("| sst-2 |") == 3
    assert "at 0.1 for a core and hour" in result.stdout
    written = {path: path.stat().st_mtime_ns for path in output.rglob("model.safetensors")}
    assert CliRunner().invoke(app, ["compare", *arguments]).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in output.rglob("model.safetensors")} == written


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tasks": "[sts-b]"}, "sts-b: only tasks with classes are compared"),
        ({"tasks": "[rte]"}, "few_shot.task: 'sst-2' is none of the tasks"),
        ({"renamed.sst-2.labels": "[bad]"}, "renamed.sst-2: needs 2 different labels"),
        ({"renamed.sst-2.labels": "[bad, good, bad]"}, "renamed.sst-2: needs 2 different labels"),
        ({"renamed.mnli": '{question: "So?", labels: [a]}'}, "renamed.mnli: needs 3 different labels"),
        ({"renamed.sst2": '{question: "So?", labels: [a, b]}'}, "renamed.sst2: the baselines have no task 'sst2'"),
        ({"trained_as.sst2": "sst"}, "trained_as.sst2: the baselines have no task 'sst2'; did you mean sst-2"),
        ({"speed": "1"}, "speed: Extra inputs are not permitted"),
    ],
)
def test_what_is_wrong_in_a_recipe_is_told(recipe: Path, change: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match="comparison.yaml") as raised:
        load_comparison(recipe, change)
    assert message in str(raised.value)


def test_the_shipped_recipe_is_right(repository: Path) -> None:
    loaded: ComparisonRecipe = load_comparison(repository / "baselines" / "recipes" / "comparison.yaml")
    memory, mt_dnn = loaded.memory_recipe(Path("run")), loaded.mt_dnn_recipe()
    assert memory is not None
    assert memory.architecture == "arc-ii"
    assert set(memory.tasks) == set(loaded.tasks) - {"mnli", "rte"}
    assert mt_dnn.tasks == loaded.tasks
    for task in loaded.renamed:
        loaded.wording_of_renamed(task, SENTIMENT if task not in ("mnli", "rte") else Wording("?{second}", "p {first}"))


def test_no_task_that_is_not_compared_is_read_for_adaptation(repository: Path) -> None:
    loaded = load_comparison(repository / "baselines" / "recipes" / "comparison.yaml")
    mt_dnn = loaded.mt_dnn_recipe()
    assert mt_dnn.adaptation is None
    assert comparison.few_recipes(loaded, (None, mt_dnn), 16)[1].adaptation is None
