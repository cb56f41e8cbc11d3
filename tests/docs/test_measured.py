"""The numbers in documents are those of the files that hold them."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "docs" / "building"))
from measured import DOCUMENTS, filled, read_tables, values_of


def test_documents_say_what_was_measured(repository: Path) -> None:
    values = values_of(repository)
    for name in DOCUMENTS:
        text = (repository / name).read_text(encoding="utf-8")
        assert "<!-- = " in text, name
        assert filled(text, values) == text, "make numbers writes them"


def test_a_number_that_has_changed_is_written(tmp_path: Path) -> None:
    assert filled("<!-- = a -->1<!-- / --> %, <!-- = b -->\n| x |\n<!-- / -->", {"a": "2", "b": "\n| y |\n"}) == (
        "<!-- = a -->2<!-- / --> %, <!-- = b -->\n| y |\n<!-- / -->"
    )
    with pytest.raises(KeyError, match="gone"):
        filled("<!-- = gone -->1<!-- / -->", {})
    page = tmp_path / "page.md"
    page.write_text("# One\n\n| a | b |\n|---|---:|\n| x \\| y | 1 |\n\n## Two\n\n| c |\n|---|\n| 2 |\n")
    assert read_tables(page) == {"One": [{"a": "x \\| y", "b": "1"}], "Two": [{"c": "2"}]}
