"""Answers spelled with the source's tokens, and the generator's tokens."""

import pytest

from mqan_core.example import Choice, Example
from mqan_core.text.tokens import detokenize, read_tokens
from mqan_training.spelling import generator_tokens, grow, spell_answer


def example(context: str, question: str, answer: str, start: int | None = None) -> Example:
    return Example("t", "0", context, question, (answer,), start)


def spell(context: str, question: str, answer: str, start: int | None = None, cut: int | None = None) -> list[str]:
    one = example(context, question, answer, start)
    return spell_answer(one, read_tokens(context)[:cut], read_tokens(question))


# --- Spelling answers


@pytest.mark.parametrize(
    ("context", "answer", "pieces"),
    [
        ("It was lit in 1871.", "1871", [" 1871 "]),
        ("The boat, 5km away, sank.", "5", [" 5"]),
        ("The boat, 5km away, sank.", "km", [" km "]),
        ("It cost $4.50US, no more.", "$4.50", [" $", " 4 ", ".", " 50"]),
        ("They gave it 100%y of it.", "100%", [" 100 ", "%"]),
        ("It is ('cute'), no?", "'cute'", ["'", " cute ", "' "]),
    ],
)
def test_an_answer_with_a_start_is_spelled_with_the_pieces_that_stand_there(
    context: str, answer: str, pieces: list[str]
) -> None:
    """What stands next to an answer decides on its half spaces, and only equal pieces can be copied."""
    spelled = spell(context, "What was it?", answer, context.index(answer))
    assert spelled == pieces
    assert set(spelled) <= {t.key for t in read_tokens(context)}
    assert detokenize(spelled).strip() == answer.lower()


def test_the_start_decides_which_of_two_places_is_quoted() -> None:
    context = "1871, not in 1871AD again"
    assert spell(context, "When?", "1871", 0) == [" 1871 "]
    assert spell(context, "When?", "1871", 13) == [" 1871"]


def test_a_start_goes_before_a_word_of_the_question() -> None:
    context, question = "It had 5km of rope.", "Was it 5 or 6?"
    assert spell(context, question, "5", 7) == [" 5"]
    assert spell(context, question, "5") == [" 5 "]


def test_the_question_is_searched_before_the_context() -> None:
    assert spell("It had 5km of rope.", "Was it 5 or 6?", "5") == [" 5 "]
    assert spell("It had 5 ropes.", "Was it 5km or 6km?", "5") == [" 5"]
    assert spell("It had 5km of rope.", "How long?", "5") == [" 5"]


def test_words_are_found_together_and_in_order() -> None:
    assert spell("At 5 go 5km or 6km.", "How far?", "5km or 6") == [" 5", " km ", " or ", " 6"]
    assert spell("It is 6km or 5km far", "How far?", "5km or 6") == [" 5", " km ", " or ", " 6 "]


def test_an_answer_that_is_part_of_a_token_is_spelled_alone() -> None:
    assert spell("They left in 1923because of it", "When?", "cause", 19) == [" cause "]
    assert spell("They met at half-past", "When?", "half-p", 12) == [" half ", "-", " p "]
    assert spell("Nothing here", "What?", "5") == [" 5 "]


def test_an_answer_beyond_the_cut_is_not_half_quoted() -> None:
    context, answer = "so x 5km then 6km far", "5km then 6"
    assert spell(context, "What?", answer, 5) == [" 5", " km ", " then ", " 6"]
    assert spell(context, "What?", answer, 5, cut=5) == [" 5", " km ", " then ", " 6 "]


# --- The generator's tokens


def tokens_of(
    *triples: tuple[str, str, str], number: int = 100, most: int = 9, question_pointer: bool = True
) -> list[str]:
    found = generator_tokens([example(*t) for t in triples], number, most, question_pointer=question_pointer)
    return [token.strip() for token in found]


def test_tokens_that_answers_need_and_cannot_copy_come_first() -> None:
    triples = [("the cat", "who", "rare cat"), ("the dog", "who", "needed dog"), ("the dog", "why", "needed")]
    found = tokens_of(*triples)
    assert found[:2] == ["needed", "rare"]
    assert set(found) == {"needed", "rare", "the", "dog", "cat", "who", "why"}
    assert tokens_of(*triples, number=2) == ["needed", "rare"]


def test_without_a_question_pointer_words_of_the_question_have_to_be_generated() -> None:
    triple = ("a a a b", "good or bad", "good")
    assert tokens_of(triple, number=1, question_pointer=False) == ["good"]
    assert set(tokens_of(triple)) == {"a", "b", "good", "or", "bad"}


def test_choices_and_refusals_need_no_tokens() -> None:
    refused = Example("t", "0", "a", "b", ())
    chosen = Example("t", "0", "a", "b", ("c",), choices=(Choice("c"),))
    assert generator_tokens([refused, chosen], 9, 9) == []


def test_known_tokens_keep_their_places_and_new_ones_follow() -> None:
    assert grow(["b", "a"], ["c", "a", "d", "e"], 4) == ("b", "a", "c", "d")
    assert grow(["b", "a"], ["c"], 2) == ("b", "a")
    with pytest.raises(ValueError, match="place for 1 tokens, but .* generates 2: a vocabulary can only grow"):
        grow(["b", "a"], [], 1)
