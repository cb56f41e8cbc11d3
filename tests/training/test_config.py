"""Recipes: they load, say what is wrong with them, and survive being written down."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqan_data.settings import parse
from mqan_data.tasks import tasks_named
from mqan_training.config import ModelConfig, OptimConfig, TrainConfig, load_config, to_document
from mqan_training.curriculum import schedule
from mqan_training.recipe import is_mixture

RECIPES = [
    path
    for path in sorted((Path(__file__).resolve().parents[2] / "training" / "recipes").glob("*.yaml"))
    if not is_mixture(path)  # those of a pretrained reader are read by ``recipe.py``
]
TINY = "name: tiny\nsteps: 3\nvectors: v.safetensors\ntasks: [{name: sst}]\n"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return path


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_loads_and_survives_json(path: Path) -> None:
    config = load_config(path)
    assert config.name == path.stem
    tasks_named(task.name for task in config.tasks)  # raises for one that is not known
    assert len(schedule(config)) == config.steps
    assert parse(TrainConfig, json.loads(json.dumps(to_document(config))), "checkpoint") == config


@pytest.mark.parametrize("name", ["transfer-en-cs", "transfer-ner"])
def test_transfer_recipes_fit_the_papers(name: str, repository: Path) -> None:
    """A run can start from it with the recipe as it is, so that a run from random weights differs in nothing else."""
    config, paper = (load_config(repository / "training" / "recipes" / f"{stem}.yaml") for stem in (name, "paper"))
    assert config.model == paper.model
    assert config.vectors == paper.vectors
    assert config.num_generated > paper.num_generated, "there is room for the task's own words"
    assert {task.name for task in config.tasks}.isdisjoint({task.name for task in paper.tasks})


def test_there_are_recipes() -> None:
    assert {"debug", "ladder", "paper"} <= {path.stem for path in RECIPES}


def test_what_a_recipe_leaves_out_has_its_default(recipe: Path) -> None:
    config = load_config(recipe)
    assert (config.model, config.optim, config.seed) == (ModelConfig(), OptimConfig(), 123)
    assert config.tasks[0].weight == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TINY + "speed: 3\n", r"tiny\.yaml: unknown key 'speed'; the keys are autocast, batch_tokens"),
        (TINY + "model: {widht: 3}\n", r"tiny\.yaml: model: unknown key 'widht'; the keys are .*width"),
        (TINY.replace("{name: sst}", "{name: sst}, {weight: 2}"), r"tasks\[1\]: the key 'name' is missing"),
        (TINY.replace("vectors", "# vectors"), r"tiny\.yaml: the key 'vectors' is missing"),
        (TINY.replace("steps: 3", "steps: 3.5"), r"steps: expected int, found 3\.5"),
        (TINY.replace("steps: 3", "steps: yes"), r"steps: expected int, found True"),
        (TINY.replace("steps: 3", "steps: '3'"), r"steps: expected int, found '3'"),
        (TINY.replace("name: tiny", "name: 7"), r"name: expected str, found 7"),
        (TINY + "model: {input_residual: 1}\n", r"model: input_residual: expected bool, found 1"),
        (TINY + "model: {dropout: much}\n", r"model: dropout: expected float, found 'much'"),
        (TINY + "model: {dropout: yes}\n", r"model: dropout: expected float, found True"),
        (TINY + "model: {norm: both}\n", r"model: norm: 'both' is not one of 'pre', 'post'"),
        (TINY + "autocast: float16\n", r"autocast: 'float16' is not one of 'none', 'bfloat16'"),
        (TINY + "model: 3\n", r"model: expected a mapping, found 3"),
        (TINY + "optim: {betas: [0.9]}\n", r"betas: expected 2 values, found 1"),
        (TINY + "optim: {betas: 0.9}\n", r"betas: expected a list, found 0\.9"),
        (
            TINY + "phases: [{steps: 2, weights: {sst: much}}]\n",
            r"phases\[0\]: weights\.sst: expected int",
        ),
        (TINY + "phases: [{steps: 2, weights: [sst]}]\n", r"weights: expected a mapping, found \['sst'\]"),
        (TINY.replace("steps: 3", "steps: 0"), r"tiny\.yaml: steps is 0; it must be at least 1$"),
        (TINY + "batch_tokens: 0\n", r"tiny\.yaml: batch_tokens is 0; it must be at least 1$"),
        (TINY + "num_generated: 0\n", r"tiny\.yaml: num_generated is 0; it must be at least 1$"),
        (TINY + "validate_examples: -1\n", r"tiny\.yaml: validate_examples is -1; it must be at least 0$"),
        (TINY + "validate_every: 0\n", r"validate_every is 0; it must be at least 1 \(more than steps: not before the"),
        (TINY + "checkpoint_every: -5\n", r"tiny\.yaml: checkpoint_every is -5; it must be at least 1 "),
        (TINY + "log_every: 0\n", r"tiny\.yaml: log_every is 0; it must be at least 1 "),
        (TINY.replace("{name: sst}", "{name: sst}, {name: sst}"), r"tiny\.yaml: tasks: sst named twice$"),
        (TINY + "optim: {peak_rate: 0}\n", r"optim: peak_rate is 0\.0; it must be a finite number above 0$"),
        (TINY + "optim: {peak_rate: .nan}\n", r"optim: peak_rate is nan; it must be a finite number above 0$"),
        (TINY + "optim: {epsilon: .inf}\n", r"optim: epsilon is inf; it must be a finite number above 0$"),
        (TINY + "optim: {grad_clip: -1}\n", r"optim: grad_clip is -1\.0; it must be above 0$"),
        (
            TINY + "optim: {warmup_steps: -1}\n",
            r"optim: warmup_steps is -1; it must be a finite .* at least 0$",
        ),
        (
            TINY + "optim: {weight_decay: -1}\n",
            r"optim: weight_decay is -1\.0; it must be a finite .* at least 0$",
        ),
        (TINY + "optim: {betas: [0.9, 1]}\n", r"optim: betas has 1\.0; it must be at least 0 and below 1$"),
        (TINY + "optim: {average_decay: 1}\n", r"optim: average_decay has 1\.0; it must be at least 0 and below 1$"),
        ("- a\n- b\n", r"tiny\.yaml: expected a mapping of settings"),
        ("", r"tiny\.yaml: expected a mapping of settings"),
        ("name: [", r"tiny\.yaml: not YAML"),
    ],
)
def test_a_wrong_recipe_says_where_and_what(recipe: Path, text: str, message: str) -> None:
    recipe.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_config(recipe)


def test_gradients_need_not_be_clipped(recipe: Path) -> None:
    recipe.write_text(TINY + "optim: {grad_clip: .inf}\n")
    assert load_config(recipe).optim.grad_clip == float("inf")


def test_a_run_may_validate_on_no_examples(recipe: Path) -> None:
    assert load_config(recipe, {"validate_examples": "0"}).validate_examples == 0


def test_1e_3_is_a_number_although_yaml_reads_text(recipe: Path) -> None:
    recipe.write_text(TINY + "optim: {peak_rate: 1e-3, epsilon: 1}\n")
    config = load_config(recipe)
    assert (config.optim.peak_rate, config.optim.epsilon) == (1e-3, 1.0)
    assert isinstance(config.optim.epsilon, float)


def test_overrides_reach_into_groups(recipe: Path) -> None:
    overrides = {"steps": "9", "optim.peak_rate": "1e-4", "model.norm": "post", "optim.betas": "[0.5, 0.6]"}
    config = load_config(recipe, overrides)
    expected = replace(
        load_config(recipe),
        steps=9,
        optim=OptimConfig(peak_rate=1e-4, betas=(0.5, 0.6)),
        model=ModelConfig(norm="post"),
    )
    assert config == expected


def test_overrides_name_a_task(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text("name: two\nsteps: 3\nvectors: v\ntasks: [{name: sst, weight: 2}, {name: woz, weight: 2}]\n")
    config = load_config(path, {"tasks.woz.weight": "7"})
    assert [(task.name, task.weight) for task in config.tasks] == [("sst", 2), ("woz", 7)]


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("model.widht", "3", "unknown key 'widht'"),
        ("modle.width", "3", "unknown key 'modle'"),
        ("steps.more", "3", r"override steps\.more: steps is not a group of settings"),
        ("tasks.0", "3", r"override tasks\.0: tasks is a list: say of which entry"),
        ("tasks.sts.weight", "3", r"override tasks\.sts\.weight: the recipe has no 'sts'; it has sst"),
        ("tasks.sst.share", "3", "unknown key 'share'"),
        ("steps", "many", "steps: expected int, found 'many'"),
        ("log_every", "0", "log_every is 0; it must be at least 1"),
        ("steps", "[3", "override steps: not YAML"),
    ],
)
def test_a_wrong_override_says_what(recipe: Path, key: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_config(recipe, {key: text})


def test_a_configuration_is_read_back_from_plain_types() -> None:
    document: dict[str, Any] = {
        "name": "all",
        "steps": 9,
        "vectors": "v",
        "tasks": [{"name": "sst", "weight": 2}, {"name": "woz"}],
        "phases": [{"steps": 2, "weights": {"sst": 1, "woz": 3}}],
        "optim": {"betas": [0.8, 0.99], "schedule": "linear"},
    }
    config = parse(TrainConfig, document, "here")
    assert config.tasks[0].weight == 2
    assert config.phases[0].weights == {"sst": 1, "woz": 3}
    assert parse(TrainConfig, to_document(config), "there") == config
    assert json.loads(json.dumps(to_document(config)))["optim"]["betas"] == [0.8, 0.99]
