"""No text costs more than its share: one MiB of anything is checked and read within a bound of time."""

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from mqan_core.ask.request import read_question
from mqan_core.bundle import open_bundle
from mqan_core.errors import InputError
from mqan_core.text.vocab import Vocabulary
from mqan_core.text.word_pieces import WordPieces
from mqan_serving.contract.model import LimitsDocument
from mqan_serving.contract.questions import Question, question_of, read_object
from mqan_serving.service.validation import Validator
from mqan_serving.settings import Settings
from tests.timing import is_within

_BYTES = 2**20
_MOST_S = 2.0  # of CPU; 0.1 was seen, and hours where the time grows with the square of the length

_SETTINGS = Settings()
_LIMITS = LimitsDocument(
    max_request_bytes=_SETTINGS.max_request_bytes,
    max_context_tokens=_SETTINGS.max_context_tokens,
    max_question_tokens=_SETTINGS.max_question_tokens,
    max_answer_tokens=_SETTINGS.max_answer_tokens,
    max_word_length=_SETTINGS.max_word_length,
    max_metadata_bytes=_SETTINGS.max_metadata_bytes,
    max_timeout_ms=1000,
    max_concurrent_requests=1,
    max_queued_requests=1,
)

# What texts are filled with: white space of all kinds, what is invisible, what is a token by itself, what joins, what
# has several bytes, what changes when it is lower-cased or taken apart.
_UNITS = [
    " ", "\t", "\n", "\r\n", "\x0b", "\x0c", "\x1c", "\x1f", "\x85", "\xa0", "\u1680", "\u2003", "\u2028", "\u2029",
    "\u3000", " \t", " \n ", "\u00ad", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad ", "\u200b\t",
    "x", "x ", "x\u00ad", "xy\u200b ", ".", "..", ". ", "a.", "-a", "'", "0", "0 ", "0a", "$", "$a", "+-", "<eos>",
    "\x00", "\x01 ", "\x7f", "\u0301", "e\u0301", "e\u0301 ", "\u20e3", "\ufe0f", "\u0130", "\u00df", "\u1e9e ",
    "\ufb03", "\u4e2d", "\u4e2d ", "\ud55c", "\u05d0\u200f", "\u202e", "\U0001f469\u200d", "\U0001f469 ",
    "\U0001f1e9\U0001f1ea", "\ufdfa", "\ue302", "\U000f0000", "\U0010ffff ",
]  # fmt: skip


def filled(unit: str, num_bytes: int = _BYTES - 20) -> str:
    return unit * (num_bytes // len(unit.encode()))


def of_most_tokens(word: Callable[[random.Random], str]) -> str:
    """Return a text of as many words as are accepted, each another one, no longer than a request."""
    chance = random.Random(0)
    words = [word(chance) for _ in range(_LIMITS.max_context_tokens)]
    return " ".join(words).encode()[: _BYTES - 20].decode(errors="ignore")


def drawn(letters: str, length: int) -> Callable[[random.Random], str]:
    return lambda chance: "".join(chance.choices(letters, k=length))


TEXTS = {f"filled with {unit!r}": filled(unit) for unit in _UNITS}
TEXTS |= {f"two words around {unit!r}": f"Oslo{filled(unit)}Bergen" for unit in " \t\n,x\u00ad\u3000"}
TEXTS |= {
    "as many words as are accepted": of_most_tokens(drawn("abcdefghij", 250)),
    "as many words of several bytes": of_most_tokens(drawn("áéíóúñçß", 125)),
    "as many words full of what is invisible": of_most_tokens(lambda chance: "x" + "\u00ad" * 120 + "y"),
    "words far apart": of_most_tokens(lambda chance: "word" + " " * 250),
    "every character there is": "".join(map(chr, [*range(0xD800), *range(0xE000, 0x40000)]))[: _BYTES // 4],
}


@pytest.fixture(scope="module")
def vocabulary(repository: Path) -> Vocabulary:
    return open_bundle(repository / "serving" / "bundles" / "default").vocabulary


@pytest.fixture(scope="module")
def pieces(repository: Path) -> WordPieces:
    word_pieces = open_bundle(repository / "serving" / "bundles" / "default").word_pieces
    assert word_pieces is not None
    return word_pieces


@pytest.mark.parametrize("name", TEXTS)
def test_it_is_checked_and_read_within_the_bound(name: str, vocabulary: Vocabulary) -> None:
    validator = Validator(_LIMITS)
    text = TEXTS[name]

    def check_and_read() -> None:
        try:
            read, _ = validator.read(Question(context=text, question="Where?"), partial(read_question, vocabulary))
        except InputError:
            return
        assert len(read.context_tokens) <= _LIMITS.max_context_tokens  # as was counted before

    assert is_within(_MOST_S, check_and_read)
    body = Question(context=text, question="Where?").model_dump_json().encode()
    if len(body) <= _LIMITS.max_request_bytes:
        assert is_within(_MOST_S, lambda: question_of(read_object(body)))


@pytest.mark.parametrize("letters", ["abcdefghijklmnopqrstuvwxyz", "zqxj", "un", "áéíóú", "internationalise"])
def test_words_of_no_language_are_cut_into_pieces_within_a_bound(letters: str, pieces: WordPieces) -> None:
    chance = random.Random(1)
    words = [drawn(letters, 99)(chance) for _ in range(1000)]

    def cut() -> None:
        for word in words:
            pieces.ids(word)

    assert is_within(2, cut)  # 0.15 s was seen
