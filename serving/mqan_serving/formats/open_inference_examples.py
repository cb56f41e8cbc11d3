"""Documents of the Open Inference Protocol, and what mqan-default answered to them (shortened)."""

from typing import Any, Final

METADATA: Final[dict[str, Any]] = {
    "name": "mqan-default",
    "versions": ["2.0.0-rc4"],
    "platform": "onnxruntime_onnx",
    "inputs": [{"name": name, "datatype": "BYTES", "shape": [-1]} for name in ("context", "question", "choices")],
    "outputs": [{"name": name, "datatype": "BYTES", "shape": [-1]} for name in ("answer", "attributions")],
}
REQUEST: Final[dict[str, Any]] = {
    "id": "42",
    "inputs": [
        {
            "name": "context",
            "shape": [1],
            "datatype": "BYTES",
            "data": ["The tower is 330 m tall and was finished in 1889."],
        },
        {
            "name": "question",
            "shape": [2],
            "datatype": "BYTES",
            "data": ["How tall is the tower?", "When was it finished?"],
        },
    ],
    "outputs": [{"name": "answer"}],
}
RESPONSE: Final[dict[str, Any]] = {
    "model_name": "mqan-default",
    "model_version": "2.0.0-rc4",
    "id": "42",
    "outputs": [{"name": "answer", "shape": [2], "datatype": "BYTES", "data": ["330 m", "1889"]}],
}
