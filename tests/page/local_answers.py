"""The engine's answers to the requests on which the model that runs in browsers is tested.

    python -m tests.page.local_answers

writes those of the default bundle's float32 graphs beside the requests.
"""

import json
from pathlib import Path
from typing import Any

from mqan_runtime.engine import Engine
from mqan_serving.contract.answers import document_of
from mqan_serving.contract.questions import question_of
from mqan_serving.default_bundle import default_bundle

CASES = Path(__file__).parents[2] / "clients/typescript/tests/local.json"
_LONGEST = 100  # tokens of an answer


def read_cases() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads(CASES.read_text())
    return cases


def answer(engine: Engine, request: dict[str, Any]) -> dict[str, Any]:
    """Return the document of an answer; without choices it is one quotation. Labels have no evidence."""
    question = question_of({**request, "contiguous": "choices" not in request})
    read = engine.read(question.context, question.question, question.options)
    document = document_of(engine.answer([read], [_LONGEST])[0], engine.bundle.manifest)
    return {**document, "choices": [{**choice, "evidence": []} for choice in document["choices"]]}


def open_engine() -> Engine:
    return Engine.open(default_bundle(), provider="cpu", precision="float32")


if __name__ == "__main__":
    engine = open_engine()
    told = [{"request": case["request"], "answer": answer(engine, case["request"])} for case in read_cases()]
    CASES.write_text("[\n" + ",\n".join(map(json.dumps, told)) + "\n]\n")
