"""Questions that a teacher answers: what they offer, what is learnt of them, and that a resumed run has the same."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from mqan_core.example import Choice, Example
from mqan_core.layout import Layout
from mqan_core.vocab import Vocabulary
from mqan_core.word_pieces import WordPieces
from mqan_training.collate import collate
from mqan_training.data.mixture import load_sources
from mqan_training.data.source import Source
from mqan_training.data.taught import LabelNames, TaughtSource, label_questions
from mqan_training.losses import taught_losses
from mqan_training.model.decoder import Mixture
from mqan_training.prepare import prepare
from mqan_training.sentence_encoder import packaged_encoder
from mqan_training.teacher import with_teacher

TEXTS = ["the striker scored a late goal", "the bank raised its interest rate", "heavy rain and thunder tonight"]
SETS = [
    LabelNames("topic", "topics", (("sports",), ("finance", "banking"), ("weather",))),
    LabelNames("mood", "moods", tuple((name,) for name in ("happy", "angry", "calm"))),
]
WORDS = "[PAD] [UNK] [CLS] [SEP] who red green blue ? sky".split()  # noqa: SIM905


def by_letters(texts: Sequence[str], labels: Sequence[str]) -> npt.NDArray[np.float32]:
    """How many letters two texts share: no sense, but the same every time."""
    return np.array([[len(set(text) & set(label)) for label in labels] for text in texts], np.float32)


def test_labels_of_one_set_or_of_all_are_offered() -> None:
    questions = label_questions(TEXTS * 100, SETS, by_letters, np.random.default_rng(1))
    kinds = [{name for names in some.names for name in names} for some in SETS]
    offered = [{choice.label for choice in example.choices} for example in questions]
    assert all(len(labels) == len(example.choices) > 1 for labels, example in zip(offered, questions, strict=True))
    of_one = sum(any(labels <= kind for kind in kinds) for labels in offered)
    assert 0.4 * len(questions) < of_one < 0.9 * len(questions)
    assert any("banking" in labels for labels in offered)
    assert all(not example.answers and "{" not in example.question for example in questions)


def test_probabilities_stay_with_their_choices() -> None:
    labels = tuple(f"label {i}" for i in range(9))
    example = Example(
        "taught", "0", "a text", "which?", (), choices=tuple(map(Choice, labels)), teacher=tuple(range(9))
    )
    orders = set()
    for seed in range(20):
        drawn = TaughtSource([example]).draw(0, np.random.default_rng(seed))
        assert [f"label {share}" for share in drawn.teacher] == [choice.label for choice in drawn.choices]
        orders.add(drawn.teacher)
    assert len(orders) > 10


def test_the_loss_is_the_cross_entropy_of_the_choices() -> None:
    vocabulary, layout = Vocabulary((), refuses=True), Layout(WordPieces(WORDS))
    choices = (Choice("red"), Choice("green"), Choice("blue"))
    example = Example("taught", "0", "sky", "who ?", (), choices=choices, teacher=(0.7, 0.2, 0.1))
    known = Example("colours", "1", "sky", "who ?", ("red",), choices=choices)
    rng = np.random.default_rng(0)
    prepared = [prepare(e, vocabulary, layout, 8, rng) for e in (example, known)]
    assert prepared[0] is not None
    assert prepared[1] is not None
    batch = collate([prepared[0], prepared[1]], layout, vocabulary.num_generated)
    num_question = batch.teacher.shape[1]
    given_BAQ = torch.full((2, 1, num_question), 1e-30)
    given_BAQ[:, 0, 2:5] = torch.tensor([0.5, 0.3, 0.2])  # behind "who" and "?"
    nothing_BA = torch.zeros(2, 1)
    mixture = Mixture(torch.zeros(2, 1, 2), torch.zeros(2, 1, 4), given_BAQ, nothing_BA, nothing_BA)
    losses_B, is_taught_B = taught_losses(mixture, batch)
    expected = -(0.7 * np.log(0.5) + 0.2 * np.log(0.3) + 0.1 * np.log(0.2))
    assert is_taught_B.tolist() == [True, False]
    assert losses_B[0].item() == pytest.approx(expected, abs=1e-4)
    assert losses_B[1].item() == 0


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> list[Source]:
    """A few rows of a dataset with labels."""
    data = tmp_path_factory.mktemp("data")
    (data / "stackoverflow").mkdir()
    rows = ["svn\thow do I merge a branch back into trunk", "oracle\tcreate a stored procedure with a cursor"]
    rows += [f"wordpress\ta plugin for posts with {i} columns" for i in range(9)]
    with gzip.open(data / "stackoverflow" / "train.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(rows) + "\n")
    (data / "stackoverflow" / "dev.tsv").write_text("svn\thow do I tag a release\n", encoding="utf-8")
    return load_sources(data, ["stackoverflow"])


def test_the_encoder_alone_teaches_a_run_that_knows_nothing(labelled: list[Source], tmp_path: Path) -> None:
    encoder = packaged_encoder()
    vocabulary, layout = Vocabulary((), refuses=True), Layout(WordPieces(WORDS))
    sources = with_teacher(labelled, 8, tmp_path, encoder, None, (vocabulary, layout), seed=1)
    taught = sources[-1]
    assert [source.name for source in sources] == ["stackoverflow", "taught"]
    assert 4 <= len(taught) <= 8
    rng = np.random.default_rng(0)
    for index in range(len(taught)):
        example = taught.draw(index, rng)
        assert sum(example.teacher) == pytest.approx(1, abs=1e-3)
        labels = [choice.label for choice in example.choices]
        if "merge a branch" in example.context and "SVN" in labels and "WordPress" in labels:
            assert example.teacher[labels.index("SVN")] > example.teacher[labels.index("WordPress")]
    again = with_teacher(labelled, 8, tmp_path, tmp_path / "no encoder", None, (vocabulary, layout), seed=1)[-1]
    drawn = [[source.draw(i, np.random.default_rng(i)) for i in range(len(source))] for source in (taught, again)]
    assert drawn[0] == drawn[1]


def test_sources_without_label_sets_cannot_be_taught(tmp_path: Path) -> None:
    reading = Vocabulary((), refuses=True), Layout(WordPieces(WORDS))
    with pytest.raises(ValueError, match="none of the sources has label sets"):
        with_teacher([TaughtSource([])], 8, tmp_path, packaged_encoder(), None, reading, seed=1)
