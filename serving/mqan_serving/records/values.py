"""Values out of quotations: numbers and amounts of money by price-parser, dates and times by python-dateutil.

A quotation that can be read in two ways is not guessed at: it has no value, and a reason.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from dateutil.parser import parser, parserinfo
from price_parser.parser import Price

_MOST_CHARS: Final = 100  # of a quotation that is read; no number or date is as long
_MOST_DIGITS: Final = 15  # that a floating-point number holds exactly


class Kind(StrEnum):
    """What the value of a field is."""

    TEXT = "text"
    TEXTS = "texts"
    INTEGER = "whole number"
    NUMBER = "number"
    MONEY = "amount of money"
    DATE = "date"
    DATE_TIME = "date and time"
    TIME = "time"
    EMAIL = "email address"
    URI = "URI"
    PHONE = "phone number"
    YES_NO = "yes or no"
    CHOICE = "choice"
    CHOICES = "choices"


@dataclass(frozen=True, slots=True)
class Normalized:
    """What a library made of a quotation.

    Attributes:
        library: which one.
        amount: the number.
        currency: of an amount of money, as the text has it; None where it names none.
        iso: date or time as ISO 8601 has it.
    """

    library: str
    amount: float | None = None
    currency: str | None = None
    iso: str | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a quotation: of the field's type, with what a library made of the quotation where one did."""

    value: str | float
    normalized: Normalized | None = None


class NoValueError(ValueError):
    """A quotation has no value of the wanted kind; the message says why, to stand behind the quotation."""


def read_value(kind: Kind, quotation: str) -> Value:
    """Return the value that a quotation stands for.

    Args:
        kind: what it is to be; not one of the kinds that are chosen.
        quotation: words of the caller's text.

    Raises:
        NoValueError: it is nothing of this kind, or may be one of several.
    """
    if kind in (Kind.TEXT, Kind.TEXTS):
        return Value(quotation)
    if len(quotation) > _MOST_CHARS:
        raise NoValueError(f"is too long for this: it has over {_MOST_CHARS} characters")
    return _READERS[kind](" ".join(quotation.split()))


# Numbers and money

_NUMBER: Final = re.compile(r"\d+(?:[.,'’]\d+| \d{3}(?!\d))*")
_GROUPED: Final = re.compile(r"\d{1,3}(?:[.,' ]\d{3})+")  # in thousands
_SHARP: Final = re.compile(r"(?<![\d.,])\d{1,3}\.\d{3}(?![\d.,])")  # thousands in some countries, decimals in others
_MINUS: Final = re.compile(
    r"(?:(?:^|[\s($€£¥₹])[-−–]|\b(?:minus|negative))\s*(?:[A-Z]{1,3}|[^\w\s])?\s*$", re.IGNORECASE
)
_MULTIPLIED: Final = re.compile(
    r"k\b|[\s-]*(?:hundred|thousand|million|billion|trillion|dozen|lakh|crore)s?\b|[\s-]?(?:mn|mio|bn)\b", re.IGNORECASE
)
_OF_MONEY: Final = re.compile(  # behind other numbers these are units: m stands for metres
    r"[\s-]*(?:[kmbt]|mm|mln|mrd|bil|tn|cents?|ct|p|pence)\b|\s*¢", re.IGNORECASE
)
_WORDS: Final[Mapping[str, int]] = {
    word: number
    for number, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"],
    )
}


def _integer(text: str) -> Value:
    amount, _ = _amount(text, is_money=False)
    if _SHARP.search(text):
        raise NoValueError("may have a point before decimals, or between thousands")
    if amount != amount.to_integral_value():
        raise NoValueError("is not a whole number")
    return Value(int(amount), Normalized("price-parser", float(amount)))


def _number(text: str) -> Value:
    amount, _ = _amount(text, is_money=False)
    return Value(float(amount), Normalized("price-parser", float(amount)))


def _money(text: str) -> Value:
    if "%" in text:
        raise NoValueError("is a share, not an amount of money")
    amount, currency = _amount(text, is_money=True)
    if text.startswith("(") and text.endswith(")"):
        raise NoValueError("stands in brackets, which may mean that it is below zero")
    return Value(float(amount), Normalized("price-parser", float(amount), currency))


def _amount(text: str, *, is_money: bool) -> tuple[Decimal, str | None]:
    if not is_money and text.lower() in _WORDS:
        return Decimal(_WORDS[text.lower()]), None
    found = list(_NUMBER.finditer(text))
    if len(found) != 1:
        raise NoValueError("has several numbers" if found else "has no number in digits")
    [match] = found
    before, after = text[: match.start()], text[match.end() :]
    digits = match[0].replace("’", "'")
    _check_form(digits)
    price = Price.fromstring(digits.replace("'", ""), text, _decimal_separator(digits, is_money=is_money))
    if price.amount is None:
        raise NoValueError("is no number")
    if before[-1:].isalpha() and not (price.currency and before.endswith(price.currency)):
        raise NoValueError("has its digits inside a word")
    if _MULTIPLIED.match(after) or (is_money and _OF_MONEY.match(after)):
        raise NoValueError("has a word that multiplies its number")
    if after and unicodedata.category(after[0]) == "No":
        raise NoValueError("has a fraction or a power behind its number")
    if after.strip() in ("-", "−", "–"):
        raise NoValueError("has a sign behind its number")
    if sum(char.isdigit() for char in digits) > _MOST_DIGITS:
        raise NoValueError(f"has more than {_MOST_DIGITS} digits")
    return (-price.amount if _MINUS.search(before) else price.amount), price.currency


def _check_form(digits: str) -> None:
    """Refuse digits that are something else, such as a date or a version: 12.05.2024, 1.2.3."""
    separators = [char for char in digits if not char.isdigit()]
    *thousands, last = separators or [""]
    whole = digits.rpartition(last)[0] if last and last not in thousands else digits
    if len(set(separators)) > 2 or (thousands and not _GROUPED.fullmatch(whole)) or len(set(thousands)) > 1:
        raise NoValueError("is not written as one number")


def _decimal_separator(digits: str, *, is_money: bool) -> str | None:
    """Return what stands before the decimals where price-parser would take three of them for thousands."""
    points = [char for char in digits if char in ".,"]
    if len(set(points)) == 2 or (points and digits.startswith("0")):
        return points[-1]
    return "." if points == ["."] and not is_money else None


# Dates and times

_DEFAULTS: Final = (datetime(2000, 1, 1, 0), datetime(2004, 2, 2, 1))  # leap years; what differs was not in the text
_YEAR_FIRST: Final = re.compile(r"\d{4}(?!\d)|\d{8}(?!\d)")
_DOTS: Final = re.compile(r"\d{1,2}\.\s?\d{1,2}\.\s?\d{2,4}")  # are written where the day comes first
_TIME_WITH_DOT: Final = re.compile(r"(?<![\d.])(\d{1,2})\.([0-5]\d)(?=\s*[ap]\.?m\b)", re.IGNORECASE)
_UTC: Final = re.compile(r"(?<![A-Za-z])(?:UTC|GMT|Z)\s?(?=[+-]\d)")  # else read as POSIX does: UTC+2 is west
_MONTH: Final = re.compile(r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b", re.IGNORECASE)
_DAYS: Final = re.compile(r"\b\d{1,2}(?:[snrt][tdh])?\s*(?:[-–—/&]|and|or|to)\s*\d{1,2}(?![\d:])", re.IGNORECASE)
_DATES: Final = re.compile(r"\d{4}-\d\d-\d\d\s*[-–—/]\s*\d")
_YEAR: Final = re.compile(r"(?<![\d+])[12]\d{3}(?!\d)")
_HOURS: Final = re.compile(r"\d{1,2}(?::\d\d)*\s?(?:[ap]m)?\s*[-–—]\s*\d{1,2}(?::?\d\d)?\s*(?:[ap]m)?$", re.IGNORECASE)
_ISO_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d[ T]")
_MOST_OFFSET_S: Final = 14 * 3600
_A_M: Final = re.compile(r"\b([ap])\.\s?m\b\.?", re.IGNORECASE)


class _Words(parserinfo):
    JUMP = [*parserinfo.JUMP, "the", "o'clock"]

    def convertyear(self, year: int, century_specified: bool = False) -> int:
        """Return the year of two digits, by the rule of POSIX: it does not depend on today's date."""
        return year if year >= 100 or century_specified else year + (2000 if year < 69 else 1900)


_PARSER: Final = parser(_Words())


def _date(text: str) -> Value:
    return _of_iso(_moment(text, ("year", "month", "day"), ignores_zone=True).date().isoformat())


def _date_time(text: str) -> Value:
    return _of_iso(_moment(text, ("year", "month", "day", "hour")).isoformat())


def _time(text: str) -> Value:
    return _of_iso(_moment(text, ("hour",)).timetz().isoformat())


def _of_iso(iso: str) -> Value:
    return Value(iso, Normalized("python-dateutil", iso=iso))


def _moment(text: str, wanted: tuple[str, ...], *, ignores_zone: bool = False) -> datetime:
    text = _UTC.sub("", _A_M.sub(r"\1m", _TIME_WITH_DOT.sub(r"\1:\2", text)))
    years = _YEAR.findall(text)
    if len(years) > 1 or _DATES.search(text) or (_MONTH.search(text) and _DAYS.search(text)):
        raise NoValueError("may be several dates, or a range")
    if "hour" in wanted and _HOURS.search(text) and not _ISO_DATE.match(text):
        raise NoValueError("may be several times, or a range")
    has_year_first = _YEAR_FIRST.search(text) is not None and not re.match(r"\d{1,2}\D", text)
    orders = (False,) if has_year_first else (True,) if _DOTS.search(text) else (False, True)
    readings = {tuple(_parse(text, default, day_first, ignores_zone) for default in _DEFAULTS) for day_first in orders}
    for part in wanted:
        if any(getattr(one, part) != getattr(other, part) for one, other in readings):
            raise NoValueError(f"does not say the {part}")
    if len({tuple(getattr(one, part) for part in wanted) for one, _ in readings}) > 1:
        told = " or ".join(sorted(one.date().isoformat() for one, _ in readings))
        raise NoValueError(f"is {told}: its order of day and month is not known")
    [moment, _] = next(iter(readings))
    if "year" in wanted and years and moment.year != int(years[0]):
        raise NoValueError("is no date that can be read: its year is not where one is expected")
    return moment


def _parse(text: str, default: datetime, day_first: bool, ignores_zone: bool) -> datetime:
    try:
        found: datetime = _PARSER.parse(text, default=default, dayfirst=day_first, tzinfos=_zone, ignoretz=ignores_zone)
        return found
    except NoValueError:
        raise
    except (ValueError, OverflowError, ArithmeticError, TypeError, AttributeError, IndexError):
        # the library's own error is a ValueError; odd texts were seen to end in the others
        raise NoValueError("is no date or time that can be read") from None


def _zone(name: str | None, offset_s: int | None) -> tzinfo | None:
    if name not in (None, "UTC", "GMT", "Z"):
        raise NoValueError("has a time zone by its name, which may be one of several")
    if offset_s is not None and abs(offset_s) > _MOST_OFFSET_S:
        raise NoValueError("has an offset that no time zone has")
    return None if offset_s is None else timezone(timedelta(seconds=offset_s))


# Addresses

_EMAIL: Final = re.compile(r"[^\s@<>()\[\],;:\"]+@[^\s@<>()\[\],;:\"]+")
_LIKE_EMAIL: Final = re.compile(r"[^@]{1,64}@(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W\d_]{2,}")
_PHONE: Final = re.compile(r"\+?[\d\s()./-]+")


def _email(text: str) -> Value:
    found = [address.rstrip(".") for address in _EMAIL.findall(text)]
    if len(found) != 1 or not _LIKE_EMAIL.fullmatch(found[0]):
        raise NoValueError("is not one email address")
    return Value(found[0])


def _uri(text: str) -> Value:
    try:
        parts = urlsplit(text)
        is_whole = bool(parts.scheme and parts.netloc) and " " not in text
    except ValueError:
        is_whole = False
    if not is_whole:
        raise NoValueError("is not one URI with a scheme, such as https://")
    return Value(text)


def _phone(text: str) -> Value:
    number = sum(char.isdigit() for char in text)
    if not _PHONE.fullmatch(text) or not 5 <= number <= _MOST_DIGITS:
        raise NoValueError("is not one phone number of 5 to 15 digits")
    return Value(text)


_READERS: Final[Mapping[Kind, Callable[[str], Value]]] = {
    Kind.INTEGER: _integer,
    Kind.NUMBER: _number,
    Kind.MONEY: _money,
    Kind.DATE: _date,
    Kind.DATE_TIME: _date_time,
    Kind.TIME: _time,
    Kind.EMAIL: _email,
    Kind.URI: _uri,
    Kind.PHONE: _phone,
}
