"""Changes of a dialogue's state as text and back, and folded texts that know where their characters were."""

from hypothesis import given
from hypothesis import strategies as st

from mqan_core.forms.grammars import FoldedText, fold, read_state_change
from mqan_data.formats.dialogues import write_state_change

NAMES = st.text("abc İΣ.-", min_size=1).filter(str.strip).map(lambda name: " ".join(name.split()))


@given(told=st.lists(st.tuples(NAMES, NAMES), max_size=3), requests=st.lists(NAMES, max_size=3))
def test_round_trip(told: list[tuple[str, str]], requests: list[str]) -> None:
    read = read_state_change(write_state_change(told, requests))
    assert read is not None
    found, asked, others = read
    assert [(slot.folded, value.folded) for slot, value in found] == [(fold(a), fold(b)) for a, b in told]
    assert [part.folded for part in asked] == [fold(request) for request in requests]
    assert not others


@given(st.text("aB ;\n\t\u3000İΣßé\u00ad𝒳"), st.integers(0, 9), st.integers(0, 9))
def test_folded_parts_know_where_they_were(text: str, start: int, end: int) -> None:
    folded = FoldedText(text)
    assert folded.text == fold(text)
    part = folded.part(start, end)
    assert part.folded == folded.text[start:end].strip()
    there = fold(text[part.start : part.end])
    assert part.folded in there or part.folded.replace("ς", "σ") in there.replace("ς", "σ")
