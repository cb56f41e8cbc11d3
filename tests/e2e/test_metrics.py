"""What /metrics tells after a mixed run is what the callers counted, however many replicas there are."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import httpx2
import pytest

from mqan.v1 import answer_pb2, answer_pb2_grpc

pytestmark = pytest.mark.timeout(300)

_REQUESTS = re.compile(r'^mqan_requests_total\{code="(\w+)",method="(\w+)",transport="(\w+)"\} (\S+)$', re.MULTILINE)


@pytest.mark.parametrize(
    ("kind", "replicas"), [("local", 1), pytest.param("ray", 2, marks=pytest.mark.slow)], ids=["local", "ray"]
)
def test_totals_are_exact(start_server: Any, kind: str, replicas: int) -> None:
    server = start_server(kind, num_replicas=replicas, num_cpus=0.5)

    def run(number: int) -> Counter[tuple[str, str, str]]:
        seen: Counter[tuple[str, str, str]] = Counter()
        with (
            httpx2.Client(base_url=server.rest, trust_env=False, timeout=60) as rest,
            grpc.insecure_channel(server.rpc, [("grpc.use_local_subchannel_pool", 1)]) as channel,
        ):
            stub = answer_pb2_grpc.QuestionAnsweringStub(channel)
            for i in range(20):
                context = "" if i % 5 == 0 else f"The kettle of caller {number} is in the kitchen."
                body = {"context": context, "question": "Where is the kettle?", "max_answer_tokens": 2}
                response = rest.post("/v1/answer", json=body)
                seen["ok" if response.is_success else response.json()["code"], "Answer", "rest"] += 1
                try:
                    stub.Answer(answer_pb2.AnswerRequest(**body), timeout=60)  # type: ignore[arg-type]
                except grpc.RpcError as raised:
                    error: Any = raised
                    seen[dict(error.trailing_metadata())["mqan-code"], "Answer", "grpc"] += 1
                else:
                    seen["ok", "Answer", "grpc"] += 1
        return seen

    with ThreadPoolExecutor(4) as pool:
        seen = sum(pool.map(run, range(4)), Counter[tuple[str, str, str]]())
    for _ in range(3 * replicas):  # whichever replica is asked
        text = httpx2.get(f"{server.rest}/metrics", trust_env=False, timeout=30).text
        counted = {(c, m, t): float(value) for c, m, t, value in _REQUESTS.findall(text) if m == "Answer"}
        assert {key: value for key, value in counted.items() if value} == dict(seen)
    limit = httpx2.get(f"{server.rest}/v1/model", trust_env=False).json()["limits"]["max_concurrent_requests"]
    assert f"mqan_requests_in_flight_limit {float(limit * replicas)}" in text
    assert "mqan_model_info{" in text
