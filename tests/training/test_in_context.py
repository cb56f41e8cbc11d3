"""Vectors of words from sentences in which they stand."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from mqan_cli.main import app
from mqan_training.config import TaskConfig, TrainConfig
from mqan_training.embed import make_vectors
from mqan_training.in_context import covering_sentences, distil_in_context
from mqan_training.model.embeddings import load_vectors
from mqan_training.transfer import extends

PIECES = ["the", "bri", "##ght", "dull", "film", "of", "two", "old", "friends", ",", "."]
TEXTS = ["The bright film of old friends.", "A dull, bright film", "two old friends , the two old friends of a film"]
WORDS = ["film", "bright", "friends", "two", "dull", "missing"]


@pytest.fixture(scope="module")
def encoder(write_encoder: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("in_context") / "encoder", PIECES, num_layers=4)


# --- Which sentences are read


def test_the_first_sentences_have_every_word_and_the_next_have_it_again() -> None:
    common = [f"the film is number{i} here." for i in range(20)]
    texts = [*common, "a seldom word is here.", "a seldom word is there."]
    once = covering_sentences(texts, ["film", "seldom"], 1)
    assert len(once) == 2
    assert {"film" in text for text in once} == {True, False}
    four = covering_sentences(texts, ["film", "seldom"], 4)
    assert four[:2] == once
    assert sum("film" in text for text in four) == 4
    assert sum("seldom" in text for text in four) == 2  # there are no more


def test_a_text_without_a_wanted_word_is_not_read() -> None:
    assert covering_sentences(["the film is dull.", "nothing of it here."], ["Film", "dull"], 9) == [
        "the film is dull."
    ]


def test_what_is_held_out_is_not_read() -> None:
    texts = ["The film is dull.", "A film of friends."]
    assert covering_sentences(texts, ["film"], 9, {"thefilmisdull"}) == texts[1:]


# --- What a vector is


def reference(encoder: Path, word: str, texts: list[str]) -> np.ndarray:
    """Return the mean of the states of a word of one or two known pieces, each sentence read alone."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(encoder), AutoModel.from_pretrained(encoder).eval()
    found = []
    for text in texts:
        encoded = tokenizer(text, truncation=True, max_length=128, return_tensors="pt", return_offsets_mapping=True)
        offsets = encoded.pop("offset_mapping")[0].tolist()
        with torch.no_grad():
            hidden = model(**encoded, output_hidden_states=True).hidden_states
        states = torch.cat([hidden[1], hidden[2], hidden[4]], dim=-1)[0]
        start = text.lower().find(word)
        while start >= 0:
            inside = [p for p, (a, z) in enumerate(offsets) if start <= a < z <= start + len(word)]
            found.append(states[inside].mean(dim=0))
            start = text.lower().find(word, start + 1)
    mean: np.ndarray = torch.stack(found).mean(dim=0).numpy()
    return mean


def test_a_vector_is_the_mean_of_the_states_of_a_word(encoder: Path) -> None:
    texts = [*TEXTS, " ".join(["film"] * 125 + ["bright"])]  # half of the last word is cut off
    words, rows = distil_in_context(WORDS, texts, 48, encoder)
    assert words == WORDS[:-1]  # the last stands nowhere
    assert rows.dtype == np.float32
    expected = np.stack([reference(encoder, word, texts) for word in words])
    # principal components keep the distances between words
    for got, wanted in ((rows, expected), (rows[::-1], expected[::-1])):
        np.testing.assert_allclose(
            np.linalg.norm(got - got[0], axis=1), np.linalg.norm(wanted - wanted[0], axis=1), rtol=1e-4, atol=1e-4
        )


def test_vectors_wider_than_the_states_are_refused(encoder: Path) -> None:
    with pytest.raises(ValueError, match="three layers of .* have 48 dimensions, 49 were asked for"):
        distil_in_context(WORDS, TEXTS, 49, encoder)


def test_words_of_which_none_stands_in_the_texts_are_refused(encoder: Path) -> None:
    with pytest.raises(ValueError, match="none of the 1 words stands in the 3 sentences"):
        distil_in_context(["missing"], TEXTS, 2, encoder)


def test_what_stands_behind_the_longest_text_is_not_read(encoder: Path) -> None:
    words, _ = distil_in_context(["film", "dull"], [" ".join(["film"] * 200 + ["dull"])], 1, encoder)
    assert words == ["film"]


# --- From the command line


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data" / "sst").mkdir(parents=True)
    rows = ["1,the bright film of two old friends .", "0,a dull film of the old friends ."]
    (tmp_path / "data" / "sst" / "train_binary_sent.csv").write_text("\n".join(["label,sentence", *rows, ""]))
    held_out = ["label,sentence", "0,the film of the validation .", ""]
    (tmp_path / "data" / "sst" / "dev_binary_sent.csv").write_text("\n".join(held_out))
    return tmp_path / "data"


def test_new_columns_stand_beside_those_of_before(encoder: Path, data: Path, tmp_path: Path) -> None:
    config = TrainConfig("t", (TaskConfig("sst"),), 1, str(tmp_path / "v.safetensors"))
    make_vectors(config, data, num_words=50, width=3, encoder=encoder, in_context=2)
    first = load_vectors(tmp_path / "v.safetensors")
    assert first.width == 3
    assert {"bright", "dull", "friends"} <= set(first.words)
    assert "positive" not in first.words  # an answer's word, which stands in no sentence
    make_vectors(config, data, num_words=1, width=2, encoder=encoder, in_context=1, beside=first)
    both = load_vectors(tmp_path / "v.safetensors")
    assert (both.words, both.width) == (first.words, 5)
    assert extends(both, first)
    assert both.rows[:, 3:].any(axis=1).all(), "also the words that are not among the most frequent"


def test_sentences_of_other_splits_are_left_out(encoder: Path, data: Path, tmp_path: Path) -> None:
    with (data / "sst" / "train_binary_sent.csv").open("a") as file:
        file.write('1,"The film, of the Validation!"\n')
    config = TrainConfig("t", (TaskConfig("sst"),), 1, str(tmp_path / "v.safetensors"))
    make_vectors(config, data, num_words=50, width=3, encoder=encoder, in_context=2)
    assert "validation" not in load_vectors(tmp_path / "v.safetensors").words


def test_one_way_to_make_vectors_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("name: r\nsteps: 1\nvectors: v\ntasks: [{name: sst}]\n")
    (tmp_path / "g.txt").write_text("the 1 2\n")
    given = ["embed", str(tmp_path / "r.yaml"), "--in-context", "2", "--glove", str(tmp_path / "g.txt")]
    result = CliRunner().invoke(app, given, env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert result.exit_code == 1
    assert "--in-context distils an encoder and --glove reads a file: leave one of them out" in result.output
