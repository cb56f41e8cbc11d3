"""The Open Inference Protocol over REST under fuzzing: changed documents, and tensors in binary that are damaged."""

import json
import random
from typing import Any

import httpx2
from hypothesis import given

from mqan_serving.formats.foreign import EXAMPLES
from mqan_serving.formats.open_inference import decode_elements, encode_elements
from tests.fuzz.conftest import FUZZED, Target, changed, damaged

_PATH = "/v2/models/tiny/infer"
_LENGTH = "inference-header-content-length"


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


def test_changed_tensors_in_binary(target: Target, client: httpx2.Client, num_cases: int) -> None:
    chance = random.Random(29)
    texts = {"context": ["the old harbour was closed"], "question": ["when ?", "Ελλάδα 🙂 ?"]}
    for _ in range(num_cases):
        tensors = {name: encode_elements(each) for name, each in texts.items()}
        sizes = {name: len(each) + chance.choice((0, 0, 0, -1, 1, 10**9)) for name, each in tensors.items()}
        inputs = [
            {"name": name, "shape": [len(each)], "datatype": "BYTES", "parameters": {"binary_data_size": sizes[name]}}
            for name, each in texts.items()
        ]
        head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
        binary = b"".join(tensors.values())
        content = head + (damaged(binary, chance) if chance.random() < 0.5 else binary)
        length = len(head) + chance.choice((0, 0, 0, 0, -1, 1, 10**30))
        response = client.post(_PATH, content=content, headers={_LENGTH: f"{length}", "content-type": ""})
        check(target, response)
        if response.status_code == 200:
            end = int(response.headers[_LENGTH])
            answer, attributions = json.loads(response.content[:end])["outputs"]
            assert answer["shape"] == attributions["shape"] == [2]
            told = decode_elements(response.content[end:], ())
            assert [json.loads(document)["answer"] for document in told[2:]] == told[:2]
    assert target.replies["200"]
