"""Numbers in words, and what multiplies a number: a word such as million, a power of ten, cents."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Final

from price_parser._currencies import CURRENCY_CODES
from price_parser.parser import SAFE_CURRENCY_SYMBOLS

from mqan_serving.records.quoted import WIDE_GAP, NoValueError, Quoted, any_case

CURRENCY: Final = "|".join(
    map(re.escape, sorted({*CURRENCY_CODES, *SAFE_CURRENCY_SYMBOLS, "kr", "Ft", "Rs", "R"}, key=len, reverse=True))
)
NUMBER: Final = re.compile(r"\d+(?:[.,'’]\d+| \d{3}(?!\d))*")
GROUPED: Final = re.compile(r"(?!0)\d{1,3}(?:([.,' ])\d{3})(?:\1\d{3})*")  # in thousands

_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NUMBER_WORDS: Final[Mapping[str, int]] = {word: number for number, word in enumerate(_WORDS)}
_TEENS = ("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SPELLED: Final[Mapping[str, str]] = {
    **{word: str(number) for number, word in enumerate((*_WORDS, *_TEENS))},
    **{ten: str(10 * place) for place, ten in enumerate(_TENS, start=2)},
    **{f"{ten} {one}": str(10 * p + n) for p, ten in enumerate(_TENS, 2) for n, one in enumerate(_WORDS[1:10], 1)},
    "a": "1",
    "half a": "0.5",
}
_IN_WORDS: Final = any_case(
    rf"\b(?:(?:{'|'.join(_TENS)})(?:[\s-](?:{'|'.join(_WORDS[1:10])}))?|{'|'.join((*_WORDS, *_TEENS))}"
    r"|(?:half )?a(?= (?:hundred|thousand|million|billion|dozen)\b))\b"
)
_MORE_WORDS: Final = any_case(r"(?:\wty|hundred|thousand|million|point|half)(?:\s+(?:and|an?))?[\s-]*$")
MONEY_WORD: Final = any_case(r"\b(?:dollars?|euros?|pounds?|francs?|cents?|pence|rupees?|yen|kron\w+)\b")

# What multiplies a number and means the same in all languages that write it so; "billion" is told by its language.
_SCALES: Final[Mapping[str, int]] = {
    "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12,
    "lakh": 10**5, "crore": 10**7, "tausend": 10**3, "tsd": 10**3, "dutzend": 12, "millionen": 10**6, "mio": 10**6,
    "mln": 10**6, "milliarde": 10**9, "milliarden": 10**9, "mrd": 10**9, "milliard": 10**9, "milliards": 10**9,
    "millions": 10**6, "millones": 10**6, "milioni": 10**6, "miliardi": 10**9, "bn": 10**9, "万": 10**4, "億": 10**8,
}  # fmt: skip
_SCALES_OF_MONEY: Final[Mapping[str, int]] = {"k": 10**3, "m": 10**6}  # directly after the digits, with a currency
SCALE_WORDS: Final = "|".join(_SCALES)
_SCALE: Final = any_case(rf"(?<=\d)(?:[\s-]?({SCALE_WORDS}|{'|'.join(_SCALES_OF_MONEY)})\b\.?|([万億]))")
_BELOW_ZERO: Final = any_case(r"(\d(?:[\d.,]*\d)?)(\s?(?:°\s?[CF]?|degrees?)?)\s+below\s+zero\b")
BEHIND_NUMBER: Final = any_case(  # and is known to change it
    rf"(?<=\d)[^\S\n]?(?:(?:{SCALE_WORDS})\b\.?|[万億])|(?:(?<=[\d°])|(?<=°[CF])|(?<=degree)|(?<=degrees)) below zero\b"
    r"|(?<=[.,]\d\d)[-−](?=[^\S\n]*(?:\Z|\n))"
)
_LANGUAGE: Final = re.compile(r"Billion|Trillion|(?:b|tr)illion\s+d['’e]")  # may be the long scale's
_CENTS: Final = any_case(r"(\d{1,4})(?:\s?(?:cents?|pence)|(?-i:[¢cp]))")
_BEFORE_CENTS: Final = any_case(r"(?:\d|euros?|dollars?|pounds?|[€$£]|and|[,&+])\s*$")  # of which they are a part
HAS_CURRENCY: Final = re.compile(rf"(?<![^\W\d_])(?:{CURRENCY})(?![^\W\d_])|[€$£¥₹]")
_POWER: Final = re.compile(
    r"(?<=\d)(?:\s?[x×·*]\s?10(?:\^([-−]?\d{1,2})|([⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2}))(?![\w.,^])|[eE]([-+]\d{1,2}|(?<=\.\d[eE])\d{1,2})(?!\w))"
)
_POWER_ALONE: Final = re.compile(  # a small figure without a minus may be a note's
    r"(?P<start>\D*)(?<![\w.,^])(?P<base>\d{1,3})(?:\^(?P<exponent>[-−]?\d{1,2})|(?P<small>⁻[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2}))(?P<end>(?![\w^]|[.,]\d)\D*)"
)
_MULTIPLIER_IN_FRONT: Final = re.compile(r"[\d^x×·*/]\s?$")
_SHARE_OF: Final = re.compile(r"([1-9])/([1-9]\d?)")
_OF_WHOLE: Final = re.compile(r" of [a-z]")
_TOLERANCE: Final = re.compile(r"±\s?(?=\d)")
_LOSS: Final = re.compile(rf"((?:{CURRENCY})?)\s?\((\d[\d.,']*)\)\s?((?:{CURRENCY})?)")  # (5) EUR
_ACCOUNTED: Final = r"(?:[€$£¥₹]\s?)?(?:\d[\d.,']*[.,]\d\d|\d{1,3}(?:[.,']\d{3})+)"
_IN_COLUMN: Final = re.compile(rf"\(({_ACCOUNTED})\)|({_ACCOUNTED})[-−]")  # (149.00), 149.00-
_LABEL: Final = re.compile(rf"(?:[^\W\d_]|[):.]){WIDE_GAP}$")  # or another amount in brackets
_COLUMN_END: Final = re.compile(rf" ?(?:$|\n)|{WIDE_GAP}(?:$|\n|\()")
_FRACTION: Final = re.compile(r"(?<![\d.,'’/] )(?<![\d.,'’/])(\d{1,3})([½¼¾⅛⅜⅝⅞])")
_MORE_NUMBER: Final = any_case(
    r"\s*(?:(?:and|und|et|y|e|or|to|plus|minus)\b|[&+×x*·/^-])?\s*(?:an?\s+)?(?:\d|"
    rf"(?:{'|'.join(_WORDS)}|half|quarter|third|hundred|thousand|dozen|[a-z]+teen|[a-z]+ty|[mb]illi?on\w*|{SCALE_WORDS})\b)"
)


def in_digits(quoted: Quoted, *, is_money: bool) -> Quoted:
    """Return a quotation with its number in digits, where it is in words: "about 500 people", "1.5 cups"."""
    text = quoted.text
    if not is_money:
        text = _FRACTION.sub(lambda found: str(int(found[1]) + unicodedata.numeric(found[2])), text)
    if not (quoted.before.rstrip()[-1:].isdigit() or quoted.after.lstrip()[:1].isdigit()):
        text = _without_marks(text, quoted, is_money=is_money)
    found = [] if any(map(str.isnumeric, text)) else list(_IN_WORDS.finditer(text))
    if len(found) != 1 or (is_money and not (HAS_CURRENCY.search(text) or MONEY_WORD.search(text))):
        return replace(quoted, text=text if is_money else _BELOW_ZERO.sub(r"-\1\2", text))
    before, after = text[: found[0].start()], text[found[0].end() :]
    if found[0][0].lower() == "one" and (before.strip() or after.startswith(" of")):  # as in "this one"
        return quoted
    start = before + _SPELLED[" ".join(found[0][0].lower().replace("-", " ").split())]
    is_scaled = _SCALE.match(start + after, len(start)) is not None
    if _MORE_WORDS.search(quoted.before + before) or (not is_scaled and _MORE_NUMBER.match(after + quoted.after)):
        raise NoValueError("is part of a longer number")
    return replace(quoted, text=start + after)


def _without_marks(text: str, quoted: Quoted, *, is_money: bool) -> str:
    share, loss, amount = _SHARE_OF.fullmatch(text), _LOSS.fullmatch(text), _IN_COLUMN.fullmatch(text)
    if share and not is_money and _OF_WHOLE.match(quoted.after) and int(share[1]) < int(share[2]):
        return str(Decimal(share[1]) / Decimal(share[2]))
    if loss and is_money and bool(loss[1]) != bool(loss[3]):
        return f"-{loss[2]} {loss[1] or loss[3]}"
    if amount and is_money and _LABEL.search(quoted.before) and _COLUMN_END.match(quoted.after):
        return f"-{amount[1] or amount[2]}"
    return text[1:].strip() if _TOLERANCE.match(text) else text


def without_scale(quoted: Quoted, *, is_money: bool) -> tuple[Decimal, Quoted]:
    """Return what a word or a power of ten multiplies the number of a quotation by, and the quotation without it."""
    alone = None if is_money else _POWER_ALONE.fullmatch(quoted.text)
    if alone and not _MULTIPLIER_IN_FRONT.search(quoted.before + alone["start"]):
        power = Decimal(alone["base"]) ** _exponent(alone["exponent"] or alone["small"])
        return power, replace(quoted, text=f"{alone['start']}1{alone['end']}")
    found = _POWER.search(quoted.text) or _SCALE.search(quoted.text)
    if found is None:
        is_rest = _BEFORE_CENTS.search(quoted.line_before)
        cents = _CENTS.fullmatch(quoted.text) if is_money and not is_rest else None
        return (Decimal("0.01"), replace(quoted, text=cents[1])) if cents else (Decimal(1), quoted)
    before, after = quoted.text[: found.start()], quoted.text[found.end() :]
    numbers = [match[0] for match in NUMBER.finditer(before)]
    if _MORE_NUMBER.match(after + quoted.after) or (numbers and GROUPED.fullmatch(numbers[-1])):
        return Decimal(1), quoted
    if found.re is _POWER:
        return Decimal(10) ** _exponent(found[1] or found[2] or found[3]), replace(quoted, text=before + after)
    word = found[1] or found[2]
    scale = _SCALES.get(word.lower())
    if scale is None and is_money and not found[0].endswith((".", f" {word}")) and HAS_CURRENCY.search(quoted.text):
        scale = _SCALES_OF_MONEY[word.lower()]
    if scale is None or _LANGUAGE.match(word + after):
        return Decimal(1), quoted
    return Decimal(scale), replace(quoted, text=before + after)


def _exponent(written: str) -> int:
    return int(unicodedata.normalize("NFKC", written).replace("−", "-"))
