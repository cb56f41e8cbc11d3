"""Answers quote the caller's own text and say where."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqan_core.answer.types import Answer, AnswerToken, Masses, Source, Span, compose
from mqan_core.text.tokens import INVISIBLE, read_tokens

MASSES = Masses(context=0.5, question=0.25, vocabulary=0.25)

texts = st.one_of(
    st.text(st.sampled_from("aB ,.\n\t'\xa0é\u0301👩\u200d"), max_size=40),
    st.text(st.characters(exclude_categories=()), max_size=40),
)
# What to say next: a word from the vocabulary, or the token at a place of a source.
steps = st.lists(
    st.one_of(
        st.sampled_from([" yes ", " no ", "? ", "'", " s "]),
        st.tuples(st.sampled_from([Source.CONTEXT, Source.QUESTION]), st.integers(0, 50), st.integers(1, 4)),
    ),
    max_size=8,
)


def generated(piece: str) -> AnswerToken:
    return AnswerToken(piece.strip(), piece, 0.5, Source.VOCABULARY, MASSES, None)


def copied(source: Source, text: str, first: int, num_tokens: int = 1) -> list[AnswerToken]:
    tokens = read_tokens(text)[first : first + num_tokens]
    return [
        AnswerToken(text[token.start : token.end], token.piece, 0.5, source, MASSES, Span(token.start, token.end))
        for token in tokens
    ]


def answer(tokens: Sequence[AnswerToken], context: str = "", question: str = "") -> Answer:
    return compose(tokens, 0.5, False, context, question)


@given(texts, texts, steps)
def test_quotations_are_exact(context: str, question: str, said: list[str | tuple[Source, int, int]]) -> None:
    sources = {Source.CONTEXT: context, Source.QUESTION: question}
    tokens: list[AnswerToken] = []
    for step in said:
        if isinstance(step, str):
            tokens.append(generated(step))
        else:
            source, first, num_tokens = step
            tokens.extend(copied(source, sources[source], first, num_tokens))
    result = answer(tokens, context, question)
    assert result.tokens == tuple(tokens)
    position = 0
    for span in result.spans:
        assert span.text == sources[span.source][span.start : span.end]
        position = result.text.index(span.text, position) + len(span.text)
    quoted = [token for token in tokens if token.span is not None]
    assert sum(token.text in span.text for token in quoted for span in result.spans) >= len(quoted)
    for token in quoted:
        assert token.span is not None
        assert any(
            span.source is token.source and span.start <= token.span.start and token.span.end <= span.end
            for span in result.spans
        )


@given(texts)
def test_copying_everything_gives_the_text_back(text: str) -> None:
    result = answer(copied(Source.CONTEXT, text, 0, len(text)), text)
    is_edge = str.maketrans(dict.fromkeys(INVISIBLE, " "))
    visible = text.translate(is_edge)  # of the same length
    start, end = len(visible) - len(visible.lstrip()), len(visible.rstrip())
    assert result.text == text[start:end]
    assert len(result.spans) <= 1


def test_neighbours_merge_and_keep_casing_and_spacing() -> None:
    context = "By  The\nEiffel Tower, Paris."
    result = answer(copied(Source.CONTEXT, context, 1, 3), context)
    assert result.text == "The\nEiffel Tower"
    (span,) = result.spans
    assert (span.source, span.start, span.end, span.text) == (Source.CONTEXT, 4, 20, "The\nEiffel Tower")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((Source.CONTEXT, 1), (Source.CONTEXT, 0)),  # backwards
        ((Source.CONTEXT, 0), (Source.CONTEXT, 0)),  # the same token twice
        ((Source.CONTEXT, 0), (Source.CONTEXT, 2)),  # a word between them
        ((Source.CONTEXT, 0), (Source.QUESTION, 1)),  # another source
    ],
)
def test_what_does_not_follow_does_not_merge(first: tuple[Source, int], second: tuple[Source, int]) -> None:
    text = "One Two Three"
    tokens = [copied(source, text, place)[0] for source, place in (first, second)]
    result = answer(tokens, text, text)
    assert len(result.spans) == 2
    assert result.text == " ".join(token.text for token in tokens)


def test_a_quotation_keeps_what_is_invisible() -> None:
    context = "In\u00adgrid \u200bSol\u00adberg\u200b came."
    result = answer(copied(Source.CONTEXT, context, 0, 2), context)
    assert result.text == "In\u00adgrid \u200bSol\u00adberg"
    assert [span.text for span in result.spans] == [result.text]
    assert [token.piece for token in result.tokens] == [" Ingrid ", " Solberg "]


def test_a_generated_word_between_copies_separates_quotations() -> None:
    context = "One Two"
    tokens = [*copied(Source.CONTEXT, context, 0), generated(" yes "), *copied(Source.CONTEXT, context, 1)]
    result = answer(tokens, context)
    assert result.text == "One yes Two"
    assert [span.text for span in result.spans] == ["One", "Two"]


def test_an_empty_answer() -> None:
    result = compose([], 0.75, True, "context", "question")
    assert result == Answer("", 0.75, (), (), True)
