"""The table of an answer's fields is that of the contract."""

import json
import re
from pathlib import Path
from typing import Any

_SHOWN_ELSEWHERE = {"steps", "parsed", "citations", "masses", "evidence"}  # objects whose fields have another page
_CODE = re.compile(r"`([^`]+)`")


def _type_of(schema: dict[str, Any], required: bool) -> str:
    kinds = {"object" if "$ref" in one else one["type"] for one in schema.get("anyOf", [schema])}
    null = " or null" if "null" in kinds and required else ""  # of one that is absent instead
    (kind,) = kinds - {"null"}
    return {"array": "list"}.get(kind, kind) + null


def _fields(schemas: dict[str, Any], of: str, inside: str = "", depth: int = 0) -> dict[str, str]:
    found = {}
    for name, schema in schemas[of]["properties"].items():
        kind = _type_of(schema, name in schemas[of]["required"])
        found[inside + name] = kind
        below = re.search(r"schemas/(\w+)", json.dumps(schema))
        if below and depth == 0 and name not in _SHOWN_ELSEWHERE:
            found |= _fields(schemas, below[1], f"{name}{'[]' if kind == 'list' else ''}.", 1)
    return found


def test_the_table_of_an_answer_has_every_field_and_its_type(repository: Path) -> None:
    contract = json.loads((repository / "protos" / "openapi.json").read_text(encoding="utf-8"))
    page = (repository / "docs" / "answers.md").read_text(encoding="utf-8")
    table = page[page.index("| field | type |") : page.index("Lists that are not filled")]
    told: dict[str, str] = {}
    for line in table.splitlines()[2:]:
        if line:
            names, kind = line.split("|")[1:3]
            told |= dict.fromkeys(_CODE.findall(names), kind.strip())
    assert told == _fields(contract["components"]["schemas"], "AnswerDocument")
