"""Pronouns to resolve, made of the contexts of other tasks, as MWSC asks: ``Who refused? Nicholas or Sultan?``

Where a sentence, or the one behind it, says a name or a noun again before a verb, a pronoun takes its place. What it
stands for is known, the clause behind it is the question, and another name or noun that was said before is the other
choice. After MaskedWiki of Kocijan et al. (2019), "A Surprisingly Robust Trick for the Winograd Schema Challenge", and
WikiCREM of the same authors, with a pronoun instead of a mask. What is a name or a noun is counted in the texts,
so no tagger is needed. All of it depends on the files alone. Files as in the task whose contexts are used.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from mqan_core.example import Example
from mqan_training.data.readers import cnn_dailymail, imdb, squad
from mqan_training.data.readers.task import Task
from mqan_training.data.sentences import sentences_of


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_FEWEST_WORDS, _MOST_WORDS = 8, 48  # of one or two sentences, split at spaces
_CLAUSE = range(2, 14)  # words of what is asked
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*|\d[\d,.]*\d|\d|'s\b|[^\w\s]")
_ENDS_CLAUSE = frozenset(',.;:!?()"-')
_ENDS_SENTENCE = (".", "!", "?", '"')
_SAME_SIGN = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})

_DETERMINERS = _set("the a an his her their its this our my your")
_BEFORE_FIRST = _set("the a an this his her their its")
_BEFORE_AGAIN = _set("the this")
_AUXILIARIES = _set("is was are were has had have will would can could should may might did does do must")
_PLURAL_VERBS = _set("are were have do")
_VERBS = _AUXILIARIES | _set(
    "made took came went got knew thought gave found left felt began wrote won lost became kept held saw met wanted "
    "needs wants makes takes comes goes gets knows thinks gives finds leaves feels begins wins loses becomes keeps "
    "holds sees meets decides tries seems fell ran sent brought chose stood led paid spent built caught taught "
    "broke"
)
_BEHIND_NOUNS = _set(
    "of in on at to for with from by and or but that which who as than into over about after before when while because "
    "if , . ; : ! ? ' - ) 's is was are were has had have will would can could"
)
_NO_NOUNS = _BEHIND_NOUNS | _AUXILIARIES
_JOINS_PHRASES = _set("of by with and from to in for on or at")  # behind it is no subject
_BEGINS_CLAUSES = _set("But And When While Because If Although As After Before Since")
_NO_NAMES = _set(
    "January February March April May June July August September October November December Monday Tuesday Wednesday "
    "Thursday Friday Saturday Sunday CNN The This That They There These His Her Its Mr Mrs Ms Dr"
)
_OF_A_PEOPLE = ("ian", "ese", "ish", "ean")  # adjectives, mostly


@dataclass(frozen=True, slots=True)
class _Words:
    """Names and nouns, by how texts use them."""

    names: frozenset[str]
    nouns: frozenset[str]

    def places(self, words: Sequence[str]) -> dict[str, list[int]]:
        """Return where names stand (the last word of one), and nouns behind a determiner."""
        found: dict[str, list[int]] = {}
        for place, (before, word, behind) in enumerate(zip(["", *words], words, [*words[1:], ""], strict=False)):
            is_name = word in self.names and not behind[:1].isupper()
            if is_name or (word in self.nouns and before.lower() in _BEFORE_FIRST):
                found.setdefault(word, []).append(place)
        return found


def _count_words(texts: Iterable[Sequence[str]]) -> _Words:
    """Tell names and nouns in texts: a noun often ends the phrase that a determiner begins, a name is seldom small."""
    small, capital, determined, ended = (Counter[str]() for _ in range(4))
    for text in texts:
        for sentence in text:
            words = _WORD.findall(sentence)
            small.update(word for word in words if word[0].islower())
            capital.update(word for word in words[1:] if word[0].isupper())
            for before, word, behind in zip(words, words[1:], words[2:], strict=False):
                if word.islower() and before.lower() in _DETERMINERS:
                    determined[word] += 1
                    ended[word] += behind.lower() in _BEHIND_NOUNS
    nouns = {
        word
        for word, number in ended.items()
        if number >= max(5, 0.6 * determined[word], 0.15 * small[word]) and len(word) > 2 and word not in _NO_NOUNS
    }
    names = {
        word
        for word, number in capital.items()
        if number >= max(3, 10 * small[word.lower()])
        and len(word) > 2
        and word[1:].islower()
        and word not in _NO_NAMES
        and not word.endswith(_OF_A_PEOPLE)
    }
    return _Words(frozenset(names), frozenset(nouns))


def _questions(first: str, second: str, known: _Words, rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """Yield context, question and answer for each name or noun of a sentence that it, or the one behind it, repeats.

    With a second sentence only what that repeats of the first.
    """
    text = f"{first} {second}" if second else first
    if not _FEWEST_WORDS <= len(text.split()) <= _MOST_WORDS or text.count('"') % 2:
        return
    matches = list(_WORD.finditer(text))
    words = [match.group() for match in matches]
    places = known.places(words)
    begins = sum(match.start() < len(first) for match in matches) if second else 0
    for word, its_places in places.items():
        for place in its_places[1:]:
            again = place >= begins and (not second or its_places[0] < begins)
            if not again or not _is_subject(words, place, begins):
                continue
            others = [
                other
                for other, where in places.items()
                if _may_be_the_other(word, other)
                and where[0] < place
                and abs(where[0] - its_places[0]) > 1
                and all(abs(there - place) > 2 for there in where)
            ]
            end = next((i for i in range(place + 1, len(words)) if words[i] in _ENDS_CLAUSE), len(words))
            if not others or end - place - 1 not in _CLAUSE:
                continue
            start = matches[place].start() if word[0].isupper() else matches[place - 1].start()
            pronoun = _pronoun(word, words[place + 1], rng)
            before, behind = text[:start], text[matches[place].end() :]
            begins_sentence = not before or before.rstrip().endswith(_ENDS_SENTENCE)
            context = before + (pronoun.capitalize() if begins_sentence else pronoun) + behind
            clause = text[matches[place + 1].start() : matches[end - 1].end()]
            one, two = rng.sample([word, rng.choice(others)], 2)
            yield context, f"{'Who' if pronoun in ('he', 'she') else 'What'} {clause}? {one} or {two}?", word


def _is_subject(words: Sequence[str], place: int, begins: int) -> bool:
    """Return whether a verb stands behind the place, and before it what may stand before a subject."""
    if place + 2 >= len(words):
        return False
    verb = words[place + 1]
    if not (verb in _VERBS or (verb.islower() and verb.endswith("ed") and len(verb) > 4)):
        return False
    if words[place][0].islower():
        article, before = words[place - 1].lower(), words[place - 2] if place > 1 else ""
        return article in _BEFORE_AGAIN and before.lower() not in _JOINS_PHRASES
    before = words[place - 1]
    in_a_longer_name = before[0].isupper() and place != begins and before not in _BEGINS_CLAUSES
    return not in_a_longer_name and before.lower() not in _JOINS_PHRASES


def _may_be_the_other(word: str, other: str) -> bool:
    """Return whether it is another word of the same kind, not just another number of it."""
    return word.rstrip("s") != other.rstrip("s") and word[0].isupper() == other[0].isupper()


def _pronoun(word: str, verb: str, rng: random.Random) -> str:
    is_name = word[0].isupper()
    if verb in _PLURAL_VERBS or (not is_name and word.endswith("s") and not word.endswith("ss")):
        return "they"
    return rng.choice(("he", "he", "she", "it")) if is_name else "it"


def _pronouns_of(task: Task, read_as: Callable[..., Iterator[Example]]) -> Task:
    """Return the task that asks what pronouns stand for in the contexts of another one."""
    name = f"{task.name}_pronouns"

    def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
        contexts = dict.fromkeys(example.context for example in read_as(name, folder, split, dropped))
        texts = [sentences_of(context.translate(_SAME_SIGN)) for context in contexts]
        known = _count_words(texts)
        for number, text in enumerate(texts):
            rng = random.Random(f"{split}/{number}")  # noqa: S311
            pairs = (pair for pair in pairwise([*text, ""]) if pair[0])
            windows = dict.fromkeys(window for pair in pairs for window in ((pair[0], ""), pair))
            asked = dict.fromkeys(found for window in windows for found in _questions(*window, known, rng))
            for place, (context, question, answer) in enumerate(asked):
                yield Example(name, f"{split}/{number}/{place}", context, question, (answer,))

    return Task(name, task.folder, task.splits, "em", read, sources=task.sources)


TASKS = tuple(_pronouns_of(module.TASK, module.read_as) for module in (squad, cnn_dailymail, imdb))
