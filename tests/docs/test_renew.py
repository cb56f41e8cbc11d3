"""What documents show is replaced by what is printed, as it is laid out."""

import pytest

from tests.docs.blocks import Block
from tests.docs.renew import renewed


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ('{"a 1": 0.52,\n  "b": ["x"]}', '{"a 1": 0.61789, "b": ["y"], "c": 1}', '{"a 1": 0.62,\n  "b": ["y"]}'),
        ('{"a": ["...", 1]}', '{"a": [7, 2, 3]}', '{"a": ["...", 2]}'),
        ('{"a": [{"b": 1}]}', '{"a": []}', '{\n  "a": []\n}\n'),
        ('{"a": [{"b": "x"}]}', '{"a": [{"b": "y", "c": 1}, {"b": "z"}]}', None),
    ],
)
def test_json_keeps_its_layout(shown: str, printed: str, expected: str | None) -> None:
    block = Block("sh", "", shown, "json")
    now = renewed(block, printed)
    assert now == (expected or '{\n  "a": [\n    {\n      "b": "y"\n    },\n    {\n      "b": "z"\n    }\n  ]\n}\n')


def test_text_is_what_was_printed() -> None:
    assert renewed(Block("sh", "", "old\n", "text"), "new 0.12345\n") == "new 0.12345\n"
