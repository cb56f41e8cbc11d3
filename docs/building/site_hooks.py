"""What MkDocs calls while it builds the site (https://www.mkdocs.org/dev-guide/plugins/#events)."""

from pathlib import Path
from typing import Final

from cli_page import cli_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from python_page import python_page
from rest_page import rest_page
from rpc_page import rpc_page
from settings_page import settings_page
from site_links import rewrite_links

REPOSITORY: Final = Path(__file__).resolve().parents[2]
# Files outside docs/ that are pages: where they stand, and what they are on the site.
INCLUDED: Final = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "clients/python/README.md": "clients/python.md",
    "clients/typescript/README.md": "clients/typescript.md",
    "serving/bundles/default/README.md": "model-card.md",
}
# What the reference is made of, likewise. A link to one of them leads to its page.
_OPENAPI: Final = "protos/openapi.json"
_PROTO: Final = "protos/mqan/v1/answer.proto"
_SETTINGS: Final = "serving/mqan_serving/settings.py"
_COMMANDS: Final = "cli/mqan_cli/main.py"
_CLIENT: Final = "clients/python/mqan_client/__init__.py"
GENERATED: Final = {
    _OPENAPI: "reference/rest.md",
    _PROTO: "reference/grpc.md",
    _SETTINGS: "reference/settings.md",
    _COMMANDS: "reference/command-line.md",
    _CLIENT: "reference/python.md",
}
_HOME: Final = {"README.md": "index.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files from elsewhere and the generated pages."""
    for path, page in INCLUDED.items():
        files.append(File.generated(config, page, abs_src_path=str(REPOSITORY / path)))
    for path, content in (
        (_OPENAPI, rest_page(REPOSITORY / _OPENAPI)),
        (_PROTO, rpc_page(REPOSITORY / _PROTO, REPOSITORY / "protos")),
        (_SETTINGS, settings_page()),
        (_COMMANDS, cli_page()),
        (_CLIENT, python_page()),
    ):
        files.append(File.generated(config, GENERATED[path], content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of a page into the site's."""
    in_docs = {f"docs/{file.src_uri}": file.src_uri for file in files if not file.src_uri.startswith("source/")}
    pages = {**in_docs, **_HOME, **GENERATED, **INCLUDED}
    places = {uri: path for path, uri in (*in_docs.items(), *INCLUDED.items())}

    def copy(path: str) -> str:
        uri = f"source/{path}"
        if files.get_file_from_path(uri) is None:
            files.append(File.generated(config, uri, abs_src_path=str(REPOSITORY / path)))
        return uri

    try:
        return rewrite_links(markdown, places[page.file.src_uri], REPOSITORY, pages, copy)
    except ValueError as error:
        raise PluginError(str(error)) from error
