"""Values of quotations: what two readers could take for two things has none, and a reason."""

import re
from datetime import date, datetime, time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqan_core.text import INVISIBLE, read_tokens
from mqan_serving.records.errors import NoValueError
from mqan_serving.records.values import Kind, read_value

_QUOTED = [kind for kind in Kind if kind not in (Kind.YES_NO, Kind.CHOICE, Kind.CHOICES)]


@pytest.mark.parametrize(
    ("kind", "quotation", "value"),
    [
        (Kind.NUMBER, "476.00 EUR", 476.0),
        (Kind.NUMBER, "1,234", 1234.0),
        (Kind.NUMBER, "330.125 kg", 330.125),
        (Kind.NUMBER, "0,125", 0.125),
        (Kind.NUMBER, "1.234.567,89", 1234567.89),
        (Kind.NUMBER, "1,234.567", 1234.567),
        (Kind.NUMBER, "1’234’567", 1234567.0),
        (Kind.NUMBER, "1 234\N{NO-BREAK SPACE}567", 1234567.0),
        (Kind.NUMBER, "minus 5", -5.0),
        (Kind.NUMBER, "−40 °C", -40.0),
        (Kind.NUMBER, "10%", 10.0),
        (Kind.NUMBER, "330 m", 330.0),
        (Kind.NUMBER, "٣٤", 34.0),
        (Kind.INTEGER, "2.0", 2),
        (Kind.INTEGER, "a table for 12", 12),
        (Kind.INTEGER, "Four", 4),
        (Kind.TEXT, "  as it\nstands ", "  as it\nstands "),
    ],
)
def test_numbers(kind: Kind, quotation: str, value: object) -> None:
    found = read_value(kind, quotation).value
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("quotation", "amount", "currency"),
    [
        ("476.00 EUR", 476.0, "EUR"),
        ("€1.234,56", 1234.56, "€"),
        ("1.234 €", 1234.0, "€"),  # of money three digits behind a point are thousands
        ("US$ 20.5", 20.5, "US$"),
        ("CHF 1'200.-", 1200.0, "CHF"),
        ("-12.50 £", -12.5, "£"),
        ("EUR40", 40.0, "EUR"),
        ("20 dollars", 20.0, None),
    ],
)
def test_money_has_a_currency_as_it_is_written(quotation: str, amount: float, currency: str | None) -> None:
    found = read_value(Kind.MONEY, quotation)
    assert found.normalized is not None
    assert (found.value, found.normalized.amount, found.normalized.currency) == (amount, amount, currency)
    assert found.normalized.library == "price-parser"


_SEVERAL_DAYS = [
    *("3-5 May 2024", "1-2 June 2024", "May 3-5, 2024", "3 and 5 May 2024", "28/29 May 2024", "3 to 5 May"),
    *("2024-05-03-2024-05-05", "2024-05-03/05", "May 2023 or 3 May 2024"),
]
_MULTIPLIED = [
    *("$2.5B", "$5 M", "$3T", "1.5 tn", "5 Mrd", "$3MM", "10 M€", "100 K$", "$2.5-million", "50 cents", "99¢", "99p"),
]


@pytest.mark.parametrize(
    ("kind", "quotation", "reason"),
    [
        (Kind.NUMBER, "none", "no number"),
        (Kind.NUMBER, "3-4", "several numbers"),
        (Kind.NUMBER, "1/2", "several numbers"),
        (Kind.NUMBER, "1e5", "several numbers"),
        (Kind.NUMBER, "12 34", "several numbers"),
        (Kind.NUMBER, "2024-118", "several numbers"),
        (Kind.NUMBER, "12.05.2024", "not written as one number"),
        (Kind.NUMBER, "1.2.3", "not written as one number"),
        (Kind.NUMBER, "A12", "inside a word"),
        (Kind.NUMBER, "3.5 million", "multiplies"),
        (Kind.NUMBER, "12k", "multiplies"),
        (Kind.MONEY, "€3m", "multiplies"),
        (Kind.MONEY, "19%", "share"),
        (Kind.NUMBER, "1" * 16, "more than 15 digits"),
        (Kind.NUMBER, "1 " * 60, "too long"),
        (Kind.INTEGER, "2.5", "whole number"),
        (Kind.DATE, "9 to 5", "no date or time"),
        (Kind.DATE, "tomorrow", "no date or time"),
        (Kind.DATE, "31 February 2024", "no date or time"),
        (Kind.DATE, "12 May", "say the year"),
        (Kind.DATE, "May 24", "say the year"),
        (Kind.DATE, "Monday", "say the year"),
        (Kind.DATE, "10:30", "say the year"),
        (Kind.DATE, "2024", "say the month"),
        (Kind.DATE, "May 2024", "say the day"),
        (Kind.DATE, "03/04/2024", "is 2024-03-04 or 2024-04-03"),
        (Kind.DATE, "05-06-24", "is 2024-05-06 or 2024-06-05"),
        (Kind.DATE_TIME, "12 May 2024", "say the hour"),
        (Kind.DATE_TIME, "3/4/2024 10:00", "order of day and month"),
        (Kind.DATE_TIME, "12 May 2024, 10:00 EST", "time zone"),
        (Kind.TIME, "15", "say the hour"),
        (Kind.TIME, "25:00", "no date or time"),
        (Kind.EMAIL, "jane at x.org", "not one email"),
        (Kind.EMAIL, "jane@x", "not one email"),
        (Kind.EMAIL, "a@x.org, b@y.org", "not one email"),
        (Kind.URI, "www.x.org", "not one URI"),
        (Kind.URI, "http://[", "not one URI"),
        (Kind.PHONE, "12", "not one phone number"),
        (Kind.PHONE, "call 555-0199", "not one phone number"),
        *((Kind.DATE, days, "several dates, or a range") for days in _SEVERAL_DAYS),
        *((Kind.TIME, hours, "several times, or a range") for hours in ("10:00-11:00", "09:00 - 17:00", "2 pm-4 pm")),
        (Kind.DATE_TIME, "3 May 2024 10-11", "a range"),
        (Kind.DATE_TIME, "2024-05-03 10:00+23:00", "offset that no time zone has"),
        *((Kind.MONEY, amount, "multiplies") for amount in _MULTIPLIED),
        (Kind.NUMBER, "5-thousand", "multiplies"),
        (Kind.NUMBER, "10²", "fraction or a power"),
        (Kind.MONEY, "1½", "fraction or a power"),
        (Kind.MONEY, "(476.00)", "below zero"),
        (Kind.NUMBER, "5-", "sign behind"),
        (Kind.INTEGER, "1.000", "between thousands"),
    ],
)
def test_what_is_not_of_the_kind_or_may_be_two_things_has_a_reason(kind: Kind, quotation: str, reason: str) -> None:
    with pytest.raises(NoValueError, match=re.escape(reason)):
        read_value(kind, quotation)


@pytest.mark.parametrize(
    ("quotation", "iso"),
    [
        ("12 May 2024", "2024-05-12"),
        ("May the 3rd, 2024", "2024-05-03"),
        ("Monday, 6 May 2024", "2024-05-06"),
        ("2024-05-12", "2024-05-12"),
        ("20240512", "2024-05-12"),
        ("12.05.2024", "2024-05-12"),  # with points the day comes first
        ("13/04/2024", "2024-04-13"),  # there is no 13th month
        ("5/5/2024", "2024-05-05"),  # in either order
        ("3.5.24", "2024-05-03"),
        ("1.1.70", "1970-01-01"),  # two digits are of 1969 to 2068
        ("24 December 2024 at 7.30 pm", "2024-12-24"),
        ("12 May 2024, 10:00 EST", "2024-05-12"),
    ],
)
def test_dates(quotation: str, iso: str) -> None:
    found = read_value(Kind.DATE, quotation)
    assert found.normalized is not None
    assert (found.value, found.normalized.iso, found.normalized.library) == (iso, iso, "python-dateutil")
    date.fromisoformat(iso)


@pytest.mark.parametrize(
    ("kind", "quotation", "iso"),
    [
        (Kind.TIME, "7.30 pm", "19:30:00"),
        (Kind.TIME, "7 p.m.", "19:00:00"),
        (Kind.TIME, "19.30 h", "19:30:00"),
        (Kind.TIME, "19:30 h", "19:30:00"),
        (Kind.TIME, "19.30 hrs.", "19:30:00"),
        (Kind.TIME, "10:00 UTC-5", "10:00:00-05:00"),
        (Kind.TIME, "10:00:00-05:00", "10:00:00-05:00"),
        (Kind.TIME, "10:00 on 3 May 2024", "10:00:00"),
        (Kind.TIME, "10 am, May 3", "10:00:00"),
        (Kind.DATE_TIME, "12 May 2024, 19.30 h", "2024-05-12T19:30:00"),
        (Kind.DATE_TIME, "2024-05-12T09:00-10:00", "2024-05-12T09:00:00-10:00"),
        (Kind.DATE_TIME, "2024-05-12 09:00:00-10:00", "2024-05-12T09:00:00-10:00"),
        (Kind.DATE_TIME, "20240512T100000", "2024-05-12T10:00:00"),
        (Kind.DATE_TIME, "Fri, 3 May 2024 10:00:00 -0500", "2024-05-03T10:00:00-05:00"),
        (Kind.TIME, "Friday at 3 pm", "15:00:00"),
        (Kind.TIME, "10:00 UTC+2", "10:00:00+02:00"),
        (Kind.TIME, "10:00Z+2", "10:00:00+02:00"),
        (Kind.TIME, "10:00+02:00", "10:00:00+02:00"),
        (Kind.DATE_TIME, "24 December 2024 at 7.30 pm", "2024-12-24T19:30:00"),
        (Kind.DATE_TIME, "2024-05-12T10:00:00Z", "2024-05-12T10:00:00+00:00"),
        (Kind.DATE_TIME, "2024-05-12 10:00-05:00", "2024-05-12T10:00:00-05:00"),
    ],
)
def test_times(kind: Kind, quotation: str, iso: str) -> None:
    assert read_value(kind, quotation).value == iso


_IN_FRONT = ["", "Friday ", "on ", "Mon ", "at 10:00 on ", "10 am, ", "the ", "Monday, "]


@pytest.mark.parametrize("words", _IN_FRONT)
@pytest.mark.parametrize("written", ["03/04/2024", "3/4/2024", "03-04-2024", "05/06/24"])
def test_words_in_front_of_a_date_do_not_tell_its_order(words: str, written: str) -> None:
    with pytest.raises(NoValueError, match="order of day and month"):
        read_value(Kind.DATE, words + written)
    with pytest.raises(NoValueError, match="order of day and month"):
        read_value(Kind.DATE_TIME, f"{words}{written}{'' if '10' in words else ' 10:00'}")


@pytest.mark.parametrize("words", _IN_FRONT)
@pytest.mark.parametrize(
    ("written", "iso"),
    [
        ("06.05.2024", "2024-05-06"),
        ("12.05.2024", "2024-05-12"),
        ("12.5.24", "2024-05-12"),
        ("2024-05-06", "2024-05-06"),
        ("2024/05/06", "2024-05-06"),
        ("2024.05.06", "2024-05-06"),
        ("13/04/2024", "2024-04-13"),
        ("3 May 2024", "2024-05-03"),
    ],
)
def test_words_in_front_of_a_date_change_nothing(words: str, written: str, iso: str) -> None:
    assert read_value(Kind.DATE, words + written).value == iso
    at_ten = f"{words}{written}{'' if '10' in words else ' 10:00'}"
    assert read_value(Kind.DATE_TIME, at_ten).value == f"{iso}T10:00:00"


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
    "5 hours",
    "5 h",
    "10h",
    "2.5 h",
    "1.30 h",
    "90 minutes",
    "1h30",
    "1:30 hours",
    "5 hrs",
    "30 s",
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
    with pytest.raises(NoValueError, match="am or pm behind"):
        read_value(Kind.TIME, "7:30", "at ", after)
    assert read_value(Kind.TIME, "7:30", "at ", " primary").value == "07:30:00"


@pytest.mark.parametrize(
    ("kind", "quotation", "value"),
    [
        (Kind.EMAIL, "<jane@x.org>.", "jane@x.org"),
        (Kind.EMAIL, "mailto:jane.o'neil+7@mail.x-y.org", "jane.o'neil+7@mail.x-y.org"),
        (Kind.URI, "https://x.org/a?b#c", "https://x.org/a?b#c"),
        *((Kind.URI, f"https://x.org/a{end}", "https://x.org/a") for end in (".", ",", ";", ":", "!", "?", ".,")),
        (Kind.URI, "https://x.org/.", "https://x.org/"),
        *((Kind.URI, f"https://x{hidden}.org/{hidden}a{hidden}", "https://x.org/a") for hidden in INVISIBLE),
        *((Kind.EMAIL, f"{hidden}ja{hidden}ne@x.o{hidden}rg", "jane@x.org") for hidden in INVISIBLE),
        *((Kind.PHONE, f"{hidden}555-{hidden}0199", "555-0199") for hidden in INVISIBLE),
        (Kind.PHONE, "+44 20 7946 0123", "+44 20 7946 0123"),
        (Kind.PHONE, "(030) 1234/56", "(030) 1234/56"),
    ],
)
def test_addresses(kind: Kind, quotation: str, value: str) -> None:
    found = read_value(kind, quotation)
    assert (found.value, found.normalized) == (value, None)


@pytest.mark.parametrize(
    ("kind", "quotation", "value"),
    [
        *((kind, ".5", 0.5) for kind in (Kind.NUMBER, Kind.MONEY)),
        *((kind, "about .03", 0.03) for kind in (Kind.NUMBER, Kind.MONEY)),
        (Kind.MONEY, "$.99", 0.99),
        (Kind.MONEY, "$.50", 0.5),
        (Kind.MONEY, "-$.50", -0.5),
        (Kind.MONEY, "-.50 €", -0.5),
        (Kind.MONEY, "Rs.500", 500.0),
        (Kind.NUMBER, ".500", 0.5),
        (Kind.INTEGER, "No.5", 5),
    ],
)
def test_a_point_in_front_of_digits_is_that_of_decimals(kind: Kind, quotation: str, value: float) -> None:
    assert read_value(kind, quotation).value == value


@pytest.mark.parametrize("quotation", [",5", "..75", "EUR.99", "x,.5", ").75", ".1.000", ".5,5", "from.5", "1, .5"])
@pytest.mark.parametrize("kind", [Kind.NUMBER, Kind.MONEY, Kind.INTEGER])
def test_a_point_in_front_of_digits_that_may_be_something_else_leaves_no_value(kind: Kind, quotation: str) -> None:
    with pytest.raises(NoValueError):
        read_value(kind, quotation)


@pytest.mark.parametrize(
    ("kind", "quotation", "value"),
    [
        (Kind.MONEY, "KWD 1234.567", 1234.567),
        (Kind.MONEY, "1234,567", 1234.567),
        (Kind.MONEY, "1'234.567", 1234.567),
        (Kind.MONEY, "1.234.567 €", 1234567.0),
        (Kind.MONEY, "0.500", 0.5),
        (Kind.MONEY, "012.345", 12.345),
        (Kind.MONEY, "$1,234", 1234.0),
        (Kind.NUMBER, "1234,567", 1234.567),
        (Kind.NUMBER, "1234.5", 1234.5),
        (Kind.NUMBER, "1'234.567", 1234.567),
        (Kind.NUMBER, "12 345", 12345.0),
        (Kind.NUMBER, "12 345,678", 12345.678),
        (Kind.NUMBER, "12345,67", 12345.67),
        (Kind.NUMBER, "١.٢", 1.2),
        (Kind.INTEGER, "1,000", 1000),
        (Kind.INTEGER, "1.234.567", 1234567),
    ],
)
def test_what_stands_between_thousands_and_before_decimals(kind: Kind, quotation: str, value: float) -> None:
    assert read_value(kind, quotation).value == value


_NO_NUMBERS = [
    *(
        "2024 500",
        "1234 567",
        "012 345",
        "1.234 567",
        "1,234 567",
        "12'345'67",
        "5'11",
        "12'5",
        "1'234'56.7",
        "1 234'567",
    ),
    *("1,00,000", "1.23.456", "1,234,56", "1.234,567,890", "0,123,456"),
]


@pytest.mark.parametrize("kind", [Kind.NUMBER, Kind.MONEY, Kind.INTEGER])
@pytest.mark.parametrize("quotation", _NO_NUMBERS)
def test_separators_that_are_not_those_of_one_number_leave_no_value(kind: Kind, quotation: str) -> None:
    with pytest.raises(NoValueError):
        read_value(kind, quotation)


_SHARP = ["1.000", "1.000.", "1.000,", "1.000,-", "1.000;", "1.000 pieces", "about 1.000.", "12.345", "123.456!"]


@pytest.mark.parametrize(
    ("kind", "quotation"),
    [
        *((Kind.INTEGER, quotation) for quotation in _SHARP),
        *((Kind.MONEY, f"{currency} 1.234") for currency in ("KWD", "BHD", "OMR", "KD")),
        (Kind.MONEY, "1.234 dinars"),
    ],
)
def test_three_digits_behind_a_point_may_be_thousands_or_decimals(kind: Kind, quotation: str) -> None:
    with pytest.raises(NoValueError, match="before decimals, or between thousands"):
        read_value(kind, quotation)


_FRACTIONS = [
    *(
        "{} ½ hours",
        "{} ½",
        "{}½",
        "${} ½",
        "{} ⅔",
        "{} and a half",
        "{} and a half hours",
        "{}-and-a-half",
        "{} & a half",
    ),
    *("{} 1/2", "{} and 1/2", "{} and one half", "{} and three quarters", "{} halves", "{} thirds", "{} and 3/4 cups"),
]


@pytest.mark.parametrize("kind", [Kind.NUMBER, Kind.MONEY, Kind.INTEGER])
@pytest.mark.parametrize("form", _FRACTIONS)
def test_a_number_with_a_fraction_has_no_value_whole_or_cut(kind: Kind, form: str) -> None:
    for number in ("2", "two"):
        text = form.format(number)
        with pytest.raises(NoValueError):
            read_value(kind, text)
        before, _, after = text.partition(number)
        with pytest.raises(NoValueError):
            read_value(kind, number, before, after)


@pytest.mark.parametrize(
    ("kind", "before", "quotation", "after", "value"),
    [
        (Kind.MONEY, "Balance: ", "-$120.50", ".", -120.5),
        (Kind.MONEY, "Coffee - ", "$4.50", "\n", 4.5),
        (Kind.MONEY, "", "Coffee - $4.50", "", 4.5),
        (Kind.MONEY, "costs ", "CHF 1'200", ".-", 1200.0),
        (Kind.MONEY, "about (in all) ", "$120.50", " (net)", 120.5),
        (Kind.MONEY, "paid EUR", "40", " today", 40.0),
        (Kind.NUMBER, "We need:\n- ", "5 apples", "\n- 3 pears", 5.0),
        (Kind.NUMBER, "- ", "5 apples", "", 5.0),
        (Kind.NUMBER, "We need:\n   – ", "5", " apples", 5.0),
        (Kind.NUMBER, "Covid-", "19", " cases", 19.0),
        (Kind.NUMBER, "a ", "5", "-year plan", 5.0),
        (Kind.NUMBER, "a ", "five", "-year plan", 5.0),
        (Kind.NUMBER, "they are (", "5 guests", ")", 5.0),
        (Kind.NUMBER, "Berlin,", "5", ",6 km", None),
        (Kind.NUMBER, "Berlin,", "5", ", Rome", 5.0),
        (Kind.NUMBER, "It came. ", "75 kg", ". Then", 75.0),
        (Kind.INTEGER, "on 03/04/", "2024", ".", 2024),
        (Kind.INTEGER, "on 2024-", "05", "-03", None),
        (Kind.INTEGER, "on ", "2024", "-05-03", 2024),
        (Kind.MONEY, "Balance: -", "$120.50", "", None),
        (Kind.MONEY, "Balance: -$", "120.50", "", None),
        (Kind.MONEY, "Balance: −", "120.50 €", "", None),
        (Kind.MONEY, "Balance: - ", "$120.50", "", None),
        (Kind.MONEY, "Balance: EUR-", "120.50", "", None),
        (Kind.MONEY, "minus ", "$5", "", None),
        (Kind.MONEY, "(", "$120.50", ")", None),
        (Kind.MONEY, "loss ( ", "$120.50", " )", None),
        (Kind.MONEY, "($", "120.50", ") in May", None),
        (Kind.MONEY, "(", "USD 120.50", ")", None),
        (Kind.MONEY, "(USD ", "120.50", ")", None),
        (Kind.MONEY, "(", "20 dollars", ")", None),
        (Kind.MONEY, "costs ", "$2.5", "B in all", None),
        (Kind.MONEY, "costs ", "19", " %", None),
        (Kind.MONEY, "costs ", "120.50", "-", None),
        (Kind.MONEY, "KWD ", "1.234", "", None),
        (Kind.NUMBER, "it is -", "5", " °C", None),
        (Kind.NUMBER, "", "- 5", "", None),
        (Kind.NUMBER, "± ", "5", "", None),
        (Kind.NUMBER, "(", "5", ")", None),
        (Kind.NUMBER, "weighs .", "75 kg", "", None),
        (Kind.NUMBER, "weighs ,", "75 kg", "", None),
        (Kind.NUMBER, "weighs 3.", "75 kg", "", None),
        (Kind.NUMBER, "weighs 3", ".75 kg", "", None),
        (Kind.NUMBER, "weighs ", "3", ".75 kg", None),
        (Kind.NUMBER, "has 12 ", "345", " people", None),
        (Kind.NUMBER, "has ", "12", " 345 people", None),
        (Kind.NUMBER, "has ", "12", ",345 people", None),
        (Kind.NUMBER, "has ", "3.5", " million people", None),
        (Kind.NUMBER, "has ", "3", "M people", None),
        (Kind.NUMBER, "has ", "two", " hundred people", None),
        (Kind.NUMBER, "has twenty-", "two", " people", None),
        (Kind.NUMBER, "has one hundred and ", "two", " people", None),
        (Kind.NUMBER, "invoice 2024-", "118", "", None),
        (Kind.NUMBER, "for ", "10", "-12 people", None),
        (Kind.NUMBER, "ratio ", "3", ":1", None),
        (Kind.NUMBER, "took 3/", "4", " of it", None),
        (Kind.NUMBER, "room A", "12", "", None),
        (Kind.NUMBER, "is ", "5", "e6", None),
        (Kind.NUMBER, "is ", "5", " × 10^6", None),
    ],
)
def test_what_stands_around_a_quotation_can_change_its_number(
    kind: Kind, before: str, quotation: str, after: str, value: float | None
) -> None:
    if value is None:
        with pytest.raises(NoValueError):
            read_value(kind, quotation, before, after)
    else:
        assert read_value(kind, quotation, before, after).value == value


_STYLES = ["{:,.2f}", "{:,.1f}", "{:,.3f}", "{:,.0f}", "{:.2f}", "{:.3f}", "{:.0f}"]
_SEPARATORS = [(",", "."), (".", ","), (" ", ","), (" ", "."), ("'", "."), ("\N{NO-BREAK SPACE}", ",")]
_FRONTS = ["", "$", "€ ", "about ", "It has ", "USD ", ": ", "Coffee - "]
_BEHINDS = ["", " €", " kg", ".", ", then", "\nNext", " people in May", "; and"]


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_no_number_is_ever_off_however_it_is_cut(data: st.DataObject) -> None:
    """A number in any style and any quotation of it has the value that was written, or none.

    One separator before three digits is read by the documented rule, so it is left out.
    """
    style, (thousands, point) = data.draw(st.sampled_from(_STYLES)), data.draw(st.sampled_from(_SEPARATORS))
    amount = data.draw(st.decimals(0, 10**9, places=3))
    written = style.format(amount)
    number = float(written.replace(",", ""))
    written = written.translate({ord(","): thousands, ord("."): point})
    if re.fullmatch(r"\d{1,3}[.,]\d{3}", written):
        return
    if written.startswith("0") and len(written) > 1 and data.draw(st.booleans()):
        written = written[1:]
    sign = data.draw(st.sampled_from(["", "-", "−"]))
    front, behind = data.draw(st.sampled_from(_FRONTS)), data.draw(st.sampled_from(_BEHINDS))
    text = f"{front}{sign}{written}{behind}"
    tokens = read_tokens(text)
    first = data.draw(st.integers(0, len(tokens) - 1))
    last = data.draw(st.integers(first, len(tokens) - 1))
    start, end = tokens[first].start, tokens[last].end
    for kind in (Kind.NUMBER, Kind.MONEY, Kind.INTEGER):
        try:
            found = read_value(kind, text[start:end], text[:start][-24:], text[end:][:24])
        except NoValueError:
            continue
        assert found.value == pytest.approx(-number if sign else number), (kind, text, text[start:end])


_PARTS = st.sampled_from(
    [*"0123456789.,-/:'+ T%€$eEkZ", "May", "am", "pm", "UTC", "EST", "2024", "12", "Monday", "31", "th", "@", "x.org"]
)


@settings(max_examples=300, deadline=None)
@given(
    kind=st.sampled_from(_QUOTED),
    quotation=st.one_of(st.text(max_size=40), st.lists(_PARTS, max_size=14).map("".join)),
)
def test_any_text_has_a_value_of_its_kind_or_a_reason(kind: Kind, quotation: str) -> None:
    try:
        found = read_value(kind, quotation)
    except NoValueError:
        return
    match kind:
        case Kind.NUMBER | Kind.MONEY:
            assert isinstance(found.value, float)
        case Kind.INTEGER:
            assert type(found.value) is int
        case _:
            assert isinstance(found.value, str)
    parses = {Kind.DATE: date, Kind.DATE_TIME: datetime, Kind.TIME: time}
    if kind in parses:
        parses[kind].fromisoformat(str(found.value))  # type: ignore[attr-defined]
        assert read_value(kind, quotation) == found
