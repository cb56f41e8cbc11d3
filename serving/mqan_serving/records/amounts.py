"""Numbers and amounts of money out of quotations; price-parser finds the currency and makes the number.

What is around a number can change it: a sign, a point before decimals, a fraction, a word such as million. Only what is
known to leave a number as it is, or to multiply it, may be there; beside anything else it has no value. So no list of
the words that multiply, of any language, has to be complete: "5 Millionen" is read, and "5 miljoonaa" has no value.
"""

import re
import unicodedata
from decimal import Decimal
from typing import Final

from price_parser._currencies import CURRENCY_CODES
from price_parser.parser import SAFE_CURRENCY_SYMBOLS, Price

from mqan_serving.records.multiples import (
    CURRENCY,
    GROUPED,
    HAS_CURRENCY,
    MONEY_WORD,
    NUMBER,
    SCALE_WORDS,
    in_digits,
    without_scale,
)
from mqan_serving.records.quoted import WIDE_GAP, Knows, NoValueError, Quoted, any_case

_MAY_BE_CODE: Final = re.compile(r"\W*\d{5,}\W*")
_OWN_CURRENCY: Final = re.compile(  # that is not beside another number; it may be in the head of a table
    rf"(?<!\d)(?<!\d\s)(?:{HAS_CURRENCY.pattern}|(?i:{MONEY_WORD.pattern}))(?!\s?\d)"
)
_HEAD: Final = 10_000  # characters of a text in which that is looked for
_MOST_DIGITS: Final = 15  # that a floating-point number holds exactly
_INDIAN: Final = re.compile(r"\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d+)?")  # lakhs and crores
_RUPEES: Final = any_case(r"₹|\b(?:rs\b|inr\b|rupees?\b)")
_UNIT_POWER: Final = any_case(r"(?<=\d)(\s?(?:[cdkm]?m|ft|in|yd|mi))[23](?!\w)")
_THREE_DECIMALS: Final = any_case(  # or more; of dollars and pounds in prices of fuel and rates of exchange
    r"(?<![A-Za-z])(?:KWD?|BHD|OMR|JOD|TND|LYD|IQD|KD|BD|JD|LD|DT|dinars?|rials?|BTC|XBT|ETH"
    r"|USD|AUD|CAD|NZD|GBP|dollars?|pounds?)(?![a-z])|[₿$£]"
)

_DASHES: Final = r"\-−‒–‐‑﹣－"
_DASH: Final = f"[{_DASHES}]"
_DASH_IN_FRONT: Final = re.compile(
    rf"(.?)({_DASH})(\s*)(?:[^\W\d_]{{0,3}}[^\w\s{_DASHES}]|[^\W\d_]{{1,3}})?\s*$", re.DOTALL
)
_MINUS: Final = any_case(r"\b(?:minus|negative)\s*(?:[^\W\d_]{0,3}[^\w\s]|[^\W\d_]{1,3})?\s*$")
_POINT_IN_FRONT: Final = re.compile(rf"(?:^|[\s(\[+$€£¥₹]|{_DASH})\.$")
_ABBREVIATION: Final = any_case(r"\b(?:rs|kr|fr|no|nr|ca|approx)\.$")
_CUT_IN_FRONT: Final = re.compile(rf"\d(?:[.,'’:/⁄]|{_DASH})$")
_CUT_BEHIND: Final = any_case(rf"(?:[.,'’:/⁄^]|{_DASH}[^\w\s]?|e[-+]?)\d|\^|\s*[×x*·]\s*10\b")
_DATE_IN_FRONT: Final = re.compile(r"\d([./-])\d{1,2}\1$")
_DATE_BEHIND: Final = re.compile(r"([./-])\d{1,2}\1\d{1,2}(?!\d)")
_DECADE: Final = any_case(r"(?:[12]\d)?\d0s\b")
_BEFORE_DECADE: Final = any_case(r"\b(?:the|early|mid|late|his|her|their|my|our|your)[\s-]$")
_IN_BRACKETS: Final = re.compile(r"\s*(?:[A-Z]{3}|[^\w\s]{0,3})\s*")  # beside the digits
_SHARE: Final = any_case(r"[\s-]*(?:%|per\s?cent\b|pct\b)")
_SHARE_LABEL: Final = re.compile(r"\D*\d+(?:[.,]\d+)?\s?%\s?[:=](?=\s?\D?\D?\D?\s?\d)")  # 19 %: 76.00 EUR

# What is known to leave a number as it is.
_UNITS: Final = (
    "[cdkmµμn]?m|[kmµμ]?g|[cdmµμ]?l|[kMGT]?(?:Wh?|V|A|Hz|B|bit|J|Pa|N)|[mµμn]?s|min|hr?s?|d|lbs?|oz|ft|in|yd|mi"
    "|[kmgt]b|km/h|mph|px|pt|x(?!\\s*\\d)|p[ck]s?|am|pm|a\\.m|p\\.m|st|nd|rd|th"
)
_PLAIN_BEHIND: Final = re.compile(
    r"[*_`~]*(?:$|[\s.,;:!?…)\]}\"'”’»|%‰°¢]|[-/‐](?=[^\W\d_])"
    rf"|(?:{_UNITS}|{CURRENCY})(?![^\W\d_]))"
)
_PLAIN_IN_FRONT: Final = frozenset("\"'(:;=#§№|@&+~≈.,-−‒–‐‑﹣－")  # points and dashes are looked at by themselves
_EMPHASIS: Final = re.compile(r"(?:^|\s)[*_`]+$")  # of Markdown
_SHORT: Final = re.compile(  # words and units of one or two letters, and units that are no words
    "am|be|c|cl|cm|d|dl|do|ft|g|go|gb|h|hr|hz|in|kb|kg|km|kn|kr|kt|kw|l|lb|m|mb|mg|mi|ml|mm|mo|mw|my|no|ok|our|oz|p|pc|pk"
    "|pm|pp|pt|px|s|t|tb|up|us|v|w|wh|wk|yd|yr|approx|excl|gbps|hrs|incl|kbps|kcal|kmh|kwh|lbs|mbps|mins|mths?|mwh|pcs|rpm|secs|tbsp|tsp"
    "|vat|wks|x|y|yrs"
)
_UNIT: Final = re.compile(f"{_UNITS}|{_SHORT.pattern}")
_MILES: Final = re.compile("miles(?! de\\b)")  # which is Spanish, and multiplies
_BEHIND_CURRENCY: Final = re.compile(rf"(?:{CURRENCY})\s+([^\W\d_]+)\.?\s*$")
_WORD_OR_MARK: Final = re.compile(rf"[^\W\d_]+|\d|[^\w\s]|{WIDE_GAP}")
_END_MARKS: Final = frozenset(f'.,;:!?…()[]{{}}"“”|{WIDE_GAP}')
_BETWEEN_PHRASES: Final = frozenset("-–—/+*=<>")  # after white space
_END_WORD: Final = any_case(  # of what a number counts
    "a|after|an|and|as|at|because|before|but|by|during|for|from|had|has|have|he|i|if|in|is|it|not|of|off|on|or|per|she"
    "|since|so|than|that|the|they|this|to|until|was|we|were|when|which|who|will|with|you"
)
_ENDINGS: Final = (("", ""), ("s", ""), ("es", ""), ("ies", "y"), ("ed", ""), ("d", ""))  # of other forms
_LONGEST_WORD: Final = 20  # characters; longer ones are cut, and multiply nothing
_MOST_OUTSIDE: Final = 2  # words after a quotation that can belong to its number

# Known words and signs that change a number, and what a quotation with them is told to have or be.
_CODES: Final = "EUR|USD|GBP|CHF"
_MULTIPLIES: Final = re.compile("bill|bin|bio|crore|kun|mia|mil|mill|tis|tri")  # English words, too
_MULTIPLIED: Final = "has a word that multiplies its number"
_BEHIND: Final = (
    (any_case(
        r"\s?k(?:\b|(?=eur|usd|€))|[\s-]*(?:hundred|thousand|million|billion|trillion|dozen|lakh|lac|crore)s?\b"
        r"|[\s-]?(?:mn|mio|mln|mil|mrd|bn|bln|tn|trn|tril|tsd|thsd|(?-i:M))\b|(?-i:[BT])\b"
    ), _MULTIPLIED),
    (any_case(
        r"[\s-]*(?:(?:and|&)[\s-]+)?(?:(?:an?|one|two|three|\d+)[\s-]+)?"
        r"(?:half|halves|quarters?|thirds?|fourths?|fifths?|sixths?|eighths?|tenths?|hundredths?|thousandths?)\b"
        r"|\s+(?:(?:and|&)\s+)?\d+[/⁄]\d|\s+point\s"
    ), "has a fraction or a power after its number"),
    (any_case(r"[\s-]*(?:degrees?|°?\s?[CF]\b|°)?[^\d\n.,;]{0,12}\bbelow\s+(?:zero|freezing)\b"),
     "is below zero, as the words after it say"),
    (any_case(rf"{_DASH}(?!\w)"), "has a sign after its number"),
    (any_case(
        r"\s+(?:or|to|plus|minus|times|less|over|(?:divided|multiplied)\s+by)\s+[€$£]?\d|\s+to\s+the\b"
        r"|\s+(?:squared|cubed)\b"
    ), "is part of a range, or a power"),
)  # fmt: skip
_BEHIND_MONEY: Final = (  # after other numbers these are units: m stands for metres
    (any_case(
        r"[\s-]*(?:[kmbtlc]|mm|bil|cr|grand|thou|cents?|ct|p|pence)\b(?![.'’-]\w)|\s*¢"
        rf"|(?-i:\s?[TKM](?:{_CODES}|[€$£])|\s?(?:{_CODES}|[€$£])\s?[km]\b)"
    ), _MULTIPLIED),
    (any_case(rf"\s?(?:{_CODES}|[€$£¥₹])[\s-]?(?:{SCALE_WORDS}|k|m|mn|mil\w*|bil\w*)\b"), _MULTIPLIED),
    (_SHARE, "is a share, not an amount of money"),
)  # fmt: skip
_IN_FRONT: Final = (
    (any_case(
        r"\b(?:half|third|quarter|twice|thrice|double|triple)(?:\s+(?:of|the|a|an|about))*\s+[€$£]?$"
        r"|\d\s*[×*·÷/^]\s+$|\d\s+(?:or|to)\s+[€$£]?$|\d\s+to\s+the\s+(?:power\s+of\s+)?$|\bbetween\s+[€$£]?(?:\d[\d.,]*\s+and\s+[€$£]?)?$"
    ), "has a word or sign in front that may change its number"),
)  # fmt: skip
_IN_FRONT_OF_MONEY: Final = (  # $m 3.2, EUR million 5, KEUR 5
    (any_case(
        r"(?:\b(?:thousand|thsd|million|billion|trillion|tril|lakh|lac|crore|mio|mln|mrd|bn|bln|trn|tsd)s?\b\.?"
        rf"|(?:[€$£¥₹]|\b(?:{_CODES}|Rs\.?|INR|JPY))\s?(?:[kmbt]|mn|tn)|\b[TKM](?:{_CODES}))"
        rf"[\s:]*(?:[€$£¥₹]|{_CODES})?\s*$"
    ), "has a word or letter in front that multiplies its number"),
)  # fmt: skip


def read_amount(quoted: Quoted, *, is_money: bool, is_whole: bool = False) -> tuple[Decimal, str | None]:
    """Return the one number of a quotation, and its currency as it is written, or raise ``NoValueError``."""
    scale, quoted = without_scale(in_digits(quoted, is_money=is_money), is_money=is_money)
    is_whole, is_scaled = is_whole and scale == 1, scale != 1
    amount, currency = _read_number(quoted, is_money=is_money, is_whole=is_whole, is_scaled=is_scaled)
    if is_money and _MAY_BE_CODE.fullmatch(quoted.text) and not _names_currency(quoted):
        raise NoValueError("may be a code: no currency stands beside it or above it")
    return amount * scale, currency


def _names_currency(quoted: Quoted) -> bool:
    places = (f"{quoted.line_before}_{quoted.line_after}", quoted.whole[:_HEAD])
    return HAS_CURRENCY.search(quoted.text) is not None or any(map(_OWN_CURRENCY.search, places))


def _read_number(quoted: Quoted, *, is_money: bool, is_whole: bool, is_scaled: bool) -> tuple[Decimal, str | None]:
    text = _UNIT_POWER.sub(r"\1", quoted.text)
    label = _SHARE_LABEL.match(text) if is_money else None
    rest = text[label.end() :] if label else text
    if is_money and "%" in rest:
        raise NoValueError("is a share, not an amount of money")
    found = list(NUMBER.finditer(text, len(text) - len(rest)))
    if len(found) != 1:
        raise NoValueError("has several numbers" if found else "has no number in digits")
    [match] = found
    before, after = text[: match.start()], text[match.end() :]
    front, behind = quoted.before + before, after + quoted.after
    digits = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in match[0].replace("’", "'"))
    if _INDIAN.fullmatch(digits) and _RUPEES.search(text):
        digits = digits.replace(",", "")
    if _DECADE.match(digits + behind) and (len(digits) == 4 or _BEFORE_DECADE.search(front)):
        raise NoValueError("names ten years")
    if len(digits) == 2 and front.endswith(("'", "’", "‘")) and not behind.startswith(front[-1]):
        raise NoValueError("may be a year without its century")
    if sum(char.isdigit() for char in digits) > _MOST_DIGITS:
        raise NoValueError(f"has more than {_MOST_DIGITS} digits")
    is_year = len(digits) == 4 and bool(_DATE_IN_FRONT.search(front) or _DATE_BEHIND.match(behind))
    _check_behind(after + quoted.line_after, is_money=is_money, is_year=is_year)
    if not is_scaled:  # nothing multiplies it twice
        _check_words_behind(after, quoted)
    _check_in_front(front.rpartition("\n")[2], quoted.knows, is_money=is_money, is_year=is_year)
    if not is_year:
        _check_uncut(digits, front, behind)
    has_three_decimals = is_whole or _THREE_DECIMALS.search(quoted.before + text + quoted.after) is not None
    if _has_point_in_front(front, is_quoted=before.endswith(".")):
        if not digits.isdecimal():
            raise NoValueError("is not written as one number")
        plain, front = f"0.{digits}", front[:-1]
    else:
        plain = _plain(digits, is_money=is_money, is_sharp=has_three_decimals and (is_money or is_whole))
    price = Price.fromstring(plain, rest, ".")
    if price.amount is None:
        raise NoValueError("is not a number")
    currency = price.currency
    is_after_currency = bool(before and currency and before.endswith(currency)) or (is_money and not before)
    if front[-1:].isalpha() and not is_after_currency:
        raise NoValueError("has its digits inside a word")
    if is_money:
        _check_brackets(quoted, front, behind)
    if after.strip() and re.fullmatch(_DASH, after.strip()):
        raise NoValueError("has a sign after its number")
    is_below = _is_below_zero(front, len(quoted.before), is_money=is_money, is_date=is_year)
    return (-price.amount if is_below else price.amount), currency


def is_share(text: str, after: str) -> bool:
    """Return whether a quotation, with what is after it, has one number, which is a share: 19 %."""
    found = list(NUMBER.finditer(text))
    return len(found) == 1 and _SHARE.match(text[found[0].end() :] + after) is not None


def _plain(digits: str, *, is_money: bool, is_sharp: bool) -> str:
    separators = [char for char in digits if not char.isdigit()]
    if not separators:
        return digits
    *others, last = separators
    whole, _, decimals = digits.rpartition(last)
    if GROUPED.fullmatch(digits):
        if not others and last == "." and is_sharp:
            raise NoValueError("may have a point before decimals, or between thousands")
        if others or last != "." or is_money:
            return "".join(filter(str.isdigit, digits))
    if last in ".," and last not in others and (not others or GROUPED.fullmatch(whole)):
        return f"{''.join(filter(str.isdigit, whole))}.{decimals}"
    raise NoValueError("is not written as one number")


def _check_uncut(digits: str, front: str, behind: str) -> None:
    is_cut = _CUT_IN_FRONT.search(front) or _CUT_BEHIND.match(behind)
    follows_group = re.search(r"(?<!\d)\d{1,3} $", front) and re.match(r"\d{3}(?!\d)", digits)
    has_group_behind = re.fullmatch(r"\d{1,3}(?: \d{3})*", digits) and re.match(r" \d{3}(?!\d)", behind)
    if is_cut or follows_group or has_group_behind:
        raise NoValueError("is part of a longer number, or of a range")


def _check_in_front(front: str, knows: Knows, *, is_money: bool, is_year: bool) -> None:
    last = front[-1:]
    is_plain = last in _PLAIN_IN_FRONT or last.isspace() or last.isalpha() or (is_year and last == "/")
    if last and not (is_plain or unicodedata.category(last) in ("Sc", "Ps", "Pi") or _EMPHASIS.search(front)):
        raise NoValueError("has something directly in front of its number that may change it")
    for changes, reason in (*_IN_FRONT, *(_IN_FRONT_OF_MONEY if is_money else ())):
        if changes.search(front):
            raise NoValueError(reason)
    found = _BEHIND_CURRENCY.search(front)
    if found and not (_is_unit(found[1]) or _is_english(found[1], knows)):
        raise NoValueError("has a word between currency and number that may change it")


def _check_behind(behind: str, *, is_money: bool, is_year: bool) -> None:
    if unicodedata.category(behind.lstrip()[:1] or " ") == "No":
        raise NoValueError("has a fraction or a power after its number")
    for changes, reason in (*_BEHIND, *(_BEHIND_MONEY if is_money else ())):
        if changes.match(behind):
            raise NoValueError(reason)
    if behind and not (is_year or _PLAIN_BEHIND.match(behind) or unicodedata.category(behind[0]) == "Sc"):
        raise NoValueError("has something directly after its number that may change it")


def _check_words_behind(inside: str, quoted: Quoted) -> None:
    behind = inside + quoted.line_after
    num_outside = 0
    for found in _WORD_OR_MARK.finditer(behind):
        word = found[0]
        if word in _END_MARKS or word.isdigit() or _END_WORD.fullmatch(word) or num_outside == _MOST_OUTSIDE:
            return
        if word in _BETWEEN_PHRASES and behind[found.start() - 1 : found.start()].isspace():
            return
        if unicodedata.category(word[0]) == "Sc":
            return
        if not word.isalpha() or (len(word) <= 2 and behind[found.end() : found.end() + 1] == "-"):
            continue  # such as the T of T-shirts
        if _is_unit(word) or _MILES.match(behind, found.start()):
            return
        if not _is_english(word, quoted.knows) and len(word) <= _LONGEST_WORD:
            raise NoValueError("has a word after its number that may change it")
        num_outside += found.start() >= len(inside)


def _is_unit(word: str) -> bool:
    is_currency = word in CURRENCY_CODES or word in SAFE_CURRENCY_SYMBOLS
    return is_currency or bool(_UNIT.fullmatch(word) or _SHORT.fullmatch(word.lower()))


def _is_english(word: str, knows: Knows) -> bool:
    word = word.lower()
    forms = {word.removesuffix(end) + instead for end, instead in _ENDINGS if word.endswith(end)}
    is_english = len(word) > 2 and word.isascii() and any(map(knows, forms))
    return is_english and not any(map(_MULTIPLIES.fullmatch, forms))


def _has_point_in_front(front: str, *, is_quoted: bool) -> bool:
    if not front.endswith((".", ",")) or _ABBREVIATION.search(front):
        return False
    if front[-2:-1].isalpha() and (front.endswith(",") or not is_quoted):
        return False
    if front.endswith(('",', "',", ";,")):  # cells
        return False
    if is_quoted and _POINT_IN_FRONT.search(front):
        return True
    raise NoValueError("has a point or comma in front of its number, which may be that of decimals")


def _check_brackets(quoted: Quoted, front: str, behind: str) -> None:
    _, opening, left = front.rpartition("(")
    right, closing, _ = behind.partition(")")
    is_alone = _IN_BRACKETS.fullmatch(left) and _IN_BRACKETS.fullmatch(right)
    is_around = quoted.before.rstrip().endswith("(") and quoted.after.lstrip().startswith(")")
    is_whole = quoted.text.startswith("(") and quoted.text.endswith(")")
    if opening and closing and (is_alone or is_around or is_whole):
        raise NoValueError("is in brackets, which may mean that it is below zero")


def _is_below_zero(front: str, num_outside: int, *, is_money: bool, is_date: bool) -> bool:
    # A dash is a sign directly in front of the number or its currency, and after white space or nothing; it is none
    # after a letter, and where it begins a line that is not quoted.
    words = _MINUS.search(front)
    found = _DASH_IN_FRONT.search(front)
    if words or front.rstrip().endswith("±"):
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
