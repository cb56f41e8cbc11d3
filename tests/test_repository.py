"""What the repository says about itself holds."""

import json
import re
import subprocess
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import mqan_core
from mqan_serving.ray_serve.environment import TESTED

REPOSITORY = Path(__file__).resolve().parent.parent
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"] + sorted(
    str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "docs").rglob("*.md")
)
_LINK = re.compile(r"\]\(([^)#\s]+)")
_PIN = re.compile(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.!]*")


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    assert [line for line in lines if not _PIN.fullmatch(line)] == [], "exact versions only, no addresses, no options"
    return {normalised(name): version for name, version in (line.split("==") for line in lines)}


@pytest.fixture(scope="module")
def project(repository: Path) -> Any:
    return tomllib.loads((repository / "pyproject.toml").read_text())


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(repository: Path, document: str) -> None:
    path = repository / document
    links = [link for link in _LINK.findall(path.read_text()) if "://" not in link]
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_every_dependency_is_pinned(repository: Path, project: Any) -> None:
    extras = project["project"]["optional-dependencies"].values()
    wanted = [name for group in (project["project"]["dependencies"], *extras) for name in group]
    names = {normalised(re.split(r"[\[<>=~! ;]", requirement)[0]) for requirement in wanted}
    pinned = pins(repository / "constraints.txt")
    assert names - pinned.keys() == set()
    assert pinned["torch"] == "2.13.0"
    assert pins(repository / "constraints-gpu.txt").keys().isdisjoint(pinned)


def test_ray_is_pinned_to_the_minor_version_that_it_was_tested_with(repository: Path, project: Any) -> None:
    extras = project["project"]["optional-dependencies"]
    major, minor = (int(number) for number in TESTED.split("."))
    pinned = f">={TESTED},<{major}.{minor + 1}"
    assert (extras["serve"], extras["cluster"]) == ([f"ray[serve]{pinned}"], [f"ray[train]{pinned}"])
    assert pins(repository / "constraints.txt")["ray"].startswith(f"{TESTED}.")


def test_every_package_is_shipped(repository: Path, project: Any) -> None:
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    roots = {path.parent for path in repository.glob("*/mqan*/__init__.py")}
    roots |= {path.parent for path in repository.glob("clients/python/mqan*/__init__.py")}
    assert {repository / package for package in packages} == roots
    for package in packages:
        assert (repository / package / "py.typed").exists(), package
    assert sorted(project["tool"]["importlinter"]["root_packages"]) == sorted(
        Path(package).name for package in packages
    )


def test_the_change_log_begins_with_this_version(repository: Path) -> None:
    headings = re.findall(r"^## (.*)$", (repository / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    sections = [re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)", heading) for heading in headings[1:]]
    assert None not in sections, "every released section has a version and a date"
    versions = [tuple(int(number) for number in section.groups()[:3]) for section in sections if section]
    dates = [date.fromisoformat(section[4]) for section in sections if section]
    assert versions == sorted(set(versions), reverse=True)
    assert dates == sorted(dates, reverse=True)
    assert ".".join(str(number) for number in versions[0]) == mqan_core.__version__


def test_there_is_one_version(repository: Path) -> None:
    openapi = json.loads((repository / "protos" / "openapi.json").read_text())
    assert openapi["info"]["version"] == mqan_core.__version__
    images = re.findall(r"mqan-ray:(\d[\w.]*)", (repository / "deploy" / "kuberay.yaml").read_text())
    assert set(images) == {mqan_core.__version__}


def test_make_lists_its_verbs(repository: Path) -> None:
    shown = subprocess.run(
        ["make", "help"], cwd=repository, capture_output=True, text=True, check=True, timeout=30
    ).stdout
    makefile = (repository / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    assert re.findall(r"^  make (\w+) ", shown, re.MULTILINE) == phony.group(1).split()
