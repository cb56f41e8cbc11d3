"""English words by which sentences are turned into questions: forms of verbs, and small closed classes."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from mqan_data.settings import read_yaml

_LISTS: Final[Mapping[str, str]] = read_yaml(Path(__file__).with_name("words.yaml"))
_VOWELS = "aeiou"
_SHORT = re.compile(r"[^aeiou]*(?:qu)?[aeiou][^aeiouwxy]")  # one syllable whose last letter is doubled
_NAME_OF_SORT = re.compile(  # endings of words that are no names
    r"(?:ing|ed|ers|ous|tion|sion|ments?|ness|ity|ly|ance|ence|ology|\wists|tions|ical|able|ible|ful|less|like)$"
)


@cache
def listed(name: str) -> frozenset[str]:
    return frozenset(_LISTS[name].split())


def groups(name: str) -> list[list[str]]:
    """Return groups of words, which have commas between them in the file."""
    return [group.split() for group in _LISTS[name].split(",")]


BE, HAVE, DO, MODALS, NOMINATIVES, SINGULAR, PLURAL, PLURAL_NOUNS = map(
    listed, ("be", "have", "do", "modals", "nominatives", "singular", "plural", "plural_nouns")
)
DETERMINERS, PREPOSITIONS, CONJUNCTIONS, SUBORDINATORS, ADVERBS, NOUN_VERBS, COMMON = map(
    listed, ("determiners", "prepositions", "conjunctions", "subordinators", "adverbs", "noun_verbs", "common")
)
AUXILIARIES: Final = BE | HAVE | DO | MODALS
OBJECTS: Final = frozenset({"him", "them", "it"})


@cache
def irregular() -> dict[str, tuple[str, str]]:
    return {base: (past, participle) for base, past, participle in groups("irregular")}


@cache
def verbs() -> frozenset[str]:
    return listed("verbs") | NOUN_VERBS | frozenset(irregular())


def past_of(base: str) -> str:
    if base in ("have", "do"):
        return "had" if base == "have" else "did"
    if base in irregular():
        return irregular()[base][0]
    if base.endswith("e"):
        return f"{base}d"
    if base.endswith("y") and base[-2] not in _VOWELS:
        return f"{base[:-1]}ied"
    return f"{base}{base[-1]}ed" if _SHORT.fullmatch(base) or base in listed("doubled") else f"{base}ed"


def third_of(base: str) -> str:
    if base == "have":
        return "has"
    if base.endswith("y") and base[-2] not in _VOWELS:
        return f"{base[:-1]}ies"
    return f"{base}es" if base.endswith(("s", "x", "z", "ch", "sh", "o")) else f"{base}s"


@cache
def _bases_of_past() -> dict[str, str]:
    bases = {f"{base}{base[-1]}ed": base for base in verbs() if base[-1] in "lpm"}  # travelled
    bases |= {past_of(base): base for base in sorted(verbs())}
    return bases | {irregular()[base][0]: base for base in irregular() if base not in ("lie", "saw", "wind")}


@cache
def _bases_of_third() -> dict[str, str]:
    return {third_of(base): base for base in verbs()}


@cache
def participles() -> frozenset[str]:
    return frozenset(irregular()[base][1] if base in irregular() else past_of(base) for base in verbs()) | frozenset(
        {"been", "had", "done", "born", "gone", "gotten", "travelled", "cancelled", "labelled", "modelled"}
    )


def base_of_past(word: str) -> str | None:
    return _bases_of_past().get(word)


def base_of_third(word: str) -> str | None:
    return _bases_of_third().get(word)


def only_past(word: str) -> bool:
    base = base_of_past(word)
    return base in irregular() and word not in (irregular()[base][1], base)


def lowered(words: list[str]) -> str:
    """Return the first of several words as it is written within a sentence; names keep their capital."""
    first = words[0]
    stem = re.sub(r"'s?$", "", first)
    small = stem.lower()
    if stem == "I" or not stem[:1].isupper() or stem[1:] != stem[1:].lower():
        return first
    closed = DETERMINERS | PREPOSITIONS | NOMINATIVES | SINGULAR | PLURAL | ADVERBS | {"there", "none", "half", "much"}
    if small in closed:
        return small + first[len(stem) :]
    if len(words) > 1 and words[1][:1].isupper() and words[1] != "I":
        return first
    is_subject = len(words) > 1 and words[1] in {"is", "was", "has"} | MODALS
    is_sort = _NAME_OF_SORT.search(small) is not None and not is_subject and small not in listed("like_names")
    if small.endswith("ing"):
        is_sort = not verbs().isdisjoint((small[:-3], f"{small[:-3]}e", small[:-4]))
    is_common = small in COMMON or is_sort or small in PLURAL_NOUNS
    if "-" in stem:
        is_common = all(part in COMMON or part in closed for part in small.split("-"))
    return small + first[len(stem) :] if is_common else first
