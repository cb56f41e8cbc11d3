"""Labels that a question lists, so that they can be read as choices: "Which team: billing, shipping or sales?"

As choices their order cannot matter, and each gets a probability. A list is recognised where it stands apart from
what is asked:

- behind or in front of the question, told by words: ``Choose from: a, b or c.``, ``Options: a; b``;
- behind a colon, with an "or" or at least three labels: ``Which topic: a, b or c?``;
- behind a question mark with an "or": ``What is the mood? happy or angry``;
- in brackets, with an "or" or at least three labels: ``What is the mood (happy or angry)?``;
- in lines of their own below it, each behind a dash, a number or a letter;
- ``yes or no``, behind a comma, too.

Labels within a sentence ("Is this about a, b or c?") are not: where the first one begins, only the meaning says. Nor
are those behind a dash: decaNLP asks so for entailment, and a model that learnt that question reads it as it stands.
"""

import re
from dataclasses import dataclass
from typing import Final

from mqan_core.answer import Span
from mqan_core.text import has_words

_LONGEST: Final = 60  # characters of a label within a line
_MOST_WORDS: Final = 8  # of it
_LONGEST_LINE: Final = 200  # characters of a label in a line of its own
_END = ".?! \t\n"
_TOLD = re.compile(  # at the beginning of a sentence or in brackets
    r"(?:\A|(?<=[.?!:;(\n-] )|(?<=[(\n]))(?:please )?(?:"
    r"(?:choose|select|pick)(?: one| an answer)?(?: of| from| among| between)(?: these)?(?: ?: ?| )"
    r"|(?:answer|reply) with one of(?: these)?(?: ?: ?| )"
    r"|(?:choose|pick|select) one ?: ?"
    r"|(?:your |the )?(?:possible |allowed )?(?:answers|options|choices|labels)(?: are(?: ?: ?| )| ?: ?)"
    r")",
    re.IGNORECASE,
)
_YES_NO = re.compile(
    r"[\s,;(]\s?(?:please )?(?:answer |reply |say )?(?:with )?(yes ?(?:/| or |, ?)no)\)?[.?!]? ?\Z", re.IGNORECASE
)
_LINE = re.compile(r"(?:[-*•]|\d{1,3}[.)]|[A-Za-z][.)]) (?=\S)")
_SENTENCE_END = re.compile(r"[.?!] (?=[A-Z])|\n")
_MARKS: Final = (";", "|", " / ", ",", "/")
_NEVER_IN_LABELS: Final = ("?", "!", ": ", "\n", '"', " -- ")
_OR = re.compile(r" or ", re.IGNORECASE)
_LEADING_OR = re.compile(r"or ", re.IGNORECASE)
_SENTENCE = re.compile(  # how sentences begin, and phrases within them
    r"(?:and|answer|are|at|by|can|could|did|do|does|for|from|give|has|have|how|i|if|in|is|it|my|on|please|reply|say|she"
    r"|should|so|tell|that|then|they|this|use|was|we|were|what|when|where|which|who|why|will|with|write|you)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Listed:
    """Labels that a question lists.

    Attributes:
        place: the list, with the words that tell of it.
        labels: each label, in the question's order.
    """

    place: Span
    labels: tuple[Span, ...]


def find_listed(question: str, most: int) -> Listed | None:
    """Return the labels that a question lists, 2 to ``most``, no two alike; None where it lists none.

    Takes time linear in the question's length.
    """
    for find in (_in_lines, _yes_or_no, _told, _in_brackets, _behind_mark):
        found = find(question)
        if found is not None and 2 <= len(found.labels) <= most and _asks(question, found.place):
            labels = [question[label.start : label.end].casefold() for label in found.labels]
            if len(set(labels)) == len(labels) and all(map(has_words, labels)):
                return found
    return None


def _asks(question: str, place: Span) -> bool:
    """Return whether something is asked beside the list."""
    return has_words(question[: place.start]) or has_words(question[place.end :])


def _in_lines(question: str) -> Listed | None:
    """Find labels in the last lines, each behind a mark, below at least one line without."""
    labels: list[Span] = []
    end = len(question.rstrip())
    while end > 0:
        start = question.rfind("\n", 0, end) + 1
        line = question[start:end].lstrip()
        mark = _LINE.match(line)
        if mark is None or len(line) > _LONGEST_LINE:
            break
        labels.insert(0, Span(end - len(line) + mark.end(), end))
        end = len(question[:start].rstrip())
    if not labels or not end:
        return None
    return Listed(Span(end, len(question)), tuple(labels))


def _yes_or_no(question: str) -> Listed | None:
    found = _YES_NO.search(question, max(0, len(question) - _LONGEST))
    if found is None:
        return None
    start, end = found.span(1)
    return Listed(Span(found.start(), len(question)), (Span(start, start + len("yes")), Span(end - len("no"), end)))


def _told(question: str) -> Listed | None:
    """Find labels behind words that tell of them, up to the end of their sentence."""
    for told in _TOLD.finditer(question):
        ended = _SENTENCE_END.search(question, told.end())
        end, behind = (len(question), len(question)) if ended is None else (ended.start(), ended.start() + 1)
        if labels := _labels(question, told.end(), end):
            return Listed(Span(told.start(), behind), labels)
    return None


def _in_brackets(question: str) -> Listed | None:
    """Find labels in the brackets at the end."""
    end = len(question.rstrip(_END)) - 1
    if end < 0 or question[end] != ")":
        return None
    depth = 0
    for start in range(end, -1, -1):
        depth += (question[start] == ")") - (question[start] == "(")
        if not depth:
            labels = _labels(question, start + 1, end)
            return Listed(Span(start, len(question)), labels) if _is_clear(question, labels, least=3) else None
    return None


def _behind_mark(question: str) -> Listed | None:
    """Find labels behind the last colon or question mark within the question."""
    end = len(question.rstrip(_END))
    colon, asked = question.rfind(": ", 0, end), question.rfind("? ", 0, end)
    start = max(colon, asked)
    labels = _labels(question, start + 1, end) if start > 0 else ()
    if not _is_clear(question, labels, least=3 if start == colon else None):
        return None
    return Listed(Span(start if start == colon else start + 1, len(question)), labels)


def _is_clear(question: str, labels: tuple[Span, ...], least: int | None) -> bool:
    """Return whether labels are a list without being told so: by an "or" or by their number, none like a sentence."""
    if not labels or any(_SENTENCE.match(question, label.start) for label in labels):
        return False
    is_told = _OR.search(question, labels[0].end, labels[-1].start) is not None
    return is_told or (least is not None and len(labels) >= least)


def _labels(question: str, start: int, end: int) -> tuple[Span, ...]:
    """Divide a list into its labels; return none where one of them cannot be a label."""
    listed = question[start:end].rstrip(_END)
    mark = next((mark for mark in _MARKS if mark in listed), None)
    places: list[tuple[int, int]] = []
    at = 0
    for part in listed.split(mark) if mark else [listed]:
        places.append((at, at + len(part)))
        at += len(part) + len(mark or "")
    # the "or" in front of the last label, or between all
    at, last = places.pop()
    at += len(listed[at:last]) - len(listed[at:last].lstrip())
    if leading := _LEADING_OR.match(listed, at):
        at = leading.end()
    for between in _OR.finditer(listed, at, last):
        places.append((at, between.start()))
        at = between.end()
    places.append((at, last))
    spans = tuple(_trimmed(question, start + first, start + behind) for first, behind in places)
    return spans if all(_is_label(question[span.start : span.end]) for span in spans) else ()


def _trimmed(question: str, start: int, end: int) -> Span:
    """Return a place without the spaces and the quotation marks around it."""
    while start < end and (question[start].isspace() or question[start] in "\"'“”‘’"):
        start += 1
    while end > start and (question[end - 1].isspace() or question[end - 1] in "\"'“”‘’"):
        end -= 1
    return Span(start, end)


def _is_label(text: str) -> bool:
    return (
        0 < len(text) <= _LONGEST
        and text[0] != "-"
        and any(map(str.isalnum, text))
        and len(text.split()) <= _MOST_WORDS
        and not any(mark in text for mark in _NEVER_IN_LABELS)
    )
