"""QA-SRL 1.0, wiki1 (He et al. 2015): who did what to whom, as questions on the verbs of a sentence.

Files: ``wiki1.{train,dev,test}.qa``. A sentence has a line with its name and its number of predicates, the sentence,
and for each predicate a line ``index TAB verb TAB number of questions`` and its questions: eight slots (``_`` for an
empty one, the last is ``?``) and the answers with ``###`` between them, all tab-separated. A blank line ends it.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mqan_core.example import Example
from mqan_data.readers.files import check_split, count_dropped, find_file, malformed, read_lines
from mqan_data.readers.task import Task, downloads

_FILE_OF_SPLIT = {"train": "wiki1.train.qa", "validation": "wiki1.dev.qa", "test": "wiki1.test.qa"}
_URL = "https://dada.cs.washington.edu/qasrl/data/"
_NUM_SLOTS = 8

# decaNLP's cleaning, in the order it is applied: what treebank tokens stand for, then spaces that they brought along.
_TREEBANK = {"-LRB-": "(", "-RRB-": ")", "-LAB-": "<", "-RAB-": ">", "-AMP-": "&", "%pw": " "}
_NO_SPACE_BEFORE = (".", ",", ";", "!", "?", ":", ")", "'ll", "n't ", "%", "'t", "'s", "'m", "'d", "'re")
_NO_SPACE_AFTER = ("(", "$")
_QUOTES = ("``", "`", "''", "“", "”", " '")


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the questions of a split with all their answers.

    An answer that is not in the cleaned sentence, in whatever case, is kept as it is, and counted.
    """
    check_split("qasrl", split, _FILE_OF_SPLIT)
    path = find_file("qasrl", folder, _FILE_OF_SPLIT[split])
    sentence_name = context = ""
    place = "name"  # what the next line has to be
    for number, line in read_lines(path):
        fields = line.split("\t")
        if not line.strip():
            place = "name"
        elif place == "name":
            sentence_name, place = fields[0], "sentence"
        elif place == "sentence":
            context, place = clean(line), "predicate"
        elif len(fields) == 3 and fields[0].isdecimal() and fields[2].isdecimal():
            place = "question"
        elif place == "question" and len(fields) == _NUM_SLOTS + 1 and fields[_NUM_SLOTS - 1] == "?":
            slots = [slot for slot in fields[: _NUM_SLOTS - 1] if slot != "_"]
            answers = tuple(_cased_as_in(context, clean(answer), dropped) for answer in fields[_NUM_SLOTS].split("###"))
            yield Example("qasrl", f"{sentence_name}/{number}", context, clean(" ".join(slots) + "?"), answers)
        else:
            raise malformed(path, number, f"expected a {place}, found {line!r}.")


def clean(text: str) -> str:
    """Return a treebank-tokenised text as it would be written, without quotation marks."""
    text = " ".join(text.split())
    for token, written in _TREEBANK.items():
        text = text.replace(token, written)
    for mark in _NO_SPACE_BEFORE:
        text = text.replace(" " + mark, mark)
    for mark in _NO_SPACE_AFTER:
        text = text.replace(mark + " ", mark)
    text = text.replace(" - ", "-")
    for mark in _QUOTES:
        text = text.replace(mark, "")
    return " ".join(text.split())


def _cased_as_in(context: str, answer: str, dropped: Counter[str] | None) -> str:
    """Return the answer in the case of its place in the context."""
    for variant in (answer, answer[:1].lower() + answer[1:], answer[:1].upper() + answer[1:], answer.lower()):
        if variant in context:
            return variant
    start = context.lower().find(answer.lower())
    if start >= 0 and len(context.lower()) == len(context):
        return context[start : start + len(answer)]
    count_dropped(dropped, "answer is not in the sentence (the example stays)")
    return answer


TASK = Task(
    name="qasrl",
    folder="qasrl",
    splits=tuple(_FILE_OF_SPLIT),
    metric="nf1",
    read=read,
    sources=downloads(
        _URL,
        {
            "wiki1.train.qa": "f927417e94e67b7ae17e33dd882989a5556d7ff37376f8bf5c78ece7d17a6c64",
            "wiki1.dev.qa": "caa94beaaf22304422cdc1a2fd8732b1a47401c9555a81e1f4da81e0a7557a8b",
            "wiki1.test.qa": "b43a998344fbd520955fb8f0f7b3691ace363daa8628552cf5cf5c8d84df6cca",
        },
    ),
)
