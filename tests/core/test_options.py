"""Options that make no sense are refused, each with its field and why."""

import math

import pytest

from mqan_core.answer.types import Source
from mqan_core.ask.options import YES_NO, Options, choices_of
from mqan_core.errors import InputError

SENSELESS = [
    (Options(multiple=True), "senseless_combination", "multiple"),
    (Options(is_scale=True), "senseless_combination", "scale"),
    (Options(sources=frozenset()), "senseless_combination", "sources"),
    (Options(contiguous=True, sources=frozenset({Source.VOCABULARY})), "senseless_combination", "contiguous"),
    (Options(every=True, sources=frozenset({Source.QUESTION})), "senseless_combination", "all"),
    (Options(YES_NO, sources=frozenset({Source.CONTEXT})), "senseless_combination", "sources"),
    (Options(YES_NO, contiguous=True), "senseless_combination", "contiguous"),
    (Options(YES_NO, every=True), "senseless_combination", "all"),
    (Options(YES_NO, alternatives=1), "senseless_combination", "alternatives"),
    (Options(YES_NO, is_scale=True, multiple=True), "senseless_combination", "multiple"),
    (Options(choices_of(["low"]), is_scale=True), "wrong_number_of_choices", "scale"),
    (Options(choices_of("abcdefghijk"), is_scale=True), "wrong_number_of_choices", "scale"),
    (Options(choices_of([str(i) for i in range(256)])), "wrong_number_of_choices", "choices"),
    (Options(choices_of(["a", "b", "a"])), "duplicate_choice", "choices"),
    (Options(choices_of(["Yes", "no", "yes"])), "duplicate_choice", "choices"),
    (Options(choices_of(["not  now", "not now "])), "duplicate_choice", "choices"),
    (Options(choices_of(["a\u200b", "A"])), "duplicate_choice", "choices"),
    (Options(min_probability=1.5), "option_out_of_range", "min_probability"),
    (Options(min_probability=math.nan), "option_out_of_range", "min_probability"),
    (Options(refuses=False), "senseless_combination", "refuses"),
    (Options(every=True, refuses=False), "senseless_combination", "refuses"),
    (Options(alternatives=21), "option_out_of_range", "alternatives"),
]


@pytest.mark.parametrize(("options", "code", "field"), SENSELESS)
def test_what_makes_no_sense_is_refused(options: Options, code: str, field: str) -> None:
    with pytest.raises(InputError) as caught:
        options.check()
    assert (caught.value.code, caught.value.field) == (code, field)
