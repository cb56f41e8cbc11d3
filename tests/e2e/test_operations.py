"""What operators rely on holds for every kind of server: exact counts and logs of all replicas, and API keys."""

import json
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import httpx2
import pytest

from mqan.v1 import answer_pb2, answer_pb2_grpc
from mqan_serving.keys import add_key
from tests.timing import wait_until

pytestmark = pytest.mark.timeout(300)

_REQUESTS = re.compile(r'^mqan_requests_total\{code="(\w+)",method="(\w+)",transport="(\w+)"\} (\S+)$', re.MULTILINE)
_LOGGED = re.compile(r'\{".*"request_id".*\}')

Seen = Counter[tuple[str, str, str]]


def ask(server: Any, key: str, number: int, times: int) -> Seen:
    """Ask over both transports, well and badly, and return how each request ended."""
    seen: Seen = Counter()
    authorization = ("authorization", f"Bearer {key}")
    with (
        httpx2.Client(base_url=server.rest, trust_env=False, timeout=60, headers=[authorization]) as rest,
        grpc.insecure_channel(server.rpc, [("grpc.use_local_subchannel_pool", 1)]) as channel,
    ):
        stub = answer_pb2_grpc.QuestionAnsweringStub(channel)
        for i in range(times):
            context = "" if i % 5 == 4 else f"The kettle of caller {number} is in the kitchen."
            body = {"context": context, "question": "Where is the kettle?", "max_answer_tokens": 2}
            response = rest.post("/v1/answer", json=body)
            seen["ok" if response.is_success else response.json()["code"], "Answer", "rest"] += 1
            request = answer_pb2.AnswerRequest(**body)  # type: ignore[arg-type]
            try:
                stub.Answer(request, timeout=60, metadata=[authorization])
            except grpc.RpcError as raised:
                error: Any = raised
                seen[dict(error.trailing_metadata())["mqan-code"], "Answer", "grpc"] += 1
            else:
                seen["ok", "Answer", "grpc"] += 1
    return seen


@pytest.mark.parametrize(
    ("kind", "replicas"), [("local", 1), pytest.param("ray", 2, marks=pytest.mark.slow)], ids=["local", "ray"]
)
def test_counts_are_exact_and_keys_are_asked_for(
    start_server: Any, free_ports: Any, tmp_path: Path, kind: str, replicas: int
) -> None:
    file = tmp_path / "keys"
    key = add_key(file, "first")
    (port,) = free_ports(1)
    server = start_server(kind, num_replicas=replicas, num_cpus=0.5, api_key_file=file, metrics_port=port)
    with ThreadPoolExecutor(4) as pool:
        seen = sum(pool.map(lambda i: ask(server, key, i, 20), range(4)), Seen())
    assert seen.keys() == {(code, "Answer", way) for code in ("ok", "empty_context") for way in ("rest", "grpc")}
    seen += ask(server, "mqan_unknown", 5, 4 * replicas)
    second = add_key(file, "second")
    # each sees by itself that the file has changed
    wait_until(lambda: server.log.read_text().count('"keys reloaded"') == replicas)
    seen += ask(server, second, 6, 4 * replicas)
    assert seen["unauthenticated", "Answer", "rest"] == seen["unauthenticated", "Answer", "grpc"] == 4 * replicas
    own_port = f"http://127.0.0.1:{port}"
    for place in (server.rest, own_port) * 3 * replicas:  # whichever replica is asked
        text = httpx2.get(f"{place}/metrics", trust_env=False, timeout=30).text
        counted = {(c, m, t): float(value) for c, m, t, value in _REQUESTS.findall(text) if m == "Answer"}
        assert {key: value for key, value in counted.items() if value} == dict(seen)
    assert "mqan_model_info{" in text
    headers = {"authorization": f"Bearer {key}"}
    for path in ("/v1/model", "/docs"):
        assert httpx2.get(f"{own_port}{path}", trust_env=False, headers=headers).status_code == 404
    limits = httpx2.get(f"{server.rest}/v1/model", trust_env=False, headers=headers).json()["limits"]
    assert f"mqan_requests_in_flight_limit {float(limits['max_concurrent_requests'] * replicas)}" in text
    # Each request has one line in the log, too. Ray hands lines on after a moment, and none once it has ended.
    wait_until(lambda: len(_LOGGED.findall(server.log.read_text())) >= seen.total())
    assert server.stop() == 0
    logged = [json.loads(line) for line in _LOGGED.findall(server.log.read_text())]
    assert Counter((line.get("code", "ok"), line["transport"]) for line in logged) == Counter(
        {(code, way): count for (code, _, way), count in seen.items()}
    )
    assert len({line["request_id"] for line in logged}) == len(logged)
