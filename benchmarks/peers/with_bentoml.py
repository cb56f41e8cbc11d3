"""The engine behind BentoML: ``bentoml serve with_bentoml:Peer``; it reads ``PEER_BUNDLE`` and ``PEER_LIMIT``."""

import os
from pathlib import Path

import bentoml

from mqan_runtime.engine import Engine

BATCH_SIZE = 4  # as many as mqan takes together on a CPU


@bentoml.service(workers=os.cpu_count() or 1, traffic={"timeout": 60})
class Peer:
    """One worker process."""

    def __init__(self) -> None:
        self.engine = Engine.open(Path(os.environ["PEER_BUNDLE"]), provider="cpu", num_threads=1)
        self.limit = int(os.environ["PEER_LIMIT"])

    @bentoml.api(batchable=True, max_batch_size=BATCH_SIZE)  # type: ignore[untyped-decorator]
    def answer(self, questions: list[dict[str, str]]) -> list[dict[str, object]]:
        """Answer a batch, which BentoML gathers from several requests."""
        requests = [self.engine.read(question["context"], question["question"]) for question in questions]
        answers = self.engine.answer(requests, [self.limit] * len(requests))
        return [{"answer": answer.text, "probability": answer.probability} for answer in answers]
