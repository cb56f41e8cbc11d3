"""The pages of a server: one to try it on, one that describes its REST API. Neither loads anything from elsewhere.

FastAPI's own page of the API loads its script from a content delivery network, which a server in a closed network
cannot reach. This one is written from its OpenAPI document (https://spec.openapis.org/oas/v3.1.0).
"""

import base64
import hashlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # it is loaded for the first page
    from jinja2 import Template

_PLAYGROUND = Path(__file__).with_name("playground.html")
_REF = "#/components/schemas/"
_EXAMPLE_SERVER = "http://127.0.0.1:8000"
_EXAMPLE_OF = {"number": 0.9, "integer": 1, "string": "text", "boolean": False}


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


def render_reference(document: Mapping[str, Any]) -> Page:
    """Return the page of an OpenAPI document of operations with JSON bodies."""
    schemas = document["components"]["schemas"]
    operations = [
        _operation(method.upper(), path, operation, schemas)
        for path, by_method in document["paths"].items()
        for method, operation in by_method.items()
    ]
    template = template_of("mqan_serving", "reference.html")
    return Page.of(template.render(info=document["info"], operations=operations, schemas=schemas))


def _operation(method: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> dict[str, Any]:
    content, answered = _json_body(operation.get("requestBody", {})), _json_body(operation["responses"]["200"])
    command, body = f"curl {_EXAMPLE_SERVER}{path}", None
    if operation.get("security"):
        command += " -H 'authorization: Bearer KEY'"
    if content:
        body = _object_of(content["schema"], schemas)
        needed = {name: body["properties"][name] for name in body.get("required", ())} if "properties" in body else {}
        sample = content.get("example") or {name: _example(field, schemas) for name, field in needed.items()}
        command += f" \\\n  -H 'content-type: application/json' -d {shlex.quote(json.dumps(sample, indent=2))}"
    example = answered.get("example") or _example(answered.get("schema", {}), schemas)
    responses = [
        (status, response["description"], _json_body(response).get("schema", {}))
        for status, response in sorted(operation["responses"].items())
    ]
    given = {"method": method, "path": path, "body": body, "command": command, "rows": responses}
    return {**operation, **given, "example": json.dumps(example, indent=2) if example else ""}


def _object_of(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" in schema:
        return _object_of(schemas[schema["$ref"].removeprefix(_REF)], schemas)
    return _object_of(schema["anyOf"][0], schemas) if "anyOf" in schema else schema


def _example(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    found = _object_of(schema, schemas)
    if "properties" in found:
        always = found.get("required", found["properties"])  # what comes only when asked for is left out
        return {name: _example(field, schemas) for name, field in found["properties"].items() if name in always}
    if found.get("type") == "array":
        return [_example(found["items"], schemas)]
    for known in ("examples", "enum"):
        if known in found:
            return found[known][0]
    return found.get("const", _EXAMPLE_OF.get(found.get("type", "")))


def _json_body(response: Mapping[str, Any]) -> Mapping[str, Any]:
    body: Mapping[str, Any] = response.get("content", {}).get("application/json", {})
    return body
