"""A cluster of Ray on one machine, whose nodes have a network, processes and temporary files of their own.

They are namespaces of Linux, which take root and the command ``ip``. A node dies as a whole, as a machine does.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from tests.processes import REPLICA, descendants

HTTP_PORT, GRPC_PORT = 8100, 9100
IS_POSSIBLE = os.geteuid() == 0 and shutil.which("ip") is not None and shutil.which("unshare") is not None

_GCS_PORT, _START_S = 6379, 240.0
_NODE = "mount --bind {folder} /tmp && ip link set lo up && {{ read -r _; exec {command}; }}"


class Node:
    """A machine of the cluster; ``process`` holds all of it."""

    def __init__(self, number: int, network: str, bridge: str, folder: Path, command: str) -> None:
        self.address = f"{network}.{10 + number}"
        self.folder = folder / f"node-{number}"
        self._link, self._network, self._bridge = f"{bridge}-{number}", network, bridge
        self._command = command
        self._environment: dict[str, str] = {}
        self._first = 0  # of its processes
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def rest(self) -> str:
        return f"http://{self.address}:{HTTP_PORT}"

    @property
    def rpc(self) -> str:
        return f"{self.address}:{GRPC_PORT}"

    def start(self, environment: Mapping[str, str]) -> None:
        """Start the machine anew, with nothing of its former life."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._environment = dict(environment)
        inside = _NODE.format(folder=self.folder, command=self._command.format(address=self.address))
        with (self.folder.parent / f"{self.folder.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec", inside],
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + _START_S
        while not (first := self.processes("sh")):
            assert time.monotonic() < until
            time.sleep(0.05)
        self._first = first[0]
        _ip("link", "add", self._link, "type", "veth", "peer", "name", "eth0", "netns", str(self._first))
        _ip("link", "set", self._link, "master", self._bridge, "up")
        for words in (
            ["address", "add", f"{self.address}/24", "dev", "eth0"],
            ["link", "set", "eth0", "up"],
            ["route", "add", "default", "via", f"{self._network}.1"],  # Ray asks which address leads out
        ):
            subprocess.run(["nsenter", "--target", str(self._first), "--net", "ip", *words], check=True)
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.close()

    def run(self, *words: str) -> str:
        """Run a command on the machine; return what it says."""
        enter = ["nsenter", "--target", str(self._first), "--net", "--mount", "--pid", "--", *words]
        finished = subprocess.run(
            enter, env=self._environment, capture_output=True, text=True, timeout=_START_S, check=False
        )
        assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]
        return finished.stdout

    def processes(self, name: str) -> list[int]:
        """Return its processes of a name, as this machine numbers them; all of them without one."""
        return [] if self.process is None else [p for p in descendants(self.process.pid, name) if p != self.process.pid]

    @property
    def is_up(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """End the machine at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            subprocess.run(["ip", "link", "del", self._link], check=False, capture_output=True)

    def cut(self, *, off: bool) -> None:
        """Cut the machine off the network, or join it again."""
        _ip("link", "set", self._link, "down" if off else "up")

    def signal(self, number: signal.Signals) -> None:
        """Send all processes of the machine a signal."""
        for process in self.processes(""):
            with suppress(ProcessLookupError):
                os.kill(process, number)


class Cluster:
    """A head, which runs no replica, and workers, which have some cores each."""

    def __init__(
        self, folder: Path, num_workers: int, cores: int, manifest: Path, bundle: Path, redis: str | None
    ) -> None:
        number = os.getpid() % 250
        self._bridge, network = f"mqan{number}", f"10.213.{number}"
        self._outside = f"{network}.1"
        service = next(yaml.safe_load_all(manifest.read_text()))["spec"]
        container = service["rayClusterConfig"]["headGroupSpec"]["template"]["spec"]["containers"][0]
        self._config = yaml.safe_load(service["serveConfigV2"])
        self._config["http_options"]["port"] = HTTP_PORT
        self._config["grpc_options"]["port"] = GRPC_PORT
        (application,) = self._config["applications"]
        del application["args"]["metrics_port"]
        application["args"]["bundle"] = str(bundle)
        self.application: dict[str, Any] = application
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a" * 64}  # as the operator makes one
        fair = {"RAY_worker_niceness": "0"}  # all nodes share this machine with what asks them
        of_manifest = {variable["name"]: variable["value"] for variable in container["env"]}
        self._environment = {**os.environ, "TMPDIR": "/tmp", **token, **fair, **of_manifest}
        self._environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        if redis is not None:
            self._environment["RAY_REDIS_ADDRESS"] = redis.format(network=number)
        start = (
            f"{sys.executable} -m ray.scripts.scripts start --block --object-store-memory=83886080 "
            "--node-ip-address={address}"
        )
        head = Node(
            0,
            network,
            self._bridge,
            folder,
            f"{start} --head --port={_GCS_PORT} --num-cpus=0 --include-dashboard=false",
        )
        join = f"{start} --address={head.address}:{_GCS_PORT} --num-cpus={cores}"
        self.head = head
        self.workers = [Node(number, network, self._bridge, folder, join) for number in range(1, num_workers + 1)]

    @property
    def nodes(self) -> list[Node]:
        return [self.head, *self.workers]

    @property
    def replicas(self) -> dict[int, Node]:
        """The processes of all replicas, and where each is."""
        return {process: node for node in self.workers if node.is_up for process in node.processes(REPLICA)}

    def revive(self) -> None:
        """Start what has ended, as a supervisor of machines does; a new head is told what to serve."""
        is_new = not self.head.is_up
        for node in self.nodes:
            if not node.is_up:
                node.kill()
                node.start(self._environment)
        if is_new:
            self.deploy()

    def deploy(self) -> None:
        """Serve what the configuration says, by the command that users run."""
        (self.head.folder / "serve.yaml").write_text(yaml.safe_dump(self._config))
        until = time.monotonic() + _START_S
        while True:
            try:
                self.head.run("serve", "run", "--non-blocking", "--address=auto", "/tmp/serve.yaml")
            except AssertionError:
                assert time.monotonic() < until
                time.sleep(1)
            else:
                return

    @contextmanager
    def running(self) -> Iterator[None]:
        """Have all machines up, and none in the end."""
        _ip("link", "add", self._bridge, "type", "bridge")
        try:
            _ip("address", "add", f"{self._outside}/24", "dev", self._bridge)
            _ip("link", "set", self._bridge, "up")
            self.revive()
            yield
        finally:
            for node in self.nodes:
                node.kill()
            _ip("link", "del", self._bridge)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
