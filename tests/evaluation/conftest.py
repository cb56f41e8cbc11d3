"""A small pretrained reader as what answers."""

import pytest

from mqan_evaluation.answerers import TorchAnswerer
from tests.answering import RECIPE, make_trained


@pytest.fixture(scope="session")
def tiny_answerer() -> TorchAnswerer:
    return TorchAnswerer(make_trained(), RECIPE.max_answer_tokens, "tiny", ("clickbait",))
