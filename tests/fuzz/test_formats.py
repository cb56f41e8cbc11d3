"""Documents in other formats under fuzzing: valid ones with parts changed are answered, or refused as the
documentation says, and quotations cut the caller's words.
"""

from typing import Any

import httpx2
import pytest
from hypothesis import given

from mqan_serving.formats.foreign import EXAMPLES, FORMATS, Format
from mqan_serving.rest.openapi import openapi_document
from tests.fuzz.conftest import FUZZED, Target, changed

_QUOTING = "/v1/hf/question-answering"


@pytest.mark.parametrize("spoken", FORMATS, ids=lambda spoken: spoken.operation)
def test_changed_documents_are_answered_or_refused_as_documented(
    reader: tuple[Target, httpx2.Client], spoken: Format
) -> None:
    target, client = reader
    known = openapi_document()["paths"][spoken.path]["post"]["responses"]

    @FUZZED
    @given(body=changed(EXAMPLES[spoken.path]["request"]))
    def ask(body: dict[str, Any]) -> None:
        response = client.post(spoken.path, json=body)
        assert str(response.status_code) in known
        assert response.status_code < 500, response.text
        told = response.json()
        target.note(str(response.status_code), "" if response.is_success else response.text)
        if response.is_success and spoken.path == _QUOTING:
            for one in told if isinstance(told, list) else [told]:
                assert body["inputs"]["context"][one["start"] : one["end"]] == one["answer"]

    ask()
