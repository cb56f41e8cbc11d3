"""``mqan key`` keeps its file out of git repositories."""

import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mqan_cli.files import exposing_tree
from mqan_cli.main import app

runner = CliRunner()


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git work tree with a folder below it, which is the working folder."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    return tmp_path


def test_a_file_that_git_would_take_is_refused(tree: Path) -> None:
    result = runner.invoke(app, ["key", "alice", "--file", "keys"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"keys is in the git work tree {tree}, which does not ignore it" in result.stderr
    assert not Path("keys").exists()


def test_a_file_that_git_ignores_is_written(tree: Path) -> None:
    (tree / ".gitignore").write_text("keys\n")
    assert runner.invoke(app, ["key", "alice", "--file", "keys"]).exit_code == 0
    assert Path("keys").read_text().startswith("alice ")


def test_a_file_that_git_follows_is_refused_even_if_it_is_ignored(tree: Path) -> None:
    Path("keys").write_text("")
    subprocess.run(["git", "add", "keys"], check=True)
    (tree / ".gitignore").write_text("keys\n")
    assert exposing_tree(Path("keys")) == tree


def test_a_link_is_judged_by_where_it_leads(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    assert exposing_tree(outside / "keys") is None
    (outside / "folder").symlink_to(tree / "below")
    assert exposing_tree(outside / "folder" / "keys") == tree


def test_without_git_nothing_counts_as_ignored(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / ".gitignore").write_text("keys\n")
    assert exposing_tree(Path("keys")) is None
    monkeypatch.setenv("PATH", str(tree))
    assert exposing_tree(Path("keys")) == tree


def test_a_repository_named_by_the_environment_is_not_asked(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(tree / "nowhere"))
    assert exposing_tree(Path("keys")) == tree
