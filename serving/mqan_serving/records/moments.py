"""Dates and times out of quotations, by python-dateutil, where there is one way to read them."""

import re
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Final

from dateutil.parser import parser, parserinfo

from mqan_serving.records.errors import NoValueError

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


def read_moment(text: str, wanted: tuple[str, ...], *, ignores_zone: bool = False) -> datetime:
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
