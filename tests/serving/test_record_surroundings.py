"""Values of records beside anything that is not known to leave them as they are: there are none."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mqan_core.bundle import open_bundle
from mqan_serving.records.amounts import NoValueError
from mqan_serving.records.values import Kind, read_value

Knows = Callable[[str], bool]

# The quotation stands in brackets.
_CHANGED = [
    *("Closing balance [- 1,204.50 EUR]", "Closing balance - [1,204.50 EUR]", "Refund of [- $5.00]", "[Net - 5 EUR]"),
    *("Balance: -   [5.00 EUR]", "was [- 5 degrees]", "is ⁻[5]", "is √[5]", "[<5]"),
    *("[5 Millionen EUR]", "[5] Millionen EUR", "[5 neue Millionen]", "[5 milliards d'euros]", "[€ 5 miljoen]"),
    *(
        "[€ 5] miljoen",
        "[US$5] millones",
        "[5 Mio. EUR]",
        "[5 mille euros]",
        "[5 tusen kr]",
        "[5 bin lira]",
        "[5 mill. kr]",
    ),
    *("[5-Millionen-Budget]", "[EUR Millionen 5]", "EUR Mio [5]", "[five] Millionen", "[¥5万]", "[¥5]万", "[5億円]"),
    *(
        "[5 млн]",
        "[10⁻³ mm]",
        "[10]⁻³ mm",
        "[10^-3]",
        "[10**3]",
        "[5²]",
        "[10] to the minus 3",
        "[5] squared",
        "[5] times 3",
    ),
    *("half of [500 EUR]", "twice [$5]", "double the [5]", "between [5] and 6", "5 to [6]", "[5] or 6", "3 × [5]"),
    *("[5+]", "[5=]", "[12a]", "[5Mio]", "[5ドル]"),
]
_LEFT = [
    *("[5 apples]", "[5] tickets", "[40 EUR] to Kowalczyk", "paid Kowalczyk [40 EUR]", "two [$40] T-shirts", "[20 Kč]"),
    *("[5 US dollars]", "[5 Swiss francs]", "[950 zł]", "[40€]", "[40EUR]", "[7.9 kg]", "[7.9kg]", "[5 km/h]", "[5°]"),
    *("[**5**] apples", "**[5]** apples", "[5th]", "a [5-year] plan", "[5/night]", "net;[5];gross", "#[5]", "=[5]"),
    *(
        "[5]   Millionär",
        "[5]\tMillionen",
        "[5], Millionen",
        "[5 EUR (Nettobetrag)]",
        "[5] of Kowalczyk",
        "~[5]",
        "[5x] faster",
    ),
]


@pytest.fixture(scope="module")
def knows(repository: Path) -> Knows:
    word_pieces = open_bundle(repository / "serving" / "bundles" / "default").word_pieces
    assert word_pieces is not None
    return word_pieces.knows


def read(kind: Kind, text: str, knows: Knows) -> object:
    before, _, rest = text.partition("[")
    quotation, _, after = rest.partition("]")
    return read_value(kind, quotation, before[-24:], after[:24], knows).value


@pytest.mark.parametrize("kind", [Kind.NUMBER, Kind.MONEY])
@pytest.mark.parametrize("text", _CHANGED)
def test_a_number_beside_what_may_change_it_has_no_value(kind: Kind, text: str, knows: Knows) -> None:
    with pytest.raises(NoValueError):
        read(kind, text, knows)


@pytest.mark.parametrize("text", _LEFT)
def test_a_number_beside_what_leaves_it_as_it_is_has_its_value(text: str, knows: Knows) -> None:
    digits = "".join(char for char in text.partition("[")[2].partition("]")[0] if char.isdigit() or char == ".")
    assert read(Kind.NUMBER, text, knows) == float(digits)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *((Kind.DATE, text) for text in ("[24/2/1]", "[3 May 4]", "[5 May 987]", "3-[5 May 2024]", "3 - [5 May 2024]")),
        *(
            (Kind.DATE, text)
            for text in ("the day before [3 May 2024]", "two weeks after [3 May 2024]", "[5.3.2024].1")
        ),
        *((Kind.TIME, text) for text in ("[3:2]", "[10:5]", "five minutes to [10:00]", "a quarter past [10:00]")),
        *((Kind.TIME, text) for text in ("ten to [10:00]", "shortly before [10:00]", "[10:00]:30", "half [10:00]")),
        (Kind.DATE_TIME, "an hour before [3 May 2024, 10:00]"),
    ],
)
def test_a_date_or_time_beside_what_makes_it_another_has_no_value(kind: Kind, text: str, knows: Knows) -> None:
    with pytest.raises(NoValueError):
        read(kind, text, knows)


@pytest.mark.parametrize(
    ("kind", "text", "iso"),
    [
        (Kind.TIME, "moved to [10:00]", "10:00:00"),
        (Kind.TIME, "open until [10:00] on Mondays", "10:00:00"),
        (Kind.TIME, "from [7 a.m.] to 8 p.m.", "07:00:00"),
        (Kind.DATE, "paid before [3 May 2024].", "2024-05-03"),
        (Kind.DATE, "[3 May 24]", "2024-05-03"),
        (Kind.DATE, "[20240503]", "2024-05-03"),
    ],
)
def test_a_date_or_time_beside_other_words_has_its_value(kind: Kind, text: str, iso: str, knows: Knows) -> None:
    assert read(kind, text, knows) == iso
