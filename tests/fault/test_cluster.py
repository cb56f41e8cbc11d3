"""A cluster whose nodes are lost, cut off or slow, and one that grows and shrinks with what is asked of it.

Only in full, by root on Linux; prints a table, and draws the growing and shrinking into a file:

    MQAN_FAULT_TIMES=5 MQAN_FAULT_PICTURE=docs/scaling.svg pytest -s tests/fault/test_cluster.py
"""

import os
import shutil
import signal
import statistics
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import matplotlib as mpl
import pytest
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mqan_baselines.figures import SETTINGS, draw_line, save_figure
from tests.fault.callers import Caller, Load, Outcome, rest_caller, rpc_caller, wait_for
from tests.fault.machines import IS_POSSIBLE, Cluster, Node
from tests.processes import PROXY, PROXY_STARTER, REPLICA, listeners

TIMES = int(os.environ.get("MQAN_FAULT_TIMES", "1"))

_PATIENCE_S = 5.0  # of callers
_CALLERS = 8
_CUT_S, _SLOW_S, _STOPPED_S, _RUNNING_S = 60.0, 20.0, 0.9, 0.1
_STEADY_S, _MOST_S = 20.0, 300.0  # a node that was cut off may yet be told that it counts as lost
_CONTROLLER = "ray::ServeController"
_REPLICA_PORTS = range(30_000, 31_000)  # of REST: Ray's own default
_REDIS = shutil.which("redis-server")

pytestmark = [
    pytest.mark.timeout(3600),
    pytest.mark.skipif(TIMES == 1 or not IS_POSSIBLE, reason="takes an hour and root: MQAN_FAULT_TIMES=5"),
]

Break = Callable[[Cluster, Node], AbstractContextManager[object]]
StartCluster = Callable[..., AbstractContextManager[Cluster]]


@pytest.fixture
def start_cluster(repository: Path, bundle_folder: Path, tmp_path: Path) -> StartCluster:
    """Runs the application of the Kubernetes manifest on machines of its own, with an autoscaling as given."""

    @contextmanager
    def start(cores: int, redis: str | None = None, **scaling: float) -> Iterator[Cluster]:
        manifest = repository / "deploy" / "kuberay.yaml"
        cluster = Cluster(tmp_path, 2, cores, manifest, bundle_folder, redis)
        cluster.application["deployments"][0]["autoscaling_config"] |= scaling
        with cluster.running():
            wait_for(lambda _: len(cluster.replicas) == scaling["min_replicas"], time.perf_counter())
            with Load(callers_of([cluster.head], 4)) as load:
                wait_for(lambda now: set(load.between(now - 3, now)) == {"ok"}, time.perf_counter())
            yield cluster

    return start


def callers_of(places: Sequence[Node], number: int) -> list[Caller]:
    """Return plain callers of nodes, the first half of them of the first; each goes to the next where one fails."""
    turned = [*places[1:], *places[:1]]
    makes = [rest_caller, rpc_caller] * (number // 4)
    return [make(*order, patience_s=_PATIENCE_S) for order in (places, turned) for make in makes]


def kill(name: str) -> Break:
    """Return what kills a process, which starts again by itself."""

    @contextmanager
    def broken(cluster: Cluster, node: Node) -> Iterator[None]:
        victims = node.processes(name) or cluster.head.processes(name)
        assert victims
        for process in victims:
            os.kill(process, signal.SIGKILL)
        yield

    return broken


@contextmanager
def lose(cluster: Cluster, node: Node) -> Iterator[None]:
    """Lose a machine, which a supervisor starts again."""
    node.kill()
    cluster.revive()
    yield


@contextmanager
def cut_off(_: Cluster, node: Node) -> Iterator[None]:
    """Cut a machine off the network for a minute."""
    node.cut(off=True)
    time.sleep(_CUT_S)
    node.cut(off=False)
    yield


@contextmanager
def slow_down(_: Cluster, node: Node) -> Iterator[None]:
    """Let a machine run for a tenth of each second."""
    end = time.monotonic() + _SLOW_S
    while time.monotonic() < end:
        node.signal(signal.SIGSTOP)
        time.sleep(_STOPPED_S)
        node.signal(signal.SIGCONT)
        time.sleep(_RUNNING_S)
    yield


@contextmanager
def lose_head(cluster: Cluster, _: Node) -> Iterator[None]:
    """Lose the head, which a supervisor starts again."""
    with lose(cluster, cluster.head):
        yield


_FAULTS: dict[str, Break] = {
    "a replica is killed": kill(REPLICA),
    "HAProxy of a node is killed": kill(PROXY),
    "Ray's process that runs HAProxy is killed": kill(PROXY_STARTER),
    "Ray's controller is killed": kill(_CONTROLLER),
    "a node is lost": lose,
    "a node is cut off for a minute": cut_off,
    "a node has a tenth of its time for 20 s": slow_down,
    "the head is lost": lose_head,
}


@dataclass(frozen=True)
class Harm:
    """What callers saw of a fault: what ended how, seconds until the last error, and until all is as before."""

    seen: Counter[str]
    last_s: float
    full_s: float
    slowest_s: float


def is_ready(node: Node) -> bool:
    """Return whether a worker is up, and its replica and its proxy say that they are ready."""
    try:
        (replica,) = node.processes(REPLICA)
        own = [f"http://{node.address}:{port}" for _, port in listeners(replica) if port in _REPLICA_PORTS]
        found = [httpx2.get(f"{url}/health/ready", trust_env=False, timeout=1) for url in (node.rest, *own)]
    except (OSError, ValueError, httpx2.TransportError):
        return False
    return node.is_up and len(found) > 1 and all(response.status_code == 200 for response in found)


def harm_of(cluster: Cluster, broken: Break) -> Harm:
    """Make a fault while callers ask, and wait until all is as before."""

    def is_full(now: float) -> bool:
        return (
            now - 2 > begun
            and set(load.between(now - 2, now)) == {"ok"}
            and all(map(is_ready, cluster.workers))
            and bool(cluster.head.processes(_CONTROLLER))
        )

    def steady_from() -> float:
        """Wait until all is as it was for a while, reviving what ends; return since when."""
        end = time.perf_counter() + _MOST_S
        since: float | None = None
        while since is None or time.perf_counter() < since + _STEADY_S:
            now = time.perf_counter()
            assert now < end, "the cluster did not recover"
            since = (since or now) if is_full(now) else None
            cluster.revive()
            time.sleep(0.1)
        return since

    with Load(callers_of(cluster.workers, _CALLERS)) as load:
        begun = time.perf_counter()
        steady_from()
        node = next(iter(cluster.replicas.values()))
        broken_at = begun = time.perf_counter()
        with broken(cluster, node):
            full_s = steady_from() - broken_at
    after = [outcome for outcome in load.outcomes if outcome.ended >= broken_at]
    wrong = [outcome.ended for outcome in after if outcome.what != "ok"]
    seen = Counter(outcome.what.partition(":")[0] for outcome in after)
    slowest_s = max(outcome.ended - outcome.begun for outcome in after)
    return Harm(seen, max(wrong, default=broken_at) - broken_at, full_s, slowest_s)


def row_of(name: str, found: Sequence[Harm]) -> str:
    """Return a line of the table in docs/operations.md."""
    seen = sum((harm.seen for harm in found), Counter[str]())
    lost = seen.total() - seen["ok"] - seen["told"]
    kinds = ", ".join(f"{what} {number}" for what, number in seen.most_common() if what != "ok")
    full_s = [harm.full_s for harm in found]
    return (
        f"| {name} | {lost:,} of {seen.total():,} | {kinds or '-'} | {max(harm.last_s for harm in found):.1f} "
        f"| {max(harm.slowest_s for harm in found):.1f} | {statistics.median(full_s):.0f} ({max(full_s):.0f}) |"
    )


def measure(cluster: Cluster, name: str, broken: Break) -> list[Harm]:
    """Make a fault several times; print a line of each, and that of the table."""
    found = []
    for _ in range(TIMES):
        found.append(harm_of(cluster, broken))
        print(f"\n{name}: {found[-1]}", flush=True)
    print(row_of(name, found), flush=True)
    return found


@pytest.mark.parametrize("name", _FAULTS)
def test_what_callers_see_of_a_cluster_s_faults(start_cluster: StartCluster, name: str) -> None:
    with start_cluster(1, min_replicas=2, max_replicas=2) as cluster:
        found = measure(cluster, name, _FAULTS[name])
    assert all(harm.seen["ok"] for harm in found)


@pytest.mark.skipif(_REDIS is None, reason="there is no redis-server")
def test_a_head_whose_state_is_kept_is_not_missed(start_cluster: StartCluster, tmp_path: Path) -> None:
    assert _REDIS is not None
    redis = subprocess.Popen([_REDIS, "--port", "6399", "--protected-mode", "no", "--dir", str(tmp_path)])
    try:
        with start_cluster(1, "10.213.{network}.1:6399", min_replicas=2, max_replicas=2) as cluster:
            found = measure(cluster, "the head is lost, its state kept in Redis", lose_head)
    finally:
        redis.kill()
        redis.wait()
    assert all(set(harm.seen) <= {"ok", "told"} for harm in found)


def test_replicas_follow_what_is_asked(start_cluster: StartCluster) -> None:
    """More are started for a burst, and end after it without losing a request."""
    scaling = {"min_replicas": 1, "max_replicas": 3, "target_ongoing_requests": 8}
    pace = {"upscale_delay_s": 2, "downscale_delay_s": 5, "metrics_interval_s": 1, "look_back_period_s": 3}
    replicas: list[tuple[float, int]] = []
    over = threading.Event()

    def watch(cluster: Cluster) -> None:
        while not over.wait(0.25):
            replicas.append((time.perf_counter(), len(cluster.replicas)))

    with start_cluster(2, **scaling, **pace) as cluster:
        watching = threading.Thread(target=watch, args=(cluster,))
        with Load(callers_of([cluster.head], 4)) as load:
            watching.start()
            begun = time.perf_counter()
            time.sleep(15)
            with Load(callers_of([cluster.head], 24)) as burst:
                wait_for(lambda _: len(cluster.replicas) == 3, time.perf_counter())
                time.sleep(20)
            wait_for(lambda _: len(cluster.replicas) == 1, time.perf_counter())
            time.sleep(10)
        over.set()
        watching.join()
    outcomes = load.outcomes + burst.outcomes
    print(f"\n{Counter(outcome.what for outcome in outcomes)}; replicas {[n for _, n in replicas]}")
    if picture := os.environ.get("MQAN_FAULT_PICTURE"):
        draw(outcomes, replicas, begun, Path(picture))
    assert max(number for _, number in replicas) == 3
    assert replicas[-1][1] == 1
    assert {outcome.what for outcome in outcomes} == {"ok"}


def draw(outcomes: Sequence[Outcome], replicas: Sequence[tuple[float, int]], begun: float, path: Path) -> None:
    """Draw replicas, requests in flight and what the slowest hundredth waited, second by second."""
    seconds = range(int(replicas[-1][0] - begun))
    inside = [sum(o.begun <= begun + at < o.ended for o in outcomes) for at in seconds]
    waits = [[o.ended - o.begun for o in outcomes if at <= o.ended - begun < at + 1] for at in seconds]
    slowest = [
        1000 * statistics.quantiles(each, n=100, method="inclusive")[98] if len(each) > 1 else 0 for each in waits
    ]

    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(7, 5), layout="constrained")
        panels = figure.subplots(3, sharex=True)
        series: list[tuple[str, Sequence[float], Sequence[float]]] = [
            ("replicas", [at - begun for at, _ in replicas], [number for _, number in replicas]),
            ("requests in flight", seconds, inside),
            ("p99, ms", seconds, slowest),
        ]
        for number, (axes, (label, x, y)) in enumerate(zip(panels, series, strict=True)):
            draw_line(axes, number, x, y, label, label, markersize=0)
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
            axes.grid(alpha=0.25, linewidth=0.6)
        panels[-1].set_xlabel("seconds")
        save_figure(figure, path)
