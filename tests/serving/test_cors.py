"""Pages of other origins may ask where the operator names them, and nowhere else; keys are asked for as ever."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from mqan_serving.contract.errors import SettingsError
from mqan_serving.keys import add_key
from mqan_serving.settings import load_settings
from tests.serving.conftest import StartServer

APP = "https://app.example"
PREFLIGHT = {
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type",
}
BODY = {"context": "The tower is 330 m tall.", "question": "How tall is the tower?"}


async def may_ask(callers: Any, origin: str, **headers: str) -> httpx2.Response:
    response: httpx2.Response = await callers.rest.options(
        "/v1/answer", headers={"origin": origin, **PREFLIGHT, **headers}
    )
    return response


async def test_without_the_setting_no_page_may_ask(start_server: StartServer) -> None:
    callers = await start_server()
    assert (await may_ask(callers, APP)).status_code == 405
    response = await callers.rest.post("/v1/answer", json=BODY, headers={"origin": APP})
    assert response.status_code == 200
    assert not [name for name in response.headers if name.startswith("access-control")]


async def test_named_origins_may_ask_and_read_what_they_need(start_server: StartServer) -> None:
    callers = await start_server(cors_origins=f"{APP}, http://localhost:3000")
    for origin in (APP, "http://localhost:3000"):
        allowed = await may_ask(callers, origin)
        assert allowed.status_code == 200
        assert allowed.headers["access-control-allow-origin"] == origin
        assert {"authorization", "content-type"} <= set(
            allowed.headers["access-control-allow-headers"].lower().split(",")
        )
        assert int(allowed.headers["access-control-max-age"]) > 0
        response = await callers.rest.post("/v1/answer", json=BODY, headers={"origin": origin})
        assert response.status_code == 200
        assert response.headers["access-control-allow-origin"] == origin
        assert "Origin" in response.headers["vary"]
        exposed = response.headers["access-control-expose-headers"].split(", ")
        assert {"x-request-id", "server-timing"} <= set(exposed) & set(response.headers)
        assert "access-control-allow-credentials" not in response.headers


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/v1/decisions", [f"x-stainless-{name}" for name in ("arch", "lang", "os", "retry-count", "timeout")]),
        ("/v1/decisions", ["openai-organization", "openai-project", "idempotency-key", "user-agent"]),
        ("/v1/systemone", ["x-api-key", "http-referer", "x-title"]),
        ("/v1/answer", ["traceparent", "tracestate", "baggage", "content-encoding", "accept"]),
    ],
)
async def test_pages_may_send_what_official_clients_do(start_server: StartServer, path: str, names: list[str]) -> None:
    callers = await start_server(cors_origins=APP)
    asked = {**PREFLIGHT, "access-control-request-headers": ",".join(["authorization", "content-type", *names])}
    allowed = await callers.rest.options(path, headers={"origin": APP, **asked})
    assert allowed.status_code == 200
    assert set(names) <= set(allowed.headers["access-control-allow-headers"].split(","))
    refused = await callers.rest.options(path, headers={"origin": "https://evil.example", **asked})
    assert (refused.status_code, "access-control-allow-origin" in refused.headers) == (400, False)


@pytest.mark.parametrize("origin", ["https://evil.example", "http://app.example", "https://app.example.evil", "null"])
async def test_others_may_not(start_server: StartServer, origin: str) -> None:
    callers = await start_server(cors_origins=APP)
    refused = await may_ask(callers, origin)
    assert refused.status_code == 400
    response = await callers.rest.post("/v1/answer", json=BODY, headers={"origin": origin})
    assert "access-control-allow-origin" not in refused.headers | response.headers


async def test_a_page_sees_why_it_is_refused_and_needs_a_key_as_everybody(
    start_server: StartServer, tmp_path: Path
) -> None:
    key = add_key(tmp_path / "keys", "page")
    callers = await start_server(cors_origins=APP, api_key_file=tmp_path / "keys")
    assert (await may_ask(callers, APP)).status_code == 200
    response = await callers.rest.post("/v1/answer", json=BODY, headers={"origin": APP})
    assert response.json()["code"] == "unauthenticated"
    assert response.headers["access-control-allow-origin"] == APP
    headers = {"origin": APP, "authorization": f"Bearer {key}"}
    assert (await callers.rest.post("/v1/answer", json=BODY, headers=headers)).status_code == 200


async def test_all_origins_are_a_star(start_server: StartServer) -> None:
    callers = await start_server(cors_origins="*")
    response = await callers.rest.post("/v1/answer", json=BODY, headers={"origin": "https://any.example"})
    assert response.headers["access-control-allow-origin"] == "*"
    assert (await may_ask(callers, "null")).headers["access-control-allow-origin"] == "*"


async def test_only_named_pages_may_ask_a_server_in_a_private_network(start_server: StartServer) -> None:
    private = {"access-control-request-private-network": "true"}
    for origins, allowed in (("https://app.example", "true"), ("*", None)):
        callers = await start_server(cors_origins=origins)
        response = await may_ask(callers, "https://app.example", **private)
        assert response.headers.get("access-control-allow-private-network") == allowed


def test_origins_are_read_and_what_is_none_is_refused() -> None:
    settings = load_settings(
        cors_origins="HTTPS://App.example, http://localhost:3000,http://[::1]:80,tauri://localhost"
    )
    expected = ("https://app.example", "http://localhost:3000", "http://[::1]", "tauri://localhost")
    assert settings.cors_origins == expected
    assert load_settings(**settings.model_dump(mode="json")).cors_origins == expected
    given = (
        "https://app.example:443,http://app.example:80,http://app.example:443,http://[::1]:80,http://app.example:8080"
    )
    expected = ("https://app.example", "http://app.example", "http://app.example:443", "http://[::1]")
    assert load_settings(cors_origins=given).cors_origins == (*expected, "http://app.example:8080")
    for wrong in (
        "app.example",
        "https://app.example/",
        "https://a.example/x",
        "*,https://a.example",
        "null",
        ",",
        [1],
    ):
        with pytest.raises(SettingsError, match="MQAN_CORS_ORIGINS.*is no origin"):
            load_settings(cors_origins=wrong)
