"""Metrics against scores worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqan_core.example import Example
from mqan_data.metrics import METRICS, exact_and_f1, normalize, normalized_f1, parse_state_change, score
from mqan_data.tasks import tasks


def examples(*golds: str | tuple[str, ...]) -> list[Example]:
    return [
        Example("toy", str(index), "c", "q?", (gold,) if isinstance(gold, str) else gold)
        for index, gold in enumerate(golds)
    ]


def test_a_gold_of_which_normalising_leaves_nothing_is_compared_as_it_is_written() -> None:
    [grade] = examples("A")
    assert [exact_and_f1(grade, said, ()) for said in ("A", "the", ".", "")] == [(1, 1), (0, 0), (0, 0), (0, 0)]
    [word] = examples("the end")
    assert exact_and_f1(word, "end", ()) == (1, 1)


def test_em_ignores_case_and_white_space_only() -> None:
    golds = examples("negative", "Ann  Rae", "positive", "the end")
    assert score("em", [" Negative\n", "ann rae", "positive.", "end"], golds) == {"em": 50.0}


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  Eiffel Tower!", "eiffel tower"),
        ("An apple, a day", "apple day"),
        ("the theatre", "theatre"),
        ("U.S.", "us"),
        ("well-known", "wellknown"),
        ("A", ""),
        ("?!", ""),
        ("", ""),
        ("«Élan» — oui", "«élan» — oui"),  # only ASCII punctuation goes, as in SQuAD's script
        ("the-end", "theend"),  # punctuation goes before articles
    ],
)
def test_normalisation_is_squads(text: str, normal: str) -> None:
    assert normalize(text) == normal


@pytest.mark.parametrize(
    ("prediction", "gold", "f1"),
    [
        ("Denver Broncos", "the Denver Broncos", 1.0),
        ("Broncos", "Denver Broncos", 2 / 3),  # precision 1, recall 1/2
        ("in the year 1871", "1871", 1 / 2),  # precision 1/3, recall 1
        ("one two two three", "two two four", 4 / 7),  # 2 in common: precision 2/4, recall 2/3
        ("cat", "dog", 0.0),
        ("", "dog", 0.0),
        ("the", "dog", 0.0),
        ("dog", "the", 0.0),
        ("the", "a", 0.0),  # nothing in common, as in SQuAD 1.1's script
        ("", "", 0.0),
        ("東京", "東京", 1.0),
    ],
)
def test_f1_by_hand(prediction: str, gold: str, f1: float) -> None:
    assert normalized_f1(prediction, gold) == pytest.approx(f1)
    assert normalized_f1(gold, prediction) == pytest.approx(f1)


def test_nf1_averages_the_best_gold_and_adds_exact_matches() -> None:
    golds = examples(("Denver Broncos", "Broncos"), ("1871",), ("whale oil",), ("Rae",))
    predictions = ["the Broncos", "in 1871", "whale oil", ""]
    assert score("nf1", predictions, golds) == {
        "nf1": pytest.approx(100 * (1 + 2 / 3 + 1 + 0) / 4),
        "nem": 50.0,
        "em": 25.0,
    }


def turn(dialogue: int, number: int, answer: str) -> Example:
    inform, request = parse_state_change(answer)
    reference = {"dialogue": dialogue, "turn": number, "inform": inform, "request": sorted(request)}
    return Example("woz", f"en_{dialogue}_{number}", "c", "q?", (answer,), reference=reference)


DIALOGUES = [
    turn(0, 0, "food: thai;"),
    turn(0, 1, "area: north; phone"),
    turn(0, 2, "food: greek;"),
    turn(0, 3, "; phone, address"),
    turn(1, 0, "food: thai;"),
    turn(1, 1, "None"),
]


def test_joint_goal_follows_the_state_of_each_dialogue() -> None:
    predictions = [
        "food: thai;",  # right
        "area: south; phone",  # wrong area: the state is wrong from here on
        "food: greek, area: north;",  # corrects the area: right state, though not the right change
        "; address, phone",  # right but for the order of the requests
        "food: thai, area: east;",  # wrong, and another dialogue
        "none",  # right change, still the wrong state
    ]
    assert score("joint_goal_em", predictions, DIALOGUES) == {
        "joint_goal_em": pytest.approx(100 * 3 / 6),
        "turn_goal_em": pytest.approx(100 * 3 / 6),
        "turn_request_em": 100.0,
        "em": pytest.approx(100 * 2 / 6),
    }


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no metric 'nf2'. Did you mean nf1"):
        score("nf2", ["x"], examples("x"))
    with pytest.raises(ValueError, match=r"Known metrics: em, nf1"):
        score("?", ["x"], examples("x"))
    with pytest.raises(ValueError, match="2 predictions for 1 examples"):
        score("em", ["x", "y"], examples("x"))
    with pytest.raises(ValueError, match="nothing to score"):
        score("em", [], [])
    for metric in ("joint_goal_em", "lfem"):
        with pytest.raises(ValueError, match="toy 0 has no reference"):
            score(metric, ["x"], examples("x"))


def test_every_task_has_a_metric() -> None:
    assert {task.metric for task in tasks().values()} <= METRICS.keys()


@given(st.text(), st.text())
def test_f1_is_symmetric_bounded_and_one_on_equal_words(first: str, second: str) -> None:
    f1 = normalized_f1(first, second)
    assert 0.0 <= f1 <= 1.0
    assert f1 == pytest.approx(normalized_f1(second, first))
    assert normalized_f1(first, first) == (1.0 if normalize(first) else 0.0)


def test_bleu_of_the_whole_corpus_in_lower_case() -> None:
    golds = examples("Ein Hund läuft am Strand.", "Zwei Katzen schlafen im Haus.")
    assert score("bleu", ["ein hund läuft am strand.", "zwei katzen schlafen im haus."], golds) == {"bleu": 100.0}
    # of the words and stops 10 of 12, of the pairs 6 of 10, of the triples 3 of 8, of the quadruples 1 of 6
    scores = score("bleu", ["ein hund läuft im strand.", "zwei katzen schlafen im auto."], golds)
    expected = 100 * (10 / 12 * 6 / 10 * 3 / 8 * 1 / 6) ** 0.25
    assert scores == {"bleu": pytest.approx(expected)}
    assert score("bleu", ["", ""], golds) == {"bleu": 0.0}


def test_rouge_averages_three_kinds() -> None:
    golds = examples("The dogs ran home. It rained.")
    scores = score("avg_rouge", ["It rained. The dog ran."], golds)  # stems: dog, ran; 5 of 5 and 5 of 6 words
    rouge1 = 100 * 2 * 1 * (5 / 6) / (1 + 5 / 6)
    rouge2 = 100 * 2 * (3 / 4) * (3 / 5) / (3 / 4 + 3 / 5)  # it rained, the dog, dog ran; of 4 and of 5
    assert scores == {
        "avg_rouge": pytest.approx((2 * rouge1 + rouge2) / 3),
        "rouge1": pytest.approx(rouge1),
        "rouge2": pytest.approx(rouge2),
        "rougeL": pytest.approx(rouge1),  # sentence by sentence, so their order does not matter
    }
    assert score("avg_rouge", ["..."], golds)["avg_rouge"] == 0.0


def test_unanswerable_f1_is_that_of_one_answer() -> None:
    golds = examples("unanswerable", "unanswerable", "the long road", "Ann")
    predictions = ["Unanswerable", "no", "long", "unanswerable"]
    assert score("unanswerable_f1", predictions, golds) == {
        "unanswerable_f1": pytest.approx(50),
        "precision": pytest.approx(50),
        "recall": pytest.approx(50),
        "answerable_nf1": pytest.approx(100 * (2 / 3 + 0) / 2),
    }
    assert score("unanswerable_f1", ["no"], examples("unanswerable"))["unanswerable_f1"] == 0.0
    assert "answerable_nf1" not in score("unanswerable_f1", ["no"], examples("unanswerable"))


def test_corpus_f1_counts_answered_and_answerable() -> None:
    golds = examples("Ann, Bo", "the Box", "unanswerable", "unanswerable", "France")
    predictions = ["Bo and Ann", "a box", "Unanswerable.", "Ann", "unanswerable"]
    assert score("corpus_f1", predictions, golds) == {
        "corpus_f1": pytest.approx(100 * 2 / 3),
        "precision": pytest.approx(100 * 2 / 3),  # 2 of the 3 that were answered
        "recall": pytest.approx(100 * 2 / 3),  # 2 of the 3 that can be
    }
    assert score("corpus_f1", ["unanswerable"], examples("Ann"))["corpus_f1"] == 0.0
    assert score("corpus_f1", ["Ann"], examples("unanswerable"))["corpus_f1"] == 0.0
    assert score("corpus_f1", ["Ann Ann"], examples("Ann"))["corpus_f1"] == 0.0


def test_characters_that_show_nothing_count_for_nothing() -> None:
    example = Example("t", "1", "c", "q", ("In\u00adgrid\u200b Solberg",))
    assert score("em", ["ingrid solberg"], [example])["em"] == 100
    assert score("nf1", ["In\u00adgrid"], [example])["nf1"] == pytest.approx(200 / 3)
