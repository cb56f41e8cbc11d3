"""Texts made by program about roles, corrections, comparisons and cases: what is asked is right by construction."""

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from mqan_core.example import Example
from mqan_data.synthetic.kind import kind_names
from mqan_data.synthetic.programs.told import load
from mqan_data.synthetic.programs.transfers import verbs
from mqan_data.synthetic.source import PROGRAMS, MadeSource, Split


def _cases() -> Iterator[tuple[str, ...]]:
    for cases in load("judgements")["sets"].values():
        yield from cases["cases"].values()


def _examples(name: str, split: Split = "train", number: int = 300) -> Iterator[Example]:
    for index in range(number):
        yield MadeSource(name, split).draw(index, np.random.default_rng([7, index]))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("split", ["train", "validation"])
def test_answers_stand_where_they_say_and_evidence_is_in_the_text(name: str, split: Split) -> None:
    kinds: Counter[str] = Counter()
    for example in _examples(name, split):
        assert example.question[:1].isupper() or name == "judgements"
        assert "{" not in example.question + example.context
        assert "  " not in example.question
        for start, end in example.evidence or ():
            assert 0 <= start < end <= len(example.context)
        kinds["known"] += example.evidence is not None
        if example.answer_start is not None:
            kinds["quoted"] += 1
            assert example.context.startswith(example.answers[0], example.answer_start)
            assert (
                any(start <= example.answer_start < end for start, end in example.evidence or ())
                or name == "comparisons"
            )
        elif example.choices:
            kinds["choices"] += 1
            assert set(example.answers) <= {choice.label for choice in example.choices}
            assert len({choice.label for choice in example.choices}) == len(example.choices)
        kinds["refused"] += not example.answers
    assert {"known", "choices", "refused"} <= set(kinds)
    assert kinds["refused"] < 0.4 * kinds["known"]
    assert kinds["quoted"] > 50 or name == "judgements"


@pytest.mark.parametrize("name", [*PROGRAMS, *kind_names()])
def test_the_same_row_and_seed_give_the_same_example(name: str) -> None:
    source = MadeSource(name, "train")
    assert source.name == f"made_{name}"
    first, again, other = (source.draw(3, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == again
    assert first.context != other.context


@pytest.mark.parametrize("name", PROGRAMS)
def test_yes_and_no_are_about_as_frequent(name: str) -> None:
    answers = Counter(e.answers[0].lower() for e in _examples(name, number=800) if e.answers)
    assert 0.5 < answers["yes"] / answers["no"] < 2


def test_who_does_it_is_known_whichever_side_the_sentence_begins_with() -> None:
    seen: Counter[str] = Counter()
    for example in _examples("transfers", number=5_000):
        asked = re.fullmatch(r"Did (?!Mr|Ms)(\w+) .* to .*\?", example.question)
        if asked is None or not example.answers or example.evidence is None:
            continue
        name = asked[1]
        sentence = " ".join(example.context[start:end] for start, end in example.evidence)
        says_yes = example.answers[0].lower() == "yes"
        if re.search(rf"\bfrom {name}\b", sentence):
            seen["from the seller"] += 1
            assert says_yes
        elif re.search(rf"\bto {name}\b", sentence):
            seen["to the buyer"] += 1
            assert not says_yes
    assert seen["from the seller"] > 20
    assert seen["to the buyer"] > 20


def test_what_is_held_back_is_not_trained_on() -> None:
    train, validation = ([verb.forms for verb in verbs(held_back=held_back)] for held_back in (False, True))
    assert not [forms for forms in validation if forms in train]
    assert len(train) + len(validation) >= 60
    cases = [text for some in _cases() for text in some]
    assert len(set(cases)) == len(cases) >= 400
    contexts = [e.context for e in _examples("judgements", "validation", 300)]
    held_back = {text for some in _cases() for text in some[7::8]}
    assert all(any(text in context for text in held_back) for context in contexts)
    assert not any(text in e.context for e in _examples("judgements", number=300) for text in held_back)
