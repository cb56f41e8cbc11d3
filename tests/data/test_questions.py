"""Questions about rows: what they promise, over many draws."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from mqan_core.example import Example
from mqan_data.formats.dataset_file import ChoicesPart, Field, FieldsPart, LabelsPart
from mqan_data.formats.rows import ChoiceRow, FieldRow, LabelRow, Mention
from mqan_data.questions.asked import NONE_OF_THESE
from mqan_data.questions.choices import canonical as canonical_choices
from mqan_data.questions.choices import draw as ask_choices
from mqan_data.questions.choices import draw_of_another as ask_choices_of_another
from mqan_data.questions.fields import draw as ask_fields
from mqan_data.questions.labels import draw as ask_labels
from mqan_data.questions.labels import draw_of_another as ask_labels_of_another
from mqan_data.settings import parse

_COLOURS = ["red", "green", "blue", "yellow", "black", "white", "brown", "pink"]
_BASE = {"format": "tsv", "files": {}}
_LABELS = {
    name: {"description": f"the colour {place}", "synonyms": [f"hue {place}"]} for place, name in enumerate(_COLOURS)
}
_FORM = {
    "text": "{text}",
    "questions": ["Which colour is it?"],
    "options": ["Is it {options}?"],
    "yes_no": ["Is it {label}?"],
    "negated": ["Is it anything but {label}?"],
}


def _labels_part(**more: object) -> LabelsPart:
    body = {"shape": "labels", **_BASE, "kind": "colour", "label": "{c}", "labels": _LABELS, "forms": [_FORM], **more}
    return parse(LabelsPart, body, "test")


def _names_of(place: int) -> set[str]:
    return {_COLOURS[place], f"hue {place}", f"the colour {place}"}


def _draws(ask: object, *rows: object, number: int = 600) -> Iterator[Example]:
    for seed in range(number):
        yield ask(*rows, np.random.default_rng(seed))  # type: ignore[operator]


def _kind(asked: Example) -> str:
    labels = {choice.label.lower() for choice in asked.choices}
    answer = (asked.answers or ("",))[0].lower()
    if labels in ({"yes", "no"}, {"true", "false"}) or (not labels and answer in ("yes", "no", "true", "false")):
        return "yes or no"
    return "several" if asked.multiple else "choices" if labels else "in the question"


def test_labels_are_asked_in_every_way_and_the_answer_is_among_the_choices() -> None:
    row, part = LabelRow({"text": "the sky"}, ("blue",)), _labels_part()
    right = {name.replace(" ", "_").lower() for name in _names_of(2)}
    kinds: Counter[str] = Counter()
    refused = 0
    for asked in _draws(ask_labels, row, part):
        kinds[_kind(asked)] += 1
        labels = [choice.label for choice in asked.choices]
        assert len({label.lower() for label in labels}) == len(labels)
        assert len(labels) <= 30
        assert asked.context == "the sky"
        if labels:
            assert set(asked.answers) <= set(labels)
        elif asked.answers and _kind(asked) == "in the question":
            assert asked.answers[0] in asked.question
        if _kind(asked) != "yes or no":
            refused += not asked.answers
            offered = {label.replace(" ", "_").lower() for label in labels} & right
            if offered:
                assert asked.answers[0].replace(" ", "_").lower() in right
    assert set(kinds) == {"yes or no", "several", "choices", "in the question"}
    assert all(number >= 20 for number in kinds.values()), kinds
    assert 10 <= refused <= 120


def test_yes_and_no_are_as_frequent_and_true() -> None:
    row, part = LabelRow({"text": "the sky"}, ("blue",)), _labels_part()
    says: Counter[str] = Counter()
    for asked in _draws(ask_labels, row, part, number=2000):
        if _kind(asked) != "yes or no":
            continue
        says[asked.answers[0].lower()] += 1
        question = asked.question.lower()
        is_true = any(name in question for name in _names_of(2))
        is_negated = any(
            words in question
            for words in ("anything but", "other than", "is it wrong", "be the wrong", "not fit", " not ")
        )
        assert (asked.answers[0].lower() in ("yes", "true")) == (is_true != is_negated), asked
    assert 0.7 < says["yes"] / says["no"] < 1.4


def test_a_closed_set_is_never_cut_and_never_lacks_the_answer() -> None:
    labels = {"true": {"name": "yes"}, "false": {"name": "no"}}
    part = _labels_part(labels=labels, closed=True, free=True)
    for asked in _draws(ask_labels, LabelRow({"text": "x"}, ("true",)), part):
        assert asked.answers
        if asked.choices:
            assert len(asked.choices) == 2
        if not asked.choices and asked.question == "Which colour is it?":
            assert asked.answers == ("yes",)


def test_a_right_label_is_never_left_out_for_its_name() -> None:
    labels = {"a": {"synonyms": ["same"] * 9}, "b": {"synonyms": ["same"] * 9}, "c": {}, "d": {}}
    part = _labels_part(labels=labels, closed=True)
    cut = 0
    for asked in _draws(ask_labels, LabelRow({"text": "x"}, ("b",)), part):
        assert asked.answers
        offered = [choice.label.lower() for choice in asked.choices]
        if "same" in offered and "a" not in offered:
            assert asked.answers[0].lower() in ("same", "b")
            cut += len(offered) == 3
    assert cut > 10


def test_steps_of_a_scale_keep_their_order_and_false_ones_are_far_away() -> None:
    labels: dict[str, object] = {str(step): {} for step in range(6)}
    part = _labels_part(labels=labels, ordered=True)
    in_order = 0
    for asked in _draws(ask_labels, LabelRow({"text": "x"}, ("3",)), part):
        steps = [choice.label for choice in asked.choices]
        in_order += steps in (list(labels), list(labels)[::-1])
        if _kind(asked) == "yes or no":
            assert not set("24") & set(asked.question), asked
    assert in_order > 100


def test_labels_of_other_sets_are_never_the_answer() -> None:
    row, part = LabelRow({"text": "the sky"}, ("blue",)), _labels_part(distractors=["clickbait.clickbait"])
    own = {name.replace(" ", "_") for place in range(len(_COLOURS)) for name in _names_of(place)}
    seen = 0
    for asked in _draws(ask_labels, row, part, number=800):
        offered = {choice.label.lower().replace(" ", "_") for choice in asked.choices}
        seen += _kind(asked) != "yes or no" and not offered <= {*own, *(n.replace(" ", "_") for n in NONE_OF_THESE)}
        answers = {answer.lower().replace(" ", "_") for answer in asked.answers if answer not in NONE_OF_THESE}
        assert answers <= {*own, "yes", "no", "true", "false"}
    assert seen > 20


_TRIP = "From Ely to Bath on Monday or Friday"
_SCHEME = {
    "from": Field(name="start", type="city", questions=("Where from?",)),
    "to": Field(name="destination", type="city", description="city to go to"),
    "via": Field(name="stopover", type="city"),
    "day": Field(name="day", type="day"),
    "price": Field(name="price"),
    "class": Field(name="class", only_filled=True),
}
_ROW = FieldRow(
    _TRIP,
    {
        "from": (Mention("Ely", 5),),
        "to": (Mention("Bath", 12),),
        "day": (Mention("Monday", 20), Mention("Friday", 30)),
    },
    _SCHEME,
)


def test_fields_are_quoted_listed_and_refused() -> None:
    part = parse(FieldsPart, {"shape": "fields", **_BASE, "typed": True}, "test")
    answers: Counter[tuple[str, ...]] = Counter()
    for asked in _draws(ask_fields, _ROW, part, number=1500):
        if asked.answer_start is not None:
            assert asked.context.startswith(asked.answers[0], asked.answer_start)
        if asked.choices:
            assert set(asked.answers) <= {choice.label for choice in asked.choices}
        else:
            answers[asked.answers] += 1
        if not asked.answers:
            assert not any(word in asked.question.lower() for word in ("class", "day", "start"))
    assert {("Ely",), ("Bath",), ("Monday, Friday",), ("Monday",), ("Friday",), ()} <= set(answers)
    assert 0.15 < answers[()] / 1500 < 0.4


def test_refusals_ask_mostly_for_what_is_of_a_type_that_is_there() -> None:
    part = parse(FieldsPart, {"shape": "fields", **_BASE}, "test")
    asked_for = Counter(
        "stopover" in asked.question.lower() for asked in _draws(ask_fields, _ROW, part) if not asked.answers
    )
    assert asked_for[True] > 2 * asked_for[False]


def test_closed_fields_offer_their_values() -> None:
    field = Field(name="area", values=("north", "south", "centre"))
    row = FieldRow("Somewhere in the middle", {"area": (Mention("centre", None),)}, {"area": field})
    part = parse(FieldsPart, {"shape": "fields", **_BASE}, "test")
    for asked in _draws(ask_fields, row, part):
        assert asked.answers[0].lower() in ("centre", "yes")
        assert asked.choices or "centre" in asked.question or asked.answers[0].lower() == "yes"


def test_choices_are_offered_named_and_doubted() -> None:
    form = {"text": "{text}", "questions": ["Who slept?"]}
    body = {"shape": "choices", **_BASE, "choices": ["list"], "right": "{a}", "forms": [form], "quoted": True}
    part = parse(ChoicesPart, body, "test")
    row = ChoiceRow({"text": "Ann saw Bob; Bob slept near Cid."}, ("Ann", "Bob", "Cid"), (1,))
    kinds: Counter[str] = Counter()
    for asked in _draws(ask_choices, row, part):
        kinds[_kind(asked)] += 1
        offered = {choice.label for choice in asked.choices}
        if "Bob" in offered:
            assert asked.answers == ("Bob",)
        elif offered and not offered <= {"yes", "no", "Yes", "No"}:
            assert asked.answers == () or asked.answers[0] not in ("Ann", "Cid")
    assert set(kinds) == {"yes or no", "choices", "in the question"}
    assert canonical_choices(row, part).answers == ("Bob",)


def test_none_of_these_is_offered_beside_the_right_answer_too() -> None:
    body = {"shape": "choices", **_BASE, "choices": ["list"], "right": "{a}"}
    part = parse(ChoicesPart, {**body, "forms": [{"text": "{text}", "questions": ["Who slept?"]}]}, "test")
    row = ChoiceRow({"text": "Bob slept."}, ("Ann", "Bob", "Cid"), (1,))
    right, wrong, places = 0, 0, set()
    for asked in _draws(ask_choices, row, part, number=3000):
        labels = [choice.label for choice in asked.choices]
        extra = [place for place, label in enumerate(labels) if label in NONE_OF_THESE]
        if extra:
            right, wrong = right + (asked.answers != ("Bob",)), wrong + (asked.answers == ("Bob",))
            assert asked.answers == (("Bob",) if "Bob" in labels else (labels[extra[0]],))
            places.add(extra[0] / (len(labels) - 1))
    assert right > 20
    assert wrong > 30
    assert {0.0, 1.0} < places


@pytest.mark.parametrize("last", ["None of the above choices .", "all of these", "Both of them.", "Neither."])
def test_answers_that_speak_of_the_others_keep_them(last: str) -> None:
    body = {"shape": "choices", **_BASE, "choices": ["list"], "right": "{a}"}
    part = parse(ChoicesPart, {**body, "forms": [{"text": "{text}", "questions": ["Who slept?"]}]}, "test")
    row = ChoiceRow({"text": "Bob slept."}, ("Ann", "Bob", "Cid", last), (1,))
    for asked in _draws(ask_choices, row, part, number=300):
        assert asked.answers == ("Bob",)
        if asked.choices:
            assert {choice.label for choice in asked.choices} == set(row.options)
        else:
            assert all(option.rstrip(".") in asked.question for option in row.options)


def test_a_question_of_another_text_is_asked_with_its_choices_unless_answers_are_quoted() -> None:
    body = {"shape": "choices", **_BASE, "choices": ["list"], "right": "{a}"}
    form = {"text": "{text}", "questions": ["{question}"]}
    rows = [
        ChoiceRow({"text": text, "question": "What does she mean?"}, ("It rains", "It snows"), (0,)) for text in "ab"
    ]
    for quoted in (False, True):
        part = parse(ChoicesPart, {**body, "forms": [form], "quoted": quoted}, "test")
        drawn = [asked for asked in _draws(ask_choices_of_another, *rows, part, number=200) if asked is not None]
        assert len(drawn) == 200
        assert any(not asked.choices and "rains" not in asked.question for asked in drawn) == quoted
        assert {asked.answers for asked in drawn} == {()}


def test_choices_and_labels_of_another_text_are_refused() -> None:
    form = {"text": "{text}", "questions": ["{question}?"]}
    body = {"shape": "choices", **_BASE, "choices": ["list"], "right": "{a}", "forms": [form]}
    choices, labels = parse(ChoicesPart, body, "test"), _labels_part(forms=[form], closed=True)
    values, other = {"text": "Ann slept.", "question": "who slept"}, {"text": "Bob ran.", "question": "who ran"}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        asked = [
            ask_choices_of_another(
                ChoiceRow(values, ("Ann", "Bob"), (0,)), ChoiceRow(other, ("x", "y"), (0,)), choices, rng
            ),
            ask_labels_of_another(LabelRow(values, ("red",)), LabelRow(other, ("blue",)), labels, rng),
        ]
        for each in asked:
            assert each is not None
            assert (each.context, each.answers) == ("Bob ran.", ())
            assert "who slept" in each.question
    same = LabelRow({**other, "text": "Ann slept."}, ("blue",))
    assert ask_labels_of_another(LabelRow(values, ("red",)), same, labels, np.random.default_rng(0)) is None


@pytest.mark.parametrize("generic", [True, False])
def test_words_that_fit_any_set_are_used_where_they_ask_the_same(generic: bool) -> None:
    row, part = LabelRow({"text": "the sky"}, ("blue",)), _labels_part(generic=generic, multiple=True)
    own = ("which colour is it", "is it ", "isn't it ")
    seen = {asked.question.lower() for asked in _draws(ask_labels, row, part)}
    others = [question for question in seen if not any(words in question for words in own)]
    assert bool(others) == generic, others


def test_where_no_label_is_right_nothing_else_is() -> None:
    row, part = LabelRow({"text": "a word"}, ()), _labels_part()
    answers = {asked.answers for asked in _draws(ask_labels, row, part) if asked.choices}
    assert ("none of these",) in answers
    assert not {("other",), ("something else",)} & answers
