"""Several models: each request has the one that it asks for, until it has ended, whatever is changed meanwhile."""

import asyncio
import errno
import gc
import json
import shutil
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import httpx2
import pytest
from typer.testing import CliRunner

from mqan.v1 import answer_pb2, answer_pb2_grpc
from mqan_cli.main import app
from mqan_core.errors import InputError
from mqan_serving.contract.errors import ServingError, SettingsError
from mqan_serving.keys import add_key
from mqan_serving.local import LocalServer
from mqan_serving.observability.metrics import Metrics
from mqan_serving.service.catalog import CHANGES, Changes, read_catalog, read_changes
from mqan_serving.service.models import Models, open_models
from mqan_serving.settings import Settings, load_settings
from tests.serving.conftest import until

BODY = {"context": "The kettle is in the kitchen.", "question": "Where is the kettle?"}

Open = Callable[..., Awaitable[Models]]


def copy_bundle(bundle: Path, folder: Path, version: str) -> Path:
    """Make a bundle of another version, and so of another hash."""
    shutil.copytree(bundle, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"version": version}))
    return folder


@pytest.fixture
def bundles(tiny_bundle: Path, tmp_path: Path) -> Path:
    """A folder of three bundles."""
    folder = tmp_path / "bundles"
    folder.mkdir()
    for name in ("a", "b", "c"):
        copy_bundle(tiny_bundle, folder / name, f"of {name}")
    return folder


@pytest.fixture
async def open_all(bundles: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Open]:
    """Open models by settings; they are closed at the end."""
    monkeypatch.setattr("mqan_serving.service.models._LOOK_PERIOD_S", 0.1)
    opened: list[Models] = []

    async def open_by(**settings: Any) -> Models:
        given = {"bundles": str(bundles), "provider": "cpu", **settings}
        opened.append(await open_models(load_settings(**given), Metrics()))
        return opened[-1]

    yield open_by
    for models in opened:
        await models.close()


def request_of(model: str) -> answer_pb2.AnswerRequest:
    return answer_pb2.AnswerRequest(context=BODY["context"], question=BODY["question"], model=model)


def kept(bundles: Path) -> Any:
    return json.loads((bundles / CHANGES).read_text())


def opened(models: Models) -> set[str]:
    return {entry.name for entry, is_open, _ in models.listed() if is_open}


async def next_look(models: Models) -> None:
    """Wait until models have looked at what is in their folder."""
    look, have_looked = models.look, asyncio.Event()

    async def look_and_tell() -> None:
        await look()
        have_looked.set()

    models.look = look_and_tell  # type: ignore[method-assign]
    async with asyncio.timeout(60):
        await have_looked.wait()


async def test_a_request_gets_the_model_that_it_names(open_all: Open) -> None:
    models = await open_all()
    assert opened(models) == {"a"}, "others are opened when they are asked for"
    for wanted, version in ((None, "of a"), ("", "of a"), ("default", "of a"), ("stable", "of a"), ("c", "of c")):
        lease = await models.take(wanted, "")
        assert lease.model.version == version
        lease.release()
    assert opened(models) == {"a", "c"}
    with pytest.raises(InputError, match="a, b, c, stable are served"):
        await models.take("d", "")


async def test_a_canary_has_its_share_of_callers_who_stay_with_it(open_all: Open) -> None:
    models = await open_all(canary="b", canary_share=0.25)
    names = [models.name_of(None, f"caller {n}") for n in range(4000)]
    assert set(names) == {"a", "b"}
    assert 0.2 < names.count("b") / len(names) < 0.3
    assert names == [models.name_of("default", f"caller {n}") for n in range(4000)]
    assert models.name_of("canary", "") == "b"
    await models.change(lambda changes: changes.model_copy(update={"canary_share": 1.0}))
    assert {models.name_of(None, f"caller {n}") for n in range(100)} == {"b"}


async def test_the_least_recently_used_leaves_and_never_one_in_use(open_all: Open) -> None:
    models = await open_all()
    models.loader.most_bytes = round(2.5 * models._slots["a"].memory)
    (await models.take("b", "")).release()
    held = await models.take("a", "")
    (await models.take("c", "")).release()
    assert opened(models) == {"a", "c"}, "a was used longer ago than c, but is in use"
    other = await models.take("c", "")
    waiting = asyncio.ensure_future(models.take("b", "", 30_000))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    with pytest.raises(ServingError) as raised:
        await models.take("b", "", 50)
    assert raised.value.code == "deadline_exceeded", "its own time is over, not that of the other"
    held.release()
    (await waiting).release()
    assert opened(models) == {"b", "c"}
    other.release()
    assert models.num_requests == 0


async def test_nothing_of_a_closed_model_is_kept_until_a_collection(open_all: Open) -> None:
    """Collections come late, and would hold up requests."""
    models = await open_all()
    held: list[weakref.ref[Any]] = [weakref.ref(models.stable), weakref.ref(models.stable._engine.bundle.vocabulary)]
    models.loader.most_bytes = 1
    gc.disable()
    try:
        await models.open_one("b")
        assert opened(models) == {"b"}
        await until(lambda: all(ref() is None for ref in held))
    finally:
        gc.enable()


@pytest.mark.parametrize(("of_first", "fits"), [(1, True), (1.5, False)])
async def test_what_fits_is_not_held_up_by_what_waits_for_others_to_end(
    open_all: Open, bundles: Path, of_first: float, fits: bool
) -> None:
    copy_bundle(bundles / "a", bundles / "d", "of d")
    models = await open_all()
    for name, size in (("a", 1), ("b", of_first), ("c", 1), ("d", 0.5)):
        slot = models._slots[name]
        slot.entry = replace(slot.entry, num_bytes=round(size * 2**30))
    models.loader.most_bytes = round(2.75 * models._slots["a"].memory)
    held = [await models.take(name, "") for name in ("a", "c")]
    first = asyncio.ensure_future(models.take("b", ""))
    await until(lambda: not models._slots["a"].is_free)
    small = asyncio.ensure_future(models.take("d", ""))
    if fits:
        (await small).release()
        assert not first.done()
    else:
        loader, slot = models.loader, models._slots["d"]
        await until(lambda: small.done() or (slot in loader.asked and not loader._changed.is_set()))
    held[0].release()
    lease = await first
    assert opened(models) == ({"b", "c", "d"} if fits else {"b", "c"}), "nobody takes what the first waits for"
    for taken in (lease, held[1]):
        taken.release()
    if not fits:
        (await small).release()
    assert models.num_requests == 0


async def test_every_answer_is_of_one_model_while_they_change(open_all: Open) -> None:
    """Many callers ask three models of which two fit, and the default changes; each has what it asked for."""
    models = await open_all(request_timeout_s=3000)
    models.loader.most_bytes = round(2.5 * models._slots["a"].memory)
    most = 0

    async def ask(number: int) -> None:
        nonlocal most
        for turn in range(3):
            name = "abc"[(number + turn) % 3]
            lease = await models.take(name, "")
            assert lease.model.version == f"of {name}"
            await asyncio.sleep(0.001)
            most = max(most, len(opened(models)))
            lease.release()

    async def swap() -> None:
        for name in ("b", "a", "c"):
            await models.change(partial(Changes.model_copy, update={"stable": name}))

    await asyncio.gather(*(ask(number) for number in range(32)), swap())
    assert most == 2
    assert models.name_of(None, "") == "c"
    assert models.num_requests == 0


async def test_a_folder_is_watched_and_requests_end_on_what_they_began_with(open_all: Open, bundles: Path) -> None:
    models = await open_all()
    metrics = models._meter
    assert isinstance(metrics, Metrics)
    held = await models.take("a", "")
    copy_bundle(bundles / "a", bundles / ".new", "of another")
    (bundles / "a").rename(bundles / ".old")
    (bundles / ".new").rename(bundles / "a")
    await until(lambda: models.stable.model.version == "of another")
    assert held.service.health.is_ready
    assert held.model.version == "of a"
    held.release()
    await until(lambda: not held.service.health.is_ready)
    shutil.copytree(bundles / "b", bundles / "d")
    await until(lambda: "d" in {entry.name for entry, _, _ in models.listed()})
    (bundles / CHANGES).write_text('{"stable": "d"}')
    await until(lambda: models.name_of(None, "") == "d")
    (bundles / CHANGES).write_text('{"stable": "nobody"}')
    await next_look(models)
    assert models.name_of(None, "") == "d", "what cannot be changes nothing"
    assert b"\nmqan_models_not_changed 1.0" in metrics.render()
    (bundles / CHANGES).write_text('{"stable": "b"}')
    await until(lambda: models.name_of(None, "") == "b")
    assert b"\nmqan_models_not_changed 0.0" in metrics.render()


@pytest.mark.parametrize("can_write", [True, False])
async def test_what_is_stable_at_first_stays_so(
    open_all: Open, bundles: Path, monkeypatch: pytest.MonkeyPatch, can_write: bool
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    if not can_write:
        monkeypatch.setattr("mqan_serving.service.models.write_changes", refuse)
    models = await open_all()
    copy_bundle(bundles / "b", bundles / "0", "of one that sorts first")
    await until(lambda: "0" in {entry.name for entry, _, _ in models.listed()})
    assert models.name_of(None, "") == "a"
    (bundles / ".new").write_text('{"canary": "0"}')
    (bundles / ".new").rename(bundles / CHANGES)
    await until(lambda: models.catalog.canary == "0")
    assert models.name_of("stable", "") == "a", "what says nothing of it leaves it"
    await models.close()
    if can_write:
        (bundles / CHANGES).write_text('{"first_stable": "a"}')
        assert (await open_all(stable="b")).name_of(None, "") == "b", "a setting counts more than the first start"
        assert (await open_all()).name_of(None, "") == "a"
        (bundles / CHANGES).write_text('{"stable": "a"}')
        assert (await open_all(stable="b")).name_of(None, "") == "a", "what was said of it counts most"
        assert (await open_all()).name_of(None, "") == "a", "after a restart, too"
        shutil.rmtree(bundles / "a")
        with pytest.raises(SettingsError, match=r"stable in models.json: 'a' is no model; there are 0, b, c"):
            await open_all()


async def test_a_damaged_bundle_changes_nothing(open_all: Open, bundles: Path) -> None:
    models = await open_all()
    for graph in (bundles / "b").glob("*.onnx"):
        graph.write_bytes(graph.read_bytes()[:-1] + b"x")
    with pytest.raises(SettingsError, match="b cannot be loaded"):
        await models.change(lambda changes: changes.model_copy(update={"stable": "b"}))
    assert models.name_of(None, "") == "a"
    assert kept(bundles) == {"first_stable": "a"}
    with pytest.raises(ServingError, match="b cannot be loaded"):
        await models.take("b", "")
    (await models.take("a", "")).release()
    with pytest.raises(SettingsError, match="onnx"):
        await models.change(lambda changes: changes.model_copy(update={"bundles": {"d": bundles / "b"}}))
    assert "d" not in {entry.name for entry, _, _ in models.listed()}
    assert kept(bundles) == {"first_stable": "a"}


async def test_a_card_that_is_no_more_the_bundles_is_not_shown(served: Any, bundles: Path) -> None:
    rest, _, _ = served
    assert (await rest.get("/card", params={"model": "b"})).text == "# tiny\n"
    (bundles / "b" / "README.md").write_text("# edited\n")
    refused = await rest.get("/card", params={"model": "b"})
    assert (refused.status_code, refused.json()["code"]) == (404, "not_found")


async def test_a_change_that_cannot_be_kept_is_taken_back(open_all: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    models = await open_all()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("mqan_serving.service.models.write_changes", full)
    with pytest.raises(SettingsError, match="taken back: No space left"):
        await models.change(lambda changes: changes.model_copy(update={"stable": "b"}))
    assert models.name_of(None, "") == "a"


async def test_a_folder_whose_name_is_none_is_told_and_blinds_nobody(open_all: Open, bundles: Path) -> None:
    models = await open_all()
    shutil.copytree(bundles / "b", bundles / "my model")
    await next_look(models)
    assert models.name_of(None, "") == "a"
    (bundles / "my model").rename(bundles / "mine")
    await until(lambda: "mine" in {entry.name for entry, _, _ in models.listed()})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bundles": "a=nowhere"}, "manifest.json"),
        ({"bundles": "nowhere"}, "nowhere"),
        ({"bundles": "stable=x"}, "'stable' is no name"),
        ({"bundles": "x=a,x=b"}, "'x' is no name"),
        ({"stable": "d"}, "'d' is no model; there are a, b, c"),
        ({"bundle": "x"}, "both set"),
    ],
)
def test_wrong_settings_are_named(bundles: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_catalog(load_settings(**{"bundles": str(bundles), **given}), read_changes(Settings()))


@pytest.fixture
async def served(open_all: Open, free_ports: Callable[[int], list[int]], tmp_path: Path) -> AsyncIterator[Any]:
    """A server of three models: clients of both transports, and the key of its admin."""
    key = add_key(tmp_path / "admins", "ann")
    http_port, grpc_port = free_ports(2)
    ports = {"http_port": http_port, "grpc_port": grpc_port, "drain_delay_s": 0.0, "request_timeout_s": 600}
    models = await open_all(**ports, admin_key_file=tmp_path / "admins")
    server = LocalServer(models, models.settings, Metrics())
    await server.start()
    async with (
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{http_port}", trust_env=False, timeout=60) as rest,
        grpc.aio.insecure_channel(f"127.0.0.1:{grpc_port}") as channel,
    ):
        yield rest, answer_pb2_grpc.QuestionAnsweringStub(channel), key
    await server.stop()


async def test_both_transports_name_the_model(served: Any) -> None:
    rest, rpc, _ = served
    response = await rest.post("/v1/answer", json=BODY | {"model": "b"})
    assert response.json()["model"] == {"name": "b", "version": "of b"}
    name, version, sha256 = response.headers["x-mqan-model"].split("/")
    assert (name, version, len(sha256)) == ("b", "of b", 16)
    many = {"context": BODY["context"], "questions": [BODY["question"]], "model": "c"}
    assert (await rest.post("/v1/answers", json=many)).json()["model"]["name"] == "c"
    assert (await rest.get("/v1/model", params={"model": "c"})).json()["model"]["name"] == "c"
    zero_shot = {"inputs": "Dull.", "parameters": {"candidate_labels": ["good", "bad"]}, "model": "b"}
    response = await rest.post("/v1/hf/zero-shot-classification", json=zero_shot)
    assert response.headers["x-mqan-model"].startswith("b/")
    decision = {"model": "c", "input": "Dull.", "questions": [{"type": "predicate", "instructions": "Is it good?"}]}
    assert (await rest.post("/v1/decisions", json=decision)).headers["x-mqan-model"].startswith("c/")
    assert {row["id"] for row in (await rest.get("/v1/models")).json()["data"]} == {"a", "b", "c"}
    refused = await rest.post("/v1/answer", json=BODY | {"model": "d"})
    assert (refused.status_code, refused.json()["code"]) == (404, "unknown_model")
    assert "a, b, c" in refused.json()["message"]
    call = rpc.Answer(request_of("c"))
    assert (await call).model.name == "c"
    assert dict(await call.trailing_metadata())["x-mqan-model"].startswith("c/of c/")
    streamed = [part async for part in rpc.AnswerStream(request_of("b"))]
    assert streamed[-1].answer.model.name == "b"
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await rpc.Answer(request_of("d"))
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND
    counts = (await rest.get("/metrics")).text
    assert 'mqan_model_answers_total{model="b"}' in counts


async def test_an_admin_changes_models_while_they_are_served(served: Any, bundles: Path) -> None:
    rest, _, key = served
    own = {"authorization": f"Bearer {key}"}
    for headers in ({}, {"authorization": "Bearer mqan_other"}):
        assert (await rest.get("/admin/models", headers=headers)).status_code == 401
    listed = (await rest.get("/admin/models", headers=own)).json()["models"]
    assert [(row["name"], row["loaded"], row["aliases"]) for row in listed] == [
        ("a", True, ["stable"]),
        ("b", False, []),
        ("c", False, []),
    ]
    changed = await rest.put("/admin/aliases/stable", json={"model": "b"}, headers=own)
    assert changed.status_code == 200, changed.text
    assert (await rest.post("/v1/answer", json=BODY)).json()["model"]["name"] == "b"
    refused = await rest.put("/admin/aliases/stable", json={"model": "nobody"}, headers=own)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
    refused = await rest.put("/admin/aliases/canary", json={"share": 2}, headers=own)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
    await rest.put("/admin/aliases/canary", json={"model": "c", "share": 1}, headers=own)
    assert (await rest.post("/v1/answer", json=BODY)).json()["model"]["name"] == "c"
    await rest.delete("/admin/aliases/canary", headers=own)
    assert (await rest.post("/v1/answer", json=BODY)).json()["model"]["name"] == "b"
    await rest.put("/admin/models/d", json={"folder": str(bundles / "a")}, headers=own)
    assert (await rest.post("/v1/answer", json=BODY | {"model": "d"})).json()["model"]["name"] == "d"
    for method in ("PUT", "DELETE"):
        refused = await rest.request(
            method, "/admin/models/stable", headers=own, **({"json": {}} if method == "PUT" else {})
        )
        assert refused.status_code in (404, 422), refused.text
    await rest.delete("/admin/models/a", headers=own)
    assert (await rest.post("/v1/answer", json=BODY | {"model": "a"})).status_code == 404
    for name, told in (("b", "b is the stable model"), ("c", "c is the canary")):
        await rest.put("/admin/aliases/canary", json={"model": "c", "share": 1}, headers=own)
        refused = await rest.delete(f"/admin/models/{name}", headers=own)
        assert (refused.status_code, refused.json()["message"]) == (422, f"{told}.")
    await rest.delete("/admin/aliases/canary", headers=own)
    assert kept(bundles) == {
        "bundles": {"d": str(bundles / "a")},
        "unloaded": ["a"],
        "stable": "b",
        "canary": "",
    }


def test_the_command_says_what_is_wrong(free_ports: Callable[[int], list[int]]) -> None:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    for words, told in (
        (["list", "--server", url], f"no answer from {url}"),
        (["list", "--server", "grpc://x"], "give http://"),
        (["alias", "stable"], "give stable NAME"),
        (["alias", "newest", "a"], "give stable NAME"),
    ):
        result = CliRunner().invoke(app, ["models", *words])
        assert result.exit_code != 0
        assert told in result.stderr
