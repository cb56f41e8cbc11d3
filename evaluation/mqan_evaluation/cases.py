"""Questions that users report, from a file of JSON lines: which are answered rightly, by kind.

A line has ``id``, ``kind``, ``context``, ``question`` and ``answers``. No answers, or the one answer
``"unanswerable"``, mean that the text does not say.

What counts as right:

1. Where there is no answer, a refusal and nothing else; where there is one, no refusal.
2. An answer that is one of the right ones after folding: compatibility forms of Unicode, case, invisible characters and
   soft hyphens, hyphens at the end of a line, runs of white space, marks of Markdown, quotation marks and punctuation
   around the whole, and articles in front do not count. Signs of a value do: 5-7 is not 57, and -5 is not 5.
3. An answer that holds a right one as whole words, where every other word is a function word ("in Exeter", "to my
   savings account"). Not a negation, and not where the answer is a label, yes or no, a state or a query.
4. A list with the items of a right one, in any order ("Monday, Wednesday and Friday").
5. Changes of a dialogue's state are compared as states (``metrics.parse_state_change``), queries word by word.
"""

import re
import string
import unicodedata
from collections import defaultdict
from pathlib import Path

from mqan_core.answer.types import Answer
from mqan_core.example import Example
from mqan_data.files import malformed, read_json_lines, text_field
from mqan_data.metrics import UNANSWERABLE, parse_state_change
from mqan_evaluation.judging import mean, said
from mqan_evaluation.sections import Cell, Measuring, Section

STATES, QUERIES = "dialogue-state", "sql"  # kinds that are compared by their meaning
LABELS = frozenset(
    ("inference-pairs", "label-order-new-pairs", "labels-thirty", "negation", "sentiment-of-one-aspect")
    + ("topic-labels-multi-word", "topic-labels-short", "yes-no")
)
"""Kinds whose answer is one of the labels that the question names, and nothing beside it."""

_FUNCTION_WORDS = frozenset(
    ("a", "an", "are", "as", "at", "because", "by", "called", "every", "for", "from")
    + ("her", "his", "in", "is", "it", "its", "my", "named", "near", "of", "on", "our", "per", "that")
    + ("the", "their", "these", "they", "this", "those", "to", "was", "were", "will", "with", "within", "your")
)
_AROUND = string.whitespace + "\"'`*_“”‘’«»‹›„.,;:!?()[]{}|"
_IN_FRONT = rf"(?:(?![.,]\d)[{re.escape(_AROUND)}])*"  # .5 is not 5
_ARTICLES = re.compile(r"^(?:the|an|a)\s+")
_LINE_END_HYPHEN = re.compile(r"(?<=\w)-\s*\n\s*(?=\w)")
_MARKDOWN = re.compile(r"\*\*|__|`")
_BETWEEN_ITEMS = re.compile(r"\s*(?:(?<!\d),|,(?!\d)|;|\n|\band\b|\bplus\b|&)\s*")


def read_cases(path: Path) -> list[Example]:
    """Read a file of cases; the kind is the task of the example."""
    if not path.is_file():
        raise ValueError(f"{path}: is no file; give a file of cases with --cases")
    examples: list[Example] = []
    for number, row in read_json_lines(path):
        kind, name, context, question = (
            text_field(path, number, row, field) for field in ("kind", "id", "context", "question")
        )
        answers = row.get("answers")
        if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
            raise malformed(path, number, "`answers` must be a list of texts.")
        examples.append(Example(kind, name, context, question, () if answers == [UNANSWERABLE] else tuple(answers)))
    if not examples:
        raise ValueError(f"{path}: holds no cases; each line is one, in JSON")
    return examples


def is_right(example: Example, text: str | None) -> bool:
    """Return whether an answer is right by the rules above; None is a refusal."""
    if text is None or not example.answers:
        return text is None and not example.answers
    if example.task == STATES:
        state = parse_state_change(text)
        return any(state == parse_state_change(gold) for gold in example.answers)
    given = folded(text)
    golds = [folded(gold) for gold in example.answers]
    if given in golds:
        return True
    if example.task == QUERIES or example.task in LABELS:
        return False
    return any(_holds(given, gold) or _items(given) == _items(gold) for gold in golds)


def folded(text: str) -> str:
    """Return a text without what does not count (rule 2)."""
    text = _LINE_END_HYPHEN.sub("", text)
    text = unicodedata.normalize("NFKC", text).casefold()
    text = "".join(char for char in text if unicodedata.category(char) != "Cf")
    text = " ".join(_MARKDOWN.sub("", text).split())
    return _bare(text)


def _holds(given: str, gold: str) -> bool:
    around = f"[{re.escape(_AROUND)}]*"
    found = re.search(rf"(?<!\S){_IN_FRONT}{re.escape(gold)}{around}(?!\S)", given) if gold else None
    if found is None:
        return False
    rest = [word.strip(_AROUND) for word in (given[: found.start()] + " " + given[found.end() :]).split()]
    return all(word in _FUNCTION_WORDS for word in rest if word)


def _items(text: str) -> list[str]:
    return sorted(item for part in _BETWEEN_ITEMS.split(text) if (item := _bare(part)))


def _bare(text: str) -> str:
    return _ARTICLES.sub("", re.sub(f"^{_IN_FRONT}", "", text).rstrip(_AROUND))


def case_section(measuring: Measuring, path: Path) -> Section:
    """Ask the questions of a file; return the shares that are right, by kind."""
    examples = read_cases(path)
    answers = measuring.ask("cases", examples, _judge_case)
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for example, answer in zip(examples, answers, strict=True):
        by_kind[example.task].append(_judge_case(example, answer))
    rows: list[dict[str, Cell]] = [
        {"kind": kind, "questions": len(right), "right": sum(right), "share": mean(right)}
        for kind, right in sorted(by_kind.items(), key=lambda pair: (mean(pair[1]), pair[0]))
    ]
    everything = [right for of_kind in by_kind.values() for right in of_kind]
    rows.append({"kind": "all", "questions": len(everything), "right": sum(everything), "share": mean(everything)})
    under_half = sum(float(row["share"] or 0) < 50 for row in rows[:-1])
    return Section("cases", "Questions that users report", rows, {"kinds under half": under_half})


def _judge_case(example: Example, answer: Answer | None) -> bool:
    return answer is not None and is_right(example, said(answer))
