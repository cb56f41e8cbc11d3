"""Numbers of records: no separator, and nothing around a quotation, makes a value other than the text's.

Where the text around counts, the quotation stands in brackets.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqan_core.bundle import open_bundle
from mqan_core.text.tokens import read_tokens
from mqan_serving.records.quoted import NoValueError
from mqan_serving.records.values import Kind, read_value
from tests.serving.conftest import read_around
from tests.tables import cases

Knows = Callable[[str], bool]


@pytest.mark.parametrize("quotation", [",5", "..75", "EUR.99", "x,.5", ").75", ".1.000", ".5,5", "from.5", "1, .5"])
@pytest.mark.parametrize("kind", [Kind.NUMBER, Kind.MONEY, Kind.INTEGER])
def test_a_point_in_front_of_digits_that_may_be_something_else_leaves_no_value(kind: Kind, quotation: str) -> None:
    with pytest.raises(NoValueError):
        read_value(kind, quotation)


_NO_NUMBERS = [
    *("2024 500", "1234 567", "012 345", "1.234 567", "1,234 567", "12'345'67", "5'11", "12'5", "1'234'56.7"),
    *("1 234'567", "1,00,000", "1.23.456", "1,234,56", "1.234,567,890", "0,123,456"),
]


@pytest.mark.parametrize("kind", [Kind.NUMBER, Kind.MONEY, Kind.INTEGER])
@pytest.mark.parametrize("quotation", _NO_NUMBERS)
def test_separators_that_are_not_those_of_one_number_leave_no_value(kind: Kind, quotation: str) -> None:
    with pytest.raises(NoValueError):
        read_value(kind, quotation)


_FRACTIONS = [
    *("{} ½ hours", "{} ½", "${} ½", "{} ⅔", "{} and a half", "{} and a half hours", "{}-and-a-half"),
    *("{} & a half", "{} 1/2", "{} and 1/2", "{} and one half", "{} and three quarters", "{} halves", "{} thirds"),
    "{} and 3/4 cups",
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


_LEFT = [
    *("[5 apples]", "[5] tickets", "[40 EUR] to Kowalczyk", "paid Kowalczyk [40 EUR]", "two [$40] T-shirts", "[20 Kč]"),
    *("[5 US dollars]", "[5 Swiss francs]", "[950 zł]", "[40€]", "[40EUR]", "[7.9 kg]", "[7.9kg]", "[5 km/h]", "[5°]"),
    *("[**5**] apples", "**[5]** apples", "[5th]", "a [5-year] plan", "[5/night]", "net;[5];gross", "#[5]", "=[5]"),
    *("[5]   Millionär", "[5]\tMillionen", "[5], Millionen", "[5 EUR (Nettobetrag)]", "[5] of Kowalczyk", "~[5]"),
    "[5x] faster",
]


@pytest.fixture(scope="module")
def knows(repository: Path) -> Knows:
    word_pieces = open_bundle(repository / "serving" / "bundles" / "default").word_pieces
    assert word_pieces is not None
    return word_pieces.knows


@pytest.mark.parametrize(("kind", "text", "value"), cases("serving/amounts_read.jsonl"))
def test_a_number_has_its_value_whatever_stands_around(kind: str, text: str, value: float, knows: Knows) -> None:
    assert read_around(Kind(kind), text, knows) == value


@pytest.mark.parametrize(("kind", "text", "reason"), cases("serving/amounts_refused.jsonl"))
def test_a_number_that_may_be_another_has_no_value(kind: str, text: str, reason: str | None, knows: Knows) -> None:
    with pytest.raises(NoValueError, match=reason):
        read_around(Kind(kind), text, knows)


@pytest.mark.parametrize("text", _LEFT)
def test_a_number_beside_what_leaves_it_as_it_is_has_its_value(text: str, knows: Knows) -> None:
    digits = "".join(char for char in text.partition("[")[2].partition("]")[0] if char.isdigit() or char == ".")
    assert read_around(Kind.NUMBER, text, knows) == float(digits)


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
