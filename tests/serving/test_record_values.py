"""Values of quotations: what two readers could take for two things has none, and a reason."""

import re
from datetime import date, datetime, time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqan_serving.records.quoted import NoValueError
from mqan_serving.records.values import Kind, read_value
from tests.serving.conftest import found_around
from tests.tables import cases

_HIDDEN = [*map(chr, [0xAD, 0x34F, 0x61C, 0x115F, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F)])]
_HIDDEN += map(chr, [*range(0x2060, 0x2070), 0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFFA0, 0xE0001, 0xE0041, 0xE0100])
_QUOTED = [kind for kind in Kind if kind not in (Kind.YES_NO, Kind.CHOICE, Kind.CHOICES)]


@pytest.mark.parametrize(("kind", "text", "value"), cases("serving/values_read.jsonl"))
def test_a_quotation_has_its_value(kind: str, text: str, value: object) -> None:
    found = found_around(Kind(kind), text)
    assert (found.value, type(found.value)) == (value, type(value))
    if kind == Kind.DATE:
        assert found.normalized is not None
        assert (found.normalized.iso, found.normalized.library) == (value, "python-dateutil")
    if kind in (Kind.EMAIL, Kind.URI, Kind.PHONE):
        assert found.normalized is None


@pytest.mark.parametrize(("kind", "text", "reason"), cases("serving/values_refused.jsonl"))
def test_what_is_not_of_the_kind_or_may_be_two_things_has_none(kind: str, text: str, reason: str | None) -> None:
    with pytest.raises(NoValueError, match=reason and re.escape(reason)):
        found_around(Kind(kind), text)


@pytest.mark.parametrize("hidden", _HIDDEN)
def test_what_is_invisible_is_no_part_of_an_address(hidden: str) -> None:
    assert read_value(Kind.URI, f"https://x{hidden}.org/{hidden}a{hidden}").value == "https://x.org/a"
    assert read_value(Kind.EMAIL, f"{hidden}ja{hidden}ne@x.o{hidden}rg").value == "jane@x.org"
    assert read_value(Kind.PHONE, f"{hidden}555-{hidden}0199").value == "555-0199"


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
