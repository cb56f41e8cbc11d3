"""Values of quotations: what two readers could take for two things has none, and a reason."""

import re
from datetime import date, datetime, time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqan_serving.records.quoted import NoValueError
from mqan_serving.records.values import Kind, read_value

_HIDDEN = [*map(chr, [0xAD, 0x34F, 0x61C, 0x115F, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F)])]
_HIDDEN += map(chr, [*range(0x2060, 0x2070), 0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFFA0, 0xE0001, 0xE0041, 0xE0100])
_QUOTED = [kind for kind in Kind if kind not in (Kind.YES_NO, Kind.CHOICE, Kind.CHOICES)]


@pytest.mark.parametrize(
    ("kind", "quotation", "value"),
    [
        *((Kind.NUMBER, "476.00 EUR", 476.0), (Kind.NUMBER, "1,234", 1234.0), (Kind.NUMBER, "330.125 kg", 330.125)),
        *((Kind.NUMBER, "0,125", 0.125), (Kind.NUMBER, "1.234.567,89", 1234567.89)),
        *((Kind.NUMBER, "1,234.567", 1234.567), (Kind.NUMBER, "1’234’567", 1234567.0)),
        *((Kind.NUMBER, "1 234\N{NO-BREAK SPACE}567", 1234567.0), (Kind.NUMBER, "minus 5", -5.0)),
        *((Kind.NUMBER, "−40 °C", -40.0), (Kind.NUMBER, "10%", 10.0), (Kind.NUMBER, "330 m", 330.0)),
        *((Kind.NUMBER, "٣٤", 34.0), (Kind.INTEGER, "2.0", 2), (Kind.INTEGER, "a table for 12", 12)),
        *((Kind.INTEGER, "Four", 4), (Kind.TEXT, "  as it\nstands ", "  as it\nstands ")),
    ],
)
def test_numbers(kind: Kind, quotation: str, value: object) -> None:
    found = read_value(kind, quotation).value
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("quotation", "amount", "currency"),
    [
        *(("476.00 EUR", 476.0, "EUR"), ("€1.234,56", 1234.56, "€")),
        ("1.234 €", 1234.0, "€"),  # of money three digits behind a point are thousands
        *(("US$ 20.5", 20.5, "US$"), ("CHF 1'200.-", 1200.0, "CHF"), ("-12.50 £", -12.5, "£"), ("EUR40", 40.0, "EUR")),
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
    *("24,25 December 2024", "May 13,14, 2024", "13/05/2024-15", "3‒5 May 2024"),
]
_MULTIPLIED = [
    *("$2.5B", "$5 M", "$3T", "1.5 tn", "$3MM", "10 M€", "100 K$", "$5p", "99 p"),
    *("50C", "EUR million 5.2", "€ million 5.2", "$m 3.2", "US$ bn 3.1", "USD thousand 5", "Rs crore 5.2", "KEUR 5"),
    *("5 TEUR", "3 MUSD", "3 thsd", "$3 tril"),
]


_REASONS = [
    (Kind.NUMBER, "no number", ["none"]),
    (Kind.NUMBER, "several numbers", ["3-4", "1/2", "1e5", "12 34", "2024-118"]),
    *((Kind.NUMBER, "not written as one number", ["12.05.2024", "1.2.3"]), (Kind.NUMBER, "inside a word", ["A12"])),
    (Kind.NUMBER, "multiplies", ["12k", "25 k", "12M users", "3 M"]),
    (Kind.MONEY, "multiplies", _MULTIPLIED),
    (Kind.MONEY, "share", ["19%", "19 percent", "19 per cent", "19 pct"]),
    (Kind.DATE, "in place of a year", ["12 May 1145", "on 5 June 1530", "May 3 1030"]),
    *((Kind.NUMBER, "more than 15 digits", ["1" * 16]), (Kind.NUMBER, "too long", ["1 " * 60])),
    (Kind.INTEGER, "whole number", ["2.5"]),
    (Kind.DATE, "not a date or time", ["9 to 5", "tomorrow", "31 February 2024"]),
    *((Kind.DATE, "say the year", ["12 May", "May 24", "Monday", "10:30"]), (Kind.DATE, "say the month", ["2024"])),
    *((Kind.DATE, "say the day", ["May 2024"]), (Kind.DATE, "is 2024-03-04 or 2024-04-03", ["03/04/2024"])),
    (Kind.DATE, "is 2003-05-24 or 2024-05-03: its order of day, month and year", ["24-05-03"]),
    (Kind.DATE, "is 2005-06-24 or 2024-05-06 or 2024-06-05", ["05-06-24"]),
    (Kind.DATE_TIME, "say the hour", ["12 May 2024"]),
    (Kind.DATE_TIME, "order of day and month", ["3/4/2024 10:00"]),
    *((Kind.DATE_TIME, "time zone", ["12 May 2024, 10:00 EST"]), (Kind.TIME, "say the hour", ["15"])),
    (Kind.TIME, "not a date or time", ["25:00"]),
    (Kind.EMAIL, "not one email", ["jane at x.org", "jane@x", "a@x.org, b@y.org"]),
    (Kind.URI, "not one URI", ["www.x.org", "http://["]),
    (Kind.PHONE, "not one phone number", ["12", "call 555-0199 or 555-0188", "555-0199 ext. 12"]),
    (Kind.DATE, "several dates, or a range", _SEVERAL_DAYS),
    (Kind.TIME, "several times, or a range", ["10:00-11:00", "09:00 - 17:00", "2 pm-4 pm"]),
    (Kind.DATE_TIME, "a range", ["3 May 2024 10-11"]),
    (Kind.DATE_TIME, "offset that no time zone has", ["2024-05-03 10:00+23:00"]),
    *((Kind.NUMBER, "fraction or a power", ["10²"]), (Kind.MONEY, "fraction or a power", ["1½"])),
    *((Kind.MONEY, "below zero", ["(476.00)"]), (Kind.NUMBER, "sign after", ["5-"])),
    (Kind.INTEGER, "between thousands", ["1.000"]),
]


@pytest.mark.parametrize(
    ("kind", "quotation", "reason"), [(kind, one, reason) for kind, reason, all_ in _REASONS for one in all_]
)
def test_what_is_not_of_the_kind_or_may_be_two_things_has_a_reason(kind: Kind, quotation: str, reason: str) -> None:
    with pytest.raises(NoValueError, match=re.escape(reason)):
        read_value(kind, quotation)


@pytest.mark.parametrize(
    ("quotation", "iso"),
    [
        *(("12 May 2024", "2024-05-12"), ("May the 3rd, 2024", "2024-05-03"), ("Monday, 6 May 2024", "2024-05-06")),
        *(("2024-05-12", "2024-05-12"), ("20240512", "2024-05-12")),
        ("12.05.2024", "2024-05-12"),  # with points the day comes first
        ("13/04/2024", "2024-04-13"),  # there is no 13th month
        ("5/5/2024", "2024-05-05"),  # in either order
        ("3.5.24", "2024-05-03"),
        ("1.1.70", "1970-01-01"),  # two digits are of 1969 to 2068
        *(("24 December 2024 at 7.30 pm", "2024-12-24"), ("12 May 2024, 10:00 EST", "2024-05-12")),
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
        *((Kind.TIME, "7.30 pm", "19:30:00"), (Kind.TIME, "7 p.m.", "19:00:00"), (Kind.TIME, "19.30 h", "19:30:00")),
        *((Kind.TIME, "19:30 h", "19:30:00"), (Kind.TIME, "19.30 hrs.", "19:30:00")),
        *((Kind.TIME, "10:00 UTC-5", "10:00:00-05:00"), (Kind.TIME, "10:00:00-05:00", "10:00:00-05:00")),
        *((Kind.TIME, "10:00 on 3 May 2024", "10:00:00"), (Kind.TIME, "10 am, May 3", "10:00:00")),
        (Kind.DATE_TIME, "12 May 2024, 19.30 h", "2024-05-12T19:30:00"),
        (Kind.DATE_TIME, "2024-05-12T09:00-10:00", "2024-05-12T09:00:00-10:00"),
        (Kind.DATE_TIME, "2024-05-12 09:00:00-10:00", "2024-05-12T09:00:00-10:00"),
        (Kind.DATE_TIME, "20240512T100000", "2024-05-12T10:00:00"),
        (Kind.DATE_TIME, "Fri, 3 May 2024 10:00:00 -0500", "2024-05-03T10:00:00-05:00"),
        *((Kind.TIME, "Friday at 3 pm", "15:00:00"), (Kind.TIME, "Friday noon", "12:00:00")),
        *((Kind.TIME, "12 noon", "12:00:00"), (Kind.DATE_TIME, "Tues 3 May 2024 at noon", "2024-05-03T12:00:00")),
        *((Kind.TIME, "10:00 UTC+2", "10:00:00+02:00"), (Kind.TIME, "10:00Z+2", "10:00:00+02:00")),
        (Kind.TIME, "10:00+02:00", "10:00:00+02:00"),
        (Kind.DATE_TIME, "24 December 2024 at 7.30 pm", "2024-12-24T19:30:00"),
        (Kind.DATE_TIME, "2024-05-12T10:00:00Z", "2024-05-12T10:00:00+00:00"),
        (Kind.DATE_TIME, "2024-05-12 10:00-05:00", "2024-05-12T10:00:00-05:00"),
    ],
)
def test_times(kind: Kind, quotation: str, iso: str) -> None:
    assert read_value(kind, quotation).value == iso


@pytest.mark.parametrize(
    ("kind", "quotation", "value"),
    [
        (Kind.EMAIL, "<jane@x.org>.", "jane@x.org"),
        (Kind.EMAIL, "mailto:jane.o'neil+7@mail.x-y.org", "jane.o'neil+7@mail.x-y.org"),
        (Kind.URI, "https://x.org/a?b#c", "https://x.org/a?b#c"),
        *((Kind.URI, f"https://x.org/a{end}", "https://x.org/a") for end in (".", ",", ";", ":", "!", "?", ".,")),
        (Kind.URI, "https://x.org/.", "https://x.org/"),
        *((Kind.URI, f"https://x{hidden}.org/{hidden}a{hidden}", "https://x.org/a") for hidden in _HIDDEN),
        *((Kind.EMAIL, f"{hidden}ja{hidden}ne@x.o{hidden}rg", "jane@x.org") for hidden in _HIDDEN),
        *((Kind.PHONE, f"{hidden}555-{hidden}0199", "555-0199") for hidden in _HIDDEN),
        (Kind.PHONE, "+44 20 7946 0123", "+44 20 7946 0123"),
        *((Kind.PHONE, "(030) 1234/56", "(030) 1234/56"), (Kind.PHONE, "Tel.: (030) 1234", "(030) 1234")),
    ],
)
def test_addresses(kind: Kind, quotation: str, value: str) -> None:
    found = read_value(kind, quotation)
    assert (found.value, found.normalized) == (value, None)


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
