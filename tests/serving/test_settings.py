"""A wrong setting stops the server before it starts, and the message names the setting."""

import re
import resource
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mqan_client import Client
from mqan_serving.contract.errors import SettingsError
from mqan_serving.main import announce, serve_local, serve_ray
from mqan_serving.observability.log_writer import WRITER
from mqan_serving.ray_serve.environment import ray_environment
from mqan_serving.settings import Settings, find_bundle, load_settings, origins


@pytest.mark.parametrize(
    ("name", "value"),
    [("http_port", "x"), ("max_batch_size", 0), ("provider", "tpu"), ("request_timeout_s", -1), ("no_such", 1)],
)
def test_bad_values_name_their_setting(name: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"{name}.*MQAN_{name.upper()}"):
        load_settings(**{name: value})


def test_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQAN_HTTP_PORT", "8123")
    assert load_settings().http_port == 8123
    assert load_settings(http_port=8124).http_port == 8124
    monkeypatch.setenv("MQAN_HTTP_PORT", "many")
    with pytest.raises(SettingsError, match="MQAN_HTTP_PORT"):
        load_settings()


def test_settings_that_contradict_each_other() -> None:
    with pytest.raises(SettingsError, match="max_batch_tokens"):
        load_settings(max_batch_tokens=100)
    with pytest.raises(SettingsError, match="http_port and grpc_port"):
        load_settings(http_port=9000)
    with pytest.raises(SettingsError, match="grpc_port and metrics_port are both 9000"):
        load_settings(metrics_port=9000)


def test_keys_are_asked_for_only_where_there_are_some(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="metrics_need_key asks for an API key, but api_key_file names no file"):
        load_settings(metrics_need_key=True)
    assert load_settings(metrics_need_key=True, api_key_file=tmp_path / "keys").metrics_need_key


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("MQAN_API_KEYS_FILE", "MQAN_API_KEY_FILE"),
        ("MQAN_DRAIN_TIMEOUT", "MQAN_DRAIN_TIMEOUT_S"),
        ("MQAN_THREADS", "MQAN_NUM_THREADS"),
        ("MQAN_LOGLEVEL", "MQAN_LOG_LEVEL"),
    ],
)
def test_a_misspelt_variable_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, setting: str) -> None:
    monkeypatch.setenv(name, "5")
    with pytest.raises(SettingsError, match=f"{name} in the environment is no setting; did you mean {setting}"):
        load_settings()


def test_variables_of_others_are_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line's own, and what Kubernetes sets for services called mqan and mqan-grpc."""
    for name in (
        "MQAN_API_KEY",
        "MQAN_SERVER",
        "MQAN_DATA",
        "MQAN_PORT",
        "MQAN_PORT_8000_TCP_ADDR",
        "MQAN_SERVICE_HOST",
        "MQAN_GRPC_SERVICE_PORT",
        "MQAN_GRPC_PORT_9000_TCP_PORT",
    ):
        monkeypatch.setenv(name, "tcp://10.0.0.1:8000")
    assert load_settings().http_port == 8000


def test_a_host_that_is_none_is_named() -> None:
    with pytest.raises(SettingsError, match=r"setting host \(MQAN_HOST\): no\.such\.host\.invalid"):
        serve_local(load_settings(host="no.such.host.invalid"))


def test_an_empty_host_is_refused() -> None:
    with pytest.raises(SettingsError, match="MQAN_HOST"):
        load_settings(host="")  # all interfaces, for a socket


def test_an_empty_variable_is_one_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    default = load_settings()
    for name in Settings.model_fields.keys() - {"api_key_file"}:
        monkeypatch.setenv(f"MQAN_{name.upper()}", "")
    assert load_settings() == default
    assert (default.host, default.bundle, default.allowed_hosts) == ("127.0.0.1", None, ())
    given = load_settings(allowed_hosts="", cors_origins=" ")  # as arguments of Ray's
    assert (given.allowed_hosts, given.cors_origins) == ((), ())


def test_an_empty_file_of_keys_opens_no_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = r"setting api_key_file \(MQAN_API_KEY_FILE\): is empty, which would open the server to everybody"
    with pytest.raises(SettingsError, match=told):
        load_settings(api_key_file="")
    monkeypatch.setenv("MQAN_API_KEY_FILE", "")
    with pytest.raises(SettingsError, match=told):
        load_settings()
    assert load_settings(api_key_file=tmp_path / "keys").api_key_file == tmp_path / "keys"


def announced(settings: Settings, capsys: pytest.CaptureFixture[str]) -> str:
    announce(settings, "tiny 1")
    assert WRITER.flush(60)
    return capsys.readouterr().err


def test_the_lines_of_a_ready_server_have_addresses_that_can_be_called(capsys: pytest.CaptureFixture[str]) -> None:
    lines = announced(load_settings(host="::1", http_port=8001, grpc_port=9001), capsys)
    assert "curl 'http://[::1]:8001/v1/answer'" in lines  # else a shell takes the brackets for a pattern
    (server,) = re.findall(r"--server '(\S+)'", lines)
    assert server == "grpc://[::1]:9001"
    Client(server).close()


def test_the_lines_of_a_ready_server_have_a_key_where_one_is_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for settings in (load_settings(), load_settings(api_key_file=tmp_path / "keys")):
        has_key = '-H "authorization: Bearer $MQAN_API_KEY"' in announced(settings, capsys)
        assert has_key == (settings.api_key_file is not None)


@pytest.mark.parametrize("place", ["on the path", "below this folder", "elsewhere"])
def test_the_lines_of_a_ready_server_name_a_command_that_is_there(
    place: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "an environment" / "bin"
    other = tmp_path / "other"
    for made in (folder, other):
        made.mkdir(parents=True)
    (folder / "mqan").write_text("#!/bin/sh\n")
    (folder / "mqan").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(folder if place == "on the path" else tmp_path))
    monkeypatch.chdir(tmp_path if place == "below this folder" else other)
    (line,) = [line for line in announced(load_settings(), capsys).splitlines() if "--server" in line]
    subprocess.run(line, shell=True, check=True)
    named = {"on the path": "mqan", "below this folder": "an environment/bin/mqan", "elsewhere": str(folder / "mqan")}
    assert shlex.split(line)[0] == named[place]


def test_bundle_must_exist(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"bundle.*manifest\.json"):
        find_bundle(load_settings(bundle=tmp_path))


@pytest.mark.parametrize("serve", [serve_local, serve_ray])
def test_taken_port_is_reported_before_anything_starts(serve: object) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        settings = load_settings(http_port=port, grpc_port=port - 1 if port > 2 else port + 1)
        assert callable(serve)
        with pytest.raises(SettingsError, match=r"http_port|grpc_port"):
            serve(settings)


def _with_serve_run(settings: Settings) -> Any:
    from mqan_serving.ray_serve.app import build_app

    return build_app(settings.model_dump(mode="json", exclude_unset=True))


@pytest.mark.parametrize("serve", [serve_ray, _with_serve_run])
def test_however_ray_is_started_the_same_is_checked(
    serve: Callable[[Settings], object], tmp_path: Path, free_ports: Callable[[int], list[int]]
) -> None:
    http_port, grpc_port = free_ports(2)
    keys = tmp_path / "keys"
    keys.write_text("# nobody\n")
    given = {"http_port": http_port, "grpc_port": grpc_port, "admin_key_file": keys}
    with pytest.raises(SettingsError, match=r"MQAN_ADMIN_KEY_FILE.*folder of bundles"):
        serve(load_settings(**given))
    with pytest.raises(SettingsError, match="cannot read"):
        serve(load_settings(**given, api_key_file=tmp_path / "none", bundles=str(tmp_path)))


def test_replicas_find_files_in_whatever_folder_they_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("# nobody\n")
    monkeypatch.chdir(tmp_path)
    given = {"bundle": "model", "adapters": "adapters", "api_key_file": "keys"}
    (told,) = _with_serve_run(load_settings(**given))._bound_deployment.init_args
    assert {name: told[name] for name in given} == {name: str(tmp_path / file) for name, file in given.items()}
    (told,) = _with_serve_run(load_settings(bundles="a=one,b=/two"))._bound_deployment.init_args
    assert told["bundles"] == f"a={tmp_path}/one,b=/two"


@pytest.fixture
def run_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """One with a path as short as a server's, where there is HAProxy."""
    monkeypatch.setenv("RAY_SERVE_HAPROXY_BINARY_PATH", "/bin/true")
    monkeypatch.delenv("RAY_SERVE_ENABLE_HA_PROXY", raising=False)
    with tempfile.TemporaryDirectory(prefix="mqan-", dir="/tmp") as folder:
        yield Path(folder)


def test_servers_on_one_machine_share_no_ports_of_replicas(run_folder: Path) -> None:
    """Ray lets several replicas listen on one port, and the requests of one server then reach the other."""

    def ranges(http_port: int, claims: ExitStack) -> list[range]:
        environment = ray_environment(load_settings(http_port=http_port), run_folder, claims)
        names = [f"RAY_SERVE_DIRECT_INGRESS_{{}}_{transport}_PORT" for transport in ("HTTP", "GRPC")]
        return [range(int(environment[n.format("MIN")]), int(environment[n.format("MAX")]) + 1) for n in names]

    with ExitStack() as others:
        taken: set[int] = set()
        for http_port in (8000, 8001, 8000):  # the last looks where the first did, before that one's Ray listens
            for mine in ranges(http_port, others):
                assert len(mine) == 61
                assert taken.isdisjoint(mine)
                taken.update(mine)
    with ExitStack() as claims:
        first = ranges(8000, claims)[0]
    with socket.socket() as listener, ExitStack() as claims:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("127.0.0.1", first[5]))
        listener.listen()
        assert set(ranges(8000, claims)[0]).isdisjoint(first)


def test_no_free_ports_for_replicas_are_an_error(run_folder: Path) -> None:
    with ExitStack() as claims:
        for begin in range(10_000, 15_000 - 5_000 % 2_000, 2_000):
            listener = claims.enter_context(socket.socket())
            listener.bind(("127.0.0.1", next(port for port in range(begin + 100, begin + 2_000) if _is_free(port))))
            listener.listen()
        with pytest.raises(SettingsError, match=r"MQAN_NUM_REPLICAS"):
            ray_environment(load_settings(num_replicas=500), run_folder, claims)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_ray_falls_back_to_its_own_proxy(monkeypatch: pytest.MonkeyPatch, run_folder: Path) -> None:
    with ExitStack() as claims:
        environment = ray_environment(load_settings(), run_folder, claims)
    assert environment["RAY_SERVE_ENABLE_HA_PROXY"] == "1"
    assert Path(environment["RAY_SERVE_HAPROXY_SOCKET_PATH"]).parent == run_folder
    monkeypatch.setenv("RAY_SERVE_ENABLE_HA_PROXY", "0")
    environment = ray_environment(load_settings(), run_folder, ExitStack())
    assert environment["RAY_SERVE_ENABLE_HA_PROXY"] == environment["RAY_SERVE_ENABLE_DIRECT_INGRESS"] == "0"
    assert environment["RAY_AUTH_MODE"] == "token"


def test_what_haproxy_needs_is_checked_before_ray_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run_folder: Path
) -> None:
    with ExitStack() as claims:
        deep = tmp_path / ("deep" * 10) / "mqan-12345678"
        with pytest.raises(SettingsError, match=rf"{deep.parent}, has a path .* too long .* TMPDIR"):
            ray_environment(load_settings(), deep, claims)
        with monkeypatch.context() as limited:
            limited.setattr(resource, "getrlimit", lambda _: (1024, 4096))
            with pytest.raises(SettingsError, match=r"MQAN_MAX_CONNECTIONS\): 1000 need 4200 .* allows 4096: lower it"):
                ray_environment(load_settings(), run_folder, claims)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
        with pytest.raises(SettingsError, match="mqan-haproxy.* PATH"):
            ray_environment(load_settings(), run_folder, claims)


def test_hosts_are_names_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQAN_ALLOWED_HOSTS", "Answers.example, other.example")
    settings = load_settings()
    assert settings.allowed_hosts == ("answers.example", "other.example")
    assert load_settings(**settings.model_dump(mode="json")).allowed_hosts == settings.allowed_hosts
    for wrong in ("answers.example:80", "http://answers.example", "*.example", "a b", "a,,b"):
        with pytest.raises(SettingsError, match="MQAN_ALLOWED_HOSTS.*is no name of a host"):
            load_settings(allowed_hosts=wrong)


def test_a_process_gets_a_file_for_every_connection() -> None:
    code = (
        "import resource; from mqan_serving.checks import make_room_for_files; "
        "from mqan_serving.settings import load_settings; "
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]; "
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)); "
        "make_room_for_files(load_settings(max_connections=500)); "
        "print(resource.getrlimit(resource.RLIMIT_NOFILE) == (1100, hard), flush=True); "
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 600)); "
        "make_room_for_files(load_settings(max_connections=500)); "
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert [line for line in done.stdout.splitlines() if line in ("True", "False", "600")] == ["True", "600"]
    assert "needs 1100 files and the system allows 600" in done.stdout + done.stderr


def test_a_file_has_settings_below_variables_and_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mqan.toml"
    file.write_text('http_port = 8100\ngrpc_port = 9100\nhost = "127.0.0.2"\nallowed_hosts = ["answers.example"]\n')
    monkeypatch.setenv("mqan_grpc_port", "9200")
    found = load_settings(file, host="127.0.0.3")
    assert (found.http_port, found.grpc_port, found.host) == (8100, 9200, "127.0.0.3")
    assert found.allowed_hosts == ("answers.example",)
    origin_of = origins(file, {"host": "127.0.0.3"})
    named = ("http_port", "grpc_port", "host", "max_word_length")
    assert [origin_of[name] for name in named] == [str(file), "mqan_grpc_port", "argument", "default"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("http_prot = 1", "http_prot in .* is no setting; did you mean http_port"),
        ("http_port = 'x'", "setting http_port"),
        ("http_port 1", "is no TOML"),
        (None, "cannot read"),
    ],
)
def test_a_file_that_is_wrong_is_named(text: str | None, message: str, tmp_path: Path) -> None:
    file = tmp_path / "mqan.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SettingsError, match=message):
        load_settings(file)
