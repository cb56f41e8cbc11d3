"""Files to records to rows, with a few lines of each format."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mqan_data.files import DatasetError
from mqan_data.formats.dataset_file import (
    AnyPart,
    ChoicesPart,
    Dataset,
    FactsPart,
    FieldsPart,
    LabelsPart,
    QuestionsPart,
)
from mqan_data.formats.layouts import annotated, instruction_of
from mqan_data.formats.reading import mention_of, read_rows
from mqan_data.formats.records import tagged, without_marks
from mqan_data.formats.rows import ChoiceRow, FieldRow, LabelRow, Mention, QuestionRow, Row
from mqan_data.settings import parse

_KINDS: dict[str, type[AnyPart]] = {
    "labels": LabelsPart,
    "fields": FieldsPart,
    "choices": ChoicesPart,
    "questions": QuestionsPart,
    "facts": FactsPart,
}
_TEXT = {"forms": [{"text": "{text}", "questions": ["What?"]}]}


def _rows(folder: Path, body: Mapping[str, Any], split: str = "train") -> list[Row]:
    part: AnyPart = parse(_KINDS[body["shape"]], body, "test")
    return list(read_rows(folder, Dataset("x", ".", "MIT", True, parts={"a": part}), "a", split))


def _labels(**more: Any) -> dict[str, Any]:
    return {"shape": "labels", "kind": "topic", "label": "{label}", "labels": {"b": {}, "c": {}}, **_TEXT, **more}


def test_tables_with_and_without_a_header_quoted_and_packed(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text('b\tone "two"\nc\tthree\n', encoding="utf-8")
    (tmp_path / "b.tsv").write_text("text\tlabel\nfour\tb\n", encoding="utf-8")
    rows = _rows(tmp_path, _labels(format="tsv", files={"train": ["a.tsv"]}, columns=["label", "text"]))
    assert rows == [LabelRow({"text": 'one "two"'}, ("b",)), LabelRow({"text": "three"}, ("c",))]
    assert _rows(tmp_path, _labels(format="tsv", files={"train": ["b.tsv"]})) == [LabelRow({"text": "four"}, ("b",))]
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b'text,label\n"one, ""two""",b\n'))
    rows = _rows(tmp_path, _labels(format="csv", files={"train": ["a.csv.gz"]}))
    assert rows == [LabelRow({"text": 'one, "two"'}, ("b",))]


def test_a_line_with_too_many_cells_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,label\none,b\ntwo,b,c\n", encoding="utf-8")
    body = _labels(format="csv", files={"train": ["a.csv"]})
    with pytest.raises(DatasetError, match="a.csv:3: expected 2 columns, found 3"):
        _rows(tmp_path, body)
    assert len(_rows(tmp_path, {**body, "options": {"extra": "ignore"}})) == 2


def test_an_unknown_label_or_column_is_an_error_of_the_part(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("text\tlabel\none\td\n", encoding="utf-8")
    with pytest.raises(DatasetError, match="part a, train: .*'d' is not among `labels`"):
        _rows(tmp_path, _labels(format="tsv", files={"train": ["a.tsv"]}))
    with pytest.raises(DatasetError, match="part a, train: .*'colour'"):
        _rows(tmp_path, _labels(format="tsv", files={"train": ["a.tsv"]}, label="{colour}"))


def test_labels_by_number_in_groups_none_and_dropped(tmp_path: Path) -> None:
    lines = [{"text": str(i), "label": label} for i, label in enumerate(["x", "y", "b,c", "oos", "bad"])]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    groups = {"b": ["x", "y"]}
    more = {"separator": ",", "multiple": True, "groups": groups, "none": ["oos"], "drop": ["bad"]}
    rows = _rows(tmp_path, _labels(format="jsonl", files={"train": ["a.jsonl"]}, **more))
    assert [row.right for row in rows if isinstance(row, LabelRow)] == [("b",), ("b",), ("b", "c"), ()]


def test_scores_are_rounded(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,label\none,3.6\ntwo,0.2\n", encoding="utf-8")
    labels: dict[str, Any] = {str(i): {} for i in range(6)}
    rows = _rows(tmp_path, _labels(format="csv", files={"train": ["a.csv"]}, round=True, labels=labels))
    assert [row.right for row in rows if isinstance(row, LabelRow)] == [("4",), ("0",)]


def test_files_side_by_side_and_a_key_of_a_json_file(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "l.txt").write_text("b\nc\n", encoding="utf-8")
    body = _labels(format="lines", files={"train": ["t.txt|l.txt"]}, columns=["text", "label"])
    assert [row.texts() for row in _rows(tmp_path, body)] == [("one",), ("two",)]
    (tmp_path / "l.txt").write_text("b\n", encoding="utf-8")
    with pytest.raises(DatasetError, match="has not as many lines"):
        _rows(tmp_path, body)
    (tmp_path / "a.json").write_text(json.dumps({"dev": [["one", "b"]]}), encoding="utf-8")
    body = _labels(format="json", files={"train": ["a.json#dev"]}, columns=["text", "label"])
    assert _rows(tmp_path, body) == [LabelRow({"text": "one"}, ("b",))]


def test_kept_values_and_rows_held_out_by_their_text(tmp_path: Path) -> None:
    lines = [{"text": f"text {i // 2}", "label": "b", "from": "web" if i < 400 else "book"} for i in range(600)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    body = _labels(format="jsonl", files={"train": ["a.jsonl"]}, hold_out=10, keep={"from": ["web"]})
    train, validation = _rows(tmp_path, body), _rows(tmp_path, body, "validation")
    assert len(train) + len(validation) == 400
    assert 10 <= len(validation) <= 80
    assert not {row.texts() for row in train} & {row.texts() for row in validation}


def test_tokens_with_tags_become_a_text_with_mentions(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text(
        "-DOCSTART- O\n\nMr. B-PER\nSmith I-PER\n, O\nof O\nBBC I-ORG\nITV B-ORG\n. O\n\nNobody O\n", encoding="utf-8"
    )
    fields = {"PER": {"name": "person"}, "ORG": {"name": "company"}}
    body = {"shape": "fields", "format": "conll", "files": {"train": ["a.conll"]}, "fields": fields, "keep_empty": 1}
    first, second = _rows(tmp_path, body)
    assert isinstance(first, FieldRow)
    assert first.text == "Mr. Smith, of BBC ITV."
    assert first.mentions == {
        "PER": (Mention("Mr. Smith", 0),),
        "ORG": (Mention("BBC", 14), Mention("ITV", 18)),
    }
    assert isinstance(second, FieldRow)
    assert second.mentions == {}
    assert len(_rows(tmp_path, {**body, "keep_empty": 0})) == 1


def test_choices_from_columns_lists_letters_and_flags(tmp_path: Path) -> None:
    row = {"text": "t", "one": "x", "two": "y", "list": [{"text": "p", "ok": 1}, {"text": "q", "ok": 0}], "right": "2"}
    (tmp_path / "a.jsonl").write_text(json.dumps(row), encoding="utf-8")
    body = {"shape": "choices", "format": "jsonl", "files": {"train": ["a.jsonl"]}, **_TEXT}
    by_number = {**body, "choices": ["{one}", "{two}"], "right": "{right}", "keys": ["1", "2"]}
    assert _rows(tmp_path, by_number) == [ChoiceRow({"text": "t"}, ("x", "y"), (1,))]
    flagged = {**body, "choices": ["list.*.text"], "flags": "list.*.ok"}
    assert _rows(tmp_path, flagged) == [ChoiceRow({"text": "t"}, ("p", "q"), (0,))]
    with pytest.raises(DatasetError, match="'2' is not among the choices"):
        _rows(tmp_path, {**by_number, "keys": []})


def test_questions_each_of_a_text(tmp_path: Path) -> None:
    row = {"passage": "A then B.", "qas": [{"q": "What?", "a": ["A", "B"]}, {"q": "Why?", "a": []}]}
    (tmp_path / "a.jsonl").write_text(json.dumps(row), encoding="utf-8")
    body = {"shape": "questions", "format": "jsonl", "files": {"train": ["a.jsonl"]}, "each": "qas"}
    rows = _rows(tmp_path, {**body, "text": "{passage}", "question": "{q}", "answers": "a", "joined": True})
    assert rows == [QuestionRow("A then B.", ("What?",), ("A, B",)), QuestionRow("A then B.", ("Why?",), ())]


def test_a_value_is_found_as_whole_words_at_its_last_place() -> None:
    assert mention_of("In Ely, from Ely to Elysee", "ely") == Mention("Ely", 13)
    assert mention_of("at 18:00", "8:00") == Mention("8:00", None)


def test_slots_whose_values_are_never_marked_are_not_asked_for(tmp_path: Path) -> None:
    slots = [
        {"name": "city", "description": "city to go to", "is_categorical": False, "possible_values": []},
        {"name": "class", "description": "class", "is_categorical": True, "possible_values": ["first", "second"]},
    ]
    marked = {"slot": "city", "start": 3, "exclusive_end": 7}
    turn = {
        "speaker": "USER",
        "utterance": "To Bath, first class.",
        "frames": [{"service": "Trains_1", "slots": [marked], "actions": []}],
    }
    (tmp_path / "d.json").write_text(json.dumps([{"turns": [turn]}]), encoding="utf-8")
    (tmp_path / "s.json").write_text(json.dumps([{"service_name": "Trains_1", "slots": slots}]), encoding="utf-8")
    files = {"train": ["d.json|s.json"]}
    (row,) = _rows(tmp_path, {"shape": "fields", "format": "sgd", "files": files, "options": {"view": "spans"}})
    assert isinstance(row, FieldRow)
    assert (row.mentions, list(row.scheme)) == ({"city": (Mention("Bath", 3),)}, ["city"])


_WANTED = {"food": {}, "area": {"values": ["north", "south"]}, "day": {"values": ["monday"]}}


def test_what_was_only_offered_is_not_asked_for_in_woz(tmp_path: Path) -> None:
    def turn(system: str, user: str, *slots: tuple[str, str]) -> dict[str, Any]:
        acts = [{"act": "inform", "slots": [slot]} for slot in slots]
        return {"system_transcript": system, "transcript": user, "belief_state": acts}

    first = [
        turn("", "I want Thai food.", ("food", "thai")),
        turn("Ann's serves thai food in the north.", "Thanks.", ("food", "thai")),
    ]
    second = [
        turn("", "Anywhere will do.", ("area", "dontcare")),
        turn("There is thai food in the south.", "On monday.", ("area", "dontcare"), ("day", "monday")),
        turn("Which?", "In the south, on monday.", ("area", "south"), ("day", "monday")),
    ]
    (tmp_path / "a.json").write_text(json.dumps([{"dialogue": first}, {"dialogue": second}]), encoding="utf-8")
    body = {"shape": "fields", "format": "woz", "files": {"train": ["a.json"]}, "fields": _WANTED, "keep_empty": 1}
    rows = [row for row in _rows(tmp_path, body) if isinstance(row, FieldRow)]
    assert [(set(row.mentions), set(row.scheme)) for row in rows] == [
        ({"food"}, {"food", "area", "day"}),
        ({"food"}, {"food", "day"}),
        (set(), {"food", "day"}),
        ({"day"}, {"day"}),
        ({"area", "day"}, {"area", "day"}),
    ]


def test_a_text_that_nothing_can_be_asked_of_is_no_row(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("Nobody O\n", encoding="utf-8")
    body = {"shape": "fields", "format": "conll", "files": {"train": ["a.conll"]}, "keep_empty": 1}
    assert _rows(tmp_path, {**body, "fields": {"PER": {"only_filled": True}}}) == []
    assert len(_rows(tmp_path, {**body, "fields": {"PER": {"only_filled": True}, "ORG": {}}})) == 1


def test_the_right_title_is_not_the_first_one(tmp_path: Path) -> None:
    articles = [{"title": title, "paragraphs": [{"context": f"On {title}.", "qas": []}]} for title in "cab"]
    (tmp_path / "a.json").write_text(json.dumps({"data": articles}), encoding="utf-8")
    body = {"shape": "choices", "format": "titles", "files": {"train": ["a.json"]}, "choices": ["titles"]}
    rows = _rows(tmp_path, {**body, "right": "{title}", **_TEXT})
    assert [(row.options, row.right) for row in rows if isinstance(row, ChoiceRow)] == [
        (("a", "b", "c"), (place,)) for place in (2, 0, 1)
    ]


def test_annotations_marks_and_tags() -> None:
    assert annotated("wake me [time : nine am] [date : today]") == {
        "text": "wake me nine am today",
        "mentions": [("time", 8, 15), ("date", 16, 21)],
    }
    found = without_marks("The << big [[ cat ]] >> slept", {"a": ("<<", ">>"), "b": ("[[", "]]")})
    assert (found["a"].split(), found["b"]) == (["big", "cat"], "cat")
    assert "<<" not in found["text"]
    assert tagged(["a", "b"], ["I-X", "B-X"])["mentions"] == [("X", 0, 1), ("X", 2, 3)]


def test_the_instruction_of_a_prompt_has_neither_examples_nor_fields() -> None:
    prompt = "A mark is generic.\n\nQ: The mark Ivory. What type?\nA: generic\n\nQ: {{text}} What type?\nA:"
    assert instruction_of(prompt) == "A mark is generic. What type?"


def test_cells_of_a_table_of_kvret_stand_in_the_row_that_is_asked_about(tmp_path: Path) -> None:
    items = [
        {"location": place, "monday": "rain, low of 30F", "today": today}
        for place, today in (("a", "-"), ("b", "rain"))
    ]
    (tmp_path / "a.jsonl").write_text(json.dumps({"items": items}))
    body = {"shape": "questions", "format": "kvret", "options": {"view": "table"}, "files": {"train": ["a.jsonl"]}}
    rows = _rows(tmp_path, body | {"text": "{text}", "question": "question", "answers": "answers", "start": "start"})
    text = "location | monday | today\na | rain, low of 30F | -\nb | rain, low of 30F | rain"
    starts = [text.index("rain"), None, text.rindex("rain, low"), text.rindex("rain")]
    assert [(row.text, row.start) for row in rows if isinstance(row, QuestionRow)] == [
        (text, start) for start in starts
    ]


def test_lists_in_no_order_get_that_of_the_text(tmp_path: Path) -> None:
    task = {"task": "taxonomy_animal", "instructions": ["List the animals."], "train": [["cat, red, dog", "dog, cat"]]}
    (tmp_path / "a.json").write_text(json.dumps([task, task | {"task": "sort"}]))
    body = {"shape": "questions", "format": "instructions", "files": {"train": ["a.json#train"]}}
    rows = _rows(tmp_path, body | {"text": "{text}", "question": "question", "answers": "answers"})
    assert [row.answers for row in rows if isinstance(row, QuestionRow)] == [("cat, dog",), ("dog, cat",)]
