"""Values out of quotations: numbers and amounts of money by price-parser, dates and times by python-dateutil.

A quotation that can be read in two ways is not guessed at: it has no value, and a reason.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from mqan_serving.records.amounts import is_share, read_amount
from mqan_serving.records.dates_and_times import check_around, only_clock, read_moment
from mqan_serving.records.multiples import NUMBER_WORDS
from mqan_serving.records.quoted import Knows, NoValueError, Quoted, any_case, quoted_in

_MOST_NIGHT: Final = 4  # the hour after which a night's may be that of an evening
_MOST_CHARS: Final = 100  # of a quotation that is read; no number or date is as long
_A_M: Final = r"\s*[ap]\.?\s?m\b"
_A_M_BEHIND: Final = any_case(_A_M)
_HAS_A_M: Final = any_case(rf"\d{_A_M}")
_LATE: Final = any_case(  # in the day; "Good evening" says nothing of a time
    r"\b(?:tonight|(?<!good )(?:evening|afternoon)|(?:at|last|tomorrow|\w+day) night)\b"
)


class Kind(StrEnum):
    """The kind of a field's value."""

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
    """A quotation as a library normalised it: an amount, and its currency as the text has it, or a date or time."""

    library: str
    amount: float | None = None
    currency: str | None = None
    iso: str | None = None


class Value(NamedTuple):
    """The value of a quotation: of the field's type, with what a library made of the quotation where one did."""

    value: str | float
    normalized: Normalized | None = None


def is_of_kind(kind: Kind, quotation: str, after: str = "") -> bool:
    """Return whether a quotation, with what is after it, is about a value of a kind at all: one, several or a part."""
    if kind is Kind.MONEY and is_share(quotation, after):
        return False
    return kind not in _NEEDED or _NEEDED[kind].search(quotation) is not None


def read_value(
    kind: Kind, quotation: str, before: str = "", after: str = "", knows: Knows = str.isascii, whole: str = ""
) -> Value:
    """Return the value of a quotation that is none of a choice, or raise ``NoValueError``.

    ``before`` and ``after`` have up to ``NEAR_CHARS`` characters; ``knows`` says whether a word is one of the language,
    and other dates of the ``whole`` text show in which order it writes day and month.
    """
    if kind in (Kind.TEXT, Kind.TEXTS):
        return Value(quotation)
    if len(quotation) > _MOST_CHARS:
        raise NoValueError(f"is too long for this: it has over {_MOST_CHARS} characters")
    return _READERS[kind](quoted_in(quotation, before, after, knows, whole))


def _amount(quoted: Quoted, *, is_money: bool = False, is_whole: bool = False) -> Value:
    amount, currency = read_amount(quoted, is_money=is_money, is_whole=is_whole)
    if is_whole and amount != amount.to_integral_value():
        raise NoValueError("is not a whole number")
    normalized = Normalized("price-parser", float(amount), currency if is_money else None)
    return Value(int(amount) if is_whole else float(amount), normalized)


def _date(quoted: Quoted) -> Value:
    check_around(quoted.line_before, quoted.line_after)
    return _of_iso(read_moment(quoted, ("year", "month", "day"), ignores_zone=True).date().isoformat())


def _date_time(quoted: Quoted) -> Value:
    moment = read_moment(quoted, ("year", "month", "day", "hour"))
    _check_half_of_day(quoted, moment.hour)
    return _of_iso(moment.isoformat())


def _time(quoted: Quoted) -> Value:
    quoted = only_clock(quoted)
    moment = read_moment(quoted, ("hour",))
    _check_half_of_day(quoted, moment.hour)
    return _of_iso(moment.timetz().isoformat())


def _check_half_of_day(quoted: Quoted, hour: int) -> None:
    check_around(quoted.line_before, quoted.line_after)
    if _A_M_BEHIND.match(quoted.after):
        raise NoValueError("has am or pm after it")
    around = quoted.line_before, quoted.line_after
    late = {found[0].lower()[-5:] for found in map(_LATE.search, around) if found}
    is_of_night = late == {"night"} and 1 <= hour <= _MOST_NIGHT
    if hour <= 12 and late and not is_of_night and not _HAS_A_M.search(quoted.text):
        raise NoValueError("is late in the day, as the words around it say")


def _of_iso(iso: str) -> Value:
    return Value(iso, Normalized("python-dateutil", iso=iso))


_IN_EMAIL: Final = r"[^\s@<>()\[\],;:\"]"
_EMAIL: Final = re.compile(rf"(?<!{_IN_EMAIL}){_IN_EMAIL}+@{_IN_EMAIL}+")
_LIKE_EMAIL: Final = any_case(r"[^@]{1,64}@(?:[^\W_](?:[\w-]*[^\W_])?\.)+(?:[^\W\d_]{2,}|xn--[a-z0-9-]+)")
_PHONE: Final = re.compile(r"\+?[\d\s()./-]+")
_PHONE_START: Final = re.compile(r"(?:^|(?<=[\s:.]))[\d+(]")  # words may stand in front

_MOST_PHONE_DIGITS: Final = 15  # of E.164
_SENTENCE_ENDS: Final = ".,;:!?"


def _email(quoted: Quoted) -> Value:
    found = [address.rstrip(".") for address in _EMAIL.findall(quoted.text)]
    if len(found) != 1 or not _LIKE_EMAIL.fullmatch(found[0]):
        raise NoValueError("is not one email address")
    return Value(found[0])


def _uri(quoted: Quoted) -> Value:
    text = quoted.text.rstrip(_SENTENCE_ENDS)
    try:
        parts = urlsplit(text)
        is_whole = bool(parts.scheme and parts.netloc) and " " not in text
    except ValueError:
        is_whole = False
    if not is_whole:
        raise NoValueError("is not one URI with a scheme, such as https://")
    return Value(text)


def _phone(quoted: Quoted) -> Value:
    start = _PHONE_START.search(quoted.text)
    number = quoted.text[start.start() if start else 0 :]
    if not _PHONE.fullmatch(number) or not 5 <= sum(map(str.isdigit, number)) <= _MOST_PHONE_DIGITS:
        raise NoValueError("is not one phone number of 5 to 15 digits")
    return Value(number)


_A_NUMBER: Final = any_case(
    rf"\d|\b(?:{'|'.join(NUMBER_WORDS)}|dozen|half|hundred|thousand|[mb]illion|\w+teen|\w+ty)\b"
)
_A_TIME: Final = any_case(  # also one that does not say the day, such as "next week"
    r"\d|day|morrow|night|morning|noon|evening|week|month|year|quarter|hour|minute|spring|summer|autumn|winter|soon|once"
    r"|\bnow\b|immediate|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
)
_NEEDED: Final[Mapping[Kind, re.Pattern[str]]] = {
    **dict.fromkeys((Kind.INTEGER, Kind.NUMBER, Kind.MONEY), _A_NUMBER),
    **dict.fromkeys((Kind.DATE, Kind.DATE_TIME, Kind.TIME), _A_TIME),
    Kind.EMAIL: re.compile("@"),
    Kind.URI: re.compile(r"\w\.\w"),
    Kind.PHONE: re.compile(r"\d"),
}
_READERS: Final[Mapping[Kind, Callable[[Quoted], Value]]] = {
    Kind.INTEGER: partial(_amount, is_whole=True),
    Kind.NUMBER: _amount,
    Kind.MONEY: partial(_amount, is_money=True),
    Kind.DATE: _date,
    Kind.DATE_TIME: _date_time,
    Kind.TIME: _time,
    Kind.EMAIL: _email,
    Kind.URI: _uri,
    Kind.PHONE: _phone,
}
READ: Final = frozenset(_READERS)  # kinds whose values are read out of quotations
