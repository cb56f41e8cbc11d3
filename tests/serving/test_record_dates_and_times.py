"""Dates and times of records: words around them tell no order, and several times are none."""

import pytest

from mqan_serving.records.quoted import NoValueError
from mqan_serving.records.values import Kind, read_value

_IN_FRONT = ["", "Friday ", "on ", "Mon ", "at 10:00 on ", "10 am, ", "the ", "Monday, "]


@pytest.mark.parametrize("words", _IN_FRONT)
@pytest.mark.parametrize("written", ["03/04/2024", "3/4/2024", "03-04-2024", "05/06/24"])
def test_words_in_front_of_a_date_do_not_tell_its_order(words: str, written: str) -> None:
    with pytest.raises(NoValueError, match="order of day and month"):
        read_value(Kind.DATE, words + written)
    with pytest.raises(NoValueError, match="order of day and month"):
        read_value(Kind.DATE_TIME, f"{words}{written}{'' if '10' in words else ' 10:00'}")


@pytest.mark.parametrize("words", ["", "on ", "Friday "])
@pytest.mark.parametrize("written", ["240503", "250102", "24-05-03", "030524"])
def test_a_short_year_may_come_first_or_last(words: str, written: str) -> None:
    with pytest.raises(NoValueError, match="order of day, month and year"):
        read_value(Kind.DATE, words + written)


@pytest.mark.parametrize("words", _IN_FRONT)
@pytest.mark.parametrize(
    ("written", "iso"),
    [
        *(("06.05.2024", "2024-05-06"), ("12.05.2024", "2024-05-12"), ("12.5.24", "2024-05-12")),
        *(("2024-05-06", "2024-05-06"), ("2024/05/06", "2024-05-06"), ("2024.05.06", "2024-05-06")),
        *(("13/04/2024", "2024-04-13"), ("3 May 2024", "2024-05-03")),
    ],
)
def test_words_in_front_of_a_date_change_nothing(words: str, written: str, iso: str) -> None:
    assert read_value(Kind.DATE, words + written).value == iso
    at_ten = f"{words}{written}{'' if '10' in words else ' 10:00'}"
    assert read_value(Kind.DATE_TIME, at_ten).value == f"{iso}T10:00:00"


@pytest.mark.parametrize("after", [" pm", "pm", " p.m.", " PM today"])
def test_a_time_cut_from_its_half_of_the_day_has_no_value(after: str) -> None:
    with pytest.raises(NoValueError, match="am or pm after"):
        read_value(Kind.TIME, "7:30", "at ", after)
    assert read_value(Kind.TIME, "7:30", "at ", " primary").value == "07:30:00"


@pytest.mark.parametrize(
    ("before", "after"),
    [("We meet tonight at ", " at Luigi's"), ("at ", " in the evening"), ("at ", " tonight."), ("Friday night, ", "")],
)
def test_a_time_whose_half_of_the_day_stands_around_it_has_no_value(before: str, after: str) -> None:
    for kind, quotation in ((Kind.TIME, "7:30"), (Kind.DATE_TIME, "3 May 2024, 7:30")):
        with pytest.raises(NoValueError, match="late in the day"):
            read_value(kind, quotation, before, after)
    assert read_value(Kind.TIME, "7:30 pm", before, after).value == "19:30:00"
    assert read_value(Kind.TIME, "19:30", before, after).value == "19:30:00"
    assert read_value(Kind.TIME, "7:30", "Good evening. We open at ", "\nTonight").value == "07:30:00"


_TOLD = ["Paid on 19/01/2026.", "From 1/4/2026 to 30/4/2026."]


def test_another_date_of_the_text_tells_the_order_of_day_and_month() -> None:
    for told in _TOLD:
        assert read_value(Kind.DATE, "05/03/2026", whole=f"{told} Due 05/03/2026").value == "2026-03-05"
    assert read_value(Kind.DATE, "05/03/2026", whole="Due 05/03/2026, paid 01/19/2026").value == "2026-05-03"


@pytest.mark.parametrize(
    "told", ["4/5/2026", "19-01-2026", "19/01/26", "19/01/2026 or 01/19/2026", "1/19/01/2026", "19/13/2026"]
)
def test_dates_that_tell_no_order_leave_it_open(told: str) -> None:
    with pytest.raises(NoValueError, match="order of day and month"):
        read_value(Kind.DATE, "05/03/2026", whole=f"{told}, due 05/03/2026")
