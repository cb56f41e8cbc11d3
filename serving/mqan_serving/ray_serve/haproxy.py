"""HAProxy in front of Ray Serve: its errors, deadlines and addresses, and its end.

Ray writes the configuration anew for every change of its replicas, and has settings for few lines of it. The command
that Ray starts in HAProxy's place puts in the others. Without them callers get HTML pages and Ray's own routes, request
heads have no deadline, and statistics are open to the network: ``tests/serving/test_haproxy.py``.
"""

import json
import os
import re
import signal
import time
from collections.abc import Iterable
from http import HTTPStatus
from pathlib import Path

from mqan_serving.contract.errors import ERRORS

ADMIN_SOCKET = "admin"  # short: Linux takes no long path of a socket
_LOOPBACK = "127.0.0.1"
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


def rewrite(configuration: str, folder: Path, host: str = _LOOPBACK) -> str:
    """Return a configuration of Ray's with what it lacks.

    The public ports are on ``host``, statistics on loopback. Request heads have a deadline. Errors are those of the
    API, in files in ``folder``; a missing server is 503, so that callers ask another. Ray's own routes and methods do
    not exist. Nothing is logged: the replicas do that.

    Raises:
        ValueError: Ray has written another configuration than this version knows.
    """
    public = f"[{host}]" if ":" in host else host
    text = "".join(
        _BIND.sub(rf"\g<1>{public if section.startswith(_PUBLIC) else _LOOPBACK}:", section)
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
