"""The Open Inference Protocol over REST under fuzzing: changed documents."""

from typing import Any

import httpx2
from hypothesis import given

from mqan_serving.formats.foreign import EXAMPLES
from tests.fuzz.conftest import FUZZED, Target, changed

_PATH = "/v2/models/tiny/infer"


def check(target: Target, response: httpx2.Response) -> None:
    """Check that a response is an answer, or a refusal in the protocol's form."""
    assert response.status_code in (200, 400, 413, 422), response.text
    if response.status_code != 200:
        assert set(response.json()) == {"error", "x_code"}
    target.note(str(response.status_code), "" if response.is_success else response.text)


@FUZZED
@given(body=changed(EXAMPLES["/v2/models/{model_name}/infer"]["request"]))
def test_changed_documents(target: Target, client: httpx2.Client, body: dict[str, Any]) -> None:
    check(target, client.post(_PATH, json=body))
