"""Dates and times out of quotations, by python-dateutil, where there is one way to read them."""

import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Final

from dateutil.parser import parser, parserinfo

from mqan_serving.records.quoted import NoValueError, Quoted, any_case

_Order = tuple[bool, bool]  # whether the day comes before the month, and the year before both
_MONTH_FIRST: Final[_Order] = (False, False)
_DAY_FIRST: Final[_Order] = (True, False)
_YEAR_MONTH_DAY: Final[_Order] = (False, True)
_DEFAULTS: Final = (datetime(2000, 1, 1, 0), datetime(2004, 2, 2, 1))  # leap years; what differs was not in the text
_YEAR_FIRST: Final = re.compile(r"\d{4}([-/. ])\s?\d{1,2}\1\s?\d{1,2}(?!\d)|\d{8}(?!\d)")
_DOTS: Final = re.compile(r"\d{1,2}\.\s?\d{1,2}\.\s?\d{2,4}")  # are written where the day comes first
_TIME_WITH_DOT: Final = any_case(
    r"(?<![\d.])(?:(\d{1,2})\.([0-5]\d)(?=\s*[ap]\.?m\b)|([12]\d)[.:]([0-5]\d)\s*(?:h|hrs)\b\.?)"
)
_UTC: Final = re.compile(r"(?<![A-Za-z])(?:UTC|GMT|Z)\s?(?=[+-]\d)")  # else read as POSIX does: UTC+2 is west
_MONTH: Final = any_case(r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b")
_DAYS: Final = any_case(r"\b\d{1,2}(?:[snrt][tdh])?(?:\s*(?:[-‒–—/&]|and|or|to)\s*|,)\d{1,2}(?![\d:])")
_DATES: Final = re.compile(r"\d{4}-\d\d-\d\d\s*[-‒–—/]\s*\d|\d([./])\d{1,2}\1\d{4}\s*[-‒–—/]\s*\d(?!\d?:)")
_SHORT_YEAR: Final = re.compile(r"\d\d-\d\d?-\d\d?(?!\d)|\d{6}(?!\d)")  # may be ISO's order
_TWO_DIGITS: Final = re.compile(r"(?<!\d)\d\d(?!\d)")
_YEAR: Final = re.compile(r"(?<![\d+])[12]\d{3}(?!\d)")
_CLOCK_OR_YEAR: Final = re.compile(r"[^\s,]\s1[0-5][0-5]\d$")  # 12 May 1145
_NOON: Final = any_case(r"\b(?:12 )?noon\b")
_NUMERIC_DATE: Final = re.compile(r"\d{1,4}([-/.])\s?\d{1,2}\1\s?\d{1,4}|(?<!\d)\d{8}(?!\d)")
_CLOCK: Final = r"(?<![\d:])(?:\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?[ap]m\b)?|\d{1,2}\s?[ap]m\b)"
_TIME: Final = any_case(_CLOCK)
_ISO_TIME: Final = re.compile(r"\dT\d\d")
_BETWEEN: Final = r"\s*(?:[-‒–—/&]|to\b|and\b|or\b|until\b|till\b)\s*"
_TIMES: Final = any_case(
    rf"{_CLOCK}{_BETWEEN}\d{{1,2}}(?!\d)|(?<!\d)\d{{1,2}}{_BETWEEN}{_CLOCK}|,\s*\d{{1,2}},\s*{_CLOCK}|\d{{1,2}}\s*[-‒–—]\s*\d{{1,2}}$"
)
_WITH_YEAR: Final = re.compile(
    r"(?<![\d/.-])([0-3]?\d)([/.-])([0-3]?\d)\2[12]\d{3}(?![\d/-])"
)  # one shows the order of others
_ANY_DATE: Final = any_case(
    r"\d{1,4}([-/.])\s?\d{1,2}\1(?:\s?\d{1,4})?(?!\d)"
    r"|\b\d{1,2}(?:st|nd|rd|th|\.)?\s(?:of\s)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b(?:,?\s\d{4})?"
    r"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\s\d{1,2}(?:st|nd|rd|th)?\b(?:,?\s\d{4})?"
)
_FOUR_DIGITS: Final = any_case(r"(0\d)([0-5]\d)(?:\s?h(?:rs|ours)?\.?)?")  # 0542
_MORE_BEFORE: Final = any_case(r"(?:[-‒–—/&]|\b(?:and|or))\s*$")
_MORE_AFTER: Final = any_case(rf"{_BETWEEN}|\s?\+|\w|(?-i:\s?[A-Z]{{1,5}}\b)")
_ORDINAL: Final = any_case(r"\b\d{1,2}(?:st|nd|rd|th)\b")
_LENGTH: Final = any_case(
    r"\d\s?(?:h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?)\b|\d\s?h\s?\d|(?:hours?|minutes?|mins?|seconds?)\b"
    r"|(?<![\d:])\d:\d\d:\d\d(?!\s*[ap]\.?m\b)"  # as of a race; a time with seconds has two digits of hours
)
_OFFSET: Final = re.compile(  # that is no end of a range: after UTC, seconds or T, or with a plus
    r"(\d(?=\s?\+)|(?<![A-Za-z])(?:UTC|GMT|Z)|:\d\d:\d\d(?:[.,]\d+)?|\dT\d\d:?\d\d)\s?[+-]\d\d?(?::?\d\d)?(?![\d:])"
)
_ISO_WITH_SPACE: Final = re.compile(r"(\d{4}-\d\d-\d\d (\d\d):(\d\d))\s?-(\d\d):?(\d\d)?$")
_OTHER_IN_FRONT: Final = any_case(  # of which it is a part, or from which it is counted
    r"\d[.:]$|\d\s?[-‒–—&+/]\s?$|\bhalf\s$"
    r"|(?<![\w-])\d{1,2}\s(?:to|past|before|after|till|until)\s(?:the\s)?$"  # "No 12 of 3 May" is one of that day
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w{2,}ty|\w{2,}teen|quarter|half|seconds?"
    r"|min(?:ute)?s?|h(?:ou)?rs?|days?|night|morning|evening|weeks?|months?|years?|moments?|while|bit|little|shortly|just"
    r"|soon|long|directly|immediately)\s(?:to|past|before|after|till|until|of|from|prior to|ahead of|following|since)\s"
    r"(?:the\s)?$"
)
_OTHER_BEHIND: Final = re.compile(r"[.:/+−]\d")
_END_BEHIND: Final = any_case(r"\s?(?:[-‒–—]|to|until|till)\s?(?:\d{1,2}:\d\d|\d{1,2}\s?[ap]\.?m\b)")
_FROM: Final = any_case(r"\b(?:from|between)\s$")
_MOST_RANGE_MIN: Final = 12 * 60  # two times that are further apart are no range
_MOST_OFFSET_S: Final = 14 * 3600
_A_M: Final = any_case(r"\b([ap])\.\s?m\b\.?")
_MORE_WEEKDAYS: Final = {"Tue": ("Tues",), "Wed": ("Weds",), "Thu": ("Thurs",)}


class _Words(parserinfo):
    JUMP = [*parserinfo.JUMP, "the"]
    WEEKDAYS = [(*names, *_MORE_WEEKDAYS.get(names[0], ())) for names in parserinfo.WEEKDAYS]

    def convertyear(self, year: int, century_specified: bool = False) -> int:
        """Return the year of two digits, by the rule of POSIX: it does not depend on today's date."""
        return year if year >= 100 or century_specified else year + (2000 if year < 69 else 1900)


_PARSER: Final = parser(_Words())


def only_clock(quoted: Quoted) -> Quoted:
    """Return the time of a quotation that names one, and beside it words and a date only: 10:20 of "3.5. at 10:20"."""
    digits = _FOUR_DIGITS.fullmatch(quoted.text)
    if digits and not (quoted.before.rstrip()[-1:].isdigit() or quoted.after.lstrip()[:1].isdigit()):
        return replace(quoted, text=f"{digits[1]}:{digits[2]}")
    text = _with_colons(quoted.text)
    found = list(_TIME.finditer(text))
    if len(found) != 1 or _LENGTH.search(text):
        return quoted
    before, after = text[: found[0].start()], text[found[0].end() :]
    is_beside_more = _MORE_BEFORE.search(before) or _MORE_AFTER.match(after)
    if is_beside_more or any(map(str.isdigit, _ANY_DATE.sub(" ", before) + _ANY_DATE.sub(" ", after))):
        return quoted
    return replace(quoted, text=found[0][0], before=quoted.before + before, after=after + quoted.after)


def _with_colons(text: str) -> str:
    text = _TIME_WITH_DOT.sub(lambda found: f"{found[1] or found[3]}:{found[2] or found[4]}", text)
    return _NOON.sub("12:00", _A_M.sub(r"\1m", text))


def read_moment(quoted: Quoted, wanted: tuple[str, ...], *, ignores_zone: bool = False) -> datetime:
    """Return the one date and time of a quotation that names the wanted parts, or raise ``NoValueError``."""
    text = _with_colons(quoted.text)
    bare = _without_offset(text)
    text = _UTC.sub("", text)
    years = _YEAR.findall(text)
    if len(years) > 1 or _DATES.search(text) or (_MONTH.search(text) and _DAYS.search(bare)):
        raise NoValueError("may be several dates, or a range")
    if "hour" in wanted:
        _check_one_time(bare)
        if not (_TIME.search(bare) or _ISO_TIME.search(bare)):
            raise NoValueError("does not say the hour")
    elif _MONTH.search(text) and _CLOCK_OR_YEAR.search(text):
        raise NoValueError("may have a time of 24 hours in place of a year")
    orders = _orders(_TIME.sub(" ", bare), quoted.whole)
    readings = {tuple(_parse(text, default, order, ignores_zone) for default in _DEFAULTS) for order in orders}
    for part in wanted:
        if any(getattr(one, part) != getattr(other, part) for one, other in readings):
            raise NoValueError(f"does not say the {part}")
    if len({tuple(getattr(one, part) for part in wanted) for one, _ in readings}) > 1:
        told = " or ".join(sorted(one.date().isoformat() for one, _ in readings))
        parts = "day, month and year" if _YEAR_MONTH_DAY in orders else "day and month"
        raise NoValueError(f"is {told}: its order of {parts} is not known")
    [moment, _] = next(iter(readings))
    if "year" in wanted and years and moment.year != int(years[0]):
        raise NoValueError("is not a date that can be read: its year is not where one is expected")
    is_said = f"{moment.year:04}" in text or f"{moment.year % 100:02}" in _TWO_DIGITS.findall(text)
    if "year" in wanted and not is_said:
        raise NoValueError("does not say the year in two or four digits")
    return moment


def check_around(before: str, after: str) -> None:
    """Refuse what has something beside it on its line that makes it another: "five minutes to 10:00", "3-5 May"."""
    is_start = _END_BEHIND.match(after) and not _FROM.search(before)
    if is_start or _OTHER_IN_FRONT.search(before) or _OTHER_BEHIND.match(after):
        raise NoValueError("has something beside it that may make it another")


def _without_offset(text: str) -> str:
    iso = _ISO_WITH_SPACE.fullmatch(text)
    if iso:
        start, end = (int(hour) * 60 + int(minute or 0) for hour, minute in ((iso[2], iso[3]), (iso[4], iso[5])))
        return iso[1] if (end - start) % (24 * 60) > _MOST_RANGE_MIN else text
    return _OFFSET.sub(r"\1", text)


def _check_one_time(text: str) -> None:
    rest, num_dates = _NUMERIC_DATE.subn(" ", text)
    if len(_TIME.findall(rest)) > 1 or _TIMES.search(rest):
        raise NoValueError("may be several times, or a range")
    if _LENGTH.search(rest):
        raise NoValueError("may be a length of time")
    others, num_times = _TIME.subn(" ", _ORDINAL.sub(" ", rest))
    if num_times and not num_dates and not _MONTH.search(others) and any(map(str.isdigit, others)):
        raise NoValueError("has a number beside its time")


def _orders(text: str, whole: str) -> tuple[_Order, ...]:
    first = re.search(r"\d", text)
    if first and _YEAR_FIRST.match(text, first.start()):
        return (_MONTH_FIRST,)
    if first and _DOTS.match(text, first.start()):
        return (_DAY_FIRST,)
    if first and _SHORT_YEAR.match(text, first.start()):
        return (_MONTH_FIRST, _DAY_FIRST, _YEAR_MONTH_DAY)
    written = _WITH_YEAR.search(text)
    dates = [(int(one[1]), int(one[3])) for one in _WITH_YEAR.finditer(whole) if written and one[2] == written[2]]
    shown = {_DAY_FIRST if one > other else _MONTH_FIRST for one, other in dates if (one > 12) != (other > 12)}
    return tuple(shown) if len(shown) == 1 else (_MONTH_FIRST, _DAY_FIRST)


def _parse(text: str, default: datetime, order: _Order, ignores_zone: bool) -> datetime:
    try:
        found: datetime = _PARSER.parse(
            text, default=default, dayfirst=order[0], yearfirst=order[1], tzinfos=_zone, ignoretz=ignores_zone
        )
        return found
    except NoValueError:
        raise
    except (ValueError, OverflowError, ArithmeticError, TypeError, AttributeError, IndexError):
        # the library's own error is a ValueError; odd texts were seen to end in the others
        raise NoValueError("is not a date or time that can be read") from None


def _zone(name: str | None, offset_s: int | None) -> tzinfo | None:
    if name not in (None, "UTC", "GMT", "Z"):
        raise NoValueError("has a time zone by its name, which may be one of several")
    if offset_s is not None and abs(offset_s) > _MOST_OFFSET_S:
        raise NoValueError("has an offset that no time zone has")
    return None if offset_s is None else timezone(timedelta(seconds=offset_s))
