"""The reference of the REST API as a page, written from its OpenAPI document (https://spec.openapis.org/oas/v3.1.0).

FastAPI's own page loads its script from a content delivery network, which a server in a closed network cannot reach.
"""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from mqan_serving.pages import Page, template_of

_REF = "#/components/schemas/"
_EXAMPLE_SERVER = "http://127.0.0.1:8000"
_EXAMPLE_OF = {"number": 0.9, "integer": 1, "string": "text", "boolean": False}


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
