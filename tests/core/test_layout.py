"""How requests are laid out in windows of word pieces."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mqan_core.ask.request import Request, read_request
from mqan_core.example import Choice
from mqan_core.text.layout import MOST_PIECES, SHARED, WINDOW, Layout, Window, estimate_work, work_of
from mqan_core.text.tokens import read_tokens
from mqan_core.text.vocab import Vocabulary
from mqan_core.text.word_pieces import WordPieces

PIECES = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]"),
    *("who", "?", "ann", "bob", "met", "un", "##til", "##s", "red", "green", "a"),
]
LAYOUT = Layout(WordPieces(PIECES))
VOCABULARY = Vocabulary([], refuses=True)


def lay_out(context: str, question: str, *labels: str) -> tuple[Request, list[Window]]:
    request = read_request(VOCABULARY, context, question, [Choice(label) for label in labels])
    return request, LAYOUT.windows(request.question_tokens, request.choice_tokens, request.context_tokens)


def test_a_window_is_a_sequence_as_a_bert_is_pretrained_on() -> None:
    _, [window] = lay_out("Ann met Bobs", "Who?")
    assert [PIECES[i] for i in window.pieces] == ["[CLS]", "who", "?", "[SEP]", "ann", "met", "bob", "##s", "[SEP]"]
    assert window.positions.tolist() == list(range(9))
    assert window.segments.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1]
    assert set(window.groups.tolist()) == {SHARED}
    assert window.firsts.tolist() == [1, 2, 4, 5, 6]
    assert window.lasts.tolist() == [1, 2, 4, 5, 7]


def test_labels_begin_at_one_position_each_in_a_group_of_its_own() -> None:
    request, [window] = lay_out("Ann", "Who?", "red", "until green")
    shown = [PIECES[i] for i in window.pieces]
    assert shown == ["[CLS]", "who", "?", "[SEP]", "[SEP]", "red", "[SEP]", "un", "##til", "green", "ann", "[SEP]"]
    assert window.positions.tolist() == [0, 1, 2, 3, 4, 5, 4, 5, 6, 7, 8, 9]
    assert window.groups.tolist() == [1, 1, 1, 1, 2, 2, 3, 3, 3, 3, 1, 1]
    assert window.firsts.tolist() == [1, 2, 4, 6, 10]  # the question, the separators of the labels, the context
    assert len(request.slots.question) == 4
    assert len({*request.slots.question[2:].tolist(), *request.slots.context.tolist()}) == 3  # slots of their own


def test_a_description_is_read_behind_its_label() -> None:
    request = read_request(VOCABULARY, "Ann", "Who?", [Choice("red", "a bob")])
    assert [token.word for token in request.choice_tokens[0]] == ["red", ":", "a", "bob"]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 1500), st.integers(0, 40), st.integers(0, 6))
def test_the_windows_of_a_long_text_count_each_word_once(num_words: int, num_question: int, num_labels: int) -> None:
    context = " ".join(["until", "Ann", "bobs"][i % 3] for i in range(num_words))
    labels = [f"red {'green ' * i}" for i in range(num_labels)]
    request, windows = lay_out(context, "who " + "met " * num_question, *labels)
    counted = np.concatenate([np.arange(num_words)[window.counted] for window in windows])
    assert counted.tolist() == list(range(num_words))
    for window in windows:
        assert len(window.pieces) <= WINDOW
        assert window.words.start <= window.counted.start < window.counted.stop <= window.words.stop
        behind = len(request.slots.question)
        for word in range(window.words.start, window.words.stop):
            place = window.firsts[behind + word - window.words.start]
            assert window.pieces[place] == LAYOUT.ids(request.context_tokens[word])[0]


def test_a_word_far_from_a_border_has_text_on_both_sides() -> None:
    _, windows = lay_out("Ann " * 900, "Who?")
    assert len(windows) > 2
    for left, right in zip(windows, windows[1:], strict=False):
        assert left.words.stop - left.counted.stop >= 30
        assert right.counted.start - right.words.start >= 30


def test_a_run_of_ideographs_takes_few_pieces() -> None:
    [token] = read_tokens("\u4e2d" * 500)
    assert len(LAYOUT.ids(token)) == MOST_PIECES


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 200), st.integers(0, 255), st.integers(1, 12), st.integers(1, 1500))
def test_it_is_known_before_how_much_is_read(question: int, labels: int, words: int, context: int) -> None:
    _, windows = lay_out("ann " * context, "who " * question, *["red " * words] * labels)
    found = sum(work_of(len(window.pieces)) for window in windows)
    assert found / 1.1 <= estimate_work(question, labels * (1 + words), context) <= 2 * found


def test_labels_read_together_cost_more_than_each_alone() -> None:
    assert estimate_work(4, 3 * 255, 6) > 1.8 * (4 + 3 * 255 + 6)
    assert estimate_work(4, 20, 6) < 1.2 * (4 + 20 + 6)
