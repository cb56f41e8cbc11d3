"""Recipes: they load, say what is wrong with them, and survive being written down."""

import json
from pathlib import Path

import pytest

from mqan_data.formats.dataset_file import load_dataset
from mqan_data.mixture import OWN, dataset_of, load_sources
from mqan_data.tasks import tasks_named
from mqan_training.recipe import ModelConfig, Recipe, load_recipe, parse_recipe
from mqan_training.tasks import is_task, without_missing

RECIPES = sorted((Path(__file__).resolve().parents[2] / "training" / "recipes").glob("*.yaml"))
TINY = "name: tiny\nsteps: 3\nsources: {sst: 1}\n"
WORDS = TINY + "reader: {kind: words, vectors: v}\n"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return tmp_path / "tiny.yaml"


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_loads_and_survives_json(path: Path, tmp_path: Path) -> None:
    recipe = load_recipe(path)
    assert recipe.name == path.stem
    tasks_named(name for name in recipe.sources if is_task(recipe, name))  # raises for one that is not known
    load_sources(tmp_path, [name for name in recipe.sources if name != OWN and not is_task(recipe, name)])
    assert parse_recipe(json.loads(json.dumps(recipe.model_dump(mode="json"))), "checkpoint") == recipe


def test_there_are_recipes() -> None:
    assert {"debug", "default", "ladder", "paper"} <= {path.stem for path in RECIPES}


@pytest.mark.parametrize("name", ["transfer-en-cs", "transfer-ner"])
def test_transfer_recipes_fit_the_papers(name: str, repository: Path) -> None:
    """A run can start from it with the recipe as it is, so that a run from random weights differs in nothing else."""
    one, paper = (load_recipe(repository / "training" / "recipes" / f"{stem}.yaml") for stem in (name, "paper"))
    assert (one.words.model, one.words.vectors) == (paper.words.model, paper.words.vectors)
    assert one.num_generated > paper.num_generated, "there is room for the task's own words"
    assert not one.sources.keys() & paper.sources.keys()


def test_the_permissive_recipe_has_no_dataset_that_forbids_commercial_use(repository: Path) -> None:
    folder = repository / "training" / "recipes"
    default, permissive = (load_recipe(folder / f"{name}.yaml") for name in ("default", "permissive"))
    allowed = {
        name for name in default.sources if name.startswith("made_") or load_dataset(dataset_of(name)).commercial
    }
    assert set(permissive.sources) == allowed < set(default.sources)


def test_sources_without_files_are_left_out(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    default = load_recipe(repository / "training" / "recipes" / "default.yaml")
    found = without_missing(default, tmp_path)
    assert {"everyday", "made_mails"} <= set(found.sources) < set(default.sources), "what comes with the project"
    assert "squad" not in found.sources
    assert "squad_facts" not in found.sources
    assert "squad_facts, " in " ".join(capsys.readouterr().err.split())
    phased = Recipe(
        name="two", steps=9, reader={"kind": "words", "vectors": "v"}, sources={"sst": 1, "squad": 2},
        validate_sources=("squad", "sst"), phases=({"steps": 3, "weights": {"squad": 1, "sst": 3}},),
    )  # fmt: skip
    (tmp_path / "sst").mkdir()
    for split in ("train", "dev"):
        (tmp_path / "sst" / f"{split}_binary_sent.csv").touch()
    found = without_missing(phased, tmp_path)
    assert (found.sources, found.validate_sources, found.phases[0].weights) == ({"sst": 1}, ("sst",), {"sst": 3})
    with pytest.raises(ValueError, match="has the files of no source of two: get some with `mqan data get`"):
        without_missing(phased, tmp_path / "nowhere")


def test_overrides_reach_the_reader(recipe: Path) -> None:
    recipe.write_text(TINY)
    assert load_recipe(recipe, {"reader.decoder.width": "64"}).pieces.decoder.width == 64
    recipe.write_text(WORDS)
    assert load_recipe(recipe, {"reader.model.width": "64", "decoder_rate": "1e-3"}).words.model == ModelConfig(
        width=64
    )
    with pytest.raises(ValueError, match="tiny has the paper's reader; this needs one of word pieces"):
        _ = load_recipe(recipe).pieces


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TINY + "colour: red\n", r"tiny\.yaml: colour: Extra inputs"),
        (TINY.replace("steps: 3", "steps: 0"), r"tiny\.yaml: steps: .* greater than or equal to 1"),
        (TINY + "decoder_rate: .inf\n", "decoder_rate: .* finite"),
        (TINY + "reader: {kind: letters}\n", "reader: .*'letters'"),
        (TINY + "reader: {vectors: v}\n", r"reader\.vectors: Extra inputs"),
        (WORDS.replace(", vectors: v", ""), r"reader\.vectors: Field required"),
        (WORDS.replace("vectors: v", "vectors: v, model: {widht: 3}"), r"reader\.model\.widht: Unexpected"),
        (WORDS.replace("vectors: v", "vectors: v, model: {norm: both}"), r"reader\.model\.norm: .*'pre' or 'post'"),
        (TINY.replace("sst: 1", "sst: -1, woz: 2"), r"sources: .*the weight of sst is -1\.0; it must"),
        (TINY.replace("sst: 1", "sst: .nan"), "the weight of sst is nan; it must"),
        (TINY.replace("sst: 1", "sst: 0"), "there must be a source with a weight above 0"),
        (TINY.replace("{sst: 1}", "{}"), "there must be a source with a weight above 0"),
        (TINY + "phases: [{steps: 2, weights: {imdb: 1}}]\n", "phases: imdb not among the sources"),
        (TINY + "phases: [{steps: 2, weights: {sst: 0}}]\n", "there must be a source with a weight above 0"),
        (TINY + "phases: [{steps: 4, weights: {sst: 1}}]\n", "phases: take 4 steps, the run has 3"),
        (TINY.replace("sst: 1", "sst: 1.5") + "order: by_task\n", "a weight is a number of batches"),
        ("- a\n", r"tiny\.yaml: expected a mapping of settings"),
        ("{", r"tiny\.yaml: not YAML"),
    ],
)
def test_a_wrong_recipe_says_what(recipe: Path, text: str, message: str) -> None:
    recipe.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_recipe(recipe)


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("modle.width", "3", "modle: Extra inputs"),
        ("steps.more", "3", r"override steps\.more: steps is not a group of settings"),
        ("steps", "[3", "override steps: not YAML"),
    ],
)
def test_a_wrong_override_says_what(recipe: Path, key: str, text: str, message: str) -> None:
    recipe.write_text(TINY)
    with pytest.raises(ValueError, match=message):
        load_recipe(recipe, {key: text})


def run(steps: int, *phases: tuple[int, dict[str, int]]) -> Recipe:
    stretches = [{"steps": number, "weights": weights} for number, weights in phases]
    return Recipe.model_validate({"name": "r", "steps": steps, "sources": {"sst": 2, "mwsc": 1}, "phases": stretches})


def test_phases_come_first() -> None:
    recipe = run(10, (3, {"mwsc": 1}), (2, {"sst": 1}))
    assert [recipe.phase_after(step) for step in range(7)] == [1, 1, 1, 2, 2, 0, 0]
    assert [recipe.weights_of(phase) for phase in (1, 2, 0)] == [{"mwsc": 1}, {"sst": 1}, {"sst": 2, "mwsc": 1}]
    assert run(4).phase_after(0) == 0
