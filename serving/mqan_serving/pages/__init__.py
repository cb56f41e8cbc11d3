"""The pages of a server: one to try it on, one that describes its REST API. Neither loads anything from elsewhere."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it is loaded for the first page
    from jinja2 import Template

_PLAYGROUND = Path(__file__).with_name("playground.html")


@dataclass(frozen=True, slots=True)
class Page:
    """A page and the policy it is served under: exactly its own script and style, and requests to its own server."""

    html: str
    content_security_policy: str

    @classmethod
    def of(cls, html: str) -> "Page":
        """Return a page with at most one ``<script>`` and one ``<style>``."""
        script, style = (_hash_of(html, tag) for tag in ("script", "style"))
        policy = (
            f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src data:; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return cls(html, policy)


def load_playground(grpc_port: int, links: Sequence[str] = (), *, makes_adapters: bool = False) -> Page:
    """Return the page that asks the server it comes from; ``links`` are NAME=URL."""
    pairs = (link.partition("=") for link in links)
    shown = "".join(f'<a href="{escape(url)}">{escape(name)}</a>' for name, _, url in pairs)
    html = _PLAYGROUND.read_text(encoding="utf-8").replace("<!-- links -->", shown)
    html = html.replace('name="makes-adapters" content=""', f'name="makes-adapters" content="{makes_adapters or ""}"')
    return Page.of(html.replace('name="grpc-port" content="9000"', f'name="grpc-port" content="{grpc_port}"'))


def template_of(package: str, name: str) -> "Template":
    """Return a template of the folder ``pages`` of a package."""
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    loader = PackageLoader(package, "pages")
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    code = re.compile(r"`([^`]+)`")
    environment.filters["prose"] = lambda text: Markup(code.sub(r"<code>\1</code>", escape(str(text))))  # noqa: S704
    environment.filters["json"] = json.dumps
    return environment.get_template(name)


def _hash_of(html: str, tag: str) -> str:
    _, opening, rest = html.partition(f"<{tag}>")
    content, closing, _ = rest.partition(f"</{tag}>")
    if not (opening and closing):
        if f"<{tag}" in html:
            raise ValueError(f"the policy of a page knows no <{tag}> with attributes")
        return "'none'"
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
