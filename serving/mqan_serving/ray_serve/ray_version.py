"""The Ray that a server runs on: private parts of it are used, which change from one minor version to the next."""

from importlib.metadata import PackageNotFoundError, version
from typing import Final

from mqan_serving.contract.errors import SettingsError

TESTED: Final = "2.60"  # pyproject.toml pins it; loopback.py and rpc/bounds.py use its private parts
_WITHOUT = "or serve without Ray: mqan serve"


def check_ray() -> None:
    """Check that Ray is there, in the minor version that this server was tested with.

    Raises:
        SettingsError: it is not; the message says what to install.
    """
    try:
        found = version("ray")
    except PackageNotFoundError:
        raise SettingsError(f"Ray is not installed: pip install 'mqan[serve]', {_WITHOUT}") from None
    if found.split(".")[:2] != TESTED.split("."):
        raise SettingsError(
            f"Ray {found} is installed, but this server uses private parts of Ray {TESTED}: "
            f"pip install 'ray[serve]~={TESTED}.0', {_WITHOUT}"
        )
