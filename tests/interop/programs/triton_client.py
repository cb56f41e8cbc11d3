"""Speak the Open Inference Protocol with NVIDIA's client: ``python triton_client.py HOST:PORT KEY``."""

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from tritonclient import http
from tritonclient.utils import InferenceServerException

address, key = sys.argv[1:]
client = http.InferenceServerClient(address)
KEY = {"authorization": f"Bearer {key}"}
MODEL = "mqan-default"
OUTPUTS = ("answer", "attributions")


def tensor(name: str, texts: list[str]) -> Any:
    """Return an input."""
    made = http.InferInput(name, [len(texts)], "BYTES")
    made.set_data_from_numpy(np.array([text.encode() for text in texts], dtype=object), binary_data=False)
    return made


def infer(inputs: list[Any], **asked: Any) -> dict[str, Any]:
    """Return the outputs of a request."""
    asked.setdefault("outputs", [http.InferRequestedOutput(name, binary_data=False) for name in OUTPUTS])
    result = client.infer(MODEL, inputs, headers=KEY, request_id="42", **asked)
    assert result.get_response()["id"] == "42"
    return {name: result.as_numpy(name) for name in OUTPUTS}


def refusal(ask: Callable[[], object]) -> str:
    """Return what a request is refused with."""
    try:
        ask()
    except InferenceServerException as error:
        return str(error.status())
    return "accepted"


context = tensor("context", ["Füße 🦶: the tower is 330 m tall and was finished in 1889."])
answers = infer([context, tensor("question", ["How tall is the tower?", "When was it finished?"])])
labels = ["billing", "shipping"]
ticket = [tensor("context", ["I was charged twice."]), tensor("question", ["Which team?"]), tensor("choices", labels)]
wanted = [http.InferRequestedOutput("answer", binary_data=False)]
alone = infer(ticket, outputs=wanted, parameters={"min_probability": 0.01, "multiple": False})
metadata = client.get_model_metadata(MODEL, headers=KEY)
told = {
    "live": client.is_server_live(),
    "ready": client.is_server_ready(),
    "model_ready": client.is_model_ready(MODEL),
    "server": client.get_server_metadata(headers=KEY)["name"],
    "inputs": [described["name"] for described in metadata["inputs"]],
    "answers": list(answers["answer"]),
    "spans": [json.loads(document)["spans"] for document in answers["attributions"]],
    "chosen": alone["answer"][0],
    "unwanted": alone["attributions"] is None,
    "without a key": refusal(lambda: client.infer(MODEL, ticket)),
    "another model": refusal(lambda: client.infer("another", ticket, headers=KEY)),
    "another version": refusal(lambda: client.infer(MODEL, ticket, model_version="9", headers=KEY)),
    "no question": refusal(lambda: infer(ticket[:1])),
    "unknown parameter": refusal(lambda: infer(ticket, parameters={"colour": "red"})),
}
print(json.dumps(told))
