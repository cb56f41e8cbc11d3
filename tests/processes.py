"""What a running process holds, as the kernel tells it."""

import ctypes
from dataclasses import dataclass
from pathlib import Path

from tests.timing import wait_until

REPLICA, PROXY, PROXY_STARTER = "ray::ServeReplica", "haproxy", "ray::HAProxyManager"  # names of Ray's processes
_IN_USE = 7  # of the fields of mallinfo2(3)
_LISTENS = "0A"  # a state, in the kernel's tables


@dataclass(frozen=True)
class Held:
    """What a process holds at a moment."""

    memory_kib: int
    threads: int
    files: int  # its open files, sockets included


class _MallocInfo(ctypes.Structure):
    _fields_ = (("fields", ctypes.c_size_t * 10),)


def held_by(process: int) -> Held:
    """Return what a process holds."""
    folder = Path(f"/proc/{process}")
    fields = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    return Held(int(fields["VmRSS"].split()[0]), int(fields["Threads"]), len(list((folder / "fd").iterdir())))


def bytes_in_use() -> int:
    """Return what this process has of the C library's heap, small objects of Python apart, and has not freed."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = _MallocInfo
    return int(mallinfo2().fields[_IN_USE])


def descendants(process: int, name: str) -> list[int]:
    """Return the processes below a process whose command line begins with a name, or whose program has it."""
    parents, found = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:  # it has just ended
            continue
        parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
        if words[0].startswith(name) or Path(words[0]).name == name:
            found.append(int(folder.name))

    def is_below(child: int) -> bool:
        while child in parents and child != process:
            child = parents[child]
        return child == process

    return sorted(child for child in found if is_below(child))


def wait_for_end(processes: list[int], seconds: float = 60) -> None:
    """Return when none of the processes is left; one that has ended has no program, even if nobody has asked how."""
    wait_until(lambda: not any(Path(f"/proc/{process}/exe").exists() for process in processes), seconds)


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
