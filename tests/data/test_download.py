"""Downloads from a server on this machine: what arrives is verified, what does not leaves nothing behind."""

import hashlib
import io
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from rich.console import Console

from mqan_data.download import DownloadError, fetch, fetch_all, list_all, missing_by_hand
from mqan_data.formats.dataset_file import Dataset, Download, dataset_names, load_dataset
from mqan_data.formats.reading import needed_files
from mqan_data.tasks import Task, task_named

CONTENT = b"label,sentence\n1,fine\n" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        requests: list[str] = self.server.requests  # type: ignore[attr-defined]
        requests.append(self.path)
        if self.path == "/flaky" and len(requests) < 3:
            self.send_error(503)
        elif self.path in ("/good", "/flaky", "/no-length"):
            self.send_response(200)
            if self.path != "/no-length":
                self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT)
        elif self.path == "/interrupted":
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT[:100])
        elif self.path == "/slow":
            time.sleep(0.2)
        elif self.path.startswith("/redirect/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/redirect/"))
            self.end_headers()
        else:
            self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""


class Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[str] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=500)


def task_of(*sources: Download) -> Task:
    return replace(task_named("sst"), name="toy", folder="toy", sources=sources)


def printed(console: Console) -> str:
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def get(task: Task, data: Path, console: Console, allow_unverified: bool = False) -> tuple[Path, ...]:
    return fetch(task, data, allow_unverified=allow_unverified, console=console, retry_wait_s=0.0)


def test_a_file_is_fetched_verified_and_not_fetched_again(tmp_path: Path, server: Server, console: Console) -> None:
    task = task_of(Download(server.url("/good"), SHA256, "deep"))
    (path,) = get(task, tmp_path / "data", console)
    assert path == tmp_path / "data" / "toy" / "deep" / "good"
    assert path.read_bytes() == CONTENT
    assert list(path.parent.iterdir()) == [path]
    assert printed(console) == f"{path}: downloaded, checksum matches\n"  # and no progress bar
    assert get(task, tmp_path / "data", console) == (path,)
    assert printed(console).endswith(f"{path}: already there, checksum matches\n")
    assert server.requests == ["/good"]


def test_a_terminal_sees_a_progress_bar(tmp_path: Path, server: Server) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    get(task_of(Download(server.url("/good"), SHA256)), tmp_path, console)
    assert "0.0/22.0 kB" in printed(console)


def test_a_wrong_checksum_leaves_nothing_behind(tmp_path: Path, server: Server, console: Console) -> None:
    task = task_of(Download(server.url("/good"), "0" * 64))
    with pytest.raises(DownloadError, match=f"wrong checksum: sha256 is {SHA256}, expected {'0' * 64}"):
        get(task, tmp_path, console)
    assert list((tmp_path / "toy").iterdir()) == []
    assert server.requests == ["/good"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("ALL_PROXY", "socks5://127.0.0.1:1"), ("HTTP_PROXY", "ftp://x"), ("SSL_CERT_FILE", "/none.pem")],
)
def test_a_setting_of_the_environment_that_cannot_be_used_is_told(
    name: str, value: str, tmp_path: Path, server: Server, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(DownloadError, match="that the environment names cannot be used"):
        get(task_of(Download(server.url("/good"), SHA256)), tmp_path, console)
    assert server.requests == []


def test_not_found_is_not_tried_again(tmp_path: Path, server: Server, console: Console) -> None:
    with pytest.raises(DownloadError, match="/gone: the server answered 404 Not Found"):
        get(task_of(Download(server.url("/gone"), SHA256)), tmp_path, console)
    assert list((tmp_path / "toy").iterdir()) == []
    assert server.requests == ["/gone"]


def test_an_interrupted_transfer_leaves_nothing_behind(tmp_path: Path, server: Server, console: Console) -> None:
    task = task_of(Download(server.url("/interrupted"), SHA256))
    with pytest.raises(DownloadError, match="stopped after 100 of 22,000 bytes; gave up after 3 attempts"):
        get(task, tmp_path, console)
    assert list((tmp_path / "toy").iterdir()) == []
    assert server.requests == ["/interrupted"] * 3


def test_an_overloaded_server_is_tried_again(tmp_path: Path, server: Server, console: Console) -> None:
    (path,) = get(task_of(Download(server.url("/flaky"), SHA256)), tmp_path, console)
    assert path.read_bytes() == CONTENT
    assert printed(console).count("503 Service Unavailable; trying again") == 2


def test_no_server_is_an_error(tmp_path: Path, server: Server, console: Console) -> None:
    url = server.url("/good")
    server.server_close()
    with pytest.raises(DownloadError, match=r"/good: .*; gave up after 3 attempts"):
        get(task_of(Download(url, SHA256)), tmp_path, console)


def test_files_without_checksum_need_consent(tmp_path: Path, server: Server, console: Console) -> None:
    task = task_of(Download(server.url("/good"), SHA256), Download(server.url("/no-length")))
    with pytest.raises(DownloadError, match=r"no trusted checksum is known for .*/no-length, .*--allow-unverified"):
        get(task, tmp_path, console)
    assert server.requests == []
    _, unknown = get(task, tmp_path, console, allow_unverified=True)
    assert unknown.read_bytes() == CONTENT
    assert f"{unknown}: downloaded, not verified, sha256 {SHA256}" in printed(console)
    record = unknown.with_name("SHA256SUMS")
    assert record.read_text() == f"{SHA256}  no-length\n"
    get(task, tmp_path, console)  # what is there needs no consent
    assert f"{unknown}: already there, checksum matches" in printed(console)
    unknown.write_bytes(CONTENT[:-1])
    with pytest.raises(DownloadError, match="no-length is not the file that SHA256SUMS lists"):
        get(task, tmp_path, console)
    record.unlink()
    get(task, tmp_path, console)
    assert f"{unknown}: already there, not verified" in printed(console)


@pytest.mark.parametrize("name", dataset_names())
def test_of_each_dataset_it_is_known_where_to_get_it(tmp_path: Path, name: str) -> None:
    dataset = load_dataset(name)
    by_hand = missing_by_hand(replace(dataset, folder="nowhere"), tmp_path)
    assert dataset.origin.startswith("https://") or name == "everyday"
    if by_hand:
        assert f"{name}: by hand from {dataset.origin} (licence: {dataset.licence}" in by_hand
        assert ("not for commercial use" in by_hand) is not dataset.commercial
    else:
        files = [file for part in (*dataset.parts.values(), *dataset.tasks.values()) for file in needed_files(part)]
        assert [file for file in files if not any(source.path in file for source in dataset.downloads)] == []


def toy_dataset(*sources: Download) -> Dataset:
    folder, sst = "toy", load_dataset("sst")
    part = replace(sst.parts["sentiment"], files={"train": ("good",), "validation": ("elsewhere.csv",)})
    return replace(sst, name="toy", folder=folder, parts={"sentiment": part}, downloads=sources)


def test_a_dataset_is_fetched_and_the_rest_is_told(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    toy = toy_dataset(Download(server.url("/good"), SHA256))
    monkeypatch.setattr("mqan_data.download._named", {"toy": toy, "sst": task_of()}.__getitem__)
    list_all(["toy"], tmp_path)
    by_hand = f"toy: by hand from {toy.origin} (licence: {toy.licence}; not for commercial use) into {tmp_path}/toy: "
    assert capsys.readouterr().out == f"{by_hand}elsewhere.csv\n"
    assert fetch_all(["sst", "toy"], tmp_path) is False
    told = capsys.readouterr().err
    assert (tmp_path / "toy" / "good").read_bytes() == CONTENT
    assert "toy has no files to download" in told, "one failure does not end the rest"
    assert f"mqan: {by_hand}elsewhere.csv" in told
    (tmp_path / "toy" / "elsewhere.csv").write_bytes(CONTENT)
    assert fetch_all(["toy"], tmp_path) is True
    assert capsys.readouterr().out == f"{tmp_path / 'toy' / 'good'}\n"
    list_all(["toy"], tmp_path)
    assert capsys.readouterr().out == "toy: there\n"
    (tmp_path / "toy" / "good").unlink()
    list_all(["toy"], tmp_path)
    assert capsys.readouterr().out == "toy: 1 to download\n"


def test_another_file_of_that_name_is_left_alone(tmp_path: Path, server: Server, console: Console) -> None:
    path = tmp_path / "toy" / "good"
    path.parent.mkdir()
    path.write_text("mine")
    with pytest.raises(DownloadError, match="is not the official file"):
        get(task_of(Download(server.url("/good"), SHA256)), tmp_path, console)
    assert path.read_text() == "mine"
    assert server.requests == []


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path, server: Server, console: Console) -> None:
    (tmp_path / "toy").write_text("a file, not a folder")
    with pytest.raises(DownloadError, match=r"good: cannot be written"):
        get(task_of(Download(server.url("/good"), SHA256)), tmp_path, console)


@pytest.mark.parametrize("target", ["http://example.invalid/x", "ftp://127.0.0.1/x"])
def test_only_https_is_followed(tmp_path: Path, server: Server, console: Console, target: str) -> None:
    for url in (target, server.url("/redirect/" + target)):
        with pytest.raises(DownloadError, match=f"{target}: only https is downloaded"):
            get(task_of(Download(url, SHA256)), tmp_path, console)


def test_a_task_of_ones_own_has_nothing_to_download(tmp_path: Path, console: Console) -> None:
    with pytest.raises(DownloadError, match="toy has no files to download"):
        get(task_of(), tmp_path, console)
