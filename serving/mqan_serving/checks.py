"""Checks before a server starts: its ports, its files, its keys."""

import os
import resource
import socket
from collections.abc import Sequence

from mqan_serving.contract.errors import SettingsError
from mqan_serving.keys import read_keys
from mqan_serving.observability.logs import log
from mqan_serving.settings import Settings

_OTHER_FILES = 100  # than connections


def check_ports(settings: Settings) -> None:
    """Refuse a host that is none of this machine's, or a port that is taken, by a ``SettingsError``."""
    for name, port in settings.ports.items():
        try:
            bind(settings.host, port).close()
        except socket.gaierror as error:
            raise SettingsError(
                f"setting host (MQAN_HOST): {settings.host}: {error.strerror}; give an address"
            ) from None
        except OSError as error:
            raise SettingsError(
                f"setting {name} (MQAN_{name.upper()}): cannot listen on {settings.host}:{port}: "
                f"{os.strerror(error.errno) if error.errno else error}; stop what uses the port or choose another"
            ) from None


def check_keys(settings: Settings) -> None:
    """Read the API keys and the admin's, or raise ``SettingsError``; warn where there are none."""
    if settings.api_key_file is not None and not read_keys(settings.api_key_file):
        log("the file of API keys is empty: nobody may ask", level="warning")
    if settings.admin_key_file is not None:
        read_keys(settings.admin_key_file)


def make_room_for_files(settings: Settings) -> None:
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


def bind(host: str, port: int, options: Sequence[int] = (socket.SO_REUSEADDR,)) -> socket.socket:
    """Return a socket bound to a port, or raise OSError; its options say with whom it is shared."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        for option in options:
            bound.setsockopt(socket.SOL_SOCKET, option, 1)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound
