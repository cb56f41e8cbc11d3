"""Downloading the official files of tasks and datasets: ``mqan data get NAME``.

A file is written under another name, checked against its SHA-256, and only then renamed: what lies under its own name
is complete. Files that are already there are verified, never overwritten. Of a file without a trusted checksum the
first download writes one to ``SHA256SUMS`` in its folder, as ``sha256sum`` does; later ones compare it.
"""

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

import httpx2
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from mqan_core.errors import MqanError
from mqan_data.files import sha256_of
from mqan_data.formats.dataset_file import Dataset, Download, dataset_names, load_dataset
from mqan_data.formats.reading import missing_files
from mqan_data.tasks import Task, task_named

MAX_ATTEMPTS = 3
TIMEOUT_S = 60.0
_HEADERS = {"User-Agent": "mqan-data", "Accept-Encoding": "identity"}
_RECORD = "SHA256SUMS"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class DownloadError(MqanError):
    """An official file could not be fetched or does not match its checksum."""


def _refuse_unencrypted(request: httpx2.Request) -> None:
    url = request.url
    if url.scheme != "https" and not (url.scheme == "http" and url.host in _LOOPBACK):
        raise DownloadError(f"{url}: only https is downloaded.")


_HOOKS = {"request": [_refuse_unencrypted]}  # of every address, also one that another leads to


def fetch(
    wanted: Task | Dataset,
    data_dir: Path,
    *,
    allow_unverified: bool = False,
    console: Console | None = None,
    retry_wait_s: float = 1.0,
) -> tuple[Path, ...]:
    """Download the official files of a task or dataset that are not there yet; return the path of each.

    What has no trusted checksum is fetched only if unverified files are allowed; nothing incomplete or unverified is
    left behind. The pause before the second attempt is doubled before the third. What nobody may download, or what is
    in no file that can be, is a ``DownloadError`` that says where to get it.
    """
    console = console or Console(stderr=True)
    folder, sources = data_dir / wanted.folder, sources_of(wanted)
    if not sources and isinstance(wanted, Task):
        raise DownloadError(f"{wanted.name} has no files to download: it reads the files you put into {folder}.")
    recorded = _recorded(folder)
    missing = [source for source in sources if not (folder / source.path).exists()]
    unverified = [source for source in missing if not source.sha256]
    if unverified and not allow_unverified:
        raise DownloadError(
            f"{wanted.name}: no trusted checksum is known for {', '.join(source.url for source in unverified)}, so a "
            f"changed or damaged file would go unnoticed. If you trust the source, add `--allow-unverified`; or put "
            f"the file into {folder} yourself."
        )
    for source in sources:
        path = folder / source.path
        expected = source.sha256 or recorded.get(source.path, "")
        if source in missing:
            digest = _download(source, path, console, retry_wait_s)
            outcome = "downloaded, checksum matches" if source.sha256 else f"downloaded, not verified, sha256 {digest}"
            if not source.sha256:
                recorded[source.path] = digest
                lines = (f"{digest}  {name}\n" for name, digest in recorded.items())
                (folder / _RECORD).write_text("".join(lines), encoding="utf-8")
        elif not expected:
            outcome = "already there, not verified: no checksum is known"
        elif (digest := sha256_of(path)) != expected:
            what = "the official file" if source.sha256 else f"the file that {_RECORD} lists"
            raise DownloadError(
                f"{path} is not {what}: its sha256 is {digest}, expected {expected}. It was left as it "
                f"is; move it away to download {source.url}."
            )
        else:
            outcome = "already there, checksum matches"
        console.print(f"{path}: {outcome}", soft_wrap=True, highlight=False)
    if by_hand := missing_by_hand(wanted, data_dir):
        raise DownloadError(by_hand)
    return tuple(folder / source.path for source in sources)


def fetch_all(names: Sequence[str], data: Path, *, allow_unverified: bool = False) -> bool:
    """Download what may be downloaded, and print its paths; tell where the rest is. Return whether all is there."""
    console, failures = Console(stderr=True), []
    for wanted in [_named(name) for name in names]:
        try:
            for path in fetch(wanted, data, allow_unverified=allow_unverified, console=console):
                print(path)
        except DownloadError as error:
            failures.append(str(error))
    for failure in failures:
        console.print(f"mqan: {failure}", markup=False, highlight=False, soft_wrap=True)
    return not failures


def list_all(names: Sequence[str], data: Path) -> None:
    """Print of each whether it is there, can be downloaded, or has to be got by hand."""
    for name in names:
        wanted = _named(name)
        come = [source for source in sources_of(wanted) if not (data / wanted.folder / source.path).exists()]
        print(missing_by_hand(wanted, data) or (f"{name}: {len(come)} to download" if come else f"{name}: there"))


def _named(name: str) -> Task | Dataset:
    """Return the dataset, or the task, with a name."""
    return load_dataset(name) if name in dataset_names() else task_named(name)


def sources_of(wanted: Task | Dataset) -> tuple[Download, ...]:
    return wanted.sources if isinstance(wanted, Task) else wanted.downloads


def missing_by_hand(wanted: Task | Dataset, data: Path) -> str:
    """Return where to get the files that are missing and cannot be downloaded; nothing where there are none."""
    if isinstance(wanted, Task):
        return ""
    folder, parts = wanted.folder_in(data), [*wanted.parts.values()] or [*wanted.tasks.values()]
    lacking = dict.fromkeys(name for part in parts for name in missing_files(folder, part))
    come = [source.path for source in wanted.downloads if not (folder / source.path).exists()]
    files = ", ".join(name for name in lacking if not any(path in name for path in come))
    licence = wanted.licence if wanted.commercial else f"{wanted.licence}; not for commercial use"
    origin = wanted.origin or "its publisher"
    return f"{wanted.name}: by hand from {origin} (licence: {licence}) into {folder}: {files}" if files else ""


def _recorded(folder: Path) -> dict[str, str]:
    record = folder / _RECORD
    lines = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def _download(source: Download, path: Path, console: Console, retry_wait_s: float) -> str:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                digest = _transfer(source, part, console)
                break
            except httpx2.HTTPError as error:
                message = f"{source.url}: {str(error) or type(error).__name__}"
                if attempt == MAX_ATTEMPTS:
                    raise DownloadError(f"{message}; gave up after {attempt} attempts.") from error
                console.print(f"{message}; trying again", soft_wrap=True, highlight=False)
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
        if part.exists():
            part.unlink()
    return digest


def _client() -> httpx2.Client:
    try:
        return httpx2.Client(follow_redirects=True, timeout=TIMEOUT_S, headers=_HEADERS, event_hooks=_HOOKS)
    except (ImportError, OSError, ValueError, httpx2.InvalidURL) as error:
        raise DownloadError(f"a proxy or certificates that the environment names cannot be used: {error}") from error


def _transfer(source: Download, part: Path, console: Console) -> str:
    """Write a file and return its SHA-256; an HTTPError is worth another attempt."""
    digest = hashlib.sha256()
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with (
        _client() as client,
        client.stream("GET", source.url) as response,
        part.open("wb") as out,
        Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress,
    ):
        answered = f"the server answered {response.status_code} {response.reason_phrase}"
        if response.is_server_error or response.status_code == httpx2.codes.TOO_MANY_REQUESTS:
            raise httpx2.HTTPError(answered)
        if not response.is_success:
            raise DownloadError(f"{source.url}: {answered}.")
        length = response.headers.get("Content-Length", "")
        num_expected = int(length) if length.isdecimal() else None
        bar = progress.add_task(source.path, total=num_expected)
        try:
            for chunk in response.iter_raw():
                out.write(chunk)
                digest.update(chunk)
                progress.advance(bar, len(chunk))
        except httpx2.RemoteProtocolError as error:
            of_all = "" if num_expected is None else f" of {num_expected:,}"
            raise httpx2.HTTPError(f"the transfer stopped after {out.tell():,}{of_all} bytes") from error
    return digest.hexdigest()
