"""Numbers and amounts of money out of quotations; price-parser finds the currency and makes the number.

What stands directly around a quotation can change its number: a sign, a point before decimals, a fraction, a word such
as million. Then there is no value, because the quotation alone does not show it.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from price_parser.parser import Price

from mqan_serving.records.around import Knows, check_behind, check_in_front
from mqan_serving.records.errors import NoValueError

_MOST_DIGITS: Final = 15  # that a floating-point number holds exactly
_NUMBER: Final = re.compile(r"\d+(?:[.,'’]\d+| \d{3}(?!\d))*")
_GROUPED: Final = re.compile(r"(?!0)\d{1,3}(?:([.,' ])\d{3})(?:\1\d{3})*")  # in thousands
_THREE_DECIMALS: Final = re.compile(  # or more; of dollars and pounds in prices of fuel and rates of exchange
    r"(?<![A-Za-z])(?:KWD?|BHD|OMR|JOD|TND|LYD|IQD|KD|BD|JD|LD|DT|dinars?|rials?|BTC|XBT|ETH)(?![a-z])"
    r"|(?<![A-Za-z])(?:USD|AUD|CAD|NZD|GBP|dollars?|pounds?)(?![a-z])|[₿$£]",
    re.IGNORECASE,
)

_DASHES: Final = r"\-−‒–‐‑﹣－"
_DASH: Final = f"[{_DASHES}]"
_DASH_IN_FRONT: Final = re.compile(
    rf"(.?)({_DASH})(\s*)(?:[^\W\d_]{{0,3}}[^\w\s{_DASHES}]|[^\W\d_]{{1,3}})?\s*$", re.DOTALL
)
_MINUS: Final = re.compile(r"\b(?:minus|negative)\s*(?:[^\W\d_]{0,3}[^\w\s]|[^\W\d_]{1,3})?\s*$", re.IGNORECASE)
_SIGN_BEHIND: Final = re.compile(rf"{_DASH}(?!\w)")
_POINT_IN_FRONT: Final = re.compile(rf"(?:^|[\s(\[+$€£¥₹]|{_DASH})\.$")
_ABBREVIATION: Final = re.compile(r"\b(?:rs|kr|fr|no|nr|ca|approx)\.$", re.IGNORECASE)
_MORE_IN_FRONT: Final = re.compile(rf"\d(?:[.,'’:/⁄]|{_DASH})$")
_MORE_BEHIND: Final = re.compile(rf"(?:[.,'’:/⁄^]|{_DASH}[^\w\s]?|e[-+]?)\d|\^|\s*[×x*·]\s*10\b", re.IGNORECASE)
_DATE_IN_FRONT: Final = re.compile(r"\d([./-])\d{1,2}\1$")
_DATE_BEHIND: Final = re.compile(r"([./-])\d{1,2}\1\d{1,2}(?!\d)")
_MULTIPLIED: Final = re.compile(
    r"\s?k(?:\b|(?=eur|usd|€))|[\s-]*(?:hundred|thousand|million|billion|trillion|dozen|lakh|lac|crore)s?\b"
    r"|[\s-]?(?:mn|mio|mln|mil|mrd|bn|bln|tn|trn|tril|tsd|thsd|(?-i:M))\b|(?-i:[BT])\b",
    re.IGNORECASE,
)
_CODES: Final = "EUR|USD|GBP|CHF"
_SCALED_CURRENCY: Final = re.compile(rf"\s?[TKM](?:{_CODES}|[€$£])|\s?(?:{_CODES}|[€$£])\s?[km]\b")
_MULTIPLIED_IN_FRONT: Final = re.compile(  # $m 3.2, EUR million 5, KEUR 5
    r"(?:\b(?:thousand|thsd|million|billion|trillion|tril|lakh|lac|crore|mio|mln|mrd|bn|bln|trn|tsd)s?\b\.?"
    rf"|(?:[€$£¥₹]|\b(?:{_CODES}|Rs\.?|INR|JPY))\s?(?:[kmbt]|mn|tn)|\b[TKM](?:{_CODES}))"
    rf"[\s:]*(?:[€$£¥₹]|{_CODES})?\s*$",
    re.IGNORECASE,
)
_BELOW: Final = re.compile(
    r"[\s-]*(?:degrees?|°?\s?[CF]\b|°)?[^\d\n.,;]{0,12}\bbelow\s+(?:zero|freezing)\b", re.IGNORECASE
)
_SHARE: Final = re.compile(r"[\s-]*(?:%|per\s?cent\b|pct\b)", re.IGNORECASE)
_OF_MONEY: Final = re.compile(  # after other numbers these are units: m stands for metres
    r"[\s-]*(?:[kmbtlc]|mm|bil|cr|grand|thou|cents?|ct|p|pence)\b(?![.'’-]\w)|\s*¢", re.IGNORECASE
)
_FRACTION: Final = re.compile(
    r"[\s-]*(?:(?:and|&)[\s-]+)?(?:(?:an?|one|two|three|\d+)[\s-]+)?"
    r"(?:half|halves|quarters?|thirds?|fourths?|fifths?|sixths?|eighths?|tenths?|hundredths?|thousandths?)\b"
    r"|\s+(?:(?:and|&)\s+)?\d+[/⁄]\d|\s+point\s",
    re.IGNORECASE,
)
_IN_BRACKETS: Final = re.compile(r"\s*(?:[A-Z]{3}|[^\w\s]{0,3})\s*")  # beside the digits
NUMBER_WORDS: Final[Mapping[str, int]] = {
    word: number
    for number, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"],
    )
}
_MORE_WORDS: Final = re.compile(r"(?:\wty|hundred|thousand|million|point)(?:\s+and)?[\s-]*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Quoted:
    """A quotation, and what stands around it, without invisible characters.

    Attributes:
        text: the quotation, with single spaces for all white space.
        before: a few characters in front of it; a line begins with a line feed.
        after: a few characters after it.
        knows: whether a word, in lower case, is one of the text's language.
    """

    text: str
    before: str = "\n"
    after: str = "\n"
    knows: Knows = str.isascii

    @property
    def line_before(self) -> str:
        """What stands in front of it on its line."""
        return self.before.rpartition("\n")[2]

    @property
    def line_after(self) -> str:
        """What stands behind it on its line: the next one is about something else."""
        return self.after.partition("\n")[0]


def read_amount(quoted: Quoted, *, is_money: bool, is_whole: bool = False) -> tuple[Decimal, str | None]:
    """Return the one number of a quotation, and its currency as it is written.

    Args:
        quoted: the quotation.
        is_money: whether it is to be an amount of money.
        is_whole: whether it is to be a whole number, in which a point may stand between thousands.

    Raises:
        NoValueError: it has no number, several, or one that could be read in two ways.
    """
    text = quoted.text
    if not is_money and text.lower() in NUMBER_WORDS:
        return _of_word(quoted), None
    found = list(_NUMBER.finditer(text))
    if len(found) != 1:
        raise NoValueError("has several numbers" if found else "has no number in digits")
    [match] = found
    before, after = text[: match.start()], text[match.end() :]
    front, behind = quoted.before + before, after + quoted.after
    digits = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in match[0].replace("’", "'"))
    if sum(char.isdigit() for char in digits) > _MOST_DIGITS:
        raise NoValueError(f"has more than {_MOST_DIGITS} digits")
    is_year = _is_year(digits, front, behind)
    _check_behind(after, quoted, is_money=is_money, is_year=is_year)
    if is_money and _MULTIPLIED_IN_FRONT.search(front.rpartition("\n")[2]):
        raise NoValueError("has a word or letter in front that multiplies its number")
    _check_whole(digits, front, behind)
    check_in_front(front.rpartition("\n")[2], quoted.knows, is_year=is_year)
    has_three_decimals = is_whole or _THREE_DECIMALS.search(quoted.before + text + quoted.after) is not None
    if _has_point_in_front(front, is_quoted=before.endswith(".")):
        if not digits.isdecimal():
            raise NoValueError("is not written as one number")
        plain, front = f"0.{digits}", front[:-1]
    else:
        plain = _plain(digits, is_money=is_money, is_sharp=has_three_decimals and (is_money or is_whole))
    price = Price.fromstring(plain, text, ".")
    if price.amount is None:
        raise NoValueError("is no number")
    _check_letters(quoted, before, price.currency, is_money=is_money)
    _check_brackets(quoted, front, behind, is_money=is_money)
    if after.strip() and re.fullmatch(_DASH, after.strip()):
        raise NoValueError("has a sign after its number")
    is_below = _is_below_zero(front, len(quoted.before), is_money=is_money, is_date=is_year)
    return (-price.amount if is_below else price.amount), price.currency


def _of_word(quoted: Quoted) -> Decimal:
    _check_behind("", quoted, is_money=False, is_year=False)
    check_in_front(quoted.line_before, quoted.knows, is_year=False)
    if _MORE_WORDS.search(quoted.before):
        raise NoValueError("is part of a longer number")
    if _MINUS.search(quoted.before):
        raise NoValueError("has a sign in front of it")
    return Decimal(NUMBER_WORDS[quoted.text.lower()])


def _plain(digits: str, *, is_money: bool, is_sharp: bool) -> str:
    """Return a number with nothing but a point before its decimals.

    Args:
        digits: as they are written, with separators.
        is_money: whether one point before three digits stands between thousands.
        is_sharp: whether it may be either.

    Raises:
        NoValueError: it is something else, such as a date or a version: 12.05.2024, 1.2.3.
    """
    separators = [char for char in digits if not char.isdigit()]
    if not separators:
        return digits
    *others, last = separators
    whole, _, decimals = digits.rpartition(last)
    if _GROUPED.fullmatch(digits):
        if not others and last == "." and is_sharp:
            raise NoValueError("may have a point before decimals, or between thousands")
        if others or last != "." or is_money:
            return "".join(filter(str.isdigit, digits))
    if last in ".," and last not in others and (not others or _GROUPED.fullmatch(whole)):
        return f"{''.join(filter(str.isdigit, whole))}.{decimals}"
    raise NoValueError("is not written as one number")


def _is_year(digits: str, front: str, behind: str) -> bool:
    """Return whether it is the year of a date in digits, of which the rest is not quoted."""
    return len(digits) == 4 and bool(_DATE_IN_FRONT.search(front) or _DATE_BEHIND.match(behind))


def _check_whole(digits: str, front: str, behind: str) -> None:
    """Refuse a part of a number: 75 of 3.75, 234 of 1 234."""
    if _is_year(digits, front, behind):
        return
    is_cut = _MORE_IN_FRONT.search(front) or _MORE_BEHIND.match(behind)
    follows_group = re.search(r"(?<!\d)\d{1,3} $", front) and re.match(r"\d{3}(?!\d)", digits)
    has_group_behind = re.fullmatch(r"\d{1,3}(?: \d{3})*", digits) and re.match(r" \d{3}(?!\d)", behind)
    if is_cut or follows_group or has_group_behind:
        raise NoValueError("is part of a longer number, or of a range")


def _check_behind(inside: str, quoted: Quoted, *, is_money: bool, is_year: bool) -> None:
    behind = inside + quoted.line_after
    if _MULTIPLIED.match(behind) or (is_money and (_OF_MONEY.match(behind) or _SCALED_CURRENCY.match(behind))):
        raise NoValueError("has a word that multiplies its number")
    rest = behind.lstrip()
    if (rest and unicodedata.category(rest[0]) == "No") or _FRACTION.match(behind):
        raise NoValueError("has a fraction or a power after its number")
    if is_money and _SHARE.match(behind):
        raise NoValueError("is a share, not an amount of money")
    if _BELOW.match(behind):
        raise NoValueError("is below zero, as the words after it say")
    if _SIGN_BEHIND.match(behind):
        raise NoValueError("has a sign after its number")
    check_behind(inside, quoted.line_after, quoted.knows, is_year=is_year)


def _has_point_in_front(front: str, *, is_quoted: bool) -> bool:
    """Return whether the number has decimals only, such as .75."""
    if not front.endswith((".", ",")) or _ABBREVIATION.search(front):
        return False
    if front[-2:-1].isalpha() and (front.endswith(",") or not is_quoted):
        return False
    if is_quoted and _POINT_IN_FRONT.search(front):
        return True
    raise NoValueError("has a point or comma in front of its number, which may be that of decimals")


def _check_letters(quoted: Quoted, before: str, currency: str | None, *, is_money: bool) -> None:
    """Refuse digits directly after letters that are no currency."""
    if before:
        is_inside = before[-1].isalpha() and not (currency and before.endswith(currency))
    else:
        is_inside = quoted.before[-1:].isalpha() and not is_money
    if is_inside:
        raise NoValueError("has its digits inside a word")


def is_share(text: str, after: str) -> bool:
    """Return whether a text has one number, which is a share: 19 %.

    Args:
        text: a quotation.
        after: what stands behind it.
    """
    found = list(_NUMBER.finditer(text))
    return len(found) == 1 and _SHARE.match(text[found[0].end() :] + after) is not None


def _check_brackets(quoted: Quoted, front: str, behind: str, *, is_money: bool) -> None:
    """Refuse an amount alone in brackets, which is how accounts write one below zero."""
    if not is_money:
        return
    _, opening, left = front.rpartition("(")
    right, closing, _ = behind.partition(")")
    is_alone = _IN_BRACKETS.fullmatch(left) and _IN_BRACKETS.fullmatch(right)
    is_around = quoted.before.rstrip().endswith("(") and quoted.after.lstrip().startswith(")")
    is_whole = quoted.text.startswith("(") and quoted.text.endswith(")")
    if opening and closing and (is_alone or is_around or is_whole):
        raise NoValueError("stands in brackets, which may mean that it is below zero")


def _is_below_zero(front: str, num_outside: int, *, is_money: bool, is_date: bool) -> bool:
    """Return whether the quotation has a sign in front of its number.

    A dash is a sign where it stands directly in front of the number or its currency, and after white space or nothing.
    It is none after a letter, and where it begins a line that is not quoted.

    Raises:
        NoValueError: the sign is not in the quotation, or it is not clear whether there is one.
    """
    words = _MINUS.search(front)
    found = _DASH_IN_FRONT.search(front)
    if words or (front.rstrip().endswith("±")):
        place = words.start() if words else -1
    elif found is None or is_date:
        return False
    else:
        beside, gap, place = found[1], found[3], found.start(2)
        if gap:
            if beside == "\n" and place < num_outside:
                return False
            place = -1
        elif beside.isalpha() and not is_money:
            return False
        elif not (beside.isspace() or unicodedata.category(beside or " ") in ("Sc", "Ps", "Zs")):
            place = -1
    if place < 0:
        raise NoValueError("has a dash in front of its number, which may be a sign")
    if place < num_outside:
        raise NoValueError("has a sign in front of it")
    return True
