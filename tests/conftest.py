"""What all tests share: where the datasets are, and which tests this machine can run."""

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a device or datasets that are not here."""
    without_data = pytest.mark.skip(reason="MQAN_DATA does not name the folder of the datasets")
    without_gpu = pytest.mark.skip(reason="no CUDA device")
    for item in items:
        if item.get_closest_marker("data") and "MQAN_DATA" not in os.environ:
            item.add_marker(without_data)
        if item.get_closest_marker("gpu") and not Path("/dev/nvidiactl").exists():
            item.add_marker(without_gpu)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder of the datasets; for tests marked ``data``."""
    return Path(os.environ["MQAN_DATA"])


@pytest.fixture(scope="session")
def repository() -> Path:
    """Root of the checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def bundle_folder(repository: Path) -> Path:
    """Folder of the bundle that is served in tests: MQAN_TEST_BUNDLE, else the default bundle."""
    named = os.environ.get("MQAN_TEST_BUNDLE")
    if named:
        return Path(named)
    found = sorted(path.parent for path in (repository / "serving" / "bundles").glob("*/manifest.json"))
    if not found:
        pytest.skip("there is no bundle in serving/bundles and MQAN_TEST_BUNDLE names none")
    return found[0]
