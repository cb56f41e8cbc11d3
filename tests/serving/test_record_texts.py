"""Values of records in whole texts, whose right values were written down first: each is right, or there is none.

``record_values.jsonl`` has a text, or the id of an everyday one, a field, the words that a reader should quote and the
value that they have: null where the text says none of this type. No model quotes here.
"""

import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mqan_core.answer.types import Answer, AnswerSpan, Source
from mqan_core.bundle import open_bundle
from mqan_serving.records.filling import RecordRequest, fill_fields
from mqan_serving.records.schema import RecordField
from mqan_serving.records.values import Kind
from mqan_serving.service.answer_service import knows_of

_KINDS = {
    "date-time": Kind.DATE_TIME,
    "email": Kind.EMAIL,
    "integer": Kind.INTEGER,
    "money": Kind.MONEY,
    "uri": Kind.URI,
    "phone": Kind.PHONE,
    **{kind.value: kind for kind in (Kind.DATE, Kind.NUMBER, Kind.TIME)},
}
_NUM_EARLIER = 401


@cache
def _everyday() -> dict[str, str]:
    path = Path(__file__).parents[2] / "data" / "everyday" / "records.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return {row["id"]: row["text"] for row in map(json.loads, lines)}


def read_cases() -> list[dict[str, Any]]:
    lines = Path(__file__).with_name("record_values.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    return [{**case, "context": case.get("context") or _everyday()[case["everyday"]]} for case in cases]


@pytest.mark.parametrize(
    ("cases", "most_without"),  # of those whose text has a value: signs apart, brackets, products, ranges
    [(slice(_NUM_EARLIER), 18), (slice(_NUM_EARLIER, None), 4)],
)
def test_values_of_the_right_quotations_are_right_or_none(cases: slice, most_without: int, repository: Path) -> None:
    knows = knows_of(open_bundle(repository / "serving" / "bundles" / "default"))
    wrong, without = [], Counter[str]()
    for case in read_cases()[cases]:
        if case["quotation"] is None:
            continue
        context, start = case["context"], case["start"]
        end = start + len(case["quotation"])
        assert context[start:end] == case["quotation"]
        field = RecordField("x", _KINDS[case["type"]], case["field"], True, {}, None, 0.0)
        spans = (AnswerSpan(Source.CONTEXT, start, end, case["quotation"]),)
        answer = Answer(case["quotation"], 1.0, (), spans, truncated=False)
        [found] = fill_fields(RecordRequest(context, (field,), None), [answer], knows).fields
        if not found.answered:
            without[case["kind"]] += case["value"] is not None
        elif found.value != case["value"]:
            wrong.append((case["quotation"], found.value, case["value"]))
    assert wrong == []
    assert without.total() <= most_without, without
