"""Small data sets of the baselines' tasks, and a small encoder."""

from pathlib import Path

import pytest

from tests.baselines.models import write_data, write_encoder


@pytest.fixture(scope="session")
def baseline_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of small data sets that a model can learn."""
    return write_data(tmp_path_factory.mktemp("baseline-data"))


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an untrained BERT of one layer that knows the data's words and all letters."""
    return write_encoder(tmp_path_factory.mktemp("tiny-encoder"))
