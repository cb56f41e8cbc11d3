"""Bundles of the sibling systems: as torch within 1e-5, described whole, run behind the interface of all bundles."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from mqan_cli.main import app
from mqan_core.answer import Masses, Source
from mqan_core.classifying import open_classifying_bundle
from mqan_core.errors import BundleError, InputError
from mqan_core.manifest import MANIFEST, write_manifest
from mqan_core.options import Options, choices_of
from mqan_export.classifying import MAX_DIFFERENCE, compare, export_classifying_bundle
from mqan_export.parity import ParityError
from mqan_export.trained_sibling import load_sibling
from mqan_runtime.classifiers import open_classifier
from mqan_runtime.interface import AnswerEngine, open_engine, verify_files
from mqan_training.errors import MissingFileError
from mqan_training.shared_memory.learning import load_network
from mqan_training.siblings.formats import Row
from tests.sibling_models import BAD, GOOD, train_shared_memory

KINDS = ("shared-memory", "mt-dnn")
SENTIMENT = "Is this sentence negative or positive?"
PREMISE, HYPOTHESIS = "the warm bright film", "a bright story of friends"
DECANLP = (f'Premise: "{PREMISE}"', f'Hypothesis: "{HYPOTHESIS}" -- entailment or not entailment?')
BELOW = (f"Premise: {PREMISE}\nHypothesis: {HYPOTHESIS}", "Does the hypothesis follow from the premise?")


@pytest.fixture(scope="module", params=KINDS)
def bundle(request: pytest.FixtureRequest, sibling_bundle: Callable[[str], Path]) -> Path:
    """The bundle of each kind."""
    return sibling_bundle(request.param)


@pytest.fixture(scope="module")
def memory(sibling_bundle: Callable[[str], Path]) -> AnswerEngine:
    """Shared-memory LSTMs."""
    return open_engine(sibling_bundle("shared-memory"), provider="cpu")


@pytest.fixture(scope="module")
def mt_dnn(sibling_bundle: Callable[[str], Path]) -> AnswerEngine:
    """MT-DNN."""
    return open_engine(sibling_bundle("mt-dnn"), provider="cpu")


def test_a_bundle_says_how_it_is_asked_what_it_answers_and_how_well(bundle: Path) -> None:
    opened = open_classifying_bundle(bundle)
    manifest = opened.manifest
    verify_files(bundle)
    assert {task.name for task in manifest.tasks} == set(manifest.scores) == set(manifest.training["measured_on"])
    assert sorted(path.name for path in bundle.iterdir()) == sorted([*manifest.files, MANIFEST])
    card = (bundle / "README.md").read_text()
    assert all(f"`{q.wording.question}`" in card for q in opened.questions)
    assert "/" not in json.dumps(manifest.training)  # no place of the machine that trained it
    scales = [task for task in manifest.tasks if task.is_scale]
    assert [task.name for task in scales] == (["sts-b"] if manifest.kind == "mt-dnn" else [])
    best = {"shared-memory": ("sst-2", "accuracy"), "mt-dnn": ("cola", "accuracy")}[manifest.kind]
    assert manifest.scores[best[0]][best[1]] >= 75  # a word tells the class


def test_export_compares_every_text_and_refuses_another_model(bundle: Path, tmp_path: Path) -> None:
    model = {"shared-memory": "arc-ii/sst-2", "mt-dnn": "mt-dnn/joint"}[open_classifying_bundle(bundle).manifest.kind]
    trained = load_sibling(bundle.parent / "run" / model)
    opened = open_classifying_bundle(bundle)
    pairs, ranking = ("rte", "sts-b"), "qnli-ranking"
    rows = {task: [Row((PREMISE,)), Row((GOOD,), 1.0)] for task in trained.tasks}
    rows |= {task: [Row((PREMISE, HYPOTHESIS)), Row((BAD, GOOD), 1.0)] for task in pairs if task in rows}
    if ranking in rows:
        rows[ranking] = [Row(("who was late", PREMISE, HYPOTHESIS)), Row((BAD, GOOD, "no"))]
    found = compare(trained, opened, rows)
    assert found.num_texts == 2 * len(rows) + 2 * (ranking in rows)
    assert 0 <= found.max_difference <= MAX_DIFFERENCE
    assert found.scores.keys() == rows.keys()

    wrong = dataclasses.replace(trained, probabilities=lambda *asked: trained.probabilities(*asked) + 2e-5)
    with pytest.raises(ParityError, match="differs by 2"):
        compare(wrong, opened, rows)


def test_an_export_that_fails_leaves_what_was_there(bundle: Path, tmp_path: Path) -> None:
    model = {"shared-memory": "arc-ii/sst-2", "mt-dnn": "mt-dnn/joint"}[open_classifying_bundle(bundle).manifest.kind]
    kept = shutil.copytree(bundle, tmp_path / "bundle")
    run = bundle.parent / "run" / model
    for version, error in (("2", MissingFileError), ("2\n", BundleError)):
        with pytest.raises(error):
            export_classifying_bundle(run, kept, tmp_path, 10, name="n", version=version, model_card=None)
        verify_files(kept)
        assert {path.name for path in kept.iterdir()} == {path.name for path in bundle.iterdir()}


@pytest.mark.parametrize("architecture", ["lstm", "me-lstm", "arc-i"])
def test_every_architecture_is_exported(architecture: str, sibling_data: Path, tmp_path: Path) -> None:
    model = train_shared_memory(tmp_path / "run", sibling_data, architecture, steps=8, fine_tune_steps=0)
    manifest, found = export_classifying_bundle(
        model, tmp_path / "bundle", sibling_data, 10, name="n", version="2", model_card="# card\n"
    )
    assert manifest.memory is not None
    assert manifest.memory.num_memories == {"lstm": 0, "me-lstm": 1, "arc-i": 1}[architecture]
    assert found.num_texts == 10 * len(manifest.tasks)
    assert (tmp_path / "bundle" / "README.md").read_text() == "# card\n"


def test_a_text_that_is_too_long_is_cut_as_in_training_below_the_engine_and_refused_by_it(
    sibling_bundle: Callable[[str], Path], memory: AnswerEngine
) -> None:
    folder = sibling_bundle("shared-memory")
    opened = open_classifying_bundle(folder)
    task = opened.manifest.tasks[0]
    classifier = open_classifier(opened, "cpu", 1)
    end = "the film of two old friends " * 10
    long, short = f"{BAD} " * 20 + end, end
    assert classifier.probabilities(task, (long,)).tolist() == classifier.probabilities(task, (short,)).tolist()
    with pytest.raises(InputError, match="reads at most 60") as raised:
        memory.read(long, SENTIMENT)
    assert raised.value.code == "context_too_long"


def test_a_class_is_answered_with_all_probabilities(memory: AnswerEngine) -> None:
    requests = [memory.read(text, SENTIMENT) for text in ("warm bright film", "dull flat plot")]
    good, bad = memory.answer(requests, [1, 1])
    assert (good.text, bad.text) == ("positive", "negative")
    for answer in (good, bad):
        assert [choice.label for choice in answer.choices] == ["negative", "positive"]
        assert sum(answer.shares) == pytest.approx(1, abs=1e-12)
        assert answer.probability == answer.confidence == max(answer.shares)
        (token,) = answer.tokens
        assert (token.text, token.source, token.span) == (answer.text, Source.VOCABULARY, None)
        assert token.masses == Masses(0.0, 0.0, 1.0)
        assert (answer.chosen, answer.spans, answer.answered, answer.refusal) == ((answer.text,), (), True, 0.0)


def test_torch_says_the_same_after_each_text(memory: AnswerEngine, sibling_bundle: Callable[[str], Path]) -> None:
    import torch

    network, lexicon, _, recipe = load_network(sibling_bundle("shared-memory").parent / "run" / "arc-ii" / "sst-2")
    text = "a warm story of no old plot at all"
    numbers = torch.tensor([lexicon.numbers(text, recipe.most_words)])
    with torch.no_grad():
        expected = torch.softmax(network("sst-2", numbers, torch.tensor([numbers.shape[1]])), -1)[0]
    (answer,) = memory.answer([memory.read(text, SENTIMENT)], [1])
    np.testing.assert_allclose(answer.shares, expected.numpy(), atol=MAX_DIFFERENCE)


def test_a_pair_is_given_as_in_decanlp_or_one_below_the_other(mt_dnn: AnswerEngine) -> None:
    requests = [mt_dnn.read(*asked) for asked in (DECANLP, BELOW)]
    first, second = mt_dnn.answer(requests, [1, 1])
    assert first == second
    assert [choice.label for choice in first.choices] == ["entailment", "not entailment"]
    assert first.tokens[0].piece == f" {first.text.replace(' ', '  ')} "


def test_a_similarity_is_a_scale_and_a_relevance_a_class(mt_dnn: AnswerEngine) -> None:
    alike = mt_dnn.read(f"{PREMISE}\n{HYPOTHESIS}", "How similar are the two sentences, from 0 to 5?")
    question = "How relevant is the sentence to the question?"
    relevant = mt_dnn.read("Question: who was late\nSentence: the film", question)
    score, relevance = mt_dnn.answer([alike, relevant], [1, 1])
    assert [choice.label for choice in score.choices] == list("012345")
    assert score.expected == pytest.approx(sum(i * share for i, share in enumerate(score.shares, start=1)))
    assert sum(share > 0 for share in score.shares) <= 2  # the two levels that it lies between
    assert relevance.text in ("relevant", "not relevant")
    assert relevance.expected is None


@pytest.mark.parametrize(
    ("context", "question", "code"),
    [
        ("the film", "Who made the film?", "unknown_question"),
        ("the film", "Is this sentence acceptable or unacceptable", "unknown_question"),
        (PREMISE, DECANLP[1], "unexpected_context"),
        (f"Premise: {PREMISE}", BELOW[1], "unexpected_context"),
        ("Premise: a\nHypothesis: b\nHypothesis: c", BELOW[1], "unexpected_context"),
        ("Premise: a\nHypothesis: ", BELOW[1], "unexpected_context"),
        (" ", BELOW[1], "empty_context"),
        ("the film", " ", "empty_question"),
        ("the film " * 60, "Is this sentence acceptable or unacceptable?", "context_too_long"),
    ],
)
def test_what_does_not_fit_is_refused(mt_dnn: AnswerEngine, context: str, question: str, code: str) -> None:
    with pytest.raises(InputError) as raised:
        mt_dnn.read(context, question)
    assert raised.value.code == code
    if code == "unknown_question":
        assert "Does the hypothesis follow from the premise?" in raised.value.hint


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (Options(choices_of(["a", "b"])), "choices"),
        (Options(choices_of(["a", "b"]), is_scale=True), "scale"),
        (Options(sources=frozenset([Source.CONTEXT])), "sources"),
        (Options(contiguous=True), "contiguous"),
        (Options(every=True), "all"),
        (Options(alternatives=1), "alternatives"),
        (Options(explain=True), "explain"),
    ],
)
def test_what_only_other_kinds_can_do_is_refused(memory: AnswerEngine, options: Options, field: str) -> None:
    with pytest.raises(InputError) as raised:
        memory.read("warm film", SENTIMENT, options)
    assert (raised.value.code, raised.value.field) == ("option_not_supported", field)


def test_an_unsure_answer_can_be_withheld(memory: AnswerEngine) -> None:
    (answer,) = memory.answer([memory.read("warm film", SENTIMENT, Options(min_probability=1.0))], [1])
    assert (answer.answered, answer.text, answer.chosen) == (False, "", ())
    assert len(answer.choices) == 2


def test_requests_take_turns_leave_and_go_on_together(memory: AnswerEngine) -> None:
    texts = ["warm film", "dull film", "odd plot", "bright story"]
    requests = [memory.read(text, SENTIMENT) for text in texts]
    keys = [object() for _ in texts]
    first = memory.start(requests[:3], [1] * 3, keys[:3])
    assert memory.decided(first, dict.fromkeys(keys, 0)) == [(key, []) for key in keys[:3]]
    ((ended, _),) = memory.step(first)
    assert ended is keys[0]
    memory.drop(first, [keys[1]])
    both = memory.merge([first, memory.start(requests[3:], [1], keys[3:])])
    assert both.num_steps == 1
    ended = {}
    while both.num_live:
        ended |= dict(memory.step(both))
    assert list(ended) == keys[2:]
    alone = memory.answer(requests[2:], [1, 1])
    assert [memory.write(found) for found in ended.values()] == alone


def test_export_verify_and_ask_from_the_command_line(
    sibling_bundle: Callable[[str], Path], sibling_data: Path, tmp_path: Path
) -> None:
    model = sibling_bundle("shared-memory").parent / "run" / "arc-ii" / "subj"
    runner, folder = CliRunner(), str(tmp_path / "bundle")
    result = runner.invoke(app, ["export", str(model), folder, "--data", str(sibling_data), "--num-examples", "5"])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{folder}: tiny-memory 1; 10 texts classified alike, probabilities within ")
    result = runner.invoke(app, ["verify", folder])
    assert "task-subj.onnx" in result.stdout
    assert "runs on CPUExecutionProvider, float32" in result.stdout
    question = "Is this sentence subjective or objective?"
    result = runner.invoke(app, ["ask", question, "--text", "a warm film", "--bundle", folder, "--json"])
    assert json.loads(result.stdout)["answer"] in ("subjective", "objective")
    result = runner.invoke(app, ["ask", "Who is it?", "--text", "a warm film", "--bundle", folder])
    assert result.exit_code == 1
    assert question in result.stderr
    result = runner.invoke(app, ["evaluate", "--bundle", folder])
    assert "README.md has the scores" in result.stderr


def test_graphs_that_compute_something_else_are_refused(sibling_bundle: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(sibling_bundle("shared-memory"), folder)
    manifest = open_classifying_bundle(folder).manifest
    first, *others = manifest.tasks
    more = dataclasses.replace(first, labels=(*first.labels, "neutral"))
    write_manifest(folder, dataclasses.replace(manifest, tasks=(more, *others)))
    with pytest.raises(BundleError, match="the probabilities of 3 classes"):
        open_engine(folder, provider="cpu")
    with pytest.raises(ValueError, match="float32 only"):
        open_engine(folder, provider="cpu", precision="int8")
