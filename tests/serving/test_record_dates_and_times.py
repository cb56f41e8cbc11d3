"""Dates and times of records: words around them tell no order, and several times are none."""

import pytest

from mqan_serving.records.quoted import NoValueError
from mqan_serving.records.values import Kind, read_value
from tests.serving.conftest import read_around

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


@pytest.mark.parametrize(
    ("quotation", "iso"), [("Friday the 13th at 7:30 pm", "19:30:00"), ("9:00 a.m. on the 3rd", "09:00:00")]
)
def test_a_day_without_a_month_is_no_second_time(quotation: str, iso: str) -> None:
    assert read_value(Kind.TIME, quotation).value == iso


@pytest.mark.parametrize("quotation", ["2024 03/04", "2024, 03/04", "2024/03-04", "2024-13-04", "Monday 2024-13-04"])
def test_a_year_in_front_of_another_order_leaves_no_date(quotation: str) -> None:
    with pytest.raises(NoValueError):
        read_value(Kind.DATE, quotation)


_SEVERAL_TIMES = [
    *("10:00 and 14:00", "10:15, 11:15", "10 am and 2 pm", "10:00 or 11:00", "10:00, 11:00 and 12:00", "10 am/2 pm"),
    *("10:00-2:00 p.m. Monday", "Monday 10:00–11:00", "from 10:00 to 11:00", "10 and 11 am", "10, 11 am", "10-11 am"),
    *("10:00 until 2", "10 to 11 pm", "22:00-02:00", "10:00-05:00", "10.15 am - 11.15 am", "10:00 14:00"),
]
_SEVERAL_TIMES_OF_A_DAY = [
    *("10:00-11:00 on 3 May 2024", "2024-05-03 09:00-10:30", "2024-05-03 09:00-10:00", "2024-05-03 22:00-02:00"),
    *("2024-05-03 10:00 and 14:00", "3 May 2024, 10 am and 2 pm", "2024-05-03 10:00–11:00", "2024-05-03 09-11"),
    *("3 May 2024 10:00, 11:00", "12.05.2024 10:00-11:00", "2024-05-03 10:00 to 11:00"),
]
_LENGTHS = [
    *("5 hours", "5 h", "10h", "2.5 h", "1.30 h", "90 minutes", "1h30", "1:30 hours", "5 hrs", "30 s"),
    "2 hours 30 min",
]


@pytest.mark.parametrize(
    ("kind", "quotation"),
    [
        *((Kind.TIME, times) for times in (*_SEVERAL_TIMES, *_SEVERAL_TIMES_OF_A_DAY, *_LENGTHS)),
        *((Kind.DATE_TIME, times) for times in _SEVERAL_TIMES_OF_A_DAY),
        *((Kind.DATE_TIME, f"3 May 2024, {times}") for times in (*_SEVERAL_TIMES, *_LENGTHS) if "Monday" not in times),
    ],
)
def test_several_times_ranges_and_lengths_have_no_value(kind: Kind, quotation: str) -> None:
    with pytest.raises(NoValueError):
        read_value(kind, quotation)


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


@pytest.mark.parametrize(
    ("quotation", "iso"),
    [("15 June, 1215", "1215-06-15"), ("14 October 1066", "1066-10-14"), ("5 June 1930", "1930-06-05")],
)
def test_a_year_that_is_no_time_of_24_hours_is_read(quotation: str, iso: str) -> None:
    assert read_value(Kind.DATE, quotation).value == iso


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *((Kind.DATE, text) for text in ("[24/2/1]", "[3 May 4]", "[5 May 987]", "3-[5 May 2024]", "[5.3.2024].1")),
        *((Kind.DATE, f"{text}[3 May 2024]") for text in ("3 - ", "the day before ", "two weeks after ")),
        *((Kind.TIME, text) for text in ("[3:2]", "[10:5]", "[10:00]:30", "half [10:00]", "shortly before [10:00]")),
        *((Kind.TIME, f"[{text} 10:00]") for text in ("five minutes to", "half", "from eleven to", "eleven or")),
        *((Kind.TIME, text) for text in ("[10:00 EST today]", "[28.7. 10:00 to late]", "[room 3, 10:00]", "[0575]")),
        *((Kind.TIME, text) for text in ("[5542]", "call [0542] 771", "[7:30 last night]", "[1:30 hours late]")),
        *((Kind.TIME, f"{text} [10:00]") for text in ("five minutes to", "a quarter past", "ten to")),
        (Kind.DATE_TIME, "an hour before [3 May 2024, 10:00]"),
    ],
)
def test_a_date_or_time_beside_what_makes_it_another_has_no_value(kind: Kind, text: str) -> None:
    with pytest.raises(NoValueError):
        read_around(kind, text)


@pytest.mark.parametrize(
    ("kind", "text", "iso"),
    [
        *((Kind.TIME, "moved to [10:00]", "10:00:00"), (Kind.TIME, "open until [10:00] on Mondays", "10:00:00")),
        *((Kind.TIME, "from [7 a.m.] to 8 p.m.", "07:00:00"), (Kind.DATE, "paid before [3 May 2024].", "2024-05-03")),
        *((Kind.DATE, "[3 May 24]", "2024-05-03"), (Kind.DATE, "[20240503]", "2024-05-03")),
        *((Kind.TIME, text, "10:20:00") for text in ("[28.7.   10:20]", "[19 Sep 2026, dep. 10:20]")),
        *((Kind.TIME, "[10:20 by the guard]", "10:20:00"), (Kind.TIME, "[0542 hrs]", "05:42:00")),
        *((Kind.TIME, "[02:36 last night]", "02:36:00"), (Kind.TIME, "The tide turns at [0542].", "05:42:00")),
    ],
)
def test_a_date_or_time_beside_other_words_has_its_value(kind: Kind, text: str, iso: str) -> None:
    assert read_around(kind, text) == iso


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
