"""The engine behind LitServe, as its documentation puts a model there: ``python with_litserve.py PORT``.

It reads ``PEER_BUNDLE`` and ``PEER_LIMIT``.
"""

import os
import sys
from pathlib import Path
from typing import Any

import litserve

from mqan_core.answer.types import Answer
from mqan_runtime.engine import Engine

BATCH_SIZE, BATCH_WAIT_S = 4, 0.002  # as many as mqan takes together on a CPU


class Api(litserve.LitAPI):  # type: ignore[misc]
    """One worker process."""

    def setup(self, device: str) -> None:
        """Open the bundle."""
        self.engine = Engine.open(Path(os.environ["PEER_BUNDLE"]), provider="cpu", num_threads=1)
        self.limit = int(os.environ["PEER_LIMIT"])

    def decode_request(self, request: dict[str, str]) -> Any:
        """Read one question."""
        return self.engine.read(request["context"], request["question"])

    def predict(self, requests: list[Any]) -> list[Answer]:
        """Answer a batch."""
        return self.engine.answer(requests, [self.limit] * len(requests))

    def encode_response(self, answer: Answer) -> dict[str, object]:
        """Write one answer."""
        return {"answer": answer.text, "probability": answer.probability}


if __name__ == "__main__":
    api = Api(max_batch_size=BATCH_SIZE, batch_timeout=BATCH_WAIT_S)
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=os.cpu_count() or 1)
    server.run(host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False, log_level="warning")
