"""HAProxy in front of Ray Serve: what it says and lets through, and how it ends.

Ray writes its configuration anew for every change of its replicas, and has settings for few lines of it. The others are
put in here, by the command that Ray starts in HAProxy's place.

Without it callers get HAProxy's HTML for errors and Ray's own routes, heads have no deadline, and connections that wait
at the end are reset: ``tests/serving/test_haproxy.py`` and ``tests/e2e``.
"""

import json
import os
import re
import signal
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

from mqan_serving.service.errors import ERRORS

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
_CLOSE_S = 0.1  # for HAProxy to close its listening sockets
_ASK_S = 0.3  # for a peer to ask, and to read the answer


def rewrite(configuration: str, folder: Path, host: str = _LOOPBACK) -> str:
    """Return a configuration of Ray's with what it lacks.

    The public ports are on ``host``, statistics on loopback. Heads have a deadline. Errors are those of the API, whose
    files are written, and never tell more; a server that has gone is 503, so that callers ask another. Ray's own routes
    and methods are not there for callers. Nothing is logged: the replicas do that.

    Args:
        configuration: as Ray wrote it.
        folder: for files beside it.
        host: address that callers connect to; 0.0.0.0 or :: for all.
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


def stop_listening(folder: Path, port: int, timeout_s: float) -> None:
    """Let all HAProxys that left a note refuse new connections, finish what they have and end; wait for that.

    Args:
        folder: of their configurations.
        port: of REST. The connections that wait there for being taken are told that nobody is ready: the kernel would
            reset them.
        timeout_s: longest time to wait.
    """
    notes = list(folder.rglob(f"*{_PID_SUFFIX}"))
    processes = [int(note.stem) for note in notes]
    deadline = time.monotonic() + timeout_s
    listeners = [each for place in {note.parent for note in notes} for each in _listeners_of(place, port)]
    for process in _running(processes, folder):
        os.kill(process, signal.SIGUSR1)
    time.sleep(_CLOSE_S)
    for listener, place in listeners:
        _tell_waiting(listener, (place / "503.http").read_bytes(), deadline)
    while list(_running(processes, folder)) and time.monotonic() < deadline:
        time.sleep(0.02)


def _listeners_of(folder: Path, port: int) -> list[tuple[socket.socket, Path]]:
    """Return the sockets that an HAProxy listens on at a port, as it hands them to one that takes its place."""
    found: list[tuple[socket.socket, Path]] = []
    with suppress(OSError), socket.socket(socket.AF_UNIX) as admin:
        admin.settimeout(1)
        admin.connect(str(folder / ADMIN_SOCKET))
        admin.sendall(b"_getsocks\n")
        files: list[int] = []
        while not files:  # first comes their number
            data, files, _, _ = socket.recv_fds(admin, 4096, 64)
            if not data:
                break
        for file in files:
            listener = socket.socket(fileno=file)
            if listener.family in (socket.AF_INET, socket.AF_INET6) and listener.getsockname()[1] == port:
                found.append((listener, folder))
            else:
                listener.close()
    return found


def _tell_waiting(listener: socket.socket, response: bytes, deadline: float) -> None:
    """Close a listening socket, and answer the connections that were made and never taken; after a time, close them."""
    waiting: list[socket.socket] = []
    listener.setblocking(False)
    with suppress(OSError):
        while True:
            waiting.append(listener.accept()[0])
    listener.close()
    for peer in waiting:
        with suppress(OSError), peer:
            peer.settimeout(max(0.0, min(_ASK_S, deadline - time.monotonic())))
            peer.recv(65536)
            peer.sendall(response)
            peer.shutdown(socket.SHUT_WR)
            while time.monotonic() < deadline and peer.recv(65536):
                pass


def _running(processes: Iterable[int], folder: Path) -> Iterable[int]:
    """Yield those that are still HAProxys of ours: their number may be another's by now."""
    for process in processes:
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in words:
            yield process


def _insert(text: str, section: str, lines: list[str]) -> str:
    """Return a text with lines at the beginning of a section.

    Raises:
        ValueError: there is none; Ray writes another configuration than this knows.
    """
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
    """Return the rule that answers with an error."""
    file = folder / f"{code}.json"
    file.write_text(_document(code))
    again = " hdr retry-after 1" if code == "unavailable" else ""
    return f"http-request return status {ERRORS[code].http} content-type application/json file {file}{again}"
