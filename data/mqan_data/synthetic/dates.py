"""Notations of days, times of day and timestamps."""

import calendar
from collections.abc import Callable
from datetime import datetime

Notation = Callable[[datetime], str]

MONTHS = calendar.month_name[1:]
DAYS = calendar.day_name[:]


def _ordinal(day: int) -> str:
    last = {1: "1st", 2: "2nd", 3: "3rd"}.get(day % 10)
    return f"{day}th" if last is None or 10 < day < 14 else f"{day // 10 or ''}{last}"


def _half_day(time: datetime) -> str:
    return "am" if time.hour < 12 else "pm"


WITH_YEAR: tuple[Notation, ...] = (
    lambda d: f"{d:%Y-%m-%d}",
    lambda d: f"{d:%Y-%m-%d}",
    lambda d: f"{d:%d.%m.%Y}",
    lambda d: f"{d:%d/%m/%Y}",
    lambda d: f"{d:%m/%d/%Y}",
    lambda d: f"{d.month}/{d.day}/{d:%y}",
    lambda d: f"{d.day}.{d.month}.{d.year}",
    lambda d: f"{d:%Y/%m/%d}",
    lambda d: f"{d:%d}-{d:%b}-{d.year}",
    lambda d: f"{d.day} {d:%B} {d.year}",
    lambda d: f"{d.day} {d:%B} {d.year}",
    lambda d: f"{d:%B} {d.day}, {d.year}",
    lambda d: f"{d:%B} {d.day}, {d.year}",
    lambda d: f"{d:%b} {d.day}, {d.year}",
    lambda d: f"{d.day} {d:%b} {d.year}",
    lambda d: f"{_ordinal(d.day)} {d:%B} {d.year}",
    lambda d: f"{_ordinal(d.day)} of {d:%B} {d.year}",
    lambda d: f"{d:%A}, {d.day} {d:%B} {d.year}",
)
"""Days with their year."""

DATES: tuple[Notation, ...] = (
    *WITH_YEAR,
    lambda d: f"{d:%A}, {d:%B} {d.day}",
    lambda d: f"{d:%A} {d.day} {d:%B}",
    lambda d: f"{d:%B} {_ordinal(d.day)}",
    lambda d: f"{d.day} {d:%B}",
    lambda d: f"{d:%a} {d.day} {d:%b}",
)
"""Days."""

TIMES: tuple[Notation, ...] = (
    lambda d: f"{d:%H:%M}",
    lambda d: f"{d:%H:%M}",
    lambda d: f"{d.hour % 12 or 12}:{d:%M} {_half_day(d)}",
    lambda d: f"{d.hour % 12 or 12}:{d:%M} {_half_day(d).upper()}",
    lambda d: f"{d.hour % 12 or 12}.{d:%M}{_half_day(d)}",
    lambda d: f"{d:%H.%M}",
    lambda d: f"{d.hour % 12 or 12}:{d:%M} {'a.m' if d.hour < 12 else 'p.m'}.",
    lambda d: f"{d:%H:%M} h",
)
"""Times of day."""

STAMPS: tuple[Notation, ...] = (
    lambda d: f"{d:%Y-%m-%d %H:%M:%S}",
    lambda d: f"{d:%Y-%m-%dT%H:%M:%SZ}",
    lambda d: f"{d:%Y-%m-%d %H:%M:%S},{d.microsecond // 1000:03}",
    lambda d: f"{d:%Y-%m-%dT%H:%M:%S}.{d.microsecond // 1000:03}+00:00",
    lambda d: f"{d:%b} {d.day:2} {d:%H:%M:%S}",
    lambda d: f"{d:%d}/{d:%b}/{d:%Y:%H:%M:%S} +0000",
    lambda d: f"{d:%Y/%m/%d %H:%M:%S}",
    lambda d: f"{d:%d.%m.%Y %H:%M:%S}",
)
"""Timestamps of logs."""
