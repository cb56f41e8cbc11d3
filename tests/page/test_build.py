"""The page that is served was built from the sources that are beside it."""

import hashlib
import json
import re
from pathlib import Path

import pytest

import mqan_core
from mqan_serving.pages import load_playground

_SOURCES = ("clients/page/src", "clients/typescript/src")
_MORE = ("clients/page/build.mjs", "clients/python/mqan_client/marks.json")


def hash_sources(repository: Path) -> str:
    """Hash what the page is built from, as ``clients/page/build.mjs`` does."""
    files = [path for folder in _SOURCES for path in (repository / folder).iterdir() if path.is_file()]
    names = sorted(str(path.relative_to(repository)) for path in [*files, *map(repository.joinpath, _MORE)])
    digest = hashlib.sha256()
    for name in names:
        for part in (name.encode(), (repository / name).read_bytes()):
            digest.update(f"{len(part)} ".encode() + part)
    return digest.hexdigest()


def test_the_built_page_is_not_stale(repository: Path) -> None:
    built = re.search(r"Sources: ([0-9a-f]{64})", load_playground(9000).html)
    assert built is not None
    assert built.group(1) == hash_sources(repository), "run `npm ci && npm run build` in clients/page"


def test_its_policy_allows_its_own_script_and_style_only() -> None:
    page = load_playground(9000)
    assert len(re.findall(r"'sha256-[^']+'", page.content_security_policy)) == 2
    assert "unsafe" not in page.content_security_policy
    assert page.html.count("<script") == page.html.count("<style") == 1
    assert "innerHTML" not in page.html


@pytest.mark.parametrize("package", ["page", "typescript"])
def test_lock_files_have_hashes_and_name_no_registry(repository: Path, package: str) -> None:
    lock = json.loads((repository / "clients" / package / "package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert packages
    assert [name for name, entry in packages.items() if "integrity" not in entry or "resolved" in entry] == []


def test_the_client_has_the_version_of_the_server(repository: Path) -> None:
    for file in ("package.json", "package-lock.json"):
        assert json.loads((repository / "clients/typescript" / file).read_text())["version"] == mqan_core.__version__
