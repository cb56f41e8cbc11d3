"""What may not be trained on: found by text, whatever the case and punctuation."""

import json
from pathlib import Path

from mqan_data.held_out import HeldOut, held_out_texts

_LONG = "one two three four five six seven eight nine ten " * 2


def test_a_row_is_found_without_case_punctuation_and_order() -> None:
    held_out = HeldOut()
    held_out.add(("A man runs.", "He moves!"))
    assert held_out.holds(("he moves", "a MAN -- runs"))
    held_out.add(("I can't e-mail.",))
    assert held_out.holds(("i ca n't email",))
    assert not held_out.holds(("A man runs.",))
    assert not held_out.holds(("A man runs.", "He sleeps."))


def test_a_long_text_is_held_out_wherever_it_stands() -> None:
    held_out = HeldOut()
    held_out.add((_LONG, "Why?"))
    assert held_out.holds((_LONG.upper(), "Who?"))
    held_out.add(("four words are enough",), shortest=4)
    assert held_out.holds(("Four words are enough.", "a pair of them"))
    held_out.add((f"{_LONG} eleven", "Why?"), shortest=None)
    assert held_out.holds(("why", f"{_LONG} eleven"))
    assert not held_out.holds((f"{_LONG} eleven", "Who?"))


def test_held_back_sets_validation_parts_and_cases_are_held_out(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "isear").mkdir(parents=True)
    (data / "clickbait").mkdir()
    (data / "isear" / "train.tsv").write_text("joy\tWhen I passed my exam.\n", encoding="utf-8")
    (data / "isear" / "dev.tsv").write_text("fear\tWhen the dog came.\n", encoding="utf-8")
    (data / "clickbait" / "train.tsv").write_text("clickbait\tYou will not believe it\n", encoding="utf-8")
    (data / "clickbait" / "dev.tsv").write_text("not clickbait\tBird flu spreads\n", encoding="utf-8")
    (tmp_path / "cases").mkdir()
    case = {"context": "The clinic opens at nine.", "question": "When?"}
    (tmp_path / "cases" / "questions.jsonl").write_text(json.dumps(case), encoding="utf-8")
    held_out = held_out_texts(data)
    held = ["When I passed my exam", "when the dog came", "Bird flu spreads.", "The clinic opens at nine"]
    assert all(held_out.holds((text,)) for text in held)
    assert not held_out.holds(("You will not believe it",))
