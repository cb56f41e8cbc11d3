"""What makes training on a CPU faster must not get in anybody's way."""

import os

import pytest

from mqan_training.cpu import tune_process


def test_the_cache_of_kernels_is_as_large_as_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "0")  # so that it is put back afterwards
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY")
    tune_process()
    assert int(os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"]) > 1024
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "7")
    tune_process()
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "7"
