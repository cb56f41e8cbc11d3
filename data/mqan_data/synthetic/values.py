"""Values that texts are filled with: names, addresses, days in many notations, amounts, codes.

Names, addresses, phone and account numbers are those of Faker. One ``Values`` serves one text: it has one country, one
notation of days and amounts, which most of its values keep to.
"""

import random
import re
import threading
import unicodedata
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final  # Faker's methods come from its providers

from faker import Factory

from mqan_data.synthetic.dates import DATES, DAYS, MONTHS, STAMPS, TIMES, WITH_YEAR

_LOCALES = {
    "en_US": 40,
    "en_GB": 20,
    "de_DE": 8,
    "fr_FR": 6,
    "es_ES": 5,
    "it_IT": 4,
    "nl_NL": 4,
    "pl_PL": 3,
    "sv_SE": 3,
    "pt_BR": 3,
    "en_IN": 4,
}
_CURRENCIES = {
    "en_US": ("$", "USD"),
    "en_GB": ("£", "GBP"),
    "en_IN": ("₹", "INR"),
    "pl_PL": ("zł", "PLN"),
    "sv_SE": ("kr", "SEK"),
    "pt_BR": ("R$", "BRL"),
}
_PHONES = (
    "+## %# #### ####",
    "+49 %## #######",
    "+44 20 #### ####",
    "(%##) ###-####",
    "0%## ######",
    "+1 %##-###-####",
    "0%### / #####",
)
_CODES = {
    "#": "0123456789",
    "%": "123456789",
    "?": "ABCDEFGHJKLMNPRSTUVWXYZ",
    "~": "abcdefghijkmnopqrstuvwxyz",
    "@": "0123456789abcdef",
}


class _Fakers(threading.local):
    """Faker's generators by locale; each thread has its own, as they are told where chance comes from."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def of(self, locale: str, chance: random.Random) -> Any:
        if locale not in self._made:
            self._made[locale] = Factory.create(locale)
            for provider in self._made[locale].get_providers():
                if locale == "it_IT" and hasattr(provider, "cities"):  # of a set: in another order in each process
                    provider.cities = sorted(provider.cities)
        generator = self._made[locale]
        generator.random = chance
        return generator


_FAKERS = _Fakers()


class Values:
    """Values of one text.

    Args:
        seed: decides all of them.
        symbols: whether amounts and phone numbers may begin or end with a symbol such as $ or +. Between other symbols
            (``<total>$5</total>``) the tokenizer would not split there.
    """

    def __init__(self, seed: int, *, symbols: bool = True) -> None:
        self.random = random.Random(seed)  # noqa: S311 - texts, not secrets
        self._locale = self.random.choices(list(_LOCALES), list(_LOCALES.values()))[0]
        self._symbols = symbols
        self._date = self.random.choice(DATES)
        self._time = self.random.choice(TIMES)
        self._stamp = self.random.choice(STAMPS)
        self._money = self.random.choice(self._money_styles())
        self._now = datetime(2012, 1, 1) + timedelta(seconds=self.random.randrange(17 * 365 * 86_400))
        self._clock = self._now

    def draw(self, kind: str, of: str = "") -> str:
        """Return a new value.

        Args:
            kind: a key of ``MAKERS``, or the name of a method below, without ``make_``.
            of: value that it belongs to: the person whose address a mail address is.
        """
        if kind in MAKERS:
            return MAKERS[kind](self).strip()
        made: str = getattr(self, f"make_{kind}")(*([of] if of else []))
        return made.strip()

    def pattern(self, pattern: str) -> str:
        """Return a code: # is a digit, % not 0, ? a capital, ~ a small letter, @ a hexadecimal digit, {y} the year."""
        filled = re.sub(r"[#%?~@]", lambda found: self.random.choice(_CODES[found[0]]), pattern)
        return filled.replace("{y}", str(self._now.year))

    def among(self, *values: str) -> str:
        """Return one of several."""
        return self.random.choice(values)

    @property
    def _local(self) -> Any:
        return _FAKERS.of(self._locale, self.random)

    @property
    def _anywhere(self) -> Any:
        abroad = self.random.random() < 0.1
        return _FAKERS.of(self.random.choice(list(_LOCALES)), self.random) if abroad else self._local

    def make_person(self) -> str:
        """First and last name, sometimes with a title or an initial."""
        fake = self._anywhere
        first, last = str(fake.first_name()), str(fake.last_name())
        style = self.random.random()
        if style < 0.06:
            return f"{self.among('Dr.', 'Mr', 'Ms', 'Mrs', 'Prof.')} {first} {last}"
        return f"{first} {self.among(*'ABCDEFGHJKLMRST')}. {last}" if style < 0.1 else f"{first} {last}"

    def make_first_name(self) -> str:
        """First name."""
        return str(self._anywhere.first_name())

    def make_last_name(self) -> str:
        """Last name."""
        return str(self._anywhere.last_name())

    def make_street(self) -> str:
        """Street and number."""
        return " ".join(str(self._local.street_address()).split())

    def make_city(self) -> str:
        """City."""
        return str(self._local.city())

    def make_postcode(self) -> str:
        """Postal code."""
        return str(self._local.postcode())

    def make_address(self) -> str:
        """Street, postal code and city in one line."""
        street, city, code = self.make_street(), self.make_city(), self.make_postcode()
        return self.among(f"{street}, {code} {city}", f"{street}, {city} {code}", f"{street}, {city}")

    def make_phone(self) -> str:
        """Phone number."""
        ours = self.random.random() < 0.35
        number = self.pattern(self.random.choice(_PHONES)) if ours else str(self._local.phone_number())
        return number if self._symbols else number.replace("+", "00")

    def make_email(self, person: str = "") -> str:
        """Mail address of a person."""
        first, *_, last = ["x", *_ascii(person or self.make_person()).split()][-2:]
        name = self.among(f"{first}.{last}", f"{first[0]}.{last}", f"{first}_{last}", last, f"{first[0]}{last}")
        return f"{name}@{self.make_domain()}"

    def make_box(self) -> str:
        """Mail address of an office."""
        name = self.among("info", "support", "billing", "office", "orders", "help", "contact", "hr", "sales")
        return f"{name}@{self.make_domain()}"

    def make_domain(self) -> str:
        """Domain."""
        word = _ascii(str(self._local.last_name())).replace(" ", "-")
        second = self.among("", "", "-group", "tech", "-shop", "works", "-labs", "online")
        return f"{word}{second}.{self.among('com', 'com', 'org', 'net', 'io', 'co.uk', 'de', 'eu', 'example')}"

    def make_url(self) -> str:
        """Web address."""
        path = self.among("", "/contact", "/orders/{}", "/help", "/{}", "/docs/start", "/t/{}", "/news?id={}")
        start = self.among("https://", "https://www.", "http://", "www.", "https://shop.")
        return f"{start}{self.make_domain()}{path.format(self.random.randrange(1, 10_000))}"

    def make_host(self) -> str:
        """Host name."""
        name = self.pattern(f"{self.among('web', 'db', 'node', 'srv', 'app', 'cache', 'mail')}-##")
        return f"{name}.{self.make_domain()}" if self.random.random() < 0.4 else name

    def make_user(self) -> str:
        """Name that somebody logs in by."""
        first, last = _ascii(self.make_first_name()), _ascii(self.make_last_name()).replace(" ", "")
        return self.among(
            f"{first[0]}{last}", f"{first}.{last}", f"{first}_{last}", f"{last}{self.random.randrange(99)}"
        )

    def make_path(self) -> str:
        """Path of a file."""
        folder = self.among("/var/log", "/etc", "/srv/data", "/opt/app", "/home/deploy", "/mnt/backup", "C:\\Data")
        name = self.among("app", "server", "import", "users", "backup", "report", "cache", "main", "orders")
        ending = self.among("log", "conf", "csv", "db", "json", "yaml", "txt")
        return f"{folder}{chr(92) if chr(92) in folder else '/'}{name}.{ending}"

    def make_file(self) -> str:
        """Name of a document."""
        name = self.among("report", "invoice", "offer", "photo", "contract", "minutes", "slides", "scan", "cv")
        return f"{name}_{self.random.randrange(1000)}.{self.among('pdf', 'docx', 'xlsx', 'png', 'zip')}"

    def make_version(self) -> str:
        """Version of a program."""
        major, minor, patch = (self.random.randrange(most) for most in (12, 30, 20))
        return f"{self.among('', '', 'v')}{major}.{minor}.{patch}"

    def make_iban(self) -> str:
        """Number of an account, sometimes in groups of four."""
        number = str(self._local.iban())
        return number if self.random.random() < 0.5 else re.sub(r"(....)(?=.)", r"\1 ", number)

    def make_birthday(self) -> str:
        """Day, with its year, at least 18 years before the text."""
        day = self._now - timedelta(days=self.random.randrange(18 * 365, 85 * 365))
        return (self._date if self._date in WITH_YEAR else self.random.choice(WITH_YEAR))(day)

    def _written(self, day: datetime) -> str:
        return (self._date if self.random.random() < 0.85 else self.random.choice(DATES))(day)

    def make_time(self) -> str:
        """Time of a day."""
        minute = self.random.choice((0, 0, 30, 15, 45, self.random.randrange(60)))
        return self._time(self._now.replace(hour=self.random.randrange(6, 23), minute=minute))

    def make_stamp(self) -> str:
        """Date and time of a line of a log; later ones come later."""
        self._clock += timedelta(
            seconds=self.random.choice((1, 2, 7, 60, 340)), milliseconds=self.random.randrange(999)
        )
        return self._stamp(self._clock)

    def make_period(self) -> str:
        """Length of time in days to years."""
        number = self.random.choice((2, 3, 4, 5, 6, 7, 10, 12, 14, 18, 24, 28, 30, 36, 60))
        return f"{number} {self.among('days', 'weeks', 'months', 'months', 'years', 'business days')}"

    def make_budget(self) -> str:
        """Round amount of thousands to billions, partly in words."""
        sign, code = _CURRENCIES.get(self._locale, ("€", "EUR"))
        number = self.random.choice((1.2, 2, 3.5, 4, 7.8, 12, 15, 25, 40, 60, 75, 120, 250, 480))
        written = f"{number:g} {self.among('million', 'million', 'billion', 'thousand')}"
        return f"{sign}{written}" if self._symbols and self.random.random() < 0.7 else f"{code} {written}"

    def _amount(self, value: float) -> str:
        return self._money(int(value), 0 if self.random.random() < 0.25 else self.random.randrange(100))

    def _money_styles(self) -> list[Callable[[int, int], str]]:
        sign, code = _CURRENCIES.get(self._locale, ("€", "EUR"))
        coded: list[Callable[[int, int], str]] = [
            lambda whole, cents: f"{whole:,}.{cents:02} {code}",
            lambda whole, cents: f"{code} {whole:,}.{cents:02}",
            lambda whole, cents: f"{whole}.{cents:02}",
        ]
        signed: list[Callable[[int, int], str]] = [
            lambda whole, cents: f"{sign}{whole:,}.{cents:02}",
            lambda whole, cents: f"{sign}{whole:,}.{cents:02}",
            lambda whole, cents: f"{sign}{whole:,}.{cents:02}" if cents else f"{sign}{whole:,}",
            lambda whole, cents: f"{whole:,}".replace(",", ".") + f",{cents:02} {sign}",
            lambda whole, cents: f"{sign} {whole}.{cents:02}",
        ]
        return coded + signed if self._symbols else coded

    def make_percent(self) -> str:
        """Share of a hundred."""
        number = self.random.choice((5, 7, 10, 12, 15, 19, 20, 25, 30, 33, 40, 50, 60, 75, 80, 2.5, 4.2, 7.7, 12.5))
        return f"{number:g}{self.among('%', '%', ' %', ' percent')}"

    def make_number(self) -> str:
        """Whole number up to 100,000, sometimes with a comma."""
        number = int(10 ** self.random.uniform(1.7, 5))
        return f"{number:,}" if self.random.random() < 0.4 else str(number)

    def make_weight(self) -> str:
        """Weight."""
        number = self.among("0.4", "0.75", "1.2", "2", "2.5", "3.8", "5", "12", "18", "31.5", "80")
        return f"{number} {self.among('kg', 'lbs')}"


MAKERS: Final[Mapping[str, Callable[[Values], str]]] = {
    "job": lambda v: str(_FAKERS.of("en_US", v.random).job()).split(",")[0],
    "company": lambda v: str(v._anywhere.company()).replace(",", "").rstrip("."),
    "country": lambda v: str(_FAKERS.of("en_US", v.random).country()),
    "ip": lambda v: ".".join(str(v.random.randrange(1, 255)) for _ in range(4)),
    "mac": lambda v: ":".join(v.pattern("@@") for _ in range(6)),
    "port": lambda v: v.among(
        "80", "443", "3000", "5000", "5432", "3306", "6379", "8080", "8443", "9000", "9092", "27017"
    ),
    "uuid": lambda v: v.pattern("@@@@@@@@-@@@@-4@@@-a@@@-@@@@@@@@@@@@"),
    "bic": lambda v: v.pattern(v.among("????DEFF###", "????GB2L", "????FRPP", "????US33###")),
    "card": lambda v: v.pattern(v.among("4### #### #### ####", "5###-####-####-####", "xxxx xxxx xxxx ####")),
    "plate": lambda v: str(v._local.license_plate()),
    "date": lambda v: v._written(v._now + timedelta(days=v.random.randrange(-45, 90))),
    "year": lambda v: str(v._now.year - v.random.randrange(60)),
    "month": lambda v: f"{v.random.choice(MONTHS)} {v._now.year + v.random.randrange(-1, 2)}",
    "weekday": lambda v: v.random.choice(DAYS),
    "minutes": lambda v: f"{v.random.choice((2, 3, 5, 8, 10, 12, 15, 20, 25, 30, 35, 40, 45, 60, 75, 90))} minutes",
    "money": lambda v: v._amount(10 ** v.random.uniform(1, 4.7)),
    "price": lambda v: v._amount(10 ** v.random.uniform(0, 2.5)),
    "count": lambda v: v.among(
        "1", "2", "3", "4", "5", "6", "8", "10", "12", "15", "20", "24", "25", "30", "40", "50", "75"
    ),
    "distance": lambda v: (
        f"{v.among('1.5', '2', '3', '4.2', '5', '8', '10', '12', '21', '30', '120')} {v.among('km', 'miles')}"
    ),
    "size": lambda v: " x ".join(str(v.random.randrange(8, 120)) for _ in range(3)) + " cm",
    "area": lambda v: f"{v.random.randrange(28, 180)} {v.among('sqm', 'sq m', 'square metres')}",
    "degrees": lambda v: v.among(
        "160°C", "180°C", "200 °C", "350°F", "425°F", f"{v.random.randrange(14, 25) * 10} degrees"
    ),
    "food_amount": lambda v: v.among(
        f"{v.among('50', '75', '100', '120', '150', '200', '250', '300', '400', '500')} {v.among('g', 'ml')}",
        f"{v.among('1', '2', '3', '4')} {v.among('tbsp', 'tsp', 'cups')}",
        f"{v.among('1/2', '1/4', '3/4', '1 1/2')} {v.among('cup', 'tsp')}",
        v.among("2", "3", "4", "5", "6", "8"),
    ),
    "score": lambda v: f"{v.random.randrange(6)}{v.among('-', ':', '–')}{v.random.randrange(5)}",
    "color": lambda v: v.among("black", "white", "silver", "dark blue", "red", "green", "grey", "beige", "yellow"),
}
"""How values that take one expression are made; the others are methods of ``Values``."""


def _ascii(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name.casefold().replace("ß", "ss").replace("ł", "l").replace("ø", "o"))
    return re.sub(r"[^a-z ]", "", plain).strip() or "office"
