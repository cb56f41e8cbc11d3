"""The words that decide for a label: whole spans, in order, as likely as their words."""

import numpy as np
import pytest

from mqan_core.answer.evidence import EvidenceVectors, find_evidence, logits_of_attention
from mqan_core.ask.request import read_request
from mqan_core.text.vocab import Vocabulary

TEXT = "Rent stays at 940. Parking is no longer included. Keys are with Mrs Adeyemi."
REQUEST = read_request(Vocabulary((), refuses=True), TEXT, "Is parking included?")
WORDS = [TEXT[token.start : token.end] for token in REQUEST.context_tokens]


def logits(*likely: str, high: float = 2.0, low: float = -3.0) -> np.ndarray:
    return np.array([high if word in likely else low for word in WORDS], np.float32)


def spans(logits_C: np.ndarray) -> list[str]:
    return [place.span.text for place in find_evidence(logits_C, REQUEST)]


def test_a_run_of_likely_words_is_one_span_over_a_doubtful_word_within() -> None:
    given = logits("Parking", "no", "longer", "included")
    assert WORDS[WORDS.index("Parking") + 1] == "is"
    given[WORDS.index("is")] = -0.5
    [found] = find_evidence(given, REQUEST)
    assert found.span.text == "Parking is no longer included"
    assert TEXT[found.span.start : found.span.end] == found.span.text
    chances = [1 / (1 + np.exp(-2.0))] * 4 + [1 / (1 + np.exp(0.5))]
    assert found.probability == pytest.approx(np.mean(chances))


def test_a_word_that_decides_with_three_in_ten_belongs_to_a_run_and_one_with_two_does_not() -> None:
    given = logits("no", "longer")
    given[WORDS.index("is")] = np.log(0.3 / 0.7)
    given[WORDS.index("included")] = np.log(0.2 / 0.8)
    assert spans(given) == ["is no longer"]


def test_marks_at_the_ends_of_a_run_are_left_out() -> None:
    request = read_request(Vocabulary((), refuses=True), '{"state": "Boiler leaks", "id": 7}', "Is there a leak?")
    words = [token.word for token in request.context_tokens]
    likely = range(words.index("state") + 1, words.index("leaks") + 2)
    given = np.array([2.0 if i in likely else -6.0 for i in range(len(words))])
    assert [place.span.text for place in find_evidence(given, request)] == ["Boiler leaks"]


def test_spans_come_in_the_order_of_the_text_and_are_at_most_three() -> None:
    given = logits("Mrs", "Adeyemi", high=3.0, low=-6.0)
    given[[WORDS.index("Rent"), WORDS.index("stays")]] = 2.5
    given[[WORDS.index("Parking"), WORDS.index("no"), WORDS.index("included")]] = 2.0
    found = spans(given)
    assert found == sorted(found, key=TEXT.index)
    assert 2 <= len(found) <= 3
    assert "Mrs Adeyemi" in found
    assert "Rent stays" in found


def test_a_single_word_takes_its_likelier_neighbour() -> None:
    given = logits("longer")
    given[WORDS.index("included")] = -1.0
    assert spans(given) == ["longer included"]


def test_where_nothing_is_likely_the_likeliest_words_are_shown() -> None:
    given = logits("Keys", high=-0.1)
    assert len(spans(given)) == 1
    assert "Keys" in spans(given)[0]


def test_each_label_has_its_own() -> None:
    words = np.eye(len(WORDS), dtype=np.float32)
    vectors = EvidenceVectors(np.stack([logits("Rent", "stays"), logits("Keys", "are")]), words)
    assert spans(vectors.logits(0)) == ["Rent stays"]
    assert spans(vectors.logits(1)) == ["Keys are"]


def test_attention_stands_for_evidence_where_there_is_none() -> None:
    shares = np.full(len(WORDS), 0.2 / len(WORDS))
    shares[WORDS.index("Parking")] = 0.8
    assert "Parking" in spans(logits_of_attention(shares))[0]
