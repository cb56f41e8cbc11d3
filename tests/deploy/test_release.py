"""``.ci/release`` refuses what is no release, before it builds anything."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-02\n\n- A line.\n\n## [1.2.2] - 2026-01-01\n"


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def release(repository: Path, tmp_path: Path) -> Callable[[], "subprocess.CompletedProcess[str]"]:
    """Commit all and release a repository that is one but for its distributions."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(repository / ".ci" / "release", tmp_path / ".ci" / "release")
    (tmp_path / "core" / "mqan_core").mkdir(parents=True)
    (tmp_path / "core" / "mqan_core" / "__init__.py").write_text('"""Doc."""\n\n__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "init", "--quiet")

    def run() -> "subprocess.CompletedProcess[str]":
        git(tmp_path, "add", "--all")
        git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "Release")
        return call(tmp_path)

    return run


def call(folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([folder / ".ci" / "release", sys.executable], capture_output=True, text=True, timeout=60)


def test_what_is_a_release_goes_on_to_be_built(release: Callable[[], "subprocess.CompletedProcess[str]"]) -> None:
    result = release()
    assert "release:" not in result.stderr
    assert "does not appear to be a Python project" in result.stdout + result.stderr  # from what builds


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "## [1.2.3] - 2026-01-02",
            "## [1.2.4] - 2026-01-02",
            "says ## [1.2.4] - 2026-01-02, not [1.2.3]",
        ),
        ("## [1.2.3] - 2026-01-02", "## [1.2.3]", "CHANGELOG.md says ## [1.2.3], not [1.2.3] - YYYY-MM-DD"),
        ("## [1.2.3]", "## [1x2.3]", "CHANGELOG.md says ## [1x2.3] - 2026-01-02"),
        ("## [Unreleased]\n", "", "does not begin with [Unreleased]"),
        ("## [Unreleased]\n", "## [Unreleased]\n\n- More.\n", "lines under [Unreleased]"),
    ],
)
def test_a_change_log_of_another_version_is_refused(
    release: Callable[[], "subprocess.CompletedProcess[str]"], tmp_path: Path, before: str, after: str, message: str
) -> None:
    assert before in CHANGELOG
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG.replace(before, after))
    result = release()
    assert result.returncode == 1
    assert message in result.stderr


def test_a_version_is_released_once(release: Callable[[], "subprocess.CompletedProcess[str]"], tmp_path: Path) -> None:
    release()
    git(tmp_path, "tag", "--annotate", "v1.2.3", "--message", "before")
    result = call(tmp_path)
    assert (result.returncode, "v1.2.3 is there already" in result.stderr) == (1, True)


def test_a_work_tree_with_changes_is_refused(
    release: Callable[[], "subprocess.CompletedProcess[str]"], tmp_path: Path
) -> None:
    release()
    (tmp_path / "new").touch()
    result = call(tmp_path)
    assert (result.returncode, "the work tree has changes" in result.stderr) == (1, True)
