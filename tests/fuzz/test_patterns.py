"""No pattern over a caller's text takes longer than its length: each is tried on repetitions of what it looks for.

The patterns are found in the sources, so a new one is tried without being named here.
"""

import ast
import importlib
import itertools
import pkgutil
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from re import _constants as ops
from re import _parser as parser
from typing import Any

import pytest

_PACKAGES = ("mqan_core", "mqan_runtime", "mqan_serving", "mqan_client", "mqan_cli")
_FEW = 40  # repetitions: 2**40 ways are never tried in time
_LONG = 30_000  # characters, whose square is never tried in time
_MOST_S = 0.4  # of CPU, in the best of some tries; 0.03 was seen
_TRIES = 4
_MOST_PAIRS, _MOST_LONG_PAIRS = 1000, 50  # of a pattern
_METHODS = {"match", "fullmatch"}  # all others try every place, as findall does
_EXAMPLES = {ops.CATEGORY_DIGIT: "1", ops.CATEGORY_SPACE: " ", ops.CATEGORY_NOT_WORD: "-"}


@dataclass(frozen=True)
class Used:
    """A pattern of the sources and the methods it is used by."""

    place: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]


def used_patterns() -> Iterator[Used]:
    for package in map(importlib.import_module, _PACKAGES):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            yield from patterns_of(Path(str(module.__file__)).read_text(), found.name, vars(module))


def patterns_of(source: str, name: str, names: dict[str, Any]) -> Iterator[Used]:
    """Yield the patterns of a module; one made of a function's own names is an error, because it cannot be tried."""
    tree = ast.parse(source)
    methods: dict[str, set[str]] = {}
    uses = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            methods.setdefault(node.value.id, set()).add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in uses:
            methods.setdefault(node.id, set()).add("findall")  # given to a function
    stored = {
        id(node.value): ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign)
    }
    bound = {id(node.value): node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.") and node.args):
            continue
        function = ast.unparse(node.func).removeprefix("re.")
        if function == "escape":
            continue
        flags = [k.value for k in node.keywords if k.arg == "flags"] or node.args[1:] * (function == "compile")
        written, given = ([eval(ast.unparse(part), names) for part in parts] for parts in (node.args[:1], flags))
        used = methods.get(stored[id(node)], {"findall"}) if id(node) in stored else {bound.get(id(node), function)}
        yield Used(f"{name}:{node.lineno}", re.compile(*written, *given), frozenset(used))


def units_of(pattern: re.Pattern[Any]) -> list[str]:
    """Return texts that a pattern, or a part of it, matches: each branch, each character of a set."""
    units: dict[str, None] = {}

    def shortest(part: tuple[Any, Any]) -> str:
        match part:
            case ops.LITERAL, int(code):
                return chr(code)
            case ops.NOT_LITERAL, code:
                return "b" if code == ord("a") else "a"
            case ops.IN, members:
                if members[0][0] is ops.NEGATE:
                    return "a"
                texts = [
                    chr(what) if op is ops.LITERAL else chr(what[0]) if op is ops.RANGE else _EXAMPLES.get(what, "a")
                    for op, what in members
                ]
                units.update(dict.fromkeys(texts))
                return str(texts[-1])
            case ((ops.MAX_REPEAT | ops.MIN_REPEAT | ops.POSSESSIVE_REPEAT), (least, _, repeated)):
                return joined(repeated) * max(1, int(least))
            case ops.SUBPATTERN, (*_, inner):
                return joined(inner)
            case ops.ATOMIC_GROUP, inner:
                return joined(inner)
            case ops.BRANCH, (_, branches):
                return str([joined(branch) for branch in branches][0])
            case ((ops.ASSERT | ops.ASSERT_NOT), (_, inner)):
                joined(inner)
                return ""
            case ops.ANY, _:
                return "a"
        return ""

    def joined(parts: Any) -> str:
        text = ""
        for part in parts:
            if part[0] in (ops.MAX_REPEAT, ops.MIN_REPEAT):
                units.setdefault(text)  # what stands in front
            text += shortest(part)
        units.setdefault(text)
        return text

    joined(parser.parse(pattern.pattern, pattern.flags))
    return [unit for unit in units if unit]


def texts_of(units: list[str]) -> Iterator[str]:
    """Yield repetitions of each, of each two in turns, and of each with another in front; then what no pattern has."""
    every = list(itertools.permutations(units, 2))
    pairs = every[:: len(every) // _MOST_PAIRS + 1]
    for unit in units:
        yield from (unit * _FEW, unit * (_LONG // len(unit)))
    for first, second in pairs:
        yield from (first + second * _FEW, (first + second) * _FEW)
    for first, second in every[:: len(every) // _MOST_LONG_PAIRS + 1]:
        yield from (first + second * (_LONG // len(second)), (first + second) * (_LONG // len(first + second)))


class _TooLongError(Exception):
    pass


@contextmanager
def limited() -> Iterator[None]:
    """Raise an error where the block takes more CPU than a pattern may; ``re`` looks for signals as it works."""

    def stop(*_: object) -> None:
        raise _TooLongError

    earlier = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, _MOST_S)
    begun = time.process_time()
    try:
        yield
        if time.process_time() - begun > _MOST_S:
            raise _TooLongError
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, earlier)


def slow_text(used: Used) -> str | None:
    """Return the beginning of a text for which a pattern takes too long; None where there is none."""
    calls: list[Callable[[Any], Any]] = [getattr(used.pattern, name) for name in used.methods & _METHODS]
    if used.methods - _METHODS:
        calls.append(used.pattern.findall)
    for text in texts_of(units_of(used.pattern)):
        for call in calls:
            if not any(is_quick(call, f"{text}\0", used.pattern) for _ in range(_TRIES)):
                return text[:_FEW]
    return None


def is_quick(call: Callable[[Any], Any], text: str, pattern: re.Pattern[Any]) -> bool:
    try:
        with limited():
            call(text if isinstance(pattern.pattern, str) else text.encode())
    except _TooLongError:
        return False
    return True


def test_every_pattern_is_linear() -> None:
    patterns = list(used_patterns())
    assert len(patterns) > 70, "those of the product are found: 75 today"
    assert {used.place: text for used in patterns if (text := slow_text(used)) is not None} == {}


@pytest.mark.parametrize(
    "source",
    [
        r'_END = re.compile(r"(?:[,;.]|,? or|,? and)+\Z")',
        r'_END: Final = re.compile(r"(?:[,;.]| or| and)+\Z", re.IGNORECASE)',
        r'_END = re.compile(r"begin(?:\w+)*!"); _END.match("")',
        r're.search(r"\s*\n", "")',
        r're.sub(r"\w+ty", "", "")',
    ],
)
def test_a_pattern_that_is_not_is_found(source: str) -> None:
    [used] = patterns_of(source, "module", {"re": re, "Final": Any})
    assert slow_text(used) is not None
