"""Small data sets of the baselines' tasks, and a small encoder."""

from pathlib import Path

import pytest

from tests.baselines.models import write_data, write_encoder


@pytest.fixture(scope="session")
def baseline_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("baseline-data"))


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("tiny-encoder"))
