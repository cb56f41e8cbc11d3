"""Rows of test files are left out of the training, whichever task they are of."""

import gzip
import shutil
from pathlib import Path

import pytest

from mqan_baselines.formats import Row
from mqan_baselines.mt_dnn.learning import read_items
from mqan_baselines.mt_dnn.packing import packer_of
from mqan_baselines.recipes import MtDnnRecipe
from mqan_baselines.splits import held_out_rows, not_held_out
from mqan_baselines.tasks import baseline_task

_LONG = "one two three four five six seven eight nine ten " * 2


def _kept(task: str, tests: dict[str, list[Row]], *rows: tuple[str, ...]) -> list[tuple[str, ...]]:
    found = not_held_out(baseline_task(task), [Row(texts) for texts in rows], held_out_rows(tests))
    return [row.texts for row in found]


def _add(path: Path, lines: str) -> None:
    content = lines.encode()
    with path.open("ab") as file:
        file.write(gzip.compress(content) if path.suffix == ".gz" else content)


def test_a_sentence_is_left_out_and_its_pairs_with_others_are_not() -> None:
    tests = {"sst-2": [Row(("A fine film .",))], "rte": [Row((_LONG, "He runs."))]}
    assert _kept("cola", tests, ("a fine film",), ("A fine.",), (_LONG,)) == [("A fine.",), (_LONG,)]
    pairs = [("A fine film.", "He runs."), (_LONG, "He sleeps.")]
    assert _kept("mnli", tests, *pairs, (_LONG, "he runs")) == pairs


def test_a_ranking_is_left_out_if_one_of_its_candidates_is_in_a_test_file_with_its_question() -> None:
    tests = {"qnli-ranking": [Row(("Who ran?", "A man ran.", "It rained.", "No."))]}
    assert _kept("qnli", tests, ("who ran", "it rained"), ("Who?", "It rained.")) == [("Who?", "It rained.")]
    others = [("Who was it?", "A man ran.", "No."), ("Who ran?", "Bo ran.", "He slept.")]
    assert _kept("qnli-ranking", tests, *others, ("Who ran?", "Bo ran.", "It rained!")) == others
    assert _kept("qnli-ranking", {"qnli": [Row(("Who ran?", "He slept."))]}, *others) == others[:1]


def test_reading_leaves_them_out_and_says_how_many(
    tiny_encoder: Path, baseline_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = Path(shutil.copytree(baseline_data, tmp_path / "data"))
    recipe = MtDnnRecipe(kind="mt-dnn", name="tiny", tasks=("cola", "mrpc", "sts-b"))
    packer = packer_of(tiny_encoder, 48)
    _add(data / "mrpc" / "msr_paraphrase_test.txt", "1\t98\t98\ta bright plot\tno odd mess\n")
    _add(data / "stsb" / "stsb-en-dev.csv", "two friends,a long film,2.5\n")
    before, tests = read_items(recipe.tasks, recipe, data, packer)
    assert [len(items) for items in before.values()] == [24, 48, 48]
    assert capsys.readouterr().err == ""

    _add(data / "stsb" / "stsb-en-train.csv", "No odd mess !,a bright plot,2.5\na bright plot,no odd mess,3\n")
    _add(data / "mrpc" / "msr_paraphrase_train.txt.gz", "1\t99\t99\tTwo friends.\tA long film.\n")
    sentence = baseline_task("cola").rows(data, "test")[-1].texts[0]
    _add(data / "cola" / "in_domain_train.tsv", f"x01\t1\t\t{sentence}!\n")
    assert read_items(recipe.tasks, recipe, data, packer) == (before, tests)
    told = " ".join(capsys.readouterr().err.split())
    assert told == "rows left out of the training, since they are in a test file: 1 of cola, 1 of mrpc, 2 of sts-b"
    training, _ = read_items(("sts-b",), recipe, data, packer)
    assert len(training["sts-b"]) == 50

    for seed in range(30):  # the whole of a test file counts, whatever is drawn of it
        few = recipe.model_copy(update={"most_rows": 4, "seed": seed})
        training, tests = read_items(few.tasks, few, data, packer)
        assert all(len(items) == 4 for items in tests.values())
        assert all(item in before[name] for name, items in training.items() for item in items)
