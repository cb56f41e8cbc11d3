"""Labels that a question lists, so that they can be read as choices: "Which team: billing, shipping or sales?"

As choices their order cannot matter, and each gets a probability. A list has to stand apart from what is asked, and
there has to be no doubt that one of it is asked for:

- announced, at the beginning of a sentence: ``Choose from: a, b or c.``, ``Options: a; b``, also in lines below;
- after a colon and a question with "which" or "what", with an "or": ``Which topic: a, b or c?``;
- after a question mark, with an "or", of short labels: ``What is the mood? happy or angry``;
- in lines below a question with "which", each after a dash, a number or a letter;
- yes or no, by itself: ``Is it open, yes or no?``, ``Is it open? (yes/no)``.

All else is read as it stands: lists of fields to extract, of rules for the answer, in brackets that explain a word,
within the sentence ("Is this about a, b or c?"), and after a dash, as decaNLP asks for entailment.
"""

import re
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

from mqan_core.answer.types import Span
from mqan_core.text.tokens import has_words

_any_case = partial(re.compile, flags=re.IGNORECASE)
_LONGEST: Final = 60  # characters of a label within a line
_MOST_WORDS: Final = 8  # of it
_LONGEST_LINE: Final = 200  # characters of a label in a line of its own
_LONGEST_LIST: Final = 20_000  # characters
_FEW_WORDS: Final = 3  # of a label after a question mark
_CLEAR: Final = 3  # labels that are a list after "which ...:" without an "or"
_ANNOUNCEMENTS: Final = 4  # that are looked at
_END: Final = ".?! \t\r\n"
_ABBREVIATED: Final = re.compile(r"(?:(?<!\w)\w\.\w\.|\b(?:Co|Corp|Inc|Jr|Ltd|Sr)\.)\Z")  # keeps its last full stop
_AROUND: Final = " \t\r\n\"'“”‘’"
_QUOTED: Final = re.compile(  # whole labels: not the inches and apostrophes within words
    r"(?<![^\s,;|/(\[{])(?:\"[^\"]*\"|“[^”]*”|'[^']*'|‘[^’]*’)(?![^\s,;|/)\]}])"
)
_BRACKETS: Final = {"[": "]", "{": "}", "(": ")"}

_BEGINS = r"(?:\A|(?<=[.?!:;] )|(?<=[(\n])|(?<=\r\n))"  # a sentence, a line or brackets
_ANNOUNCED = _any_case(
    _BEGINS + r"(?:please )?(?:"
    r"(?:choose|pick)(?: one| an answer)?(?: of| from| among| between)(?: these)?(?: ?: ?| )"
    r"|(?:(?:choose|pick|select|answer with|reply with|respond with) )?(?:one|one (?:of|from))"
    r"(?: these| the following)?(?: options| answers| labels)? ?: ?"
    r"|(?:choose|pick|select) from (?:these|the following) ?: ?"
    r"|answer with one of "
    r"|(?:your |the )?(?:possible |allowed |valid )?(?:answers|options|choices|labels|categories)(?: are ?: ?| ?: ?)"
    r"|your choices are "
    r")"
)
_ANNOUNCES_LINES = _any_case(r"\b(?:which|choose|pick|select|answers|options|choices|labels|categories)\b")
_SENTENCE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\b(?:St|Dr|Mr|Ms|Mt|vs|No))(?<!\b(?:Mrs|Hon))[.?!] (?=[A-Z])"
    r"|[?] |[.] (?=(?:what|which|who|how) )|\r?\n"
)
_ASKS = _any_case(r"(which)\b|what\b")
_ASKS_OTHERWISE = _any_case(  # for several, or for something about what stands after the colon
    r"\b(?:all|any|apply|are|claim|compare|correct|each|fields|following|keys|mean|means|order|paraphrase|said|say|says|stand"
    r"|statement|these|those|translate|true|write|wrote)\b"
)
_HINT = _any_case(  # how a hint on the answer's form begins, and what a sentence goes on with
    r"(?:a few|and|answer|as|at|by|can|could|did|do|does|don't|few|fewer|first|for|from|full|give|has|have|he|how|i|if"
    r"|ignore|in|include|is|it|its|just|keep|leave|less|me|more|my|no|not|on|one|only|please|quote|reply|round|say|she"
    r"|short|should|so|state|tell|that|then|they|this|to|use|was|we|were|what|when|where|which|who|why|will|with|write|you"
    r"|your)\b"
)
_YES_NO = _any_case(
    r"(?:,|;|:|\?|\.|!|-) ?[(\[]?(?:please )?(?:(?:answer|reply)(?: with)? )?(yes ?(?:/|,? or |,) ?no)[)\]]?,?"
    r"(?: please)?[.?!:]? ?\Z"
    r"| [(\[](yes ?(?:/|,? or |,) ?no)[)\]][.?!:]? ?\Z"
)
_LINE = re.compile(r"(?:[-–*•]|(\d{1,3})[.)]|\(?([A-Za-z])[.)]) ?(?=\S)")
_LAST_LINE = _any_case(r"\n[^\S\n]*(?:your )?(?:answer|label|category|choice)\s?:?\s*\Z")
_OR = re.compile(r",? or ")
_LEADING = re.compile(r"(?:or|and) ")
_AND = re.compile(r" and ")
_AND_LAST = re.compile(r" ?\w+ and \w+")
_NEVER_IN_LABELS: Final = ("?", "!", ": ", "\n", '"', " -- ", "etc.")


@dataclass(frozen=True, slots=True)
class Listed:
    """Labels that a question lists, in its order."""

    place: Span  # the list, with the words that announce it
    labels: tuple[Span, ...]


def find_listed(question: str, most: int) -> Listed | None:
    """Return the labels that a question lists, 2 to ``most``, no two alike; None without them. Takes linear time."""
    for find in (partial(_in_lines, most=most), _announced, _after_mark, _yes_or_no):
        found = find(question)
        if found is None or not 2 <= len(found.labels) <= most:
            continue
        if has_words(question[: found.place.start]) or has_words(question[found.place.end :]):  # what is asked
            labels = [question[label.start : label.end].casefold() for label in found.labels]
            if len(set(labels)) == len(labels) and all(map(has_words, labels)):
                return found
    return None


def _in_lines(question: str, most: int) -> Listed | None:
    labels: list[Span] = []
    marks: list[str] = []
    last = _LAST_LINE.search(question[-_LONGEST:])
    end = len((question if last is None else question[: last.start() - len(last.string)]).rstrip())
    while end > 0 and len(labels) <= most:
        start = question.rfind("\n", max(0, end - _LONGEST_LINE), end) + 1
        line = question[start:end].lstrip()
        mark = _LINE.match(line)
        if mark is None or not start:
            break
        first = end - len(line)
        labels.insert(0, _trimmed(question, first + mark.end(), first + len(_without_end(line))))
        marks.insert(0, (mark[1] or mark[2] or "").casefold())
        end = len(question[:start].rstrip())
    above = question[question.rfind("\n", 0, end) + 1 : end][-_LONGEST_LINE:]
    letters = [mark for mark in marks if mark.isalpha()]
    in_order = not letters or letters == [chr(ord(letters[0]) + i) for i in range(len(marks))]
    texts = [question[label.start : label.end] for label in labels]
    if not in_order or not _ANNOUNCES_LINES.search(above) or any("?" in text or not text for text in texts):
        return None
    return Listed(Span(end, len(question)), tuple(labels))


def _without_end(line: str) -> str:
    while (shorter := line.rstrip(",;.").removesuffix(" or").removesuffix(" and")) != line:
        line = shorter
    return line


def _announced(question: str) -> Listed | None:
    for place, words in enumerate(_ANNOUNCED.finditer(question)):
        if place == _ANNOUNCEMENTS:
            break
        ended = _SENTENCE_END.search(question, words.end(), words.end() + _LONGEST_LIST)
        end, after = (len(question), len(question)) if ended is None else (ended.start(), ended.start() + 1)
        if labels := _labels(question, words.end(), end):
            return Listed(Span(words.start(), after), labels)
    return None


def _after_mark(question: str) -> Listed | None:
    end = _end_of(question)
    colon, asked = question.rfind(": ", 0, end), question.rfind("? ", 0, end)
    start = max(colon, asked)
    if start <= 0 or _SENTENCE_END.search(question, start + 2, end):
        return None
    labels = _labels(question, start + 1, end)
    texts = [question[label.start : label.end] for label in labels]
    is_told = bool(labels) and _OR.search(question, labels[0].end, labels[-1].start) is not None
    asks = question[max(question.rfind(mark, 0, start) for mark in "\n.?!") + 1 : start].strip()
    if start == colon:
        begins = _ASKS.match(asks)
        is_told = is_told or (len(labels) >= _CLEAR and begins is not None and begins[1] is not None)
        is_clear = is_told and begins is not None and not _ASKS_OTHERWISE.search(asks)
        return Listed(Span(start, len(question)), labels) if is_clear else None
    if not is_told or question[end : end + 1] not in ("", "?", " "):
        return None
    if any(len(text.split()) > _FEW_WORDS or _HINT.match(text) for text in texts):
        return None
    return Listed(Span(start + 1, len(question)), labels)


def _yes_or_no(question: str) -> Listed | None:
    found = _YES_NO.search(question, max(0, len(question) - _LONGEST))
    if found is None:
        return None
    start, end = found.span(1 if found[1] else 2)
    first = found.start() + (question[found.start()] in "?.!")
    return Listed(Span(first, len(question)), (Span(start, start + len("yes")), Span(end - len("no"), end)))


def _labels(question: str, start: int, end: int) -> tuple[Span, ...]:
    if end - start > _LONGEST_LIST:
        return ()
    listed = question[start : _end_of(question[:end])].rstrip(":")
    at = len(listed) - len(listed.lstrip())
    if listed[at : at + 1] in _BRACKETS and listed.endswith(_BRACKETS[listed[at]]):
        at, listed = at + 1, listed[:-1]
    elif listed.count(")") > listed.count("("):
        listed = listed[:-1] if listed.endswith(")") else ""
    places = _divided(_QUOTED.sub(lambda quoted: "x" * len(quoted[0]), listed), at)
    spans = tuple(_trimmed(question, start + first, start + last) for first, last in places)
    return spans if all(_is_label(question[span.start : span.end]) for span in spans) else ()


def _end_of(text: str) -> int:
    """Return where a text ends without the marks of a sentence's end; the full stop of an abbreviation stays."""
    end = len(text.rstrip("?! \t\r\n"))
    return end if _ABBREVIATED.search(text, max(0, end - _LONGEST), end) else len(text.rstrip(_END))


def _divided(listed: str, at: int) -> list[tuple[int, int]]:
    """Return the places of a list's parts: between marks, or where there are none between every "or"."""
    between_or = _between(_OR, listed, at, len(listed))
    for mark in (";", "|", " / ", ", ", ",", "/"):
        bounds = _outside_brackets(listed, mark, at)
        if not bounds or (mark in ",/" and len(between_or) > 1):
            continue
        edges = [at, *(edge for bound in bounds for edge in (bound, bound + len(mark))), len(listed)]
        places = list(zip(edges[::2], edges[1::2], strict=True))
        first, last = places.pop()
        is_in_labels = len(between_or) > 1 and len({listed.count(mark, *place) for place in between_or}) == 1
        if is_in_labels and not _OR.search(listed, first - len(mark)):
            continue  # "Paris, France or London, UK"
        first += len(listed[first:last]) - len(listed[first:last].lstrip())
        if leading := _LEADING.match(listed, first):
            return [*places, (leading.end(), last)]
        if len(between_or) == 1 and _AND_LAST.fullmatch(listed, first, last):
            return [*places, *_between(_AND, listed, first, last)]
        return [*places, *_between(_OR, listed, first, last, most=1)]  # "film or school or university"
    return between_or


def _outside_brackets(listed: str, mark: str, at: int) -> list[int]:
    """Return where a mark stands outside round brackets; nowhere where these do not match."""
    found, depth = [], 0
    for i in range(at, len(listed)):
        depth += (listed[i] == "(") - (listed[i] == ")")
        if depth == 0 and listed.startswith(mark, i):
            found.append(i)
    return [] if depth else found


def _between(
    pattern: re.Pattern[str], text: str, first: int, last: int, most: int | None = None
) -> list[tuple[int, int]]:
    """Return the places between matches of a pattern, or between the first ``most`` of them."""
    places = []
    for found in islice(pattern.finditer(text, first, last), most):
        places.append((first, found.start()))
        first = found.end()
    return [*places, (first, last)]


def _trimmed(question: str, start: int, end: int) -> Span:
    text = question[start:end]
    return Span(start + len(text) - len(text.lstrip(_AROUND)), start + len(text.rstrip(_AROUND)))


def _is_label(text: str) -> bool:
    return (
        0 < len(text) <= _LONGEST
        and text[0] != "-"
        and any(map(str.isalnum, text))
        and len(text.split()) <= _MOST_WORDS
        and not any(mark in text for mark in _NEVER_IN_LABELS)
    )
