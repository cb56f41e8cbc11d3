"""Downloading the official files of a task: ``mqan data get TASK``.

A file is written under another name, checked against its SHA-256, and only then renamed: what lies under its own name
is complete. Files that are already there are verified, never overwritten.
"""

import hashlib
import http.client
import os
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, build_opener

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from mqan_data.errors import DownloadError
from mqan_data.formats.dataset_file import Download
from mqan_data.tasks import Task

MAX_ATTEMPTS = 3
TIMEOUT_S = 60.0
_CHUNK_BYTES = 1 << 20
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class _Transient(Exception):
    """A failure that a second attempt may not meet."""


def fetch(
    task: Task,
    data_dir: Path,
    *,
    allow_unverified: bool = False,
    console: Console | None = None,
    retry_wait_s: float = 1.0,
) -> tuple[Path, ...]:
    """Download the official files of a task that are not there yet; return the path of each.

    What has no trusted checksum is fetched only if unverified files are allowed; nothing incomplete or unverified is
    left behind. The pause before the second attempt is doubled before the third.
    """
    console = console or Console(stderr=True)
    folder = data_dir / task.folder
    if not task.sources:
        raise DownloadError(f"{task.name} has no files to download: it reads the files you put into {folder}.")
    missing = [source for source in task.sources if not (folder / source.path).exists()]
    unverified = [source for source in missing if not source.sha256]
    if unverified and not allow_unverified:
        raise DownloadError(
            f"{task.name}: no trusted checksum is known for {', '.join(source.url for source in unverified)}, so a "
            f"changed or damaged file would go unnoticed. If you trust the source, add `--allow-unverified`; or put "
            f"the file into {folder} yourself."
        )
    for source in task.sources:
        if source not in missing:
            _verify_present(source, folder / source.path, console)
            continue
        digest = _download(source, folder / source.path, console, retry_wait_s)
        outcome = "checksum matches" if source.sha256 else f"not verified, sha256 {digest}"
        console.print(f"{folder / source.path}: downloaded, {outcome}", soft_wrap=True, highlight=False)
    return tuple(folder / source.path for source in task.sources)


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _verify_present(source: Download, path: Path, console: Console) -> None:
    if not source.sha256:
        console.print(f"{path}: already there, not verified: no checksum is known", soft_wrap=True, highlight=False)
    elif (digest := sha256_of(path)) == source.sha256:
        console.print(f"{path}: already there, checksum matches", soft_wrap=True, highlight=False)
    else:
        raise DownloadError(
            f"{path} is not the official file: its sha256 is {digest}, expected {source.sha256}. It was left as it "
            f"is; move it away to download {source.url}."
        )


def _download(source: Download, path: Path, console: Console, retry_wait_s: float) -> str:
    _check_scheme(source.url)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DownloadError(f"{path}: cannot be written: {error.strerror or error}.") from error
    try:
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                digest = _transfer(source, part, console)
                break
            except _Transient as error:
                if attempt == MAX_ATTEMPTS:
                    raise DownloadError(f"{source.url}: {error}; gave up after {attempt} attempts.") from error
                console.print(f"{source.url}: {error}; trying again", soft_wrap=True, highlight=False)
                time.sleep(retry_wait_s * 2 ** (attempt - 1))
        if source.sha256 and digest != source.sha256:
            raise DownloadError(
                f"{source.url}: wrong checksum: sha256 is {digest}, expected {source.sha256}. The file was "
                f"discarded: it is damaged, or the publisher has changed it."
            )
        os.replace(part, path)
    except OSError as error:
        raise DownloadError(f"{path}: cannot be written: {error.strerror or error}.") from error
    finally:
        part.unlink(missing_ok=True)
    return digest


def _transfer(source: Download, part: Path, console: Console) -> str:
    with (
        _network_errors(source.url),
        _opener().open(source.url, timeout=TIMEOUT_S) as response,
        part.open("wb") as out,
    ):
        length = response.headers.get("Content-Length")
        num_expected = int(length) if length is not None and length.isdecimal() else None
        digest = hashlib.sha256()
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
            bar = progress.add_task(source.path, total=num_expected)
            while chunk := response.read(_CHUNK_BYTES):
                out.write(chunk)
                digest.update(chunk)
                progress.advance(bar, len(chunk))
    if num_expected is not None and part.stat().st_size != num_expected:
        raise _Transient(f"the transfer stopped after {part.stat().st_size:,} of {num_expected:,} bytes")
    return digest.hexdigest()


@contextmanager
def _network_errors(url: str) -> Iterator[None]:
    """Sort what the network raises into what is worth another attempt and what is not."""
    try:
        yield
    except HTTPError as error:
        with error:
            message = f"the server answered {error.code} {error.reason}"
        if error.code == http.client.TOO_MANY_REQUESTS or error.code >= http.client.INTERNAL_SERVER_ERROR:
            raise _Transient(message) from error
        raise DownloadError(f"{url}: {message}.") from error
    except (URLError, ConnectionError, TimeoutError, ssl.SSLError, http.client.HTTPException) as error:
        raise _Transient(str(getattr(error, "reason", None) or error or type(error).__name__)) from error


def _check_scheme(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise DownloadError(f"{url}: only https is downloaded.")


class _HttpsOnly(HTTPRedirectHandler):
    """Follows redirects, but never to an unencrypted address."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        _check_scheme(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> OpenerDirector:
    opener = build_opener(_HttpsOnly)
    opener.addheaders = [("User-Agent", "mqan-data")]
    return opener
