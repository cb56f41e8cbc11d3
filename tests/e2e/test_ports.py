"""What a server opens beyond its public ports is for this machine only."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.processes import descendants

pytestmark = pytest.mark.timeout(300)

_LISTENS = "0A"  # a state, in the kernel's tables
_LOOPBACK = {"0100007F", f"{0:024}01000000", "0000000000000000FFFF00000100007F"}  # 127.0.0.1, ::1, and as one of IPv6


def listeners(process: int) -> set[tuple[str, int]]:
    """Return the addresses, as the kernel writes them, and the ports that a process listens on."""
    own = set()
    for file in Path(f"/proc/{process}/fd").iterdir():
        try:
            own.add(str(file.readlink()))
        except FileNotFoundError:  # closed meanwhile
            continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == _LISTENS and f"socket:[{words[9]}]" in own:
                address, _, port = words[1].partition(":")
                found.add((address, int(port, 16)))
    return found


def test_only_the_public_ports_may_listen_beyond_loopback(server: Any) -> None:
    processes = [server.process.pid, *descendants(server.process.pid, "")]
    found = {}
    for of in processes:
        with suppress(FileNotFoundError, ProcessLookupError):  # one of Ray's short ones, ended meanwhile
            found[of] = listeners(of)
    public = {int(re.findall(r":(\d+)", url)[-1]) for url in (server.rest, server.rpc)}
    listening = set().union(*found.values())
    assert public <= {port for _, port in listening}
    assert len(listening) > 10 or server.kind == "local", "Ray has many"
    open_to_all = {
        (Path(f"/proc/{of}/cmdline").read_bytes()[:60], place)
        for of, places in found.items()
        for place in places
        if place[0] not in _LOOPBACK
    }
    assert open_to_all == set()
