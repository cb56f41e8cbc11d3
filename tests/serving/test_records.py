"""Records over REST and gRPC alike: values with their places, whatever a network of random weights answers."""

import json
import random
from dataclasses import replace
from typing import Any

import grpc
import httpx2
import pytest

from mqan.v1 import answer_pb2
from mqan_client import InvalidRequestError, Record
from mqan_core.answer.types import Answer, AnswerSpan, Source
from mqan_core.errors import InputError
from mqan_serving.records import filling
from mqan_serving.records.cells import Places
from mqan_serving.records.filling import EMPTY, NOT_SAID, RecordRequest, balanced
from mqan_serving.records.schema import RecordField, read_schema
from mqan_serving.records.values import Kind
from mqan_serving.rest.openapi import openapi_document
from tests.answering import LABELS, make_text

TEXT = "The old harbour was closed in 1923 because storms had torn its walls. Ada wrote notes."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "who": {"type": "string"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "year": {"type": "integer"},
        "price": {"type": "number", "format": "money"},
        "day": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        "mail": {"type": "string", "format": "email"},
        "closed": {"type": "boolean"},
        "mood": {"enum": LABELS},
        "grade": {"anyOf": [{"enum": [1, 2, 3]}, {"type": "null"}]},
        "moods": {"type": "array", "items": {"enum": LABELS}},
        "names": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["who"],
}


def fill(clients: Any, text: str, schema: Any = SCHEMA) -> Record:
    """Fill a record over both; they are the same, probabilities but for how the arithmetic of a batch is ordered."""
    rest, rpc, _ = clients
    record: Record = rest.fill_record(text, schema)
    other: Record = rpc.fill_record(text, schema)
    assert list(other.fields) == list(record.fields)
    for name, field in record.fields.items():
        assert other.fields[name].probability == pytest.approx(field.probability, abs=1e-5)
        assert replace(other.fields[name], probability=field.probability) == field
    assert replace(other, fields=record.fields) == record
    return record


def test_records_fit_the_schema_and_values_have_places(clients: Any) -> None:
    chance = random.Random(5)
    num_filled = 0
    for _ in range(6):
        text = make_text(chance, chance.choice((1, 12, 60, 300)))
        record = fill(clients, text)
        assert list(record.fields) == list(SCHEMA["properties"])
        for name, field in record.fields.items():
            assert (name in record.missing) is not field.answered
            assert (field.reason is None) is field.answered
            assert 0 <= field.probability <= 1 + 1e-6
            assert all(text[span.start : span.end] == span.text for span in field.spans)
            if field.answered:
                num_filled += 1
                assert record.values[name] == field.value
                assert field.spans
            elif field.text:
                assert field.reason != NOT_SAID, "a quotation without a value says why"
                assert field.spans
        assert record.fields["names"].value == list(dict.fromkeys(s.text for s in record.fields["names"].spans))
        assert "none" in str(record) or not record.missing
    assert num_filled > 12


def test_a_field_is_answered_as_its_question_is(clients: Any) -> None:
    rest, _, _ = clients
    record = fill(clients, TEXT)
    alone = rest.answer(TEXT, "What is the who?", sources=["context"], contiguous=True)
    field = record.fields["who"]
    assert (field.question, field.text, field.spans) == ("What is the who?", alone.text, alone.spans)
    chosen = rest.answer(TEXT, "What is the mood?", choices=LABELS)
    assert record.fields["mood"].text == chosen.text
    assert record.fields["mood"].probability == pytest.approx(chosen.confidence, abs=1e-5)


def test_other_fields_and_their_order_change_nothing(clients: Any) -> None:
    properties = SCHEMA["properties"]
    whole = fill(clients, TEXT)
    turned = fill(clients, TEXT, {**SCHEMA, "properties": dict(reversed(properties.items()))})
    assert list(turned.fields) == list(reversed(properties))
    assert turned.values == whole.values
    alone = fill(clients, TEXT, {"properties": {"who": properties["who"]}})
    assert alone.fields["who"].text == whole.fields["who"].text


def test_bounds_of_the_schema_hold(clients: Any) -> None:
    node = {"type": "string", "ask": "What?", "maxLength": 1}
    for seed in range(5):
        record = fill(clients, make_text(random.Random(seed), 20), {"properties": {"short": node}})
        if record.fields["short"].answered:
            assert len(record.values["short"]) <= 1
        elif record.fields["short"].text:
            assert record.fields["short"].reason == (
                "The value is not within the schema's bounds: String should have at most 1 character."
            )


@pytest.mark.parametrize(
    ("context", "quotation", "value"),
    [
        *(("Balance: -$120.50 in May", "$120.50", None), ("Balance: -$120.50 in May", "-$120.50", -120.5)),
        *(("$120.50", "$120.50", 120.5), ("($120.50)", "$120.50", None)),
        ("It is the price, all in all: $2.5B. More", "$2.5", None),
        ("It is the price, all in all: $2.5. More", "$2.5", 2.5),
    ],
)
def test_what_stands_around_a_quotation_counts(context: str, quotation: str, value: float | None) -> None:
    [field] = read_schema({"properties": {"price": SCHEMA["properties"]["price"]}})
    start = context.index(quotation)
    span = AnswerSpan(Source.CONTEXT, start, start + len(quotation), quotation)
    quoted = filling.FilledField("price", "", None, quotation, (span,), True, 1.0)
    found = filling._read(Places(context), field, quoted, str.isascii)
    assert (found.value, found.answered, found.reason is None) == (value, value is not None, value is not None)
    assert (found.text, found.spans) == (quotation, (span,)), "the quotation is kept"


@pytest.mark.parametrize(
    ("text", "start"),
    [
        *(
            ("Balance: -[$120.50] in May", -1),
            ("was -[12.5] °C", -1),
            ("of –[£14.99] will", -1),
            ("12/1   -[£ 200]", -1),
        ),
        *(("Seats 14 -[22]", 0), ("-[5 apples]\n-3 pears", 0), ("We need:\n-[5 apples]", 0), ("A-[17]", 0)),
        *(("Balance: - [5]", 0), ("Balance: -[some 5]", 0), ("[5]", 0)),
    ],
)
def test_a_sign_directly_in_front_belongs_to_the_quotation(text: str, start: int) -> None:
    before, _, rest = text.partition("[")
    quotation, _, after = rest.partition("]")
    place = AnswerSpan(Source.CONTEXT, len(before), len(before) + len(quotation), quotation)
    found = filling.with_sign(Places(before + quotation + after), place, Kind.NUMBER)
    assert (found.start - place.start, found.end) == (start, place.end)
    assert (before + quotation)[found.start :] == found.text


@pytest.mark.parametrize(
    ("text", "after"),
    [
        *(("has [3.5] million people", " million"), ("cost [¥5]万", "万"), ("of [300] Tsd. EUR", " Tsd.")),
        *(("was [7 degrees] below zero", " below zero"), ("was [12] below zero.", " below zero"), ("[5]", "")),
        *(("has [5]\nmillion reasons", ""), ("has [5] millionaires", ""), ("the [apples] below zero", "")),
        *(("has [5 rooms] below zero Street", ""), ("in [May] million", ""), ("was [7], below zero", "")),
    ],
)
def test_a_word_directly_after_a_number_that_changes_it_belongs_to_the_quotation(text: str, after: str) -> None:
    before, _, rest = text.partition("[")
    quotation, _, behind = rest.partition("]")
    place = AnswerSpan(Source.CONTEXT, len(before), len(before) + len(quotation), quotation)
    assert filling.with_multiple(before + quotation + behind, place).text == quotation + after


def quotation_of(context: str, text: str, probability: float) -> Answer:
    start = context.index(text)
    return Answer(text, probability, (), (AnswerSpan(Source.CONTEXT, start, start + len(text), text),), False)


def filled(context: str, field: RecordField, answer: Answer) -> filling.FilledField:
    [found] = filling.fill_fields(RecordRequest(context, (field,), None), [answer], str.isascii).fields
    return found


_TABLES = (
    "name,phone,email\nIda,,ida@a.example\nOtto,0555 123 456,",
    "|day|high|low|\n|-|-|-|\n|Mon|14|–|\n|Tue|16|5|",
    "item;qty\nlamps;\nchairs;2",
    "Start: n/a\nEnd: 5 May\nE-mail: ____\nE-mail: a@b.example\nDeposit: -\nRent: 640",
)


@pytest.mark.parametrize(
    ("context", "question", "is_empty"),
    [
        *((_TABLES[0], "What is the phone of Ida?", True), (_TABLES[0], "What is the phone of Otto?", False)),
        *((_TABLES[0], "email of Otto", True), (_TABLES[0], "What is the phone?", False)),
        (_TABLES[1], "low on Mon", True),
        *((_TABLES[1], "low on Sunday", False), (_TABLES[1], "What is the low on Tue?", False)),
        *(("lamp | price\nred | 5\nblue | ", "What is the price of blue lamps?", False), ("", "What?", False)),
        *((_TABLES[2], "quantity of lamps", True), (_TABLES[3], "What is the start?", True)),
        *((_TABLES[3], "What is the end?", False), (_TABLES[3], "e-mail", False)),
        *((_TABLES[3], "deposit", True), (_TABLES[3], "deposit of the flat", False)),
    ],
)  # fmt: skip
def test_what_a_form_or_table_leaves_empty_is_known(context: str, question: str, is_empty: bool) -> None:
    assert Places(context).is_left_empty(question) is is_empty


_LEDGER = "payee,paid,left"


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        (f"{_LEDGER}\nRent,-[850.00],2114.36", "money", -850.0),
        (f"{_LEDGER}\nRent,[850.00],2114.36", "money", 850.0),
        *((f'{_LEDGER}\nRent,"[1,204.50]",7', "money", 1204.5), (f"{_LEDGER}\nRent,5,[850.00]", "money", 850.0)),
        *(("a;b\nx;-[3]", None, -3.0), ("|a|b|\n|-|-|\n|x|-[3]|", None, -3.0), ("a\tb\tc\nx\t-[3]\t4", None, -3.0)),
        (f"{_LEDGER}\nRent,[850.00,2114.36]", "money", None),  # two cells
        *((f"{_LEDGER}\nRent,5,[204],7", "money", None), ("Rent,[850.00],2114.36", "money", None)),  # of no table
        *(("Rent, paid, left\nall,[850.00],2114.36", "money", None), ("1,2,3\nRent,[850.00],2114.36", "money", None)),
        *(("payee,paid\nRent,-[850]", None, None), (f"{_LEDGER}\nRent,- [850],3", None, None)),
    ],
)
def test_a_cell_of_a_table_ends_what_stands_in_it(text: str, kind: str | None, value: float | None) -> None:
    [field] = read_schema({"properties": {"sum": {"type": "number"} | ({"format": kind} if kind else {})}})
    before, _, rest = text.partition("[")
    quotation, _, after = rest.partition("]")
    context = before + quotation + after
    assert filled(context, field, quotation_of(context, quotation, 0.9)).value == value


_PRICES = "item;qty;price\ndesk lamp;4;12.00\nchair;;35.00"


@pytest.mark.parametrize(
    ("context", "refusal", "value", "reason"),
    [
        *((_PRICES, 0.1, 12.0, None), (_PRICES, 0.9, 12.0, None)),
        *((f"{_PRICES}\nred lamp;1;9", 0.1, 12.0, None), (f"{_PRICES}\nred lamp;1;9", 0.25, None, filling.ELSEWHERE)),
        ("item;price\nbulb;12.00\nchair;35.00", 0.1, 35.0, None),  # has no lamp
        ("what        from   price\ndesk lamp     -    12.00\nchair        X1    35.00", 0.9, 12.0, None),
        ("item        qty    price\ndesk lamp     4    12.00\nchair         1    35.00", 0.9, 12.0, None),
        ("item        qty    price\ndesk lamp   black desk   12.00\nchair         1    35.00", 0.1, 35.0, None),
        ("item        qty    price\n  desk lamp   4    12.00\nchair         1    35.00", 0.1, 35.0, None),
    ],
)
def test_what_a_table_names_as_what_is_asked_is_taken_or_nothing(
    context: str, refusal: float, value: float | None, reason: str | None
) -> None:
    [field] = read_schema({"properties": {"price of the lamp": {"type": "number", "format": "money"}}})
    likeliest, other = quotation_of(context, "35.00", 0.3), quotation_of(context, "12.00", 0.2)
    made = filled(context, field, replace(likeliest, refusal=refusal, alternatives=(other,)))
    assert (made.value, made.reason) == (value, reason)


@pytest.mark.parametrize("quotation", ["4;12.00", "4;12.00\nchair", "12.00"])
def test_a_quotation_of_several_cells_is_cut_to_the_one_that_is_asked_for(quotation: str) -> None:
    [field] = read_schema({"properties": {"price of the lamp": {"type": "number", "format": "money"}}})
    made = filled(_PRICES, field, quotation_of(_PRICES, quotation, 0.3))
    assert (made.value, made.text, made.spans[0].start) == (12.0, "12.00", _PRICES.index("12.00"))


def test_an_empty_place_is_told_as_one(clients: Any) -> None:
    record = fill(clients, "Deposit: -\nRent: 640", {"properties": {"deposit": {"type": "string"}}})
    assert not record.fields["deposit"].answered
    assert record.fields["deposit"].reason in (EMPTY, NOT_SAID)


@pytest.mark.parametrize(
    ("of_all", "own", "value"), [({}, {}, "Ada"), (0.7, {}, None), (0.7, 0.5, "Ada"), ({}, 0.7, None)]
)
def test_a_value_that_is_not_likely_enough_is_left_out(of_all: Any, own: Any, value: str | None) -> None:
    least = [{"x-min-probability": given} if given else {} for given in (of_all, own)]
    [field] = read_schema({**least[0], "properties": {"who": {"type": "string", **least[1]}}})
    found = filled("Ask Ada.", field, quotation_of("Ask Ada.", "Ada", 0.6))
    reason = None if value else "Unsure: its probability is below 0.7."
    assert (found.value, found.answered, found.reason) == (value, value is not None, reason)
    assert (found.text, found.probability) == ("Ada", 0.6), "what it would have been is kept"


@pytest.mark.parametrize(
    ("kind", "context", "quotations", "refusal", "found"),
    [
        ("price", "VAT 19 % is 76.00 EUR", [("19", 0.6), ("76.00 EUR", 0.3)], 0.01, ("76.00 EUR", 76.0)),
        ("price", "VAT is 76.00 EUR", [("VAT", 0.6), ("76.00 EUR", 0.3)], 0.01, ("76.00 EUR", 76.0)),
        ("price", "VAT 19 % is 76.00 EUR", [("19 %", 0.6), ("76.00 EUR", 0.3)], 0.31, ("19 %", None)),
        ("price", "VAT 19 % of 400 EUR", [("19 %", 0.6), ("VAT", 0.3)], 0.01, ("19 %", None)),
        ("day", "Sent 3 May 2024, due 3/4/2024", [("3/4/2024", 0.6), ("3 May 2024", 0.3)], 0.01, ("3/4/2024", None)),
        ("day", "Sent 3 May 2024, due next week", [("next week", 0.6), ("3 May 2024", 0.3)], 0.01, ("next week", None)),
        ("mail", "Ask Ada, ada@b.org", [("Ada", 0.6), ("ada@b.org", 0.3)], 0.01, ("ada@b.org", "ada@b.org")),
        ("who", "Ask Ada, ada@b.org", [("Ada", 0.6), ("ada@b.org", 0.3)], 0.01, ("Ada", "Ada")),
    ],
)
def test_a_quotation_that_is_nothing_of_the_type_gives_way_to_the_next(
    kind: str, context: str, quotations: list[tuple[str, float]], refusal: float, found: tuple[str, Any]
) -> None:
    first, *others = (quotation_of(context, text, probability) for text, probability in quotations)
    [field] = read_schema({"properties": {"x": SCHEMA["properties"][kind]}})
    made = filled(context, field, replace(first, refusal=refusal, alternatives=tuple(others)))
    assert (made.text, made.value, made.answered) == (*found, found[1] is not None)
    assert made.probability == dict(quotations)[found[0]]


@pytest.mark.parametrize(
    ("kind", "rivals", "found"),
    [
        *(("price", [("76.00 EUR", 0.26)], 76.0), ("price", [("VAT", 0.4), ("76.00 EUR", 0.26)], 76.0)),
        *(("price", [("76.00 EUR", 0.24)], None), ("mail", [("76.00 EUR", 0.4), ("VAT", 0.3)], None)),
        ("mail", [], None),
    ],
)
def test_a_quotation_of_the_type_is_taken_where_the_text_hardly_says_nothing_of_it(
    kind: str, rivals: list[tuple[str, float]], found: float | None
) -> None:
    context = "VAT is 76.00 EUR"
    refused = Answer("", 0.5, (), (), False, answered=False, refusal=0.5)
    others = tuple(quotation_of(context, text, probability) for text, probability in rivals)
    [field] = read_schema({"properties": {"x": SCHEMA["properties"][kind]}})
    made = filled(context, field, replace(refused, alternatives=others))
    assert (made.value, made.answered) == (found, found is not None)
    assert found is None or made.probability == 0.26


@pytest.mark.parametrize(
    ("context", "quotation", "whole"),
    [
        ("We live in Varde (DK).", "in Varde (DK", "in Varde (DK)"),
        *(("We live in Varde (DK, Jutland).", "in Varde (DK", "in Varde"), ("We (Ada and Bo) met.", "(Ada", "Ada")),
        *(("See annex (annex B).", "annex B)", "(annex B)"), ("See annex B) below.", "annex B)", "annex B")),
        ('It is "The Old Harbour".', '"The Old Harbour', '"The Old Harbour"'),
        ("It is “The Old Harbour”.", "The Old Harbour”", "“The Old Harbour”"),
        *(('It is "the old, or new one".', '"the old', "the old"), ("a) walls, b) notes", "a) walls", "a) walls")),
        *(('a 24" screen', '24"', '24"'), ("I am sad :( today.", "sad :( today", "sad :( today")),
        *(("f(x) [1]", "f(x) [1]", "f(x) [1]"), ("We met (", "(", "(")),
    ],
)
def test_quotations_have_both_brackets_or_none(context: str, quotation: str, whole: str) -> None:
    start = context.rindex(quotation)
    found = balanced(context, AnswerSpan(Source.CONTEXT, start, start + len(quotation), quotation))
    assert (found.text, context[found.start : found.end]) == (whole, whole)


def test_a_choice_may_be_none_where_the_schema_has_null() -> None:
    request = RecordRequest(TEXT, tuple(read_schema(SCHEMA)), None)
    asked = [field.name for field in request.fields if filling._ask(request, field).options.none]
    assert asked == ["grade"]


@pytest.mark.parametrize("given", [None, 5, "text", [SCHEMA], object(), {"properties": {"a": {1, 2}}}, {"a": "\ud800"}])
def test_what_is_no_schema_is_not_sent(clients: Any, given: Any) -> None:
    for client in clients[:2]:
        with pytest.raises(InvalidRequestError):
            client.fill_record(TEXT, given)


@pytest.mark.parametrize(
    ("context", "schema", "code", "message"),
    [
        (" ", SCHEMA, "empty_context", "The context is empty"),
        ("a " * 4001, SCHEMA, "context_too_long", "The context has"),
        (TEXT, {}, "unsupported_schema", "The schema has no properties"),
        (TEXT, {"properties": {"lines": {"type": "object"}}}, "unsupported_schema", "The field lines is an object"),
        (TEXT, {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}}, "unsupported_schema", "The field a refers to itself"),  # noqa: E501
        (TEXT, {"properties": {f"f{i}": {"type": "string"} for i in range(257)}}, "too_many_questions", "257 fields"),
        (TEXT, {"properties": {"a": {"type": "string", "ask": "why " * 300}}}, "question_too_long", "The field a cannot be asked for: The question has"),  # noqa: E501
        (TEXT, {"properties": {"a": {"type": "string", "ask": " "}}}, "empty_question", "The field a cannot be asked"),
        (TEXT, {"properties": {"a": {"enum": ["x", " "]}}}, "empty_choice", "The field a cannot be asked for"),
        (TEXT, {"properties": {"a": {"enum": ["x" * 1001]}}}, "word_too_long", "The field a cannot be asked for"),
        ("x" * 1001, SCHEMA, "word_too_long", "a word of 1001 characters"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_with_the_field(
    clients: Any, context: str, schema: Any, code: str, message: str
) -> None:
    told = []
    for client in clients[:2]:
        with pytest.raises(InvalidRequestError) as raised:
            client.fill_record(context, schema)
        assert raised.value.code == code
        told.append(raised.value.message)
    assert message.removesuffix(" empty") in told[0]
    assert ("cannot be asked for" in told[0]) == ("cannot be asked" in message)
    assert told[0] == told[1]


def test_texts_times_fields_are_bounded_before_there_are_questions() -> None:
    fields = {f"f{i}": {"$ref": "#/$defs/A"} for i in range(5)}
    schema = {"properties": fields, "$defs": {"A": {"enum": [str(i) for i in range(255)]}}}
    with pytest.raises(InputError, match="There are 1280 questions"):
        filling.parse_records(json.dumps({"texts": ["a"] * 256, "schema": schema}).encode())


def test_many_fields_cannot_share_more_labels_than_a_request_may_have(clients: Any) -> None:
    shared = {"enum": [f"{'x' * 300} {i}" for i in range(255)]}
    properties = {f"field_{i}": {"$ref": "#/$defs/Shared"} for i in range(256)}
    with pytest.raises(InvalidRequestError, match="The enums of all fields have"):
        clients[0].fill_record(TEXT, {"properties": properties, "$defs": {"Shared": shared}})


def test_records_of_many_texts_are_those_of_each_alone(clients: Any) -> None:
    texts = [{"id": "a", "context": TEXT}, "Nine ships came in 1880.", {"context": "x" * 1001}]
    response = httpx2.post(f"{clients[2]}/v1/records", json={"texts": texts, "schema": SCHEMA}, trust_env=False)
    assert response.status_code == 200, response.text
    found = response.json()["texts"]
    assert [row["id"] for row in found] == ["a", None, None]
    for row, text in zip(found[:2], (TEXT, texts[1]), strict=True):
        alone = clients[0].fill_record(text, SCHEMA)
        assert (row["record"], row["missing"], row["error"]) == (alone.values, list(alone.missing), None)
        for name, field in alone.fields.items():
            assert row["fields"][name]["probability"] == pytest.approx(field.probability, abs=1e-5)
    assert (found[2]["record"], found[2]["fields"], found[2]["error"]["code"]) == (None, None, "word_too_long")


BAD_BODIES = [
    (b'{"texts": [], "schema": {"properties": {"a": {"type": "string"}}}}', 422, "wrong_type"),
    (b'{"texts": ["c", 5], "schema": {"properties": {"a": {"type": "string"}}}}', 422, "wrong_type"),
    (b'{"texts": [{"id": 5, "context": "c"}], "schema": {"properties": {"a": {"type": "string"}}}}', 422, "wrong_type"),
    (b'{"texts": [{"id": "a"}], "schema": {"properties": {"a": {"type": "string"}}}}', 422, "missing_field"),
    (b'{"texts": ["c"], "context": "c", "schema": {}}', 422, "unknown_field"),
    (
        b'{"texts": [{"id": "a", "context": "c"}, {"id": "a", "context": "d"}],'
        b' "schema": {"properties": {"a": {"type": "string"}}}}',
        422,
        "duplicate_id",
    ),
    *((b"{", 400, "malformed_request"), (b"[]", 400, "malformed_request")),
    (b'{"context": "\xff", "schema": {}}', 400, "malformed_request"),
    (b'{"context": "\\ud800", "schema": {}}', 400, "malformed_request"),
    (b'{"context": "c", "schema": {"properties": {"a": {"minimum": NaN}}}}', 400, "malformed_request"),
    (b'{"context": "c", "schema": ' + b'{"a":' * 100_000, 400, "malformed_request"),
    *((b'{"context": "c"}', 422, "missing_field"), (b'{"schema": {}}', 422, "missing_field")),
    (b'{"context": 5, "schema": {"properties": {"a": {"type": "string"}}}}', 422, "wrong_type"),
    (b'{"context": "c", "schema": "text"}', 422, "wrong_type"),
    (b'{"context": "c", "schema": {}, "colour": 1}', 422, "unknown_field"),
    (b'{"context": "c", "schema": {}, "timeout_ms": 0}', 400, "invalid_timeout"),
    (b'{"context": "c", "schema": {}, "timeout_ms": true}', 400, "invalid_timeout"),
    (b'{"context": "c", "schema": {"properties": {"a": {"enum": [' + b"9" * 5000 + b"]}}}}", 400, "malformed_request"),
    (b" " * (1024 * 1024 + 1), 413, "request_too_large"),
]


@pytest.mark.parametrize(("body", "status", "code"), BAD_BODIES, ids=range(len(BAD_BODIES)))
def test_bodies_that_make_no_sense_are_refused(clients: Any, body: bytes, status: int, code: str) -> None:
    headers = {"content-type": "application/json"}
    response = httpx2.post(f"{clients[2]}/v1/records", content=body, headers=headers, trust_env=False)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert str(response.status_code) in openapi_document()["paths"]["/v1/records"]["post"]["responses"]


async def test_a_message_with_no_json_in_it_is_refused(start_server: Any) -> None:
    callers = await start_server()
    for schema in ("", "{", "5", "[" * 10_000):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await callers.rpc.FillRecord(answer_pb2.FillRecordRequest(context="c", schema=schema), timeout=10)
        assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert dict(raised.value.trailing_metadata())["mqan-code"] in ("malformed_request", "wrong_type")


async def test_an_answer_that_fails_fails_the_record(start_server: Any) -> None:
    callers = await start_server(max_batch_size=1)
    body = {"context": "explode now", "schema": {"properties": {"a": {"type": "string"}}}}
    response = await callers.rest.post("/v1/records", json=body)
    assert (response.status_code, response.json()["code"]) == (500, "internal")
    assert "secret" not in response.text
