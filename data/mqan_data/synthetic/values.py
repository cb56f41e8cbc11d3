"""Values that texts are filled with: names, addresses, days in many notations, amounts, codes.

Names, addresses, phone and account numbers are those of Faker, most others are written as ``values.yaml`` says. One
``Values`` serves one text: it has one country, one notation of days and amounts, which most of its values keep to.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final  # Faker's methods come from its providers

from faker import Factory

from mqan_data.formats.dataset_file import Texts
from mqan_data.settings import parse, read_yaml
from mqan_data.synthetic.template import choose

_PATH = Path(__file__).resolve().with_suffix(".yaml")
_PART = re.compile(r"\{\{(?:(?P<low>\d+)-(?P<high>\d+)|(?P<kind>\w+))\}\}|\(\((?P<code>.+?)\)\)")
_CODES = {
    "#": "0123456789",
    "%": "123456789",
    "?": "ABCDEFGHJKLMNPRSTUVWXYZ",
    "~": "abcdefghijkmnopqrstuvwxyz",
    "@": "0123456789abcdef",
}


@dataclass(frozen=True, slots=True)
class _File:
    values: Mapping[str, Texts]
    local: Mapping[str, str]
    anywhere: Mapping[str, str]
    english: Mapping[str, str]
    locales: Mapping[str, tuple[int, str, str]]
    phones: Texts
    coded: Texts
    signed: Texts
    days_with_year: Texts
    days_without_year: Texts
    times: Texts
    stamps: Texts


_FILE: Final = parse(_File, read_yaml(_PATH), str(_PATH))


@cache
def _faker_of(locale: str) -> Any:
    made = Factory.create(locale)
    for provider in made.get_providers():
        if locale == "it_IT" and hasattr(provider, "cities"):  # of a set: in another order in each process
            provider.cities = sorted(provider.cities)
    return made


class Values:
    """Values of one text.

    Without ``symbols`` amounts and phone numbers neither begin nor end with one such as $ or +: between other symbols
    (``<total>$5</total>``) the tokenizer would not split there.
    """

    def __init__(self, seed: int, *, symbols: bool = True) -> None:
        self.random = Random(seed)  # noqa: S311 - texts, not secrets
        self._symbols, file = symbols, _FILE
        weights = [weight for weight, _, _ in file.locales.values()]
        self._locale = self.random.choices(list(file.locales), weights)[0]
        _, self._sign, self._code = file.locales[self._locale]
        self._day = self.random.choice(file.days_with_year + file.days_without_year)
        self._time = self.random.choice(file.times)
        self._stamp = self.random.choice(file.stamps)
        self._money = self.random.choice(file.coded + (file.signed if symbols else ()))
        self._now = datetime(2012, 1, 1) + timedelta(seconds=self.random.randrange(17 * 365 * 86_400))
        self._clock = self._now

    def draw(self, kind: str, of: str = "") -> str:
        """Return a new value of a kind, of another value where it belongs to one: the mail address of a person."""
        file = _FILE
        if kind in file.values:
            return self._filled(self.random.choice(file.values[kind]))
        if kind in file.local:
            return " ".join(str(getattr(self._faker(self._locale), file.local[kind])()).split())
        if kind in file.english:
            return str(getattr(self._faker("en_US"), file.english[kind])()).split(",")[0].strip()
        if kind in file.anywhere:
            return str(getattr(self._anywhere(), file.anywhere[kind])()).replace(",", "").rstrip(". ")
        made: str = getattr(self, f"_make_{kind}")(*([of] if of else []))
        return made.strip()

    def _filled(self, template: str) -> str:
        def one(part: re.Match[str]) -> str:
            if part["kind"]:
                return self.draw(part["kind"])
            return self.pattern(part["code"]) if part["code"] else str(self.random.randint(int(part[1]), int(part[2])))

        return _PART.sub(one, choose(template, self.random))

    def pattern(self, pattern: str) -> str:
        """Return a code: # is a digit, % not 0, ? a capital, ~ a small letter, @ a hexadecimal digit, {y} the year."""
        filled = re.sub(r"[#%?~@]", lambda found: self.random.choice(_CODES[found[0]]), pattern)
        return filled.replace("{y}", str(self._now.year))

    def _faker(self, locale: str) -> Any:
        faker = _faker_of(locale)
        faker.random = self.random
        return faker

    def _anywhere(self) -> Any:
        abroad = self.random.random() < 0.1
        return self._faker(self.random.choice(list(_FILE.locales)) if abroad else self._locale)

    def _written(self, notation: str, moment: datetime) -> str:
        day, letter = moment.day, "a" if moment.hour < 12 else "p"
        ending = {1: "st", 2: "nd", 3: "rd"}.get(day % 10 if not 10 < day < 14 else 0, "th")
        parts = {"d": moment, "nth": f"{day}{ending}", "h": moment.hour % 12 or 12, "a": letter, "A": letter.upper()}
        return notation.format(**parts, ms=f"{moment.microsecond // 1000:03}")

    def _make_person(self) -> str:
        fake = self._anywhere()
        first, last, style = str(fake.first_name()), str(fake.last_name()), self.random.random()
        if style < 0.06:
            return f"{self.random.choice(('Dr.', 'Mr', 'Ms', 'Mrs', 'Prof.'))} {first} {last}"
        return f"{first} {self.random.choice('ABCDEFGHJKLMRST')}. {last}" if style < 0.1 else f"{first} {last}"

    def _make_phone(self) -> str:
        ours = self.random.random() < 0.35
        number = self.pattern(self.random.choice(_FILE.phones)) if ours else self.draw("phone_number")
        return number if self._symbols else number.replace("+", "00")

    def _make_word(self) -> str:
        return _ascii(str(self._faker(self._locale).last_name())).replace(" ", "-")

    def _make_email(self, person: str = "") -> str:
        first, *_, last = ["x", *_ascii(person or self._make_person()).split()][-2:]
        names = (f"{first}.{last}", f"{first[0]}.{last}", f"{first}_{last}", last, f"{first[0]}{last}")
        return f"{self.random.choice(names)}@{self.draw('domain')}"

    def _make_user(self) -> str:
        first, last = _ascii(self.draw("first_name")), _ascii(self.draw("last_name")).replace(" ", "")
        names = (f"{first[0]}{last}", f"{first}.{last}", f"{first}_{last}", f"{last}{self.random.randrange(99)}")
        return self.random.choice(names)

    def _make_iban(self) -> str:
        number = self.draw("iban_code")
        return number if self.random.random() < 0.5 else re.sub(r"(....)(?=.)", r"\1 ", number)

    def _make_date(self) -> str:
        day = self._now + timedelta(days=self.random.randrange(-45, 90))
        others = _FILE.days_with_year + _FILE.days_without_year
        return self._written(self._day if self.random.random() < 0.85 else self.random.choice(others), day)

    def _make_birthday(self) -> str:
        day = self._now - timedelta(days=self.random.randrange(18 * 365, 85 * 365))
        notations = _FILE.days_with_year
        return self._written(self._day if self._day in notations else self.random.choice(notations), day)

    def _make_year(self) -> str:
        return str(self._now.year - self.random.randrange(60))

    def _make_month(self) -> str:
        return f"{datetime(2000, self.random.randint(1, 12), 1):%B} {self._now.year + self.random.randrange(-1, 2)}"

    def _make_time(self) -> str:
        minute = self.random.choice((0, 0, 30, 15, 45, self.random.randrange(60)))
        return self._written(self._time, self._now.replace(hour=self.random.randrange(6, 23), minute=minute))

    def _make_stamp(self) -> str:
        seconds, milliseconds = self.random.choice((1, 2, 7, 60, 340)), self.random.randrange(999)
        self._clock += timedelta(seconds=seconds, milliseconds=milliseconds)
        return self._written(self._stamp, self._clock)

    def _make_money(self, most: float = 4.7, least: float = 1) -> str:
        whole, cents = int(10 ** self.random.uniform(least, most)), self.random.randrange(100)
        cents = 0 if self.random.random() < 0.25 else cents
        rest, dotted = f".{cents:02}" if cents else "", f"{whole:,}".replace(",", ".")
        sign, code = self._sign, self._code
        return self._money.format(whole=whole, cents=f"{cents:02}", rest=rest, dotted=dotted, sign=sign, code=code)

    def _make_price(self) -> str:
        return self._make_money(2.5, 0)

    def _make_budget(self) -> str:
        number = self.random.choice((1.2, 2, 3.5, 4, 7.8, 12, 15, 25, 40, 60, 75, 120, 250, 480))
        written = f"{number:g} {self.random.choice(('million', 'million', 'billion', 'thousand'))}"
        has_sign = self._symbols and self.random.random() < 0.7
        return f"{self._sign}{written}" if has_sign else f"{self._code} {written}"

    def _make_number(self) -> str:
        number = int(10 ** self.random.uniform(1.7, 5))
        return f"{number:,}" if self.random.random() < 0.4 else str(number)


def _ascii(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name.casefold().replace("ß", "ss").replace("ł", "l").replace("ø", "o"))
    return re.sub(r"[^a-z ]", "", plain).strip() or "office"
