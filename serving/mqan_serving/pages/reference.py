"""The reference of the REST API as a page, written from its OpenAPI document (https://spec.openapis.org/oas/v3.1.0).

FastAPI's own page loads its script from a content delivery network, which a server in a closed network cannot reach.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from mqan_serving.pages import Page

_REF = "#/components/schemas/"
_EXAMPLE_SERVER = "http://127.0.0.1:8000"
_EXAMPLE_OF = {"number": 0.9, "integer": 1, "string": "text", "boolean": False}
_PAGE = Path(__file__).with_name("reference.html")


def render_reference(document: Mapping[str, Any]) -> Page:
    """Return the page of an OpenAPI document of operations with JSON bodies."""
    info, schemas = document["info"], document["components"]["schemas"]
    parts = [f"<h1>{escape(info['title'])} <small>{escape(info['version'])}</small></h1>"]
    parts += [f"<p>{_prose(text)}</p>" for text in info["description"].split("\n\n")]
    parts.append('<p><a href="./">Try it</a> · <a href="openapi.json">OpenAPI document</a></p>')
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts.append(_operation(method.upper(), path, operation, schemas))
    parts += [_schema(name, schema) for name, schema in schemas.items()]
    page = _PAGE.read_text(encoding="utf-8").replace("TITLE", escape(info["title"]))
    return Page.of(page.replace("BODY", "\n".join(parts)))


def _operation(method: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    parts = [f"<h2><code>{method} {escape(path)}</code></h2>", f"<p>{_prose(operation['summary'])}.</p>"]
    if operation.get("security"):
        parts.append("<p>Needs an API key: <code>authorization: Bearer KEY</code>.</p>")
    content = _json_body(operation.get("requestBody", {}))
    command = f"curl {_EXAMPLE_SERVER}{path}"
    if operation.get("security"):
        command += " -H 'authorization: Bearer KEY'"
    if content:
        body = _object_of(content["schema"], schemas)
        sample = content.get("example") or {
            name: _example(field, schemas)
            for name, field in body.get("properties", {}).items()
            if name in body.get("required", ())
        }
        command += f" \\\n  -H 'content-type: application/json' -d {shlex.quote(json.dumps(sample, indent=2))}"
        parts += ["<h3>Request</h3>", _fields(body)]
    parts.append(_pre("Example request", command))
    rows = [
        (f"<code>{escape(status)}</code>", _prose(response["description"]), _type_of(_json_schema(response)))
        for status, response in sorted(operation["responses"].items())
    ]
    parts += ["<h3>Responses</h3>", _table(("Status", "When, or the error's code", "Body"), rows)]
    answered = _json_body(operation["responses"]["200"]).get("example")
    answered = answered or _example(_json_schema(operation["responses"]["200"]), schemas)
    if answered:
        parts.append(_pre("Example response", json.dumps(answered, indent=2)))
    return "\n".join(parts)


def _object_of(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" in schema:
        return _object_of(schemas[schema["$ref"].removeprefix(_REF)], schemas)
    return _object_of(schema["anyOf"][0], schemas) if "anyOf" in schema else schema


def _example(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        return _example(schemas[schema["$ref"].removeprefix(_REF)], schemas)
    if "anyOf" in schema:
        return _example(schema["anyOf"][0], schemas)
    if "properties" in schema:
        always = schema.get("required", schema["properties"])  # what comes only when asked for is left out
        return {name: _example(field, schemas) for name, field in schema["properties"].items() if name in always}
    if schema.get("type") == "array":
        return [_example(schema["items"], schemas)]
    for known in ("examples", "enum"):
        if known in schema:
            return schema[known][0]
    return schema.get("const", _EXAMPLE_OF.get(schema.get("type", "")))


def _pre(title: str, text: str) -> str:
    return f'<h3>{title}</h3>\n<pre tabindex="0">{escape(text)}</pre>'


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    description = f"<p>{_prose(schema['description'])}</p>" if "description" in schema else ""
    return f'<h2 id="{escape(name)}">{escape(name)}</h2>\n{description}\n{_fields(schema)}'


def _fields(schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    rows = []
    for name, field in schema.get("properties", {}).items():
        words = [_prose(field["description"])] if "description" in field else []
        words += [f"For example <code>{escape(json.dumps(example))}</code>." for example in field.get("examples", ())]
        optional = "" if name in required else " <small>optional</small>"
        rows.append((f"<code>{escape(name)}</code>{optional}", _type_of(field), " ".join(words)))
    return _table(("Field", "Type", "Meaning"), rows)


def _type_of(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].removeprefix(_REF))
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_type_of(kind) for kind in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"<code>{escape(json.dumps(value))}</code>" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type_of(schema['items'])}"
    return escape(str(schema.get("const", schema.get("type", ""))))


def _json_schema(response: Mapping[str, Any]) -> Mapping[str, Any]:
    schema: Mapping[str, Any] = _json_body(response).get("schema", {})
    return schema


def _json_body(response: Mapping[str, Any]) -> Mapping[str, Any]:
    body: Mapping[str, Any] = response.get("content", {}).get("application/json", {})
    return body


def _prose(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [
        "".join(f"<th>{cell}</th>" for cell in head),
        *("".join(f"<td>{cell}</td>" for cell in row) for row in rows),
    ]
    return "<table>" + "".join(f"<tr>{line}</tr>\n" for line in lines) + "</table>"
