"""Questions of every kind about everyday texts, and questions that are made of them."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mqan_core.example import Choice, Example
from mqan_data.formats.dataset_file import OWN_DATA
from mqan_data.formats.rows import EverydayRow
from mqan_data.mixture import load_sources, validation_examples
from mqan_data.questions.everyday import ask_derived, ask_everyday, canonical_everyday

FOLDER = OWN_DATA / "everyday"
TEXT = "Rent stays at 940. Parking is no longer included. Keys are with Mrs Adeyemi."
FACTS = (("Is parking included?", "no"), ("Does the rent stay the same?", "yes"), ("Is there a lift?", "unknown"))


def fact(number: int) -> EverydayRow:
    question, verdict = FACTS[number]
    answers = () if verdict == "unknown" else (verdict,)
    return EverydayRow(TEXT, "yes_no", question, answers, evidence=((19, 48),) if answers else (), facts=FACTS)


SCALE = EverydayRow(
    TEXT, "scale", "How urgent is it?", ("today",), tuple(map(Choice, ("can wait", "this week", "today", "now")))
)


def draws(row: EverydayRow, number: int = 300) -> list[Example]:
    rng = np.random.default_rng(1)
    drawn = (ask_derived(row, rng) for _ in range(number))
    return [asked for asked in drawn if asked is not None]


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.jsonl.gz")))
def test_the_files_keep_their_own_rules(name: str, tmp_path: Path) -> None:
    unpacked = tmp_path / name.removesuffix(".gz")
    unpacked.write_bytes(gzip.decompress((FOLDER / name).read_bytes()))
    run = subprocess.run([sys.executable, FOLDER / "check.py", unpacked], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


def test_ids_are_unique_and_no_text_is_in_both_parts() -> None:
    lines = (gzip.decompress(path.read_bytes()).decode().splitlines() for path in FOLDER.glob("*.gz"))
    rows = [json.loads(line) for of_file in lines for line in of_file]
    assert len({row["id"] for row in rows}) == len(rows) > 3900
    [train] = load_sources(FOLDER, ["everyday"])
    held_out = {example.context for example in validation_examples(FOLDER, "everyday", 10_000, 1)}
    rng = np.random.default_rng(2)
    drawn = {train.draw(int(rng.integers(len(train))), rng).context for _ in range(2_000)}
    assert len(held_out) > 300
    assert not drawn & held_out


@pytest.mark.parametrize(("number", "wanted"), [(0, {"no"}), (1, {"yes"}), (2, set())])
def test_a_fact_is_asked_with_its_verdict_whatever_the_wording(number: int, wanted: set[str]) -> None:
    asked = canonical_everyday(fact(number))
    assert set(asked.answers) == wanted
    assert [choice.label for choice in asked.choices] == ["yes", "no"]
    assert asked.evidence == (((19, 48),) if wanted else None)


@pytest.mark.parametrize(
    "wording", ["Is the answer to this question no?", "Reply with the opposite", "Is it wrong to answer"]
)
def test_the_opposite_of_a_fact_is_answered_the_other_way(wording: str) -> None:
    for number, wanted in ((0, ("yes",)), (1, ("no",)), (2, ())):
        found = [e for e in draws(fact(number)) if e.question.startswith(wording)]
        assert found
        assert {e.answers for e in found} == {wanted}


def test_several_facts_at_once_follow_from_each() -> None:
    for number in range(3):
        for example in draws(fact(number)):
            listed = [verdict for question, verdict in FACTS if question in example.question]
            if len(listed) < 2:
                continue
            if example.question.startswith(("Is the answer yes to all", "Do all of these hold", "Is every one")):
                assert example.answers == (("no",) if "no" in listed else () if "unknown" in listed else ("yes",))
            if example.question.startswith(("Is the answer yes to at least one", "Does any of")):
                assert example.answers == (("yes",) if "yes" in listed else () if "unknown" in listed else ("no",))


def test_facts_as_labels_are_right_where_their_verdict_is_asked_for() -> None:
    words = {
        "yes": ("answered with yes", "say yes"),
        "no": ("answered with no", "say no"),
        "unknown": ("open", "no answer"),
    }
    seen = set()
    for example in draws(fact(0), 600):
        if example.multiple:
            [wanted] = [verdict for verdict, ends in words.items() if example.question.rstrip("?").endswith(ends)]
            assert set(example.answers) == {question for question, verdict in FACTS if verdict == wanted}
            assert {choice.label for choice in example.choices} == {question for question, _ in FACTS}
            seen.add(wanted)
    assert seen == set(words)


def test_steps_of_a_scale_and_labels_put_together_hold_the_right_one() -> None:
    kinds = set()
    for example in draws(SCALE):
        if example.multiple:
            assert example.answers == ("today",)
            kinds.add("each by itself")
        elif example.question.startswith("How urgent is it? The steps"):
            level = example.question.split('Is it "')[1].split('"')[0]
            steps = [choice.label for choice in SCALE.choices]
            is_least = "or more" in example.question
            holds = steps.index(level) <= 2 if is_least else steps.index(level) >= 2
            assert example.answers == (("yes" if holds else "no"),)
            kinds.add("step")
        elif len(example.choices) == 3:
            assert "today" in example.answers[0]
            assert example.answers[0] in [choice.label for choice in example.choices]
            kinds.add("merged")
        elif len(example.choices) == 4:
            assert next(c.description for c in example.choices if c.label == example.answers[0]) == "today"
            kinds.add("coded")
    assert kinds == {"each by itself", "step", "merged", "coded"}


def test_every_question_of_the_files_can_be_asked() -> None:
    [source] = load_sources(FOLDER, ["everyday"])
    rng = np.random.default_rng(3)
    for _ in range(3_000):
        example = source.draw(int(rng.integers(len(source))), rng)
        labels = [choice.label for choice in example.choices]
        assert example.question.strip()
        assert not labels or set(example.answers) <= set(labels)
        assert all(0 <= start < end <= len(example.context) for start, end in example.evidence or ())


def test_labels_come_in_any_order_and_number() -> None:
    row = EverydayRow(TEXT, "choice", "Topic?", ("flat",), tuple(map(Choice, ("flat", "car", "food", "job"))))
    rng = np.random.default_rng(4)
    orders = {tuple(c.label for c in ask_everyday(row, rng).choices) for _ in range(200)}
    assert len({order for order in orders if len(order) == 4}) > 10
    assert any(len(order) == 3 for order in orders)
