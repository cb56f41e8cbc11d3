"""Yes/no questions and statements: the three verdicts, in every way of asking."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqan_core.example import Example
from mqan_data.files import DatasetError
from mqan_data.formats.dataset_file import Dataset, FactsPart, load_dataset
from mqan_data.formats.reading import read_rows
from mqan_data.formats.rows import FactRow, Verdict
from mqan_data.mixture import DatasetSource
from mqan_data.questions import facts
from mqan_data.questions.asked import wordings
from mqan_data.settings import parse

_BODY: Mapping[str, Any] = {
    "shape": "facts",
    "format": "jsonl",
    "files": {"train": ["a.jsonl"]},
    "text": "{text}",
    "label": "{label}",
    "yes": ["E"],
    "no": ["C"],
    "unknown": ["N"],
}
_AFFIRMING = ("yes", "true", "confirmed", "correct", "supported", "right")
_DENYING = ("no", "false", "denied", "incorrect", "refuted", "wrong")
_NEGATED = ("is it false", "is it wrong", "is it untrue", "incorrect", "is this false", '" false?', "is that wrong")


def _drawn(verdict: Verdict, asked: str, number: int = 1500) -> Iterator[Example]:
    row = FactRow("The cat sleeps.", asked, verdict, None if verdict == "unknown" else ((0, 7),), asked[0] == "i")
    for seed in range(number):
        yield facts.draw(row, None, np.random.default_rng(seed))


@pytest.mark.parametrize("said", ["The cat is awake.", "is the cat awake"])
@pytest.mark.parametrize("verdict", ["yes", "no", "unknown"])
def test_the_answer_is_the_verdict_turned_where_the_question_is(said: str, verdict: Verdict) -> None:
    kinds: Counter[int] = Counter()
    negated = 0
    for asked in _drawn(verdict, said):
        kinds[len(asked.choices)] += 1
        turned = any(words in asked.question.lower() for words in _NEGATED)
        negated += turned
        if verdict == "unknown":
            assert asked.evidence is None
            assert bool(asked.answers) == (len(asked.choices) == 3)
            assert not set(asked.answers) & {*_AFFIRMING, *_DENYING}, asked
        else:
            assert asked.evidence == ((0, 7),)
            assert asked.answers[0] in (_AFFIRMING if (verdict == "yes") != turned else _DENYING), asked
        if asked.choices:
            assert set(asked.answers) <= {choice.label for choice in asked.choices}
    assert set(kinds) == {0, 2, 3}
    assert kinds[2] > kinds[3] > kinds[0] > 100
    assert (negated > 50) == (said[0] == "T")


@pytest.mark.parametrize(
    ("statement", "question", "verdict"),
    [
        ("The cat did not sleep.", "Did the cat sleep?", "no"),
        ("She wasn't asked to go.", "Was she asked to go?", "no"),
        ("The cat sleeps.", "Does the cat sleep?", "yes"),
        ("He said she was not ill.", "Did he say she was ill?", ""),
        ("No cat sleeps.", "Does no cat sleep?", ""),
        ("All cats are not black.", "Are all cats black?", ""),
        ("The cat did not sleep and did not eat.", "Did the cat sleep and did not eat?", ""),
    ],
)
def test_a_statement_is_asked_as_a_question_and_a_denial_without_it(
    statement: str, question: str, verdict: str
) -> None:
    drawn = [facts.draw(FactRow("A text.", statement, "yes"), None, np.random.default_rng(n)) for n in range(200)]
    found = {asked.answers[0] for asked in drawn if asked.question == question}
    assert found == ({verdict} if verdict else set())


def test_several_sentences_are_not_put_into_a_clause() -> None:
    row = FactRow("It rained.", "It rained. Nobody came.", "unknown")
    inside = {template.format(s="it rained. Nobody came", S="", full="") for template in wordings("is_true")}
    for seed in range(300):
        asked = facts.draw(row, None, np.random.default_rng(seed))
        assert "It rained. Nobody came." in asked.question
        assert asked.question not in inside


def test_another_text_says_nothing_of_it() -> None:
    row, other = FactRow("The cat sleeps.", "The cat is awake.", "no", ((0, 7),)), FactRow("It rains.", "It is.", "yes")
    rng = np.random.default_rng(0)
    assert facts.draw_of_another(row, row, None, rng) is None
    for _ in range(50):
        asked = facts.draw_of_another(row, other, None, rng)
        assert asked is not None
        assert (asked.context, asked.evidence) == ("It rains.", None)
        assert not set(asked.answers) & {*_AFFIRMING, *_DENYING}


def _read(folder: Path, rows: list[dict[str, Any]], **more: Any) -> list[FactRow]:
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    part = parse(FactsPart, {**_BODY, "statement": "{said}", **more}, "test")
    found = read_rows(folder, Dataset("x", ".", "MIT", True, parts={"a": part}), "a", "train")
    return [row for row in found if isinstance(row, FactRow)]


def test_rows_are_read_with_the_places_of_their_evidence(tmp_path: Path) -> None:
    row = {"text": ["One.", "Two.", "Two."], "said": "x is y", "label": "E", "why": ["One."]}
    options = {"options": {"sentences": "text"}, "evidence": "why"}
    assert _read(tmp_path, [row], **options) == [FactRow("One. Two. Two.", "x is y", "yes", ((0, 4),))]
    for why in (["Two."], ["Three."], []):
        assert _read(tmp_path, [{**row, "why": why}], **options)[0].evidence is None
    assert _read(tmp_path, [{**row, "label": "N"}], **options)[0].evidence is None
    assert _read(tmp_path, [{**row, "label": "-"}], drop=["-"]) == []
    with pytest.raises(DatasetError, match="label 'Z' is not among"):
        _read(tmp_path, [{**row, "label": "Z"}])


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "part", "verdicts"),
    [
        ("condaqa", "questions", {"no": 1879, "yes": 1778, "unknown": 211}),
        ("sharc", "rules", {"no": 1224, "yes": 1323, "unknown": 1209}),
        ("control", "inference", {"unknown": 1202, "no": 1396, "yes": 1494}),
        ("fool_me_twice", "claims", {"yes": 1264, "no": 1250}),
    ],
)
def test_sets_have_their_verdicts(data_folder: Path, name: str, part: str, verdicts: Mapping[str, int]) -> None:
    dataset = load_dataset(name)
    rows = [row for split in ("train", "validation") for row in read_rows(data_folder, dataset, part, split)]
    if dataset.parts[part].files.get("validation"):
        rows = list(read_rows(data_folder, dataset, part, "train"))
    assert Counter(row.verdict for row in rows if isinstance(row, FactRow)) == verdicts
    source = DatasetSource(data_folder, dataset, "validation")
    assert source.draw(0, np.random.default_rng(0), is_fixed=True).choices
