"""Questions of every kind about everyday texts, and questions that are made of them."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqan_core.example import Choice, Example
from mqan_data.derived import Source
from mqan_data.formats.dataset_file import OWN_DATA, EverydayPart, load_dataset
from mqan_data.formats.reading import read_rows
from mqan_data.formats.rows import EverydayRow
from mqan_data.mixture import load_sources, validation_examples
from mqan_data.questions import everyday
from mqan_data.questions.everyday import ask_derived

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


@pytest.fixture(scope="module")
def source() -> Source:
    [found] = load_sources(FOLDER, ["everyday"])
    return found


def draws(row: EverydayRow, number: int = 300) -> list[Example]:
    rng = np.random.default_rng(1)
    drawn = (ask_derived(row, rng) for _ in range(number))
    return [asked for asked in drawn if asked is not None]


_KEYS = {
    "free": {"kind", "question", "answers"},
    "yes_no": {"kind", "question", "answer", "evidence"},
    "choice": {"kind", "question", "labels", "answer", "evidence"},
    "several": {"kind", "question", "labels", "answers", "evidence"},
    "scale": {"kind", "question", "levels", "answer", "evidence"},
    "field": {"kind", "name", "type", "answers"},
}
_QUOTED = ("free", "field")


def _is_whole(text: str, quoted: str) -> bool:
    places = (place for place in range(len(text)) if text.startswith(quoted, place))
    return any(
        not (text[place - 1 : place].isalnum() and quoted[0].isalnum())
        and not (text[place + len(quoted) : place + len(quoted) + 1].isalnum() and quoted[-1].isalnum())
        for place in places
    )


def _faults_of_question(text: str, asked: dict[str, Any]) -> Iterator[str]:
    kind = asked.get("kind")
    if kind not in _KEYS or set(asked) - {"descriptions"} != _KEYS[kind]:
        yield f"keys of {kind}: {sorted(asked)}"
        return
    for quoted in asked["answers"] if kind in _QUOTED else asked["evidence"]:
        if not quoted or quoted not in text:
            yield f"not in the text: {quoted!r}"
        elif kind in _QUOTED and not _is_whole(text, quoted):
            yield f"cut in a word: {quoted!r}"
    labels = asked.get("labels", asked.get("levels"))
    if labels is not None:
        given = asked["answers"] if kind == "several" else [asked["answer"]]
        if len({label.lower() for label in labels}) != len(labels):
            yield f"labels twice: {labels}"
        if wrong := [answer for answer in given if answer not in labels and (answer is not None or kind == "scale")]:
            yield f"answers that are none of the labels: {wrong}"
        if "descriptions" in asked and set(asked["descriptions"]) != set(labels):
            yield "descriptions are not of the labels"
    if kind == "yes_no" and asked["answer"] not in ("yes", "no", "unknown"):
        yield f"yes_no {asked['answer']}"
    if kind == "yes_no" and (asked["answer"] == "unknown") != (not asked["evidence"]):
        yield f"evidence and {asked['answer']}"


def _faults_of_row(row: dict[str, Any], ids: set[str], beginnings: set[str]) -> Iterator[str]:
    if set(row) != {"id", "domain", "text", "questions"}:
        yield f"keys {sorted(row)}"
        return
    beginning = " ".join(row["text"].lower().split())[:80]
    if row["id"] in ids or beginning in beginnings:
        yield "id twice, or text begins like another"
    ids.add(row["id"])
    beginnings.add(beginning)
    if not 8 <= len(row["questions"]) <= 18:
        yield f"{len(row['questions'])} questions"
    names = [str(asked.get("question", asked.get("name"))).lower() for asked in row["questions"]]
    yield from (f"asked twice: {name}" for name, times in Counter(names).items() if times > 1)
    for asked in row["questions"]:
        yield from _faults_of_question(row["text"], asked)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.jsonl.gz")), ids=lambda path: path.name)
def test_the_files_keep_the_rules_of_the_specification(path: Path) -> None:
    ids, beginnings = set[str](), set[str]()
    rows = map(json.loads, gzip.decompress(path.read_bytes()).decode().splitlines())
    assert [(row["id"], fault) for row in rows for fault in _faults_of_row(row, ids, beginnings)] == []


def test_ids_are_unique_and_no_text_is_in_both_parts(source: Source) -> None:
    lines = (gzip.decompress(path.read_bytes()).decode().splitlines() for path in FOLDER.glob("*.gz"))
    rows = [json.loads(line) for of_file in lines for line in of_file]
    assert len({row["id"] for row in rows}) == len(rows) > 3900
    held_out = {example.context for example in validation_examples(FOLDER, "everyday", 10_000, 1)}
    rng = np.random.default_rng(2)
    drawn = {source.draw(int(rng.integers(len(source))), rng).context for _ in range(2_000)}
    assert len(held_out) > 300
    assert not drawn & held_out


@pytest.mark.parametrize(("number", "wanted"), [(0, {"no"}), (1, {"yes"}), (2, set())])
def test_a_fact_is_asked_with_its_verdict_whatever_the_wording(number: int, wanted: set[str]) -> None:
    asked = everyday.canonical(fact(number))
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
            offered = {choice.label for choice in example.choices}
            assert len(offered) >= 2
            assert offered <= {question for question, _ in FACTS}
            assert set(example.answers) == {q for q, verdict in FACTS if verdict == wanted and q in offered}
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


def test_every_question_of_the_files_can_be_asked(source: Source) -> None:
    rng = np.random.default_rng(3)
    for _ in range(3_000):
        example = source.draw(int(rng.integers(len(source))), rng)
        labels = [choice.label for choice in example.choices]
        assert example.question.strip()
        assert not labels or set(example.answers) <= set(labels)
        assert all(0 <= start < end <= len(example.context) for start, end in example.evidence or ())


def test_rare_kinds_are_drawn_more_often_and_measured_once(source: Source) -> None:
    dataset = load_dataset("everyday")
    [measured] = load_sources(FOLDER, ["everyday"], "validation")
    asked = [row.kind for row in read_rows(FOLDER, dataset, "questions", "train") if isinstance(row, EverydayRow)]
    [more] = [part.drawn["several"] for part in dataset.parts.values() if isinstance(part, EverydayPart)]
    assert 0.9 < len(source) / (len(asked) + (more - 1) * asked.count("several")) <= 1  # some are held out
    assert len(measured) == sum(1 for _ in read_rows(FOLDER, dataset, "questions", "validation"))


def test_labels_come_in_any_order_and_number() -> None:
    row = EverydayRow(TEXT, "choice", "Topic?", ("flat",), tuple(map(Choice, ("flat", "car", "food", "job"))))
    rng = np.random.default_rng(4)
    orders = {tuple(c.label for c in everyday.draw(row, None, rng).choices) for _ in range(200)}
    assert len({order for order in orders if len(order) == 4}) > 10
    assert any(len(order) == 3 for order in orders)


def _outcome(example: Example) -> int | None:
    labels = [choice.label for choice in example.choices]
    return example.outcomes[labels.index(example.answers[0])] if example.answers else None


def test_a_question_and_its_twin_have_the_same_outcome() -> None:
    """What the one's labels stand for in the other is what the files' own answers say."""
    rows = read_rows(OWN_DATA, load_dataset("everyday"), "questions", "validation")
    rng, number = np.random.default_rng(4), Counter[str]()
    for row in rows:
        assert isinstance(row, EverydayRow)
        asked = everyday.draw(row, None, rng)
        if asked.twin is not None:
            assert len(asked.outcomes) == len(asked.choices)
            assert len(asked.twin.outcomes) == len(asked.twin.choices)
            assert set(asked.outcomes) == set(asked.twin.outcomes)
            assert _outcome(asked) == _outcome(asked.twin)
            assert (asked.context, bool(asked.multiple)) == (asked.twin.context, False)
            number[row.kind] += 1
    assert min(number[kind] for kind in ("yes_no", "choice", "scale")) > 20
