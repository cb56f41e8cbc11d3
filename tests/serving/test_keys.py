"""API keys: who is let in, over both transports, and how the file of keys is read, changed and refused."""

import json
import os
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from mqan.v1 import answer_pb2
from mqan_client import AsyncClient, UnauthenticatedError
from mqan_serving import keys as keys_module
from mqan_serving.contract.errors import ServingError, SettingsError
from mqan_serving.keys import ApiKeys, add_key, read_keys
from mqan_serving.main import serve_local, serve_ray
from mqan_serving.observability.log_writer import WRITER
from mqan_serving.observability.logs import set_up_logs
from mqan_serving.observability.metrics import Metrics
from mqan_serving.settings import load_settings
from tests.serving.conftest import StartServer, refusal
from tests.timing import wait_until


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def test_a_key_opens_and_its_name_is_known(file: Path) -> None:
    alice, bob = add_key(file, "alice"), add_key(file, "bob")
    assert file.stat().st_mode & 0o777 == 0o600
    assert alice not in file.read_text()
    keys = ApiKeys(file)
    assert keys.authenticate(f"Bearer {alice}") == "alice"
    assert keys.authenticate(f"bearer  {bob} ") == "bob"
    assert len(alice) == len(bob) >= 43 + len("mqan_")


@pytest.mark.parametrize(
    "authorization",
    [
        *(None, "", "Bearer", "Bearer ", "Bearer mqan_wrong", "Basic {key}", "{key}", "Bearer {key}x", "Bearer {hash}"),
        "é \udc80",
    ],
)
def test_everything_else_is_refused(file: Path, authorization: str | None) -> None:
    key = add_key(file, "alice")
    digest = read_keys(file)["alice"].sha256.hex()
    with pytest.raises(ServingError) as raised:
        ApiKeys(file).authenticate(authorization and authorization.format(key=key, hash=digest))
    assert raised.value.code == "unauthenticated"
    assert key not in str(raised.value)


def test_an_empty_file_lets_nobody_in(file: Path) -> None:
    file.write_text("# nobody yet\n\n")
    with pytest.raises(ServingError):
        ApiKeys(file).authenticate("Bearer ")


def is_let_in(keys: ApiKeys, key: str) -> bool:
    try:
        keys.authenticate(f"Bearer {key}")
    except ServingError:
        return False
    return True


def replace(file: Path, content: str) -> None:
    other = file.with_name("next")
    other.write_text(content)
    os.replace(other, file)


def test_a_change_is_seen_without_a_request(file: Path) -> None:
    alice = add_key(file, "alice")
    keys = ApiKeys(file)
    bob = add_key(file, "bob")
    wait_until(lambda: is_let_in(keys, bob))
    replace(file, "\n".join(line for line in file.read_text().splitlines() if not line.startswith("alice")))
    wait_until(lambda: not is_let_in(keys, alice))
    assert is_let_in(keys, bob)
    carol = add_key(file, "carol")  # after a last line that did not end
    wait_until(lambda: is_let_in(keys, carol))


@pytest.fixture
def watched(file: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Two keys and their file, at which nobody looks but the test, by a clock of the test's."""
    monkeypatch.setattr(keys_module, "_LOOK_PERIOD_S", 1000)
    now = [0.0]
    monkeypatch.setattr(keys_module, "monotonic", lambda: now[0])
    names = {name: add_key(file, name) for name in ("alice", "bob")}
    keys = ApiKeys(file)

    def look_after(seconds: float) -> set[str]:
        """Look at the file, and return whose keys are valid."""
        now[0] += seconds
        keys.look()
        return {name for name, key in names.items() if is_let_in(keys, key)}

    return look_after


def test_no_way_of_writing_the_file_locks_anybody_out(file: Path, watched: Callable[[float], set[str]]) -> None:
    """Cut off anywhere, as a file that is being rewritten in place is: both keys stay valid all the while."""
    content = file.read_text()
    for end in range(len(content)):
        file.write_text(content[:end])
        assert watched(0.1) == {"alice", "bob"}, end
    file.write_text(content)
    assert watched(0.1) == {"alice", "bob"}


def test_a_key_is_revoked_once_the_file_stays(file: Path, watched: Callable[[float], set[str]]) -> None:
    first, _ = file.read_text().splitlines(keepends=True)
    file.write_text(first)
    assert [watched(seconds) for seconds in (0.1, 0.8, 0.2)] == [{"alice", "bob"}, {"alice", "bob"}, {"alice"}]
    file.write_text("# nobody\n")
    watched(0.1)
    assert watched(1) == set()


def test_an_emptied_file_revokes_nothing(
    file: Path, watched: Callable[[float], set[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_logs("info")
    file.write_text("")
    assert [watched(seconds) for seconds in (0.1, 5, 500)] == [{"alice", "bob"}] * 3
    assert WRITER.flush(1.0)
    (event,) = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert event["event"] == "keys not reloaded"
    assert "leave a comment" in event["reason"]


def test_a_damaged_or_missing_file_keeps_the_keys(
    file: Path, watched: Callable[[float], set[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_logs("info")
    good = file.read_text()
    spoilt: list[Callable[[], object]] = [
        lambda: file.write_text("no line of keys\n"),
        lambda: file.write_bytes(b"\xff"),
        lambda: file.write_bytes(b"#" * 2**20 + b"\n"),
        file.unlink,
        lambda: os.mkfifo(file),
        lambda: (file.unlink(), file.mkdir()),  # type: ignore[func-returns-value]
        lambda: (file.rmdir(), file.symlink_to("nowhere")),  # type: ignore[func-returns-value]
    ]
    for spoil in spoilt:
        spoil()
        assert [watched(1) for _ in range(3)] == [{"alice", "bob"}] * 3
    assert WRITER.flush(1.0)
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    # Once a change, not once a look; that the file is gone is the same as a link to nowhere.
    assert [event["event"] for event in events] == ["keys not reloaded"] * len(spoilt)
    file.unlink()
    file.write_text(good.splitlines(keepends=True)[1])
    assert [watched(1) for _ in range(2)][-1] == {"bob"}


def test_a_file_that_could_not_be_read_is_read_once_its_rights_are_mended(
    file: Path, watched: Callable[[float], set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("# nobody any more\n")
    with monkeypatch.context() as patched:
        refusal = PermissionError(13, "Permission denied")  # root reads all
        patched.setattr(os, "open", Mock(side_effect=refusal))
        assert [watched(1) for _ in range(2)] == [{"alice", "bob"}] * 2
    file.chmod(0o640)
    assert [watched(1) for _ in range(2)][-1] == set()


def test_nobody_looks_when_the_keys_are_gone(file: Path) -> None:
    add_key(file, "alice")
    before = set(threading.enumerate())
    keys = ApiKeys(file)
    (watcher,) = set(threading.enumerate()) - before
    del keys
    watcher.join(10)
    assert not watcher.is_alive()


@pytest.mark.parametrize(
    "content",
    [
        *(b"alice", b"alice 12", b"al/ice " + b"0" * 64, (b"a " + b"0" * 64 + b"\n") * 2, b"\xff", b"a b c"),
        *(b"alice " + b"0" * 64 + rate for rate in (b" rate=0", b" rate=5/", b" rate=1/0", b" 5/20", b" rate=1 #")),
        *(
            b"alice " + b"0" * 64 + quota
            for quota in (b" quota=0", b" quota=2 rate=1", b" rate=1quota=2", b" quota=.5")
        ),
    ],
)
@pytest.mark.parametrize("serve", [serve_local, serve_ray])
def test_a_damaged_file_is_reported_at_the_start(
    file: Path, content: bytes, serve: Callable[[Any], None], free_ports: Callable[[int], list[int]]
) -> None:
    file.write_bytes(content)
    http_port, grpc_port = free_ports(2)
    with pytest.raises(SettingsError, match="MQAN_API_KEY_FILE"):
        serve(load_settings(api_key_file=file, http_port=http_port, grpc_port=grpc_port))


async def test_rest_asks_for_a_key(start_server: StartServer, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = add_key(file, "alice")
    callers = await start_server(api_key_file=file)
    set_up_logs("info")
    for path in ("/health/live", "/health/ready", "/", "/docs", "/openapi.json"):
        assert (await callers.rest.get(path)).status_code == 200, path
    for path in ("/v1/model", "/v1/nothing", "/v1/model/", "//v1/model", "/health/../v1/model"):
        response = await callers.rest.get(path)
        assert (response.status_code, response.json()["code"]) == (401, "unauthenticated"), path
        assert response.headers["www-authenticate"] == "Bearer"
    assert (await callers.post()).status_code == 401
    callers.rest.headers["authorization"] = f"Bearer {key}"
    assert (await callers.post()).status_code == 200
    assert (await callers.rest.get("/v1/model")).status_code == 200
    operation = (await callers.rest.get("/openapi.json")).json()["paths"]["/v1/answer"]["post"]
    assert operation["security"]
    assert WRITER.flush(1.0)
    lines = capsys.readouterr().err
    assert key not in lines
    answered = [line for line in map(json.loads, lines.splitlines()) if line["event"] == "answered"]
    assert [line["key"] for line in answered] == ["alice"]


async def test_grpc_asks_for_a_key(start_server: StartServer, file: Path) -> None:
    key = add_key(file, "alice")
    callers = await start_server(api_key_file=file)
    for call in (callers.call(), callers.rpc.GetModel(answer_pb2.GetModelRequest(), timeout=10)):
        status, told = await refusal(call)
        assert (status, told["mqan-code"]) == (grpc.StatusCode.UNAUTHENTICATED, "unauthenticated")
    metadata = [("authorization", f"Bearer {key}")]
    assert (await callers.rpc.Answer(callers.request(), metadata=metadata, timeout=10)).answer == "The kettle is"
    async with grpc.aio.insecure_channel(f"127.0.0.1:{callers.grpc_port}") as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        health = await stub.Check(health_pb2.HealthCheckRequest(), timeout=10)
    assert health.status == health_pb2.HealthCheckResponse.SERVING


def test_a_key_has_the_rate_of_its_line(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(keys_module, "monotonic", lambda: now[0])
    for name, rate in (("alice", "2/3"), ("bob", "0.25"), ("carol", None)):
        add_key(file, name, rate)
    keys = ApiKeys(file)

    def admitted(name: str | None, number: int) -> int:
        """Send requests at once until one is refused, and return how many are admitted."""
        for sent in range(number):
            with suppress(ServingError):
                keys.check_rate(name)
                continue
            return sent
        return number

    assert [admitted(name, 9) for name in ("alice", "bob", "carol", None)] == [3, 1, 9, 9]
    for name, seconds in (("alice", 1), ("bob", 4)):
        with pytest.raises(ServingError) as raised:
            keys.check_rate(name)
        assert (raised.value.code, raised.value.retry_after_s) == ("rate_limited", seconds)
    now[0] = 1.0
    assert [admitted(name, 9) for name in ("alice", "bob")] == [2, 0]
    now[0] = 500.0
    assert [admitted(name, 9) for name in ("alice", "bob")] == [3, 1]
    for rate in ("", "0", "-1", "1/0", "x", "1/2/3", "1 quota=2 "):
        with pytest.raises(ValueError, match="no limits"):
            add_key(file, "dora", rate)
    for quota in (0, -1, 10**9):
        with pytest.raises(ValueError, match="no limits"):
            add_key(file, "dora", quota=quota)


def test_a_key_has_the_quota_of_its_line(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day_s, clock = 86_400, {"monotonic": 0.0, "time": 86_400 * 20_000 - 100.5}
    for name in clock:
        monkeypatch.setattr(keys_module, name, lambda name=name: clock[name])
    add_key(file, "alice", quota=3)
    add_key(file, "bob", "1/2", 3)
    keys = ApiKeys(file)

    def ask(name: str) -> int | None:
        """Return when a request that is refused may come again; None for one that is admitted."""
        try:
            keys.check_rate(name)
        except ServingError as refused:
            return refused.retry_after_s if refused.code == "rate_limited" else -1
        return None

    assert [ask("alice") for _ in range(4)] == [None, None, None, 101]
    assert [ask("bob") for _ in range(4)] == [None, None, 1, 1], "a request that is refused counts for no quota"
    clock["monotonic"] += 1
    assert [ask("bob") for _ in range(2)] == [None, 101]
    clock["time"] += 101
    assert [ask("alice") for _ in range(4)] == [None, None, None, day_s]


async def test_both_transports_say_when_to_come_again(start_server: StartServer, file: Path) -> None:
    key, other = add_key(file, "alice", "0.001/2"), add_key(file, "bob")
    callers = await start_server(api_key_file=file)
    callers.rest.headers["authorization"] = f"Bearer {key}"
    assert [(await callers.post()).status_code for _ in range(3)] == [200, 200, 429]
    response = await callers.post()
    assert response.json()["code"] == "rate_limited"
    assert 900 < int(response.headers["retry-after"]) <= 1000
    metadata = [("authorization", f"Bearer {key}")]
    status, told = await refusal(callers.rpc.Answer(callers.request(), metadata=metadata, timeout=60))
    assert (status, told["mqan-code"]) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "rate_limited")
    assert 900 < int(told["retry-after"]) <= 1000
    callers.rest.headers["authorization"] = f"Bearer {other}"
    assert (await callers.post()).status_code == 200
    assert "alice" not in (await callers.rest.get("/metrics")).text  # which needs no key
    counts = callers.server._metrics.render().decode()
    for labels, number in (('key="alice",outcome="admitted"', 2), ('key="alice",outcome="limited"', 3)):
        assert f"mqan_key_requests_total{{{labels}}} {number}.0" in counts


def test_a_revoked_key_leaves_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "_LOOK_PERIOD_S", 0.01)
    monkeypatch.setattr(keys_module, "_SETTLED_S", 0.0)
    metrics = Metrics()
    for name in ("alice", "bob"):
        add_key(file, name, "5")
    keys = ApiKeys(file, metrics.keep_keys)
    for name in ("alice", "bob"):
        keys.check_rate(name)
        for is_limited in (True, False):
            metrics.count_key(name, is_limited=is_limited)
    replace(file, "".join(file.read_text().splitlines(keepends=True)[1:]))
    wait_until(lambda: b"alice" not in metrics.render())
    assert set(keys._uses) == metrics._keys == {"bob"}
    assert b'key="bob",outcome="limited"} 1.0' in metrics.render()


def test_keys_have_a_bounded_number_of_series() -> None:
    metrics = Metrics()
    for number in range(1000):
        metrics.count_key(f"key{number}", is_limited=False)
    lines = re.findall(r"^mqan_key_requests_total\{(.*)\} (.*)$", metrics.render().decode(), re.MULTILINE)
    assert len(lines) == 101
    assert ('key="(others)",outcome="admitted"', "900.0") in lines


@pytest.mark.parametrize("transport", ["http", "grpc"])
async def test_the_client_shows_its_key(start_server: StartServer, file: Path, transport: str) -> None:
    key = add_key(file, "alice")
    callers = await start_server(api_key_file=file)
    port = getattr(callers, f"{transport}_port")
    async with AsyncClient(f"{transport}://127.0.0.1:{port}", api_key=key) as client:
        assert (await client.answer(**callers.body)).text == "The kettle is"
    async with AsyncClient(f"{transport}://127.0.0.1:{port}") as client:
        with pytest.raises(UnauthenticatedError, match="no API key"):
            await client.get_model()
