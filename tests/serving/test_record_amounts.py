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

Knows = Callable[[str], bool]


@pytest.mark.parametrize(
    ("kind", "quotation", "value"),
    [
        *((kind, ".5", 0.5) for kind in (Kind.NUMBER, Kind.MONEY)),
        *((kind, "about .03", 0.03) for kind in (Kind.NUMBER, Kind.MONEY)),
        *((Kind.MONEY, "$.99", 0.99), (Kind.MONEY, "$.50", 0.5), (Kind.MONEY, "-$.50", -0.5)),
        *((Kind.MONEY, "-.50 €", -0.5), (Kind.MONEY, "Rs.500", 500.0), (Kind.MONEY, "19 %: 76.00 EUR", 76.0)),
        *((Kind.MONEY, "VAT 7,5 %: € 3.20", 3.2), (Kind.NUMBER, ".500", 0.5), (Kind.INTEGER, "No.5", 5)),
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
        *((Kind.MONEY, "KWD 1234.567", 1234.567), (Kind.MONEY, "1234,567", 1234.567)),
        *((Kind.MONEY, "1'234.567", 1234.567), (Kind.MONEY, "1.234.567 €", 1234567.0), (Kind.MONEY, "0.500", 0.5)),
        *((Kind.MONEY, "012.345", 12.345), (Kind.MONEY, "$1,234", 1234.0), (Kind.NUMBER, "1234,567", 1234.567)),
        *((Kind.NUMBER, "1234.5", 1234.5), (Kind.NUMBER, "1'234.567", 1234.567), (Kind.NUMBER, "12 345", 12345.0)),
        *((Kind.NUMBER, "12 345,678", 12345.678), (Kind.NUMBER, "12345,67", 12345.67), (Kind.NUMBER, "١.٢", 1.2)),
        *((Kind.INTEGER, "1,000", 1000), (Kind.INTEGER, "1.234.567", 1234567)),
    ],
)
def test_what_stands_between_thousands_and_before_decimals(kind: Kind, quotation: str, value: float) -> None:
    assert read_value(kind, quotation).value == value


_NO_NUMBERS = [
    *("2024 500", "1234 567", "012 345", "1.234 567", "1,234 567", "12'345'67", "5'11", "12'5", "1'234'56.7"),
    *("1 234'567", "1,00,000", "1.23.456", "1,234,56", "1.234,567,890", "0,123,456"),
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
        *((Kind.MONEY, f"{currency} 1.234") for currency in ("KWD", "BHD", "OMR", "KD", "$", "£", "US$", "USD", "gbp")),
        *((Kind.MONEY, quotation) for quotation in ("1.234 dinars", "$3.459 per gallon", "1.085 US dollars")),
    ],
)
def test_three_digits_behind_a_point_may_be_thousands_or_decimals(kind: Kind, quotation: str) -> None:
    with pytest.raises(NoValueError, match="before decimals, or between thousands"):
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


_CHANGED_AROUND: dict[Kind, list[str]] = {
    Kind.MONEY: [
        *("Coffee - [$4.50]\n", "[Coffee - $4.50]", "EUR million [5.2]", "the US$ m [5.2]", "in Rs crore [5.2]"),
        *("Mio. CHF [5.2]", "[19 %: 76.00 %]", "[5 % of 100 EUR]", "a discount of [5] percent"),
        *("a discount of [5] per cent", "a discount of [5] pct off", "Balance: -[$120.50]", "Balance: -$[120.50]"),
        *("Balance: −[120.50 €]", "Balance: - [$120.50]", "Balance: EUR-[120.50]", "minus [$5]"),
        *("is negative [US$ 75]", "is minus [Rs. 2,000]", "is -[kr 250]", "is -[Kč 20]", "costs [1.234]KWD"),
        *("costs [1.234] JD", "costs [1.234] DT", "costs [1.234] BTC", "costs [1.234]₿", "costs [₹5] Cr."),
        *("costs [₹5] lac", "costs [₹5]L", "costs [₹5] kEUR", "costs [₹5] trn", "costs [₹5] grand", "costs [₹5] Tsd."),
        *("([$120.50])", "loss ( [$120.50] )", "($[120.50]) in May", "([USD 120.50])", "(USD [120.50])"),
        *("([20 dollars])", "costs [$2.5]B in all", "costs [19] %", "costs [120.50]-", "KWD [1.234]"),
    ],
    Kind.NUMBER: [
        *("Berlin,[5],6 km", "It was [12 degrees] below zero", "It was [12 degrees] below freezing in Oslo"),
        *("It was [5] °C below zero", "[5]‒10 people", "costs [12] tn dollars", "a gap of [5] thousandths"),
        *("it is -[5] °C", "[- 5]", "± [5]", "weighs .[75 kg]", "weighs ,[75 kg]", "weighs 3.[75 kg]"),
        *("weighs 3[.75 kg]", "weighs [3].75 kg", "has 12 [345] people", "has [12] 345 people", "has [12],345 people"),
        *("has [3.5] million people", "has [3]M people", "has [two] hundred people", "has twenty-[two] people"),
        *("has one hundred and [two] people", "invoice 2024-[118]", "for [10]-12 people", "ratio [3]:1"),
        *("took 3/[4] of it", "room A[12]", "is [5]e6", "is [5] × 10^6"),
    ],
    Kind.INTEGER: [
        "on 2024-[05]-03",
    ],
}
_LEFT_AROUND: list[tuple[Kind, str, float]] = [
    *((Kind.MONEY, "Balance: [-$120.50].", -120.5), (Kind.MONEY, "Coffee: [$4.50]\n", 4.5)),
    *((Kind.MONEY, "costs [CHF 1'200].-", 1200.0), (Kind.MONEY, "about (in all) [$120.50] (net)", 120.5)),
    *((Kind.MONEY, "paid EUR[40] today", 40.0), (Kind.NUMBER, "We need:\n- [5 apples]\n- 3 pears", 5.0)),
    *((Kind.NUMBER, "- [5 apples]", 5.0), (Kind.NUMBER, "We need:\n   – [5] apples", 5.0)),
    *((Kind.NUMBER, "Covid-[19] cases", 19.0), (Kind.NUMBER, "a [5]-year plan", 5.0)),
    *((Kind.NUMBER, "a [five]-year plan", 5.0), (Kind.NUMBER, "they are ([5 guests])", 5.0)),
    *((Kind.NUMBER, "Berlin,[5], Rome", 5.0), (Kind.NUMBER, "It came. [75 kg]. Then", 75.0)),
    *((Kind.INTEGER, "on 03/04/[2024].", 2024), (Kind.INTEGER, "on [2024]-05-03", 2024)),
    *((Kind.MONEY, "a million times [$5]", 5.0), (Kind.MONEY, "in millions\n[$5]", 5.0)),
    *((Kind.MONEY, "in St. Paul, MN [$5]", 5.0), (Kind.NUMBER, "It was [5 °C]. Below zero it snows", 5.0)),
    *((Kind.MONEY, "[minus US$3,400]", -3400.0), (Kind.MONEY, "is [minus CA$75].", -75.0)),
    *((Kind.MONEY, "by [-zł 250]", -250.0), (Kind.MONEY, "is [−kr 2000]", -2000.0)),
    *((Kind.NUMBER, "was [‒5 degrees]", -5.0), (Kind.NUMBER, "has [5] litres", 5.0)),
    *((Kind.NUMBER, "Anna ([34]) from Berlin", 34.0), (Kind.INTEGER, "Age: [45]\nThird visit", 45)),
    *((Kind.INTEGER, "Guests: [12]\nHalf of them", 12), (Kind.INTEGER, "Rating: [7]\nScore: 8", 7)),
    *((Kind.INTEGER, "got a [7] score", 7), (Kind.INTEGER, "see p.[12]", 12)),
    *((Kind.MONEY, "A: [$500]\nB: $600", 500.0), (Kind.MONEY, "Total: [$120]\n% off", 120.0)),
    *((Kind.MONEY, "rent [£950] p.m.", 950.0), (Kind.MONEY, "two [$40] T-shirts", 40.0)),
]


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in _CHANGED_AROUND.items() for text in texts])
def test_what_stands_around_a_quotation_can_change_its_number(kind: Kind, text: str) -> None:
    with pytest.raises(NoValueError):
        read_around(kind, text)


@pytest.mark.parametrize(("kind", "text", "value"), _LEFT_AROUND)
def test_what_stands_around_a_quotation_can_leave_its_number(kind: Kind, text: str, value: float) -> None:
    assert read_around(kind, text) == value


_CHANGED = [
    *("Closing balance [- 1,204.50 EUR]", "Closing balance - [1,204.50 EUR]", "Refund of [- $5.00]", "[Net - 5 EUR]"),
    *("Balance: -   [5.00 EUR]", "was [- 5 degrees]", "is ⁻[5]", "is √[5]", "[<5]"),
    *("[5] Millionen EUR", "[5 neue Millionen]", "[€ 5 miljoen]", "[€ 5] miljoen"),
    *("[US$5] millones", "[5 mille euros]", "[5 tusen kr]", "[5 bin lira]", "[5 mill. kr]"),
    *("[EUR Millionen 5]", "EUR Mio [5]", "[five] Millionen", "[¥5]万"),
    *("[5 млн]", "[10]⁻³ mm", "[10³]", "[10]^-3", "3 x [10^5]", "[10**3]", "[5²]", "[5] squared"),
    *("[5] times 3", "half of [500 EUR]", "twice [$5]", "double the [5]", "between [5] and 6", "5 to [6]", "[5] or 6"),
    *("[10] to the minus 3", "3 × [5]", "[5+]", "[5=]", "[12a]", "[5ドル]"),
]
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


@pytest.mark.parametrize("kind", [Kind.NUMBER, Kind.MONEY])
@pytest.mark.parametrize("text", _CHANGED)
def test_a_number_beside_what_may_change_it_has_no_value(kind: Kind, text: str, knows: Knows) -> None:
    with pytest.raises(NoValueError):
        read_around(kind, text, knows)


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


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        *((Kind.MONEY, f"a budget of [5 {word} EUR].", 5e6) for word in ("million", "Millionen", "Mio", "Mio.", "mln")),
        *((Kind.MONEY, f"a budget of [5 {word}].", 5e9) for word in ("billion", "Milliarden", "Mrd.", "milliards")),
        *((Kind.MONEY, "paid [$450k] for it", 450e3), (Kind.MONEY, "a fund of [£2bn]", 2e9)),
        *((Kind.MONEY, "the price is [¥5万]", 5e4), (Kind.MONEY, "it costs [85 cents]", 0.85)),
        *((Kind.INTEGER, "[40 thousand] tickets", 40_000), (Kind.INTEGER, "[1.2 million] people", 1_200_000)),
        *((Kind.NUMBER, "a charge of [1.6e-19] C", 1.6e-19), (Kind.NUMBER, "[3 x 10^5] cells", 3e5)),
        *((Kind.NUMBER, "a flow of [4 × 10⁻²] l", 0.04), (Kind.INTEGER, "[Two hundred] people", 200)),
        *((Kind.INTEGER, "[Twenty-five] pupils", 25), (Kind.INTEGER, "[a dozen] eggs", 12)),
        *((Kind.NUMBER, "to [10⁻³ mm]", 0.001), (Kind.NUMBER, "[10^-3].", 0.001), (Kind.INTEGER, "[2^10]", 1024)),
        *((Kind.NUMBER, "[7 degrees below zero]", -7.0), (Kind.NUMBER, "about [12.5 below zero] there", -12.5)),
        *((Kind.MONEY, "result [(1,204.50) EUR]", -1204.5), (Kind.MONEY, "result: [EUR (310)]\n", -310.0)),
        *((Kind.NUMBER, "cut [3/4] of it", 0.75), (Kind.NUMBER, "a tolerance of [± 0.2 mm]", 0.2)),
        *((Kind.NUMBER, "[1½ cups] of flour", 1.5), (Kind.NUMBER, "[40 m3] of water", 40.0)),
        *((Kind.MONEY, "Tip: [50p]", 0.5), (Kind.MONEY, "costs [99¢]", 0.99), (Kind.MONEY, "or [50c] each", 0.5)),
        *((Kind.INTEGER, "[About five hundred] letters", 500), (Kind.INTEGER, "within [ten days] of it", 10)),
        *((Kind.MONEY, "[half a million dollars]", 5e5), (Kind.MONEY, "they get [three euros] back", 3.0)),
        *((Kind.MONEY, "[2,4 Mio. €] im Jahr", 2.4e6), (Kind.INTEGER, "[2 Dutzend] Stühle", 24)),
        *((Kind.MONEY, "[4 millones de euros]", 4e6), (Kind.MONEY, "zahlt [300 €] Miete", 300.0)),
        *((Kind.INTEGER, "the first [100] miles", 100), (Kind.NUMBER, "[about forty miles] apart", 40.0)),
        (Kind.MONEY, "\nCosts      [(455,300)]    (441,020)\n", -455300.0),
        (Kind.MONEY, "\nCosts   (455,300)    [(441,020)]", -441020.0),
        *((Kind.MONEY, "\nDiscount    [(€ 15.00)]", -15.0), (Kind.MONEY, "\nDiscount    [15.00-]\nTotal", -15.0)),
        *((Kind.MONEY, "[₹12,34,567]", 1234567.0), (Kind.MONEY, "[Rs. 1,23,45,678.50]", 12345678.5)),
    ],
)  # fmt: skip
def test_a_known_word_or_power_after_a_number_multiplies_it(kind: Kind, text: str, value: float, knows: Knows) -> None:
    assert read_around(kind, text, knows) == value


_AMBIGUOUS: dict[Kind, list[str]] = {
    Kind.MONEY: [
        *(f"a budget of [5 {word}] EUR" for word in ("Billion", "Trillion", "mil", "Millionchen")),
        *("[2 billion d'euros]", "[1.234 million EUR]", "[1,234 Mio EUR]", "[5 million 300 thousand EUR]"),
        *("[5 million] two hundred thousand EUR", "[5 thousand million EUR]", "[5 million] and a half"),
        *("[5 m] of it", "4 to [5 million EUR]", "[4 million to 5 million EUR]", "[5k] steps"),
        *("3 euros and [85 cents]", "5 dollars [85 cents]", "$3, [85 cents]", "$3 [50c]", "[two] of them"),
        *(
            "[5] miles de euros",
            "\nSales   812,400   [(779,150)]\n",
            "\nCosts   [(779,150)]   812,400\n",
            "\nFee [(15.00)]",
        ),
        *("\nFee   [(15)]", "\nFee   [(15.00)] a month", "\nFee [15.00-]", "\nFee   [15-]\n", "\nFee   [15.00-] 20.00"),
        *("[5 EUR Mio]", "[5 € Millionen]", "[12,34,567 EUR]", "[three] euros and more", "[10^5 EUR]", "[1½ EUR]"),
    ],
    Kind.INTEGER: [
        *("two [hundred] people", "one thousand [two hundred]", "one [hundred and five]", "[two hundred] and five"),
        *("half [a dozen] eggs", "'[98]", "[1990s]", "in the [90s]", "[this one]", "[one of them]", "[two or three]"),
        *("sixty-[two people]", "a hundred and [two people]", "[about two] hundred and five", "[two thirds] of it"),
        "[1½]",
    ],
    Kind.NUMBER: [
        *("[3/4] cup", "[3/4] of 2026", "[4/3] of it", "[1/3] of it", "1 [3/4] of it", "it is 37 [± 0.2]"),
        "between 4 and [5] km",
        "[3 x 10^5^2]",
        "[1,234 x 10^5]",
        "[2 x 10] m",
    ],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in _AMBIGUOUS.items() for text in texts])
def test_a_word_or_power_that_may_be_another_leaves_no_value(kind: Kind, text: str, knows: Knows) -> None:
    with pytest.raises(NoValueError):
        read_around(kind, text, knows)
