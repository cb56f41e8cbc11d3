"""The mixture over a small folder of datasets."""

from pathlib import Path

import numpy as np
import pytest

from mqan_data.formats.dataset_file import load_dataset
from mqan_data.mixture import (
    DatasetSource,
    dataset_of,
    load_sources,
    validation_examples,
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "clickbait").mkdir(parents=True)
    train = [f"clickbait\tYou will not believe number {i}" for i in range(20)] + ["not clickbait\tRain in Spain"]
    (folder / "clickbait" / "train.tsv").write_text("\n".join(train) + "\n", encoding="utf-8")
    dev = ["not clickbait\tRain in Spain!", *(f"not clickbait\tStocks fall by {i} points" for i in range(9))]
    (folder / "clickbait" / "dev.tsv").write_text("\n".join(dev) + "\n", encoding="utf-8")
    (folder / "isear").mkdir()
    (folder / "isear" / "train.tsv").write_text("joy\tyou WILL not believe number 3.\n", encoding="utf-8")
    (folder / "isear" / "dev.tsv").write_text("fear\tWhen the dog came.\n", encoding="utf-8")
    return folder


def test_nothing_is_read_before_it_is_used(tmp_path: Path) -> None:
    sources = load_sources(tmp_path / "nowhere")
    names = [source.name for source in sources]
    assert len(names) == len(set(names)) >= 75
    assert "banking77" not in names


def test_rows_that_are_held_out_are_removed(data: Path) -> None:
    source = DatasetSource(data, load_dataset("clickbait"), "train")
    assert len(source) == 19  # of 21


def test_a_held_back_dataset_cannot_be_trained_on(data: Path) -> None:
    with pytest.raises(ValueError, match="isear is held back"):
        load_sources(data, ["clickbait", "isear"])
    assert len(load_sources(data, ["isear"], "validation")[0]) == 1


def test_the_same_row_and_state_give_the_same_question(data: Path) -> None:
    source = load_sources(data, ["clickbait"])[0]
    for index in range(len(source)):
        first, second = (source.draw(index, np.random.default_rng(index)) for _ in range(2))
        assert first == second
        assert first.task == "clickbait"
        assert first.id == f"train/clickbait/{index}"
    drawn = {source.draw(0, np.random.default_rng(seed)).question for seed in range(40)}
    assert len(drawn) > 10


def test_validation_asks_fixed_questions(data: Path) -> None:
    examples = validation_examples(data, "clickbait", 4, 1)
    assert examples == validation_examples(data, "clickbait", 4, 1)
    assert len(examples) == 4
    assert {example.question for example in examples} == {"Is this headline clickbait?"}
    assert all([choice.label for choice in e.choices] == ["clickbait", "not clickbait"] for e in examples)
    assert len(validation_examples(data, "isear.emotion", 10, 1)) == 1
    with pytest.raises(ValueError, match="isear has no part 'topic'; it has emotion"):
        validation_examples(data, "isear.topic", 10, 1)


def test_refusals_of_the_older_tasks_are_no_answer(tmp_path: Path) -> None:
    (tmp_path / "zre").mkdir()
    lines = ["spouse\tWho is the spouse of XXX?\tAnn\tAnn married Bob.\tBob", "job\tWhat does XXX do?\tAnn\tAnn sat."]
    (tmp_path / "zre" / "dev.0").write_text("\n".join(lines) + "\n", encoding="utf-8")
    source = DatasetSource(tmp_path, load_dataset("zre"), "validation")
    answers = [source.draw(index, np.random.default_rng(0)).answers for index in range(len(source))]
    assert answers == [("Bob",), ()]


def test_texts_made_by_program_and_misleading_sentences_are_sources_by_name() -> None:
    [made] = load_sources(Path("no data"), ["made_invoices"])
    example = made.draw(3, np.random.default_rng(1))
    assert example == made.draw(3, np.random.default_rng(1))
    assert example.task == made.name == "made_invoices"
    held_back = validation_examples(Path("no data"), "made_invoices", 5, 1)
    assert len({e.context for e in held_back}) == 5
    [adversarial] = load_sources(Path("no data"), ["squad_adversarial"])
    assert adversarial.name == "squad_adversarial"
    [changed] = load_sources(Path("no data"), ["squad_changed"])
    assert changed.name == "squad_changed"
    assert {
        dataset_of(name)
        for name in (
            "squad",
            "squad_adversarial",
            "squad_changed",
            "squad_facts",
            "squad_surrounded",
            "squad_changed_surrounded",
        )
    } == {"squad"}
