"""Examples as numbers: answers spelled with the source's pieces, filters, the generator's pieces."""

from pathlib import Path

import numpy as np
import pytest

from mqan_core.example import Example
from mqan_core.text.tokens import detokenize, read_tokens
from mqan_core.text.vocab import END_ID, Vocabulary
from mqan_data.tasks import task_named
from mqan_training.numbering import (
    Item,
    PieceTable,
    TaskData,
    are_in,
    generator_pieces,
    number_examples,
    spell_answer,
    target_ids,
)


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


# --- Numbering and filters


def number(examples: list[Example], cut: int | None = None, max_context: int = 6, max_answer: int = 2) -> TaskData:
    return number_examples(
        "t",
        examples,
        PieceTable(),
        cut_context_at=cut,
        max_context_tokens=max_context,
        max_answer_tokens=max_answer,
    )


def test_what_is_left_out_is_counted_by_name() -> None:
    data = number(
        [
            example("a b c d e f", "q", "a b"),
            example("a b c d e f g", "q", "a"),
            example("a b c d e f h", "q", "a"),
            example("a", "q", "x y z"),
            example(" \n", "q", "a"),
            example("a", " ", "a"),
            example("a", "q", ""),
        ]
    )
    assert len(data.items) == 1
    assert data.dropped == {
        "context over 6 tokens": 2,
        "answer over 2 tokens": 1,
        "empty context": 1,
        "empty question": 1,
        "empty answer": 1,
    }


def test_long_contexts_are_cut_where_the_task_says_so() -> None:
    data = number([example("a b c d e f g h", "q", "a"), example("a b", "q", "a")], cut=3)
    assert [len(item.context) for item in data.items] == [3, 2]
    assert not data.dropped


def test_questions_of_one_paragraph_share_its_numbers() -> None:
    first, second, other = number([example("a b", "q", "a"), example("a b", "r", "b"), example("b", "r", "b")]).items
    assert first.context is second.context
    assert other.context is not first.context


def test_sst_becomes_numbers_that_spell_its_text(tmp_path: Path) -> None:
    rows = ["label,sentence", '1,"Warm, witty."', "0,so dull", ""]
    (tmp_path / "train_binary_sent.csv").write_text("\n".join(rows))
    table = PieceTable()
    data = number_examples(
        "sst",
        task_named("sst").read(tmp_path, "train"),
        table,
        cut_context_at=None,
        max_context_tokens=9,
        max_answer_tokens=3,
    )
    texts = [detokenize(table.pieces[i] for i in item.context) for item in data.items]
    assert [text.strip() for text in texts] == ["warm, witty.", "so dull"]
    assert all(np.isin(item.answer, item.question).all() for item in data.items)


def test_pieces_have_one_number_each() -> None:
    table = PieceTable()
    assert table.numbers([" a ", "b", " a ", "a"]).tolist() == [0, 1, 0, 2]
    assert table.number("b") == 1
    assert table.pieces == [" a ", "b", "a"]
    assert table.numbers([]).dtype == np.int32


# --- The generator's pieces


def items(table: PieceTable, *triples: tuple[str, str, str]) -> TaskData:
    data = TaskData("t")
    data.items = [Item(*(table.numbers(text.split()) for text in triple)) for triple in triples]
    return data


def test_pieces_that_answers_need_and_cannot_copy_come_first() -> None:
    table = PieceTable()
    data = items(
        table,
        ("the the the cat", "who", "rare cat"),
        ("the dog", "who", "needed dog"),
        ("the dog", "why", "needed"),
    )
    pieces = generator_pieces([data], table, 100)
    assert pieces == ["needed", "rare", "the", "dog", "cat", "who", "why"]
    assert set(pieces) == set(table.pieces)


def test_without_a_question_pointer_words_of_the_question_have_to_be_generated() -> None:
    table = PieceTable()
    data = items(table, ("a a a b", "good or bad", "good"))
    assert generator_pieces([data], table, 2) == ["a"]
    assert generator_pieces([data], table, 2, question_pointer=False) == ["good"]


def test_a_shared_context_counts_once() -> None:
    table = PieceTable()
    data = items(table, ("twice", "a a a", "a"))
    data.items.append(Item(data.items[0].context, table.numbers(["b", "b"]), table.numbers(["b"])))
    assert generator_pieces([data], table, 9) == ["a", "b", "twice"]


def test_pieces_are_counted_by_where_they_could_be_copied_from() -> None:
    table = PieceTable()
    table.number("of another task")
    data = items(table, ("a a b", "good or bad", "good a new new"), ("c", "d", "c"))
    data.items.insert(1, Item(data.items[0].context, table.numbers(["d"]), table.numbers(["new"])))
    counts = data.counts
    assert [table.pieces[n] for n in counts.pieces] == ["a", "b", "good", "or", "bad", "new", "c", "d"]
    assert counts.total.tolist() == [3, 1, 2, 1, 1, 3, 2, 2]
    assert counts.not_in_context.tolist() == [0, 0, 1, 0, 0, 3, 0, 0]
    assert counts.not_in_source.tolist() == [0, 0, 0, 0, 0, 3, 0, 0]
    assert TaskData("empty").counts.pieces.tolist() == []


def test_the_end_takes_one_place_of_the_generator() -> None:
    table = PieceTable()
    data = items(table, ("a b c", "d", "e"))
    pieces = generator_pieces([data], table, 3)
    assert pieces == ["e", "a"]
    vocabulary = Vocabulary(pieces, [])
    assert vocabulary.num_generated == 3
    assert [table.pieces[i] for i in np.flatnonzero(target_ids(table, vocabulary) < 3)] == ["a", "e"]


def test_data_cannot_hold_the_end_of_the_answer() -> None:
    table = PieceTable()
    table.number("a")
    assert END_ID not in target_ids(table, Vocabulary(["a"], []))
    table.number("<eos>")
    with pytest.raises(ValueError, match="has the id of the end of the answer"):
        target_ids(table, Vocabulary(["a"], []))


@pytest.mark.parametrize("sizes", [(0, 4), (3, 0), (5, 40), (60, 400)])
def test_membership_is_that_of_numpy(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    wanted, numbers = (rng.integers(-2, 60, size, dtype=np.int32) for size in sizes)
    assert are_in(wanted, numbers).tolist() == np.isin(wanted, numbers).tolist()
