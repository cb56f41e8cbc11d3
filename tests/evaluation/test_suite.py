"""The suite as a whole: its parts are chosen by name, its numbers are those of the answers, its command prints them."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from mqan_cli.main import app
from mqan_core.answer.calibration import Calibration, Temperatures
from mqan_core.answer.types import Answer, ChoiceProbability
from mqan_core.ask.options import Options
from mqan_core.bundle import open_bundle, verify_files
from mqan_core.example import Choice, Example
from mqan_core.manifest import MODEL_CARD
from mqan_evaluation import suite
from mqan_evaluation.answerers import Answerer, TorchAnswerer
from mqan_evaluation.decanlp_section import decanlp_section, task_examples
from mqan_evaluation.field_sections import field_section, review_section
from mqan_evaluation.judging import judge, majority, refusal_scores
from mqan_evaluation.label_sections import SentenceSimilarity, label_sections
from mqan_evaluation.sections import Cell, Measuring, Section
from mqan_evaluation.suite import SECTIONS, Measured, chosen_names, record_suite, run_suite, write_suite
from mqan_runtime.engine import Engine

EMOTIONS = ("joy", "fear", "anger", "sadness", "disgust", "shame", "guilt")


def said(text: str | None, *chosen: str, probability: float = 0.9, refusal: float = 0.1) -> Answer:
    answered = text is not None
    return Answer(text or "", probability, (), (), False, answered=answered, refusal=refusal, chosen=chosen)


class Knowing(Answerer):
    title, where, sources = "knowing", "in a test", ()

    def __init__(self, right: Mapping[str, str]) -> None:
        self._right = right

    def answer(self, asked: Sequence[Example]) -> list[Answer | None]:
        return [self._one(example) for example in asked]

    def _one(self, ask: Example) -> Answer:
        labels = [choice.label for choice in ask.choices]
        if not labels:
            text = self._right.get(ask.context)
            return said(text)
        known = self._right.get(ask.context)
        label = known if known in labels else min(labels)
        masses = [0.9 if one == label else 0.1 / len(labels) for one in labels]
        choices = tuple(ChoiceProbability(one, mass, mass, 1.0) for one, mass in zip(labels, masses, strict=True))
        return replace(said(label), refusal=0.0, choices=choices, chosen=(label,))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "isear").mkdir(parents=True)
    rows = [f"{emotion}\tText {i} of {emotion}." for i, emotion in enumerate(EMOTIONS + EMOTIONS)]
    (folder / "isear" / "dev.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "sst").mkdir()
    lines = ["label,sentence", *(f"{i % 2},film number {i}" for i in range(10))]
    (folder / "sst" / "dev_binary_sent.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_parts_are_chosen_by_the_name_of_a_section_or_a_set() -> None:
    assert set(chosen_names(None, has_cases=True)) == set(SECTIONS)
    assert "cases" not in chosen_names(None, has_cases=False)
    assert chosen_names(["isear", "made"], has_cases=False) == {"labels": ["isear"], "made": []}
    with pytest.raises(ValueError, match="--cases FILE"):
        chosen_names(["cases"], has_cases=False)
    with pytest.raises(ValueError, match="did you mean isear"):
        chosen_names(["isaer"], has_cases=False)


def test_a_model_that_knows_is_right_however_it_is_asked(data: Path) -> None:
    right = {f"Text {i} of {emotion}.": emotion for i, emotion in enumerate(EMOTIONS + EMOTIONS)}
    measuring = Measuring(Knowing(right), data)
    labels, otherwise = label_sections(measuring, ["isear"])
    (row,) = labels.rows
    columns = ("labels", "examples", "majority", "accuracy", "refused")
    assert [row[column] for column in columns] == [7, 14, 14.29, 100.0, 0.0]
    (row,) = otherwise.rows
    assert (row["reversed: same"], row["labels in question: accuracy"], row["largest change"]) == (100.0, 100.0, 0.0)
    assert (
        row["synonyms: accuracy"] == 14.29
    )  # it knows no synonyms, and chooses the first label: of one emotion in seven
    assert row["yes/no: accuracy"] == 50.0  # always no
    views = {answer["section"] for answer in measuring.answers}
    assert {"isear", "isear (reversed)", "isear (synonyms)", "isear (yes/no)", "isear (wording 3)"} <= views


def test_majority_and_refusals() -> None:
    def example(question: str, *answers: str) -> Example:
        return Example("t", "1", "text", question, answers)

    examples = [example("p", "a"), example("p", "a"), example("q", "b"), example("q", "b"), example("q", "a")]
    assert majority(examples) == 60.0
    assert majority(examples, by_question=True) == 80.0
    asked = [example("p"), example("p"), example("p", "a"), example("p", "a"), example("p", "a")]
    refused, answered = said(None, refusal=0.9), said("a")
    scores = refusal_scores(asked, [refused, answered, refused, answered, None])
    assert scores["precision"] == scores["recall"] == scores["refusal F1"] == 50.0
    assert scores["always refusing"] == pytest.approx(200 * 0.4 / 1.4, abs=0.01)


def test_answers_are_judged_by_their_kind() -> None:
    free = Example("t", "1", "text", "q", ("the old harbour",))
    assert judge(free, said("old harbour")) == (1.0, 1.0)
    assert judge(free, said("harbour")) == pytest.approx((0.0, 2 / 3))
    assert judge(free, said(None)) == judge(free, None) == (0.0, 0.0)
    no_answer = Example("t", "1", "text", "q", ())
    assert judge(no_answer, said(None)) == (1.0, 1.0)
    assert judge(no_answer, said("harbour")) == judge(no_answer, None) == (0.0, 0.0)
    several = Example("t", "1", "text", "q", ("a", "b"), choices=tuple(map(Choice, "abc")), multiple=True)
    assert judge(several, said("a", "a")) == pytest.approx((0.0, 2 / 3))
    assert judge(several, said("a, b", "b", "a")) == (1.0, 1.0)


def test_classes_are_renamed_in_the_question_and_as_choices(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {f"film number {i}": ("negative", "positive")[i % 2] for i in range(10)}
    measuring = Measuring(Knowing(own), data)
    monkeypatch.setattr("mqan_evaluation.field_sections.OTHER_DOMAIN", "sst")
    rows = {str(row["set"]): row for row in review_section(measuring).rows}
    assert rows["sst: own names"]["as choices"] == rows["sst: own names, reversed"]["as choices"] == 100.0
    assert rows["sst: happy or angry"]["as choices"] == 50.0  # it knows the own names alone, and chooses "angry"


def test_the_nearest_label_is_chosen() -> None:
    similarity = SentenceSimilarity()
    texts = ["The striker scored twice in the second half.", "Bake the bread for forty minutes."]
    assert similarity.choose(texts, [["cooking", "football", "law"], ["football", "cooking"]]) == [
        "football",
        "cooking",
    ]
    lengths = np.linalg.norm(similarity.vectors(["short", "a much longer text " * 20]).numpy(), axis=1)
    assert lengths == pytest.approx([1, 1], abs=1e-5)


def test_the_suite_writes_what_it_found(data: Path, tmp_path: Path, tiny_answerer: TorchAnswerer) -> None:
    shown: list[Section] = []
    measuring = Measuring(tiny_answerer, data, limit=4)
    measured = run_suite(measuring, ["isear", "sst"], show=shown.append)
    assert [section.name for section in measured.sections] == ["labels", "labels-otherwise", "decanlp", "trust"]
    assert shown == measured.sections
    numbers, lines = write_suite(tmp_path / "found", measured, measuring.answers)
    document = json.loads(numbers.read_text(encoding="utf-8"))
    assert document["sections"][0]["rows"][0]["set"] == "isear"
    answers = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    of_set = [answer["right"] for answer in answers if answer["section"] == "isear"]
    assert document["sections"][0]["rows"][0]["accuracy"] == 100 * sum(of_set) / 4


def test_the_command_prints_tables_and_refuses_what_does_not_fit(
    data: Path, tmp_path: Path, small_checkpoint: Path
) -> None:
    cases = tmp_path / "cases.jsonl"
    row = {"id": "a", "kind": "x", "context": "It is 12.", "question": "What is it?", "answers": ["12"]}
    cases.write_text(json.dumps(row) + "\n", encoding="utf-8")
    base = ["evaluate", "--checkpoint", str(small_checkpoint), "--data", str(data)]
    output = tmp_path / "out"
    found = CliRunner().invoke(
        app, [*base, "--cases", str(cases), "--tasks", "cases,isear", "--limit", "3", "--output", str(output)]
    )
    assert found.exit_code == 0, found.output
    assert "tiny, step 1, in torch" in found.output
    assert "Questions that users report" in found.output
    assert json.loads((output / "suite.json").read_text(encoding="utf-8"))["limit"] == 3
    for arguments, message in (
        ([*base, "--tasks", "isaer"], "did you mean isear"),
        ([*base, "--tasks", "cases"], "--cases FILE"),
        ([*base, "--tasks", " ,"], "no name is given"),
        ([*base, "--precision", "int8"], "--precision is for a bundle"),
        ([*base, "--bundle", str(tmp_path)], "give either --bundle or --checkpoint"),
        ([*base, "--record"], "--record writes into a bundle"),
    ):
        failed = CliRunner().invoke(app, arguments)
        assert failed.exit_code != 0
        assert message in " ".join(failed.output.split())


def test_what_was_measured_is_recorded_in_the_bundle_and_its_card(
    data: Path, small_bundle: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(small_bundle, bundle)
    before = open_bundle(bundle)
    arguments = ["evaluate", "--data", str(data), "--tasks", "isear,sst", "--limit", "4", "--threads", "2", "--record"]
    (cases := tmp_path / "cases.jsonl").write_text("", encoding="utf-8")
    found = CliRunner().invoke(app, [*arguments, "--bundle", str(bundle), "--cases", str(cases)])
    assert found.exit_code == 0, found.output
    after = open_bundle(bundle)
    verify_files(bundle)
    assert after.sha256 != before.sha256
    assert set(after.manifest.scores) == {"isear", "sst"}
    assert 0 <= after.manifest.scores["isear"]["accuracy"] <= 100
    card = (bundle / MODEL_CARD).read_text(encoding="utf-8")
    accuracy = after.manifest.scores["isear"]["accuracy"]
    assert "| isear | 7 | 4 | " in card
    assert f" {accuracy:g} |" in card
    assert "`mqan evaluate --bundle BUNDLE --tasks isear,sst --limit 4 --cases FILE`" in card


def test_a_manifest_holds_the_maps_that_were_fitted(small_bundle: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(small_bundle, bundle)
    rows: list[dict[str, Cell]] = [{"task": "sst", "metric": "em", "score": 88.25, "examples": 872}]
    maps = {"choices/2": Calibration(0.5, 0.0), "free": Calibration(1.5, -0.25)}
    measured = Measured("m", "here", None, 1, [Section("decanlp", "Ten tasks", rows)], maps)
    wrong = {"section": "sst", "is_read": True, "right": False, "context": "a | b", "question": "Good?"}
    answers = [{**wrong, "choices": ["x", "y"], "gold": [], "answer": "x"}]
    record_suite(bundle, measured, answers, command="c", refusal_offset=-0.5)
    record_suite(bundle, measured, answers, command="c")  # keeps the offset
    opened = open_bundle(bundle)
    assert opened.manifest.refusal_offset == -0.5
    assert opened.manifest.scores == {"sst": {"em": 88.25}}
    engine = Engine(opened)
    options = Options(choices=(Choice("negative"), Choice("positive")))
    plain = Engine(replace(opened, manifest=replace(opened.manifest, calibration={})))
    asked = ("The harbour was closed in 1923.", "negative or positive?", options)
    mapped, given = (e.answer([e.read(*asked)], [1])[0] for e in (engine, plain))
    expected = Temperatures(opened.manifest.calibration).calibrate(given)
    assert mapped.shares == pytest.approx(expected.shares, abs=1e-9)
    assert (mapped.probability, mapped.refusal) == pytest.approx((expected.probability, expected.refusal), abs=1e-9)
    assert mapped.shares != pytest.approx(given.shares, abs=1e-3)
    card = (bundle / MODEL_CARD).read_text(encoding="utf-8")
    assert "| sst | a \\| b | Good? (x, y) | x | (not in the text) |" in card


def test_what_is_interrupted_leaves_the_bundle_as_it_was(
    small_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(small_bundle, bundle)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(suite, "write_manifest", interrupt)
    with pytest.raises(KeyboardInterrupt):
        record_suite(bundle, Measured("m", "here", None, 1, []), [], command="c")
    verify_files(bundle)
    assert (bundle / MODEL_CARD).read_bytes() == (small_bundle / MODEL_CARD).read_bytes()


def test_a_card_quotes_neither_texts_of_users_nor_insults(small_bundle: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(small_bundle, bundle)
    names = ("sst", "cases", "hate_davidson")
    rows: list[dict[str, Cell]] = [{"set": name, "answers": 1, "ECE": 0.5} for name in names]
    measured = Measured("m", "here", None, 1, [Section("trust", "How far probabilities can be trusted", rows)])
    wrong = {"is_read": True, "right": False, "question": "Good?", "choices": [], "gold": [], "answer": "x"}
    answers = [{**wrong, "section": name, "context": f"a text of {name}"} for name in names]
    record_suite(bundle, measured, answers, command="c")
    card = (bundle / MODEL_CARD).read_text(encoding="utf-8")
    assert [name for name in names if f"a text of {name}" in card] == ["sst"]


def test_a_card_quotes_people_where_they_were_asked(small_bundle: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(small_bundle, bundle)
    rows: list[dict[str, Cell]] = [{"kind": "yes", "questions": 9, "right": 0.0}]
    measured = Measured("m", "here", None, 1, [Section("everyday", "Questions on everyday texts", rows)])
    wrong = {"is_read": True, "right": False, "gold": [], "answer": "x", "context": "a text"}
    asked = [("everyday", ["yes", "no"], "Is it"), ("everyday", [], "Who is it"), ("sst", [], "Good")]
    answers = [
        {**wrong, "section": name, "choices": choices, "question": f"{words} {number}?"}
        for name, choices, words in asked
        for number in range(9)
    ]
    record_suite(bundle, measured, answers, command="c")
    card = (bundle / MODEL_CARD).read_text(encoding="utf-8")
    assert [card.count(f"| {words} ") for *_, words in asked] == [4, 6, 0]
    assert open_bundle(bundle).manifest.scores == {"everyday: yes": {"accuracy": 0.0}}


@pytest.mark.data
def test_real_sets_are_measured(data_folder: Path, tiny_answerer: TorchAnswerer) -> None:
    measuring = Measuring(tiny_answerer, data_folder, limit=3)
    names = ["banking77", "youtube_spam", "restaurant8k", "squad2_dev", "pubmedqa", "sst", "mwsc", "reviews"]
    measured = run_suite(measuring, names)
    rows = {str(row.get("set") or row.get("task")): row for section in measured.sections for row in section.rows}
    assert rows["pubmedqa"]["majority"] == 55.2
    assert rows["squad2_dev"]["examples"] == rows["restaurant8k"]["examples"] == 3
    # 77 labels can be read as choices; named in a question, in pieces of one letter, they are too long
    unread = {answer["section"] for answer in measuring.answers if not answer["is_read"]}
    assert unread <= {"banking77 (named)", "banking77 (named, reversed)"}


@pytest.mark.data
def test_dialogues_stay_whole(data_folder: Path, tiny_answerer: TorchAnswerer) -> None:
    measuring = Measuring(tiny_answerer, data_folder, limit=4)
    turns = [example.reference or {} for example in task_examples(measuring, "woz", "joint_goal_em")]
    assert len(turns) >= 4
    assert turns[0]["turn"] == min(turn["turn"] for turn in turns)
    assert [turn["dialogue"] for turn in turns] == sorted((turn["dialogue"] for turn in turns), key=str)


@pytest.mark.data
def test_tasks_without_answers_and_with_references_are_scored(data_folder: Path, tiny_answerer: TorchAnswerer) -> None:
    section = decanlp_section(Measuring(tiny_answerer, data_folder, limit=3), ["zre", "wikisql", "iwslt"])
    assert {row["task"]: row["metric"] for row in section.rows} == {
        "zre": "corpus_f1",
        "wikisql": "lfem",
        "iwslt": "bleu",
    }
    assert section.summary["sum of squad, sst, qasrl, woz, wikisql and mwsc"] is None
    fields = field_section(Measuring(tiny_answerer, data_folder, limit=3), ["e2e_nlg"])
    assert fields.rows[0]["examples"] == 3
