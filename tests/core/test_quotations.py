"""Quotations from scores of first and last words."""

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from mqan_core.answer.quotations import QuotationScores, quote
from mqan_core.answer.types import Answer
from mqan_core.ask.options import Options
from mqan_core.ask.request import Request, read_request
from mqan_core.text.vocab import Vocabulary

TEXT = "paid on 3 May 2024 by card and due on 2 June 2024 at noon"
REFUSED = Answer("", 0.5, (), (), False, answered=False)


@pytest.fixture
def request_of_text() -> Request:
    return read_request(Vocabulary(tuple("ab"), refuses=True), TEXT, "which dates?")


def log_of(shares: dict[int, float], num_words: int) -> npt.NDArray[np.float32]:
    """Return scores whose softmax is near these shares of words."""
    scores = np.full(num_words, 1e-6)
    for place, share in shares.items():
        scores[place] = share
    logarithms: npt.NDArray[np.float32] = np.log(scores).astype(np.float32)
    return logarithms


def quoted(
    request: Request, starts: dict[int, float], ends: dict[int, float], options: Options, longest: int = 50
) -> Answer:
    num_words = len(request.context_tokens)
    scores = QuotationScores(log_of(starts, num_words), log_of(ends, num_words), float(np.log(1e-6)))
    return quote(REFUSED, scores, options, request, longest)


def test_where_several_are_asked_for_one_ends_before_the_next(request_of_text: Request) -> None:
    starts, ends = {2: 0.75, 10: 0.25}, {4: 0.16, 12: 0.84}
    answer = quoted(request_of_text, starts, ends, Options(every=True))
    assert [place.span.text for place in answer.places] == ["3 May 2024", "2 June 2024"]
    assert [place.probability for place in answer.places] == pytest.approx([0.75 * 0.16, 0.25], abs=1e-3)
    one = quoted(request_of_text, starts, ends, Options(contiguous=True, alternatives=2))
    assert one.text == "3 May 2024 by card and due on 2 June 2024"  # the likeliest pair of words
    assert one.alternatives == ()  # both dates are in it


def test_a_quotation_that_cannot_end_before_another_beginning_goes_on(request_of_text: Request) -> None:
    answer = quoted(request_of_text, {2: 0.7, 3: 0.3}, {2: 0.06, 4: 0.94}, Options(every=True))
    assert [place.span.text for place in answer.places] == ["3 May 2024"]
    assert answer.probability == pytest.approx(0.7 * 0.94, abs=1e-3)


def test_beginnings_that_are_unlikely_end_nothing(request_of_text: Request) -> None:
    answer = quoted(request_of_text, {2: 0.9, 10: 0.1}, {4: 0.16, 12: 0.84}, Options(every=True))
    assert [place.span.text for place in answer.places] == ["3 May 2024 by card and due on 2 June 2024"]


def test_every_place_that_is_likely_enough_is_listed_however_many_they_are() -> None:
    words = ["".join(pair) for pair in product("abcdefghij", repeat=2)]
    request = read_request(Vocabulary(tuple("ab"), refuses=True), " ".join(words), "which words?")
    even = np.zeros(len(words), np.float32)
    ends = -20 * np.arange(len(words), dtype=np.float32)  # each word ends what begins with it
    scores = QuotationScores(even, ends, -20.0)
    answer = quote(REFUSED, scores, Options(every=True), request, 50)
    assert [place.span.text for place in answer.places] == words


def test_a_quotation_that_a_limit_cuts_short_is_unlikely(request_of_text: Request) -> None:
    starts, ends = {2: 1.0}, {2: 0.01, 3: 0.05, 4: 0.94}
    whole = quoted(request_of_text, starts, ends, Options(contiguous=True))
    assert whole.text == "3 May 2024"
    assert whole.probability == pytest.approx(0.94, abs=1e-3)
    cut = quoted(request_of_text, starts, ends, Options(contiguous=True), longest=2)
    assert cut.text == "3 May"
    assert cut.probability == pytest.approx(0.05, abs=1e-3)
