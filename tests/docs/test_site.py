"""The documentation builds as a site whose links lead somewhere, and whose reference leaves nothing out."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import typer

import mqan_client
from mqan.v1 import answer_pb2
from mqan_cli.main import app
from mqan_client import AsyncClient, Client
from mqan_client.documents import Asked, AskedRecord
from mqan_serving.settings import Settings

_ADDRESS = re.compile(r'\b(?:href|src)="([^"]*)"')
_LOADED = re.compile(
    r"<(?:script|img|iframe)[^>]*\bsrc=\"([^\"]*)\"|<link[^>]*\brel=\"stylesheet\"[^>]*\bhref=\"([^\"]*)\""
)
_ID = re.compile(r'\b(?:id|name)="([^"]*)"')


def build(config: Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        str(config),
        "--site-dir",
        str(folder),
    ]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def site(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    built = build(repository / "mkdocs.yml", folder)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def text_of(page: Path) -> str:
    return unescape(re.sub(r"<[^>]+>", "", page.read_text()))


def test_every_link_leads_somewhere(site: Path) -> None:
    ids = {page: {*_ID.findall(page.read_text()), ""} for page in site.rglob("*.html")}
    broken = []
    for page in ids:
        if page.name == "404.html":  # shown at any address: its links are absolute
            continue
        for link in map(urlsplit, map(unescape, _ADDRESS.findall(page.read_text()))):
            if link.scheme or link.netloc:
                continue
            target = (page.parent / unquote(link.path)).resolve() if link.path else page
            if target.is_dir():
                target /= "index.html"
            if not target.is_file() or (target in ids and unquote(link.fragment) not in ids[target]):
                broken.append((str(page.relative_to(site)), link.geturl()))
    assert broken == []
    assert len(ids) > 25


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loaded = {
        address for page in site.rglob("*.html") for found in _LOADED.findall(page.read_text()) for address in found
    }
    assert len(loaded) > 3
    assert [address for address in loaded if "//" in address] == []


def test_rest_reference_is_complete(site: Path, repository: Path) -> None:
    document, text = (
        json.loads((repository / "protos" / "openapi.json").read_text()),
        text_of(site / "reference/rest.html"),
    )
    for path, operations in document["paths"].items():
        for method in operations:
            assert f"{method.upper()} {path}" in text
    for name, schema in document["components"]["schemas"].items():
        assert name in text
        assert [field for field in schema.get("properties", {}) if field not in text] == []


def test_rpc_reference_is_complete(site: Path) -> None:
    text = text_of(site / "reference" / "grpc.html")
    contract = answer_pb2.DESCRIPTOR
    for service in contract.services_by_name.values():
        assert [method.name for method in service.methods if f"{service.name}/{method.name}" not in text] == []
    for message in contract.message_types_by_name.values():
        assert message.name in text
        assert [field.name for field in message.fields if f"{field.name}\n{field.number}\n" not in text] == []
    for enum in contract.enum_types_by_name.values():
        assert [value.name for value in enum.values if value.name not in text] == []
    assert "Neighbouring copied tokens, merged into quotations, in order." in text, "comments are the descriptions"


def test_settings_are_listed(site: Path) -> None:
    text = text_of(site / "reference" / "settings.html")
    assert [name for name in Settings.model_fields if f"MQAN_{name.upper()}\n" not in text] == []
    assert "8000\n≥ 1, ≤ 65,535\nPort of REST" in text


def test_commands_and_options_are_listed(site: Path) -> None:
    text = text_of(site / "reference" / "command-line.html")

    def told_of(name: str, command: Any) -> Iterator[str]:
        yield name
        yield from (option for param in command.params if not param.hidden for option in param.opts if "-" in option)
        for verb, inner in getattr(command, "commands", {}).items():
            yield from told_of(f"{name} {verb}", inner)

    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    told = {one for verb, command in commands.items() for one in told_of(f"mqan {verb}", command)}
    assert len(told) > 80
    assert [one for one in told if one not in text] == []
    assert "--http-port\nINTEGER\n" in text


def test_python_reference_is_complete(site: Path) -> None:
    page = site / "reference" / "python.html"
    text, ids = text_of(page), {*_ID.findall(page.read_text())}
    public = re.findall(r"^from .* as (\w+)$", Path(mqan_client.__file__).read_text(), re.MULTILINE)
    assert len(public) > 30
    assert [name for name in public if name not in ids] == []
    for one in (Client, AsyncClient):
        methods = [name for name in vars(one) if not name.startswith("_")]
        assert len(methods) > 8
        assert [name for name in methods if f"{one.__name__}.{name}" not in ids] == []
    fields = [(one, name) for one in public for name in getattr(vars(mqan_client)[one], "__dataclass_fields__", ())]
    fields += [(one.__name__, name) for one in (Asked, AskedRecord) for name in one.__annotations__]
    assert len(fields) > 100
    told = {
        name: part.partition("###")[0] for name, part in re.findall(r"^(\w+)¶\n(.*?)(?=^\w+¶\n|\Z)", text, re.M | re.S)
    }
    assert [(one, name) for one, name in fields if f"\n{name}\n" not in told[one]] == []
    assert "answer_questions(\n    context: str,\n    questions: Iterable[str | AskedQuestion]," in text
    assert "How likely it is that the text does not say" in text, "comments describe fields"


def test_examples_of_datasets_are_code(site: Path) -> None:
    """A list's code is indented otherwise in Python-Markdown than in the repository's own view."""
    shown = re.findall(r"<pre.*?</pre>", (site / "datasets.html").read_text(), re.DOTALL)
    assert any("clickbait" in unescape(re.sub(r"<[^>]+>", "", code)) for code in shown)


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("[no page](missing.md)", "docs/index.md: the link missing.md leads nowhere"),
        ("[no place](other.md#nowhere)", "does not contain an anchor '#nowhere'"),
    ],
)
def test_a_broken_link_fails_the_build(tmp_path: Path, repository: Path, page: str, said: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Page\n\n{page}\n")
    (tmp_path / "docs" / "other.md").write_text("# Other\n")
    (tmp_path / "hooks.py").write_text(
        f"import sys; sys.path.insert(0, {str(repository / 'docs' / 'building')!r})\n"
        "import site_hooks\nfrom pathlib import Path\n"
        "site_hooks.REPOSITORY = Path(__file__).parent\nsite_hooks.INCLUDED = {}\n"
        "on_page_markdown = site_hooks.on_page_markdown\n"
    )
    (tmp_path / "mkdocs.yml").write_text(
        "site_name: small\nhooks: [hooks.py]\nvalidation: {anchors: warn}\nnav: [index.md, other.md]\n"
    )
    built = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert built.returncode != 0
    assert said in " ".join((built.stdout + built.stderr).split())
