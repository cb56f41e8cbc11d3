"""Answers read as queries and as changes of state, with the places of their values; what cannot be read says why."""

import os
import random
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from mqan_core.answer.types import Answer, AnswerToken, Masses, ParsedQuery, ParsedState, Source, Span, compose
from mqan_core.errors import FormError
from mqan_core.forms.grammars import read_header
from mqan_core.forms.parsed import DIALOGUE_STATE, SQL, parse_answer
from mqan_core.text.tokens import read_tokens
from mqan_data.queries import write_table
from tests.timing import is_within

HEADER = ["Ship", "Year built", 'Name "x"', "Speed"]
MASSES = Masses(0.5, 0.25, 0.25)


def answer_of(text: str, context: str) -> Answer:
    """Make an answer whose words are quoted from the end of the context where they are there."""
    tokens = []
    for token in read_tokens(text):
        word = text[token.start : token.end]
        place = context.rfind(word)
        source = Source.VOCABULARY if place < 0 else Source.CONTEXT
        span = None if place < 0 else Span(place, place + len(word))
        tokens.append(AnswerToken(word, token.piece, 0.9, source, MASSES, span))
    return compose(tokens, 0.5, False, context, "?")


def parse_sql(text: str, asked: str = "", header: list[str] = HEADER) -> Answer:
    context = write_table(header, asked)
    return parse_answer(SQL, answer_of(text, context), context, "?")


def parse_state(text: str, context: str = "-") -> Answer:
    return parse_answer(DIALOGUE_STATE, answer_of(text, context), context, "?")


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("select ship from table", 'SELECT "Ship" FROM "table"'),
        ("SELECT COUNT Ship FROM table", 'SELECT COUNT("Ship") FROM "table"'),
        (
            "select max speed from table where year built > 1950 and ship = Mary Rose",
            'SELECT MAX("Speed") FROM "table" WHERE "Year built" > 1950 AND "Ship" = \'Mary Rose\'',
        ),
        (
            'select name "x" from table where ship = O\'Brien; DROP TABLE x --',
            'SELECT "Name ""x""" FROM "table" WHERE "Ship" = \'O\'\'Brien; DROP TABLE x --\'',
        ),
        ("select ship from table where speed < -2.50", 'SELECT "Ship" FROM "table" WHERE "Speed" < -2.50'),
        (
            "select ship from table where speed > -12345678901234567890123456789012345678.123456",
            'SELECT "Ship" FROM "table" WHERE "Speed" > -12345678901234567890123456789012345678.123456',
        ),
        ("select ship from table where speed = 007", 'SELECT "Ship" FROM "table" WHERE "Speed" = \'007\''),
    ],
)
def test_queries_are_printed_as_sql(text: str, sql: str) -> None:
    parsed = parse_sql(text).parsed
    assert isinstance(parsed, ParsedQuery)
    assert parsed.sql == sql
    assert sqlglot.parse_one(sql).sql() == sql


def test_a_state_has_the_places_of_its_values() -> None:
    context = "I want North  Indian food. What is the phone number?"
    parsed = parse_state("Food: North  Indian, price range: cheap; phone, address, phone", context).parsed
    assert isinstance(parsed, ParsedState)
    food, price = parsed.slots
    assert (food.name, food.text) == ("food", "North  Indian")
    assert [context[span.start : span.end] for span in food.spans] == ["North  Indian"]
    assert (price.name, price.text, price.spans) == ("price range", "cheap", ())
    assert [(wanted.name, len(wanted.spans)) for wanted in parsed.requests] == [("phone", 1), ("address", 0)]
    assert parse_state("none").parsed == ParsedState((), ())


def test_a_slot_that_is_told_again_with_the_same_value_is_told_once() -> None:
    parsed = parse_state("food: Thai, area: north, food:  thai;", "Thai food in the north").parsed
    assert isinstance(parsed, ParsedState)
    assert [(slot.name, slot.text, len(slot.spans)) for slot in parsed.slots] == [
        ("food", "Thai", 1),
        ("area", "north", 1),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Mary Rose", "SELECT column FROM table"),
        ("select captain from table", "'captain', which is no column"),
        ("select ship from table where captain = x", "'captain = x'"),
        ("select ship from table where ship = ", "no value"),
        ("select ship from table where ship OP x", "by 'op'"),
        (f"select {'x' * 500} from table", "x..."),
    ],
)
def test_what_is_no_query_says_why(text: str, why: str) -> None:
    answer = parse_sql(text)
    assert answer.parsed is None
    assert why in str(answer.parse_error)
    assert len(str(answer.parse_error)) < 200


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("italian", "slot: value"),
        ("italian;", "'italian'"),
        ("food: ; phone", "'food'"),
        (": thai;", "no name"),
        ("food: thai, food: greek;", "two values"),
    ],
)
def test_what_is_no_state_says_why(text: str, why: str) -> None:
    answer = parse_state(text)
    assert answer.parsed is None
    assert why in str(answer.parse_error)


def test_what_is_no_whole_answer_is_not_read() -> None:
    whole = answer_of("select ship from table", "-")
    for kind in (SQL, DIALOGUE_STATE):
        cut = Answer(whole.text, 0.5, whole.tokens, whole.spans, truncated=True)
        assert "cut" in str(parse_answer(kind, cut, "-", "?").parse_error)
        none = Answer("", 0.5, (), (), truncated=False, answered=False)
        assert "no answer" in str(parse_answer(kind, none, "-", "?").parse_error)


@pytest.mark.parametrize(
    "context",
    ["", "The table is empty.", "The table has columns  and key words x", " and key words The table has columns "],
)
def test_a_context_without_columns_is_no_table(context: str) -> None:
    answer = parse_answer(SQL, answer_of("select ship from table", context), context, "?")
    assert "does not name the columns" in str(answer.parse_error)


HOSTILE = [
    *("select", "from", "table", "where", "and", "=", ">", "<", "op", "max", "count", "Ship", "Year built", "none"),
    *([";", ":", ",", '"', "'", "''", "\\", "--", "/*", "*/", "İ", "Σ", "ß", "𝒳", "🦊🦊"]),
    *("\x00", "\n", "\u00ad", "\u202e"),
    *("{{", "}}", "$$", "?", "%s", "1e309", "-", "-0", "00", "٣", "1,000", ")", "(", "x" * 300, " ", "food", "area"),
]


def test_hostile_answers_are_read_or_say_why() -> None:
    chance = random.Random(5)
    num_read = 0
    for _ in range(int(os.environ.get("MQAN_FUZZ_CASES", "1000"))):
        names = {" ".join(chance.choices(HOSTILE, k=chance.randint(1, 3))): None for _ in range(chance.randint(1, 4))}
        header = list(names)
        words = chance.choices(HOSTILE, k=chance.randint(0, 12))
        if chance.random() < 0.5:
            condition = [chance.choice(header), chance.choice(["=", ">", "<", "op"]), *words]
            words = ["select", chance.choice(header), "from table where", *condition]
        text = " ".join(words)
        for kind in (SQL, DIALOGUE_STATE):
            context = write_table(header, text)
            answer = parse_answer(kind, answer_of(text, context), context, "?")
            num_read += answer.parsed is not None
            assert (answer.parsed is None) == (answer.parse_error is not None)
            check_whole(answer.parsed, context)
    assert num_read > 0


def check_whole(parsed: Any, context: str) -> None:
    """Check that the places are those of the values, and that SQL holds the query and nothing else."""
    if isinstance(parsed, ParsedState):
        values = [*parsed.slots, *parsed.requests]
    elif parsed is None:
        return
    else:
        values = [condition.value for condition in parsed.conditions]
        [tree] = sqlglot.parse(parsed.sql)
        assert isinstance(tree, exp.Select)
        literals = [str(node.this) for node in tree.find_all(exp.Literal)]
        assert len(literals) == len(values)
        columns = [node.name for node in tree.find_all(exp.Column)]
        assert sorted(columns) == sorted([parsed.select, *(value.name for value in values)])
        assert [table.name for table in tree.find_all(exp.Table)] == ["table"]
    for value in values:
        for span in value.spans:
            assert context[span.start : span.end] == span.text


@pytest.mark.parametrize(
    ("header", "text", "why"),
    [
        (HEADER, "select ship from table where ship = Ajax and points > 5", "compares 'points', which is no column"),
        (["ID", "id"], "select id from table where id = 5", "differ only in case"),
    ],
)
def test_a_query_that_may_mean_another_is_not_given(header: list[str], text: str, why: str) -> None:
    answer = parse_sql(text, header=header)
    assert answer.parsed is None
    assert answer.parse_error is not None
    assert why in answer.parse_error


def test_a_column_and_the_text_before_the_table_may_speak_of_key_words() -> None:
    header = ["Pros and key words used", "Year"]
    table = write_table(header, "Which year?")
    assert read_header(table) == header
    assert read_header(f"Note: the key words x and key words y. {table}") == header
    with pytest.raises(FormError, match="does not name the columns"):
        read_header("Year and key words. The table has columns ")


def test_hostile_answers_are_read_in_little_time() -> None:
    """The time grows with the length of an answer, not with its square."""
    context = write_table(["Ship", "y", "x" * 20_000], "?")
    select, more = "select ship from table where ", "and y = " * 2000

    def read() -> None:
        assert parse_answer(SQL, answer_of(select + more, "-"), "-", "?").parsed is None
        parse_answer(SQL, answer_of(f"{select}y = {more}", context), context, "?")
        parse_state("; " + ", ".join(["phone"] * 4000))

    assert is_within(20, read)  # 0.3 s was seen; 118 s for the second one alone before
