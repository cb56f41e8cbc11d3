"""What all tests share: where the datasets are, which tests this machine can run, and servers to ask."""

import asyncio
import fcntl
import functools
import gc
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the networks here are tiny: threads would only wait for each other
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # also where a test imports onnxruntime first
os.environ.setdefault("TORCH_FAKE_TENSOR_DISPATCH_CACHE", "0")  # exports of tiny networks take a fifth less without it
os.environ.setdefault("RAY_worker_niceness", "0")  # by default 15: beside other tests Ray would hardly get on

import grpc
import httpx2
import numpy as np
import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from mqan_export.parity import Parity
    from mqan_training.model.network import Network
    from mqan_training.start import Trained


# What a test finds shall not depend on how fast the machine is.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


# Tests of which two would wait for each other, or take too much of the machine together: one worker runs each group.
# They begin first, in this order: one export is made beside others' work, and what takes long does not come last.
_FIRST = ("e2e", "export", "test_tasks.py", "page", "test_blocks.py", "batch", "test_made.py")
# Folders that measure how a server bears load, and end processes: with several workers, nothing else runs beside them.
_ALONE = {"fault"}


_DEFAULT_PORTS = {8000, 8001, 9000}  # of REST, of `mqan mcp` and of gRPC


def _refuse_default_ports(event: str, arguments: tuple[Any, ...]) -> None:
    """Fail what would depend on whether a server runs on this machine."""
    if event in ("socket.bind", "socket.connect") and isinstance(arguments[1], tuple):
        assert arguments[1][1] not in _DEFAULT_PORTS, f"{event} {arguments[1]}: take one of free_ports"


sys.addaudithook(_refuse_default_ports)


def _is_one_of_several() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ


def _is_alone(path: Path) -> bool:
    return path.parent.name in _ALONE


def _group(path: Path) -> str:
    """Return what one worker runs as a whole: all that has to run alone, a group, or else the file."""
    if _is_alone(path):
        return "alone"
    return next((name for name in _FIRST if name in (path.name, path.parent.name)), str(path))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a device or datasets that are not here; put what takes longest first, what runs alone last."""
    place = {name: number for number, name in enumerate((*_FIRST, "", "alone"))}
    items.sort(key=lambda item: place.get(_group(item.path), place[""]))
    without_data = pytest.mark.skip(reason="MQAN_DATA does not name the folder of the datasets")
    without_gpu = pytest.mark.skip(reason="no CUDA device")
    for item in items:
        if item.get_closest_marker("data") and "MQAN_DATA" not in os.environ:
            item.add_marker(without_data)
        if item.get_closest_marker("gpu") and not Path("/dev/nvidiactl").exists():
            item.add_marker(without_gpu)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each group of tests to one worker, in order."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return _group(Path(nodeid.split("::")[0]))

    config.option.loadscopereorder = False
    return Scheduling(config, log)


@functools.cache
def _keep_garbage() -> None:
    """Spare servers here the looking through what thousands of tests have left, which would stop them for a second."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let a test that has to run alone wait until the tests of other workers have ended, and them until it has."""
    if not _is_one_of_several():
        return (yield)
    with Path(__file__).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX if _is_alone(item.path) else fcntl.LOCK_SH)
        if _is_alone(item.path):
            _keep_garbage()
        return (yield)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder of the datasets; for tests marked ``data``."""
    return Path(os.environ["MQAN_DATA"])


@pytest.fixture(scope="session")
def repository() -> Path:
    """Root of the checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def bundle_folder(repository: Path, request: pytest.FixtureRequest) -> Path:
    """Folder of the bundle that tests serve: MQAN_TEST_BUNDLE, else the default bundle, else an untrained one."""
    named = os.environ.get("MQAN_TEST_BUNDLE")
    if named:
        return Path(named)
    found = sorted(path.parent for path in (repository / "serving" / "bundles").glob("*/manifest.json"))
    if not found:
        untrained: Path = request.getfixturevalue("tiny_bundle")
        return untrained
    return found[0]


@pytest.fixture(scope="session")
def free_ports() -> Callable[[int], list[int]]:
    """Finds ports that nobody listens on, below those that systems hand out to outgoing connections.

    A port that the system itself chooses is often taken again, by a connection of Ray's own processes, before a
    server that needs ten seconds to start listens on it.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 4
    first = 20_000 + 3_000 * worker  # so that no two workers choose the same
    candidates = iter(random.sample(range(first, first + 3_000), 1_000))

    def is_free(port: int) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) != 0

    return lambda number: [next(port for port in candidates if is_free(port)) for _ in range(number)]


_TEXT = (
    "the old harbour was closed in 1923 because storms had torn its walls apart nobody knew who would pay for repairs "
    "Ada Lovelace wrote notes on the Analytical Engine and Menabrea's paper it's état naïve Ελλάδα 🙂 x-ray $4.50 "
    "happy angry negative positive review Is this or the answer (yes) no; maybe: perhaps? never!"
)
WORDS = _TEXT.split()


@pytest.fixture(scope="session")
def sentences() -> Callable[[random.Random, int], str]:
    """Makes random sentences, some of their words unknown to any vocabulary."""

    def make(rng: random.Random, num_words: int) -> str:
        words = [
            "".join(rng.choices("abcdefgh", k=rng.randint(1, 9))) if rng.random() < 0.2 else rng.choice(WORDS)
            for _ in range(num_words)
        ]
        return "".join(word + rng.choice((" ", " ", " ", "  ", "\n", ", ")) for word in words)

    return make


def make_network(**variant: Any) -> "Network":
    """Make a small untrained network with large random weights, so that its answers differ from text to text."""
    import torch

    from mqan_core.text.vocab import Vocabulary
    from mqan_training.model.embeddings import StaticVectors
    from mqan_training.model.network import Network
    from mqan_training.recipe import ModelConfig

    words = sorted({word.lower() for word in WORDS})
    rows = np.random.default_rng(7).integers(-127, 128, (len(words), 12), dtype=np.int8)
    vectors = StaticVectors(tuple(words), rows, np.full(len(words), 0.02, np.float32))
    pieces = [f" {word} " for word in words if word.isalpha()] + [", ", "? "]
    sizes = {"width": 24, "ffn_width": 20, "head_width": 8, "num_layers": 2, "ngram_buckets": 300, "ngram_width": 6}
    config = ModelConfig(**{**sizes, **variant})
    torch.manual_seed(11)
    network = Network(config, vectors, Vocabulary(pieces, words)).eval()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if parameter.dim() > 1 and "ngrams" not in name:
                parameter.mul_(1.3)
            elif parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.05)  # no two alike, as in a trained network
            parameter.copy_(parameter.half())  # as a bundle holds it
    return network


def _folder_of_all(factory: pytest.TempPathFactory) -> Path:
    """Return the temporary folder that all workers of a run share."""
    return factory.getbasetemp().parent if _is_one_of_several() else factory.getbasetemp()


@functools.cache
def _exports() -> Path:
    """Return where exports, which take long, are kept for the next run; others are taken away once the code changes."""
    repository = Path(__file__).resolve().parent.parent
    state = hashlib.sha256()
    for folder in ("core", "runtime", "data", "training", "export", "tests/answering.py", "tests/conftest.py"):
        for path in sorted([*(repository / folder).rglob("*.py"), repository / folder]):
            state.update(path.read_bytes() if path.is_file() else b"")
    for package in ("torch", "onnx", "onnxscript", "onnxruntime", "numpy"):
        state.update(version(package).encode())
    kept = repository / ".pytest_cache" / "exports"
    for other in kept.glob("*"):
        if other.name != state.hexdigest():
            shutil.rmtree(other, ignore_errors=True)
    return kept / state.hexdigest()


def _export_once(factory: pytest.TempPathFactory, name: str, write: Callable[[Path], None]) -> Path:
    """Return a folder, for all tests and workers of a run, with what is exported into it."""
    folder, kept = _folder_of_all(factory) / name, _exports() / name
    kept.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{kept}.lock"):
        if not kept.exists():
            made = factory.mktemp(name)
            write(made)
            _copy_whole(made, kept)
        if not folder.exists():
            _copy_whole(kept, folder)
    return folder


def _copy_whole(source: Path, target: Path) -> None:
    """Copy a folder that is complete as soon as it is there."""
    aside = target.with_name(f"{target.name}-{os.getpid()}")
    shutil.copytree(source, aside)
    aside.rename(target)


def bundle_of(network: "Network", factory: pytest.TempPathFactory) -> Path:
    """Write a small network as a bundle, once for all tests and all workers."""
    config = json.dumps(asdict(network.mqan.config), sort_keys=True)
    name = f"bundle-{hashlib.sha256(config.encode()).hexdigest()[:8]}"
    return _export_once(factory, name, functools.partial(_write_bundle, network))


def _write_bundle(network: "Network", folder: Path) -> None:
    from mqan_core.bundle import write_manifest
    from mqan_core.manifest import MODEL_CARD
    from mqan_export.bundle import WordsModel, manifest_of

    model = WordsModel(network)
    model.write(folder)
    (folder / MODEL_CARD).write_text("# tiny\n")
    write_manifest(folder, manifest_of(model, "tiny", "0", {"model": asdict(network.mqan.config)}))


@pytest.fixture(scope="session")
def small_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a small pretrained reader, made once for all tests and workers."""
    from tests.answering import write_small_checkpoint

    folder = _folder_of_all(tmp_path_factory) / "small" / "step-0000001"
    with FileLock(folder.parent.with_suffix(".lock")):
        if not folder.exists():
            write_small_checkpoint(folder)
    return folder


@pytest.fixture(scope="session")
def small_export(small_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> "tuple[Path, Parity]":
    """A bundle of a small pretrained reader and what its export reports, made once for all tests and workers."""
    from mqan_export.parity import Parity
    from tests.answering import write_small_bundle

    def write(folder: Path) -> None:
        report = write_small_bundle(small_checkpoint, folder / "bundle")
        (folder / "report.json").write_text(json.dumps(asdict(report)))

    folder = _export_once(tmp_path_factory, "small-export", write)
    return folder / "bundle", Parity(**json.loads((folder / "report.json").read_text()))


@pytest.fixture(scope="session")
def small_bundle(small_export: "tuple[Path, Parity]") -> Path:
    """The bundle alone; to be copied before a change."""
    return small_export[0]


@pytest.fixture(scope="session")
def small_trained(small_checkpoint: Path) -> "Trained":
    """The network of the bundle, with the weights that the bundle has rounded."""
    from mqan_export.bundle import round_network
    from mqan_training.checkpoint import load_checkpoint
    from mqan_training.start import load_trained

    trained = load_trained(load_checkpoint(small_checkpoint))
    round_network(trained.network)
    return trained


@pytest.fixture(scope="session")
def tiny_network() -> "Network":
    """The small network, complete."""
    return make_network()


@pytest.fixture(scope="session")
def tiny_bundle(tiny_network: "Network", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small network as a bundle."""
    return bundle_of(tiny_network, tmp_path_factory)


@pytest.fixture(scope="session")
def serve_local(
    tiny_bundle: Path, free_ports: Callable[[int], list[int]]
) -> Callable[..., AbstractContextManager[tuple[int, int]]]:
    """Serves the small bundle, or an engine, in a thread, by settings: a context with the ports of REST and gRPC.

    At its end the server must be well and idle.
    """
    from mqan_runtime.engine import Engine
    from mqan_serving.local import LocalServer
    from mqan_serving.observability.logs import set_up_logs
    from mqan_serving.observability.metrics import Metrics
    from mqan_serving.service.answer_service import Service
    from mqan_serving.settings import load_settings
    from tests.serving_one import models_of

    async def run(
        started: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]", engine: Any, settings: dict[str, Any]
    ) -> None:
        engine = engine or Engine.open(tiny_bundle, provider="cpu")
        metrics = Metrics()
        service = Service(engine, load_settings(**settings), meter=metrics)
        await service.warm_up()
        server = LocalServer(models_of(service, load_settings(**settings)), load_settings(**settings), metrics)
        await server.start()
        stop = asyncio.Event()
        started.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()
        state = service.health.is_ready, service.num_requests
        await server.stop()
        assert state == (True, 0)

    @contextmanager
    def serve(engine: Any = None, **settings: Any) -> Iterator[tuple[int, int]]:
        http_port, grpc_port = free_ports(2)
        set_up_logs("error")
        given = {"http_port": http_port, "grpc_port": grpc_port, "drain_delay_s": 0, **settings}
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        with ThreadPoolExecutor(1, thread_name_prefix="test-server") as executor:
            ended = executor.submit(asyncio.run, run(started, engine, given))
            either: list[Future[Any]] = [started, ended]
            wait(either, 60, FIRST_COMPLETED)
            if ended.done():
                ended.result()
            loop, stop = started.result(0)
            try:
                yield http_port, grpc_port
            finally:
                loop.call_soon_threadsafe(stop.set)
            ended.result(30)

    return serve


@pytest.fixture(scope="session")
def small_server(
    small_bundle: Path, serve_local: Callable[..., AbstractContextManager[tuple[int, int]]]
) -> Iterator[tuple[str, str]]:
    """A server of the small pretrained reader, for all tests that ask it what they like: its URLs of REST and gRPC."""
    from mqan_runtime.engine import Engine

    with serve_local(Engine.open(small_bundle)) as (http_port, grpc_port):
        yield f"http://127.0.0.1:{http_port}", f"grpc://127.0.0.1:{grpc_port}"


_START_S = 150.0  # a Ray start takes 10 s on two free cores
_STOP_S = 60.0
_PROGRAM = "from mqan_cli.main import app; app()"


@dataclass
class ServerProcess:
    """A server that runs."""

    kind: str  # ``local``, ``ray`` (HAProxy) or ``ray-proxy`` (Ray's own proxy)
    rest: str  # base URL of REST
    rpc: str  # address of gRPC
    process: "subprocess.Popen[bytes]"
    start_s: float  # seconds from its start until it was ready
    log: Path

    def stop(self) -> int:
        """Ask it to end and return its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(_STOP_S)
        finally:
            self.process.kill()  # else, where it has not ended, tests elsewhere fail of it, too
            self.process.wait()


StartServer = Callable[..., ServerProcess]


@pytest.fixture(scope="session")
def start_server(start_process: StartServer) -> StartServer:
    """Start servers in processes of their own; folders of tests may start others by this name."""
    return start_process


@pytest.fixture(scope="session")
def default_server(repository: Path, start_process: StartServer) -> Iterator[ServerProcess]:
    """A server of the default bundle in a process of its own, for all tests that ask it what they like."""
    server = start_process("local", bundle=repository / "serving" / "bundles" / "default")
    yield server
    assert server.stop() == 0, server.log.read_text()[-3000:]


@pytest.fixture(scope="session")
def start_process(
    bundle_folder: Path, free_ports: Callable[[int], list[int]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StartServer]:
    """Start servers of a kind with settings, and what to run in the process before; all are stopped at the end."""
    started: list[ServerProcess] = []

    def start(kind: str, before: str = "", **settings: object) -> ServerProcess:
        http_port, grpc_port = free_ports(2)
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        given = {"bundle": bundle_folder, "http_port": http_port, "grpc_port": grpc_port, "drain_delay_s": 0.5}
        for name, value in (given | settings).items():
            environment[f"MQAN_{name.upper()}"] = str(value)
        if kind == "ray-proxy":
            environment["RAY_SERVE_ENABLE_HA_PROXY"] = "0"
        log = tmp_path_factory.mktemp(kind) / "log"
        command = [sys.executable, "-c", before + _PROGRAM, "serve", *([] if kind == "local" else ["--ray"])]
        begun = time.perf_counter()
        with log.open("wb") as output:
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        server = ServerProcess(kind, f"http://127.0.0.1:{http_port}", f"127.0.0.1:{grpc_port}", process, 0.0, log)
        started.append(server)
        try:
            wait_until_ready(server, begun + _START_S)
        except BaseException:
            server.stop()  # else it runs, and holds its ports, until all tests have ended
            raise
        server.start_s = time.perf_counter() - begun
        return server

    yield start
    for server in started:
        if server.process.poll() is None:
            server.stop()


def wait_until_ready(server: ServerProcess, deadline: float) -> None:
    """Return when both transports answer and the server has said that all of it is ready."""
    with httpx2.Client(trust_env=False) as client:
        while time.perf_counter() < deadline:
            if server.process.poll() is not None:
                pytest.fail(f"{server.kind} server ended: {server.log.read_text()[-3000:]}")
            try:
                is_ready = client.get(f"{server.rest}/health/ready").status_code == 200
                if is_ready and "mqan is ready" in server.log.read_text():  # the last replica, not the first
                    with grpc.insecure_channel(server.rpc) as channel:
                        grpc.channel_ready_future(channel).result(timeout=10)
                    return
            except (httpx2.TransportError, grpc.FutureTimeoutError):  # a connection made while HAProxy reloads may hang
                pass
            time.sleep(0.02)
    pytest.fail(f"{server.kind} server is not ready: {server.log.read_text()[-3000:]}")
