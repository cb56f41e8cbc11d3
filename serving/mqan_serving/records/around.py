"""What may stand around a number: only what is known to leave it as it is. Beside anything else it has no value.

So no list of the words that multiply, of any language, has to be complete: "5 Millionen" has no value because nobody
knows what Millionen are.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import Final

from price_parser._currencies import CURRENCY_CODES
from price_parser.parser import SAFE_CURRENCY_SYMBOLS

from mqan_serving.records.errors import NoValueError

WIDE_GAP: Final = "\N{EM SPACE}"  # stands for the white space between columns
Knows = Callable[[str], bool]  # whether a word, in lower case, is one of the text's language

_CURRENCY: Final = "|".join(
    map(re.escape, sorted({*CURRENCY_CODES, *SAFE_CURRENCY_SYMBOLS, "kr", "Ft", "Rs", "R"}, key=len, reverse=True))
)
_UNITS: Final = (
    "[cdkmµμn]?m|[kmµμ]?g|[cdmµμ]?l|[kMGT]?(?:Wh?|V|A|Hz|B|bit|J|Pa|N)|[mµμn]?s|min|hr?s?|d|lbs?|oz|ft|in|yd|mi"
    "|[kmgt]b|km/h|mph|px|pt|x(?!\\s*\\d)|p[ck]s?|am|pm|a\\.m|p\\.m|st|nd|rd|th"
)
_UNIT: Final = re.compile(_UNITS)
_PLAIN_BEHIND: Final = re.compile(
    r"[*_`~]*(?:$|[\s.,;:!?…)\]}\"'”’»|%‰°¢]|[-/‐](?=[^\W\d_])"
    rf"|(?:{_UNITS}|{_CURRENCY})(?![^\W\d_]))"
)
_PLAIN_IN_FRONT: Final = frozenset("\"'(:;=#§№|@&+~≈.,-−‒–‐‑﹣－")  # points and dashes are looked at by themselves
_EMPHASIS: Final = re.compile(r"(?:^|\s)[*_`]+$")  # of Markdown
_PART_IN_FRONT: Final = re.compile(
    r"\b(?:half|third|quarter|twice|thrice|double|triple)(?:\s+(?:of|the|a|an|about))*\s+[€$£]?$"
    r"|\d\s*[×*·÷/^]\s+$|\d\s+(?:or|to)\s+[€$£]?$|\bbetween\s+[€$£]?$",
    re.IGNORECASE,
)
_PART_BEHIND: Final = re.compile(
    r"\s+(?:or|to|plus|minus|times|less|over|(?:divided|multiplied)\s+by)\s+[€$£]?\d|\s+to\s+the\b|\s+(?:squared|cubed)\b",
    re.IGNORECASE,
)
_BEHIND_CURRENCY: Final = re.compile(rf"(?:{_CURRENCY})\s+([^\W\d_]+)\.?\s*$")
_WORD_OR_MARK: Final = re.compile(rf"[^\W\d_]+|\d|[^\w\s]|{WIDE_GAP}")
_END_MARKS: Final = frozenset(f'.,;:!?…()[]{{}}"“”|{WIDE_GAP}')
_BETWEEN_PHRASES: Final = frozenset("-–—/+*=<>")  # behind white space
_END_WORD: Final = re.compile(  # of what a number counts
    "a|after|an|and|as|at|because|before|but|by|during|for|from|had|has|have|he|i|if|in|is|it|not|of|off|on|or|per|she"
    "|since|so|than|that|the|they|this|to|until|was|we|were|when|which|who|will|with|you",
    re.IGNORECASE,
)
_SHORT: Final = re.compile(  # words and units of one or two letters, and units that are no words
    "am|be|c|cl|cm|d|dl|do|ft|g|go|gb|h|hr|hz|in|kb|kg|km|kn|kr|kt|kw|l|lb|m|mb|mg|mi|ml|mm|mo|mw|my|no|ok|our|oz|p|pc|pk"
    "|pm|pp|pt|px|s|t|tb|up|us|v|w|wh|wk|yd|yr|approx|excl|gbps|hrs|incl|kbps|kcal|kmh|kwh|lbs|mbps|mins|mths?|mwh|pcs|rpm|secs|tbsp|tsp"
    "|vat|wks|x|y|yrs",
    re.IGNORECASE,
)
_MULTIPLIES: Final = re.compile("bill|bin|bio|crore|kun|mia|mil|mill|tis|tri")  # English words, too
_ENDINGS: Final = (("", ""), ("s", ""), ("es", ""), ("ies", "y"), ("ed", ""), ("d", ""))  # of other forms
_LONGEST_WORD: Final = 20  # characters; longer ones are cut, and multiply nothing
_MOST_OUTSIDE: Final = 2  # words behind a quotation that can belong to its number


def check_in_front(front: str, knows: Knows, *, is_year: bool) -> None:
    """Refuse a number behind anything that may change it.

    Args:
        front: what stands in front of it on its line.
        knows: whether a word is known.
        is_year: whether it is the year of a date.

    Raises:
        NoValueError: it does.
    """
    last = front[-1:]
    is_plain = last in _PLAIN_IN_FRONT or last.isspace() or last.isalpha() or (is_year and last == "/")
    if last and not (is_plain or unicodedata.category(last) in ("Sc", "Ps", "Pi") or _EMPHASIS.search(front)):
        raise NoValueError("has something directly in front of its number that may change it")
    if _PART_IN_FRONT.search(front):
        raise NoValueError("has a word or sign in front that may change its number")
    found = _BEHIND_CURRENCY.search(front)
    if found and not (_is_unit(found[1]) or _is_english(found[1], knows)):
        raise NoValueError("has a word between currency and number that may change it")


def check_behind(inside: str, outside: str, knows: Knows, *, is_year: bool) -> None:
    """Refuse a number in front of anything that may change it.

    Args:
        inside: what stands behind it in its quotation.
        outside: what stands behind that, on the same line.
        knows: whether a word is known.
        is_year: whether it is the year of a date.

    Raises:
        NoValueError: it does.
    """
    behind = inside + outside
    if behind and not (is_year or _PLAIN_BEHIND.match(behind) or unicodedata.category(behind[0]) == "Sc"):
        raise NoValueError("has something directly behind its number that may change it")
    if _PART_BEHIND.match(behind):
        raise NoValueError("is part of a range, or a power")
    num_outside = 0
    for found in _WORD_OR_MARK.finditer(behind):
        word = found[0]
        if word in _END_MARKS or word.isdigit() or _END_WORD.fullmatch(word) or num_outside == _MOST_OUTSIDE:
            return
        if word in _BETWEEN_PHRASES and behind[found.start() - 1 : found.start()].isspace():
            return
        if not word.isalpha() or (len(word) <= 2 and behind[found.end() : found.end() + 1] == "-"):
            continue  # such as the T of T-shirts
        if _is_unit(word):
            return
        if not _is_english(word, knows) and len(word) <= _LONGEST_WORD:
            raise NoValueError("has a word behind its number that is not known to leave it as it is")
        num_outside += found.start() >= len(inside)


def _is_unit(word: str) -> bool:
    is_currency = word in CURRENCY_CODES or word in SAFE_CURRENCY_SYMBOLS
    return is_currency or (_UNIT.fullmatch(word) or _SHORT.fullmatch(word)) is not None


def _is_english(word: str, knows: Knows) -> bool:
    word = word.lower()
    forms = {word.removesuffix(end) + instead for end, instead in _ENDINGS if word.endswith(end)}
    is_english = len(word) > 2 and word.isascii() and any(map(knows, forms))
    return is_english and not any(map(_MULTIPLIES.fullmatch, forms))
