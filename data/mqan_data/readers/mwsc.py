"""Modified Winograd Schema Challenge (McCann et al. 2018, section 2; schemas after Levesque et al. 2011).

File: ``schema.txt`` of decaNLP. A schema is three lines and a blank one: a context and a question, each with two
variants in brackets, and the two answers. Split sizes are 80, 82 and 100 in file order.

Two habits of the original are kept, because the published scores rest on them: a schema without a blank line after
it is not used (the last of the file), and the bracket pattern is greedy, which garbles a line with two brackets.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mqan_core.example import Example
from mqan_data.readers.files import check_split, count_dropped, find_file, malformed, read_lines
from mqan_data.readers.task import Download, Task

SPLITS = ("train", "validation", "test")
_NUM_TRAIN = 80
_NUM_TEST = 100
_BRACKETS = re.compile(r"\[.*\]")
_URL = "https://raw.githubusercontent.com/salesforce/decaNLP/master/local_data/schema.txt"


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the two variants of each schema of a split."""
    check_split("mwsc", split, SPLITS)
    path = find_file("mwsc", folder, "schema.txt")
    examples = [example for number, schema in _schemas(path, dropped) for example in _variants(path, number, schema)]
    end_of_validation = max(len(examples) - _NUM_TEST, 0)
    bounds = {
        "train": (0, min(_NUM_TRAIN, end_of_validation)),
        "validation": (_NUM_TRAIN, end_of_validation),
        "test": (end_of_validation, len(examples)),
    }
    for index in range(*bounds[split]):
        context, question, answer = examples[index]
        yield Example("mwsc", str(index), context, question, (answer,))


def _schemas(path: Path, dropped: Counter[str] | None) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of each schema, with the number of the first."""
    schema: list[str] = []
    for number, line in read_lines(path):
        if line.strip():
            schema.append(line.strip())
            continue
        if len(schema) != 3:
            raise malformed(path, number, f"expected three lines before the blank one, found {len(schema)}.")
        yield number - 3, schema
        schema = []
    if schema:
        count_dropped(dropped, "schema without a blank line after it")


def _variants(path: Path, number: int, schema: list[str]) -> list[tuple[str, str, str]]:
    """Return context, question and answer of both variants of a schema."""
    answers = schema[2].split("/")
    if len(answers) != 2:
        raise malformed(path, number + 2, f"expected two answers with a slash between them, found {schema[2]!r}.")
    variants = []
    for which in (0, 1):
        try:
            context, question = (_variant(line, which) for line in schema[:2])
        except IndexError as error:
            raise malformed(path, number, "a bracket needs two variants with a slash between them.") from error
        variants.append((context, f"{question} {answers[0]} or {answers[1]}?", answers[which]))
    return variants


def _variant(line: str, which: int) -> str:
    """Put one of the two variants in the place of the bracket."""
    return _BRACKETS.sub(lambda match: match.group()[1:-1].split("/")[which], line)


TASK = Task(
    name="mwsc",
    folder="mwsc",
    splits=SPLITS,
    metric="em",
    read=read,
    sources=(Download(_URL, "schema.txt", sha256="31da9bee05796bbe0f6c957f54d1eb82eb5c644a8ee59f2ff1fa890eff3885dd"),),
)
