"""The blocks of code in a page, run as a reader would run them, and what they print compared with what the page says.

A fenced block of ``sh`` is run by bash, those of ``python`` on one page are one program. A block of ``text`` or
``json`` right behind one is what it prints. Numbers with a decimal point may differ by 0.02, since pages round them and
processors multiply 8-bit numbers differently; JSON may leave out fields, and entries of a list with
``"..."`` in it.
"""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

TOLERANCE: Final = 0.02
REPOSITORY: Final = Path(__file__).resolve().parents[2]
_FENCED: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_DECIMAL: Final = re.compile(r"\d+\.\d+")
_END: Final = "end of a block"
_TIMEOUT_S: Final = 60
_REST, _RPC = "127.0.0.1:8000", "127.0.0.1:9000"  # where the pages say that the server is
_OWN_PORTS: Final = ("8100", "9101")  # of a server that a page starts itself
_LINKED: Final = ("examples", "serving")  # folders of the repository that pages take files from


@dataclass(frozen=True)
class Block:
    """A block that can be run."""

    language: str  # ``sh`` or ``python``
    code: str
    shown: str | None  # what the page says that it prints; None where it does not say
    shown_as: str  # ``text`` or ``json``


def read_blocks(markdown: str) -> list[Block]:
    """Return the blocks of a page that can be run, in order."""
    found = list(_FENCED.finditer(markdown))
    blocks = []
    for match, following in zip(found, [*found[1:], None], strict=False):
        if match[1] not in ("sh", "python"):
            continue
        is_shown = following is not None and following[1] in ("text", "json")
        shown, shown_as = (following[2], following[1]) if following is not None and is_shown else (None, "")
        blocks.append(Block(match[1], match[2], shown, shown_as))
    return blocks


def run_blocks(
    blocks: list[Block], rest: str, rpc: str, folder: Path, python: Sequence[str] = (sys.executable, "-W", "error")
) -> list[str]:
    """Run the blocks of a page in a folder, with a server at these addresses; return what each printed."""
    given = {_REST: rest, _RPC: rpc, **dict(zip(_OWN_PORTS, map(str, _free_ports()), strict=False))}

    def here(block: Block) -> str:
        code = block.code
        for shown, real in given.items():
            code = code.replace(shown, real)
        return code

    for name in _LINKED:
        (folder / name).symlink_to(REPOSITORY / name)
    programs = [here(block) + f"\nprint({_END!r})\n" for block in blocks if block.language == "python"]
    with _ended_together() as group:
        printed = iter(_run([*python, "-c", "".join(programs)], folder, group).split(_END + "\n"))
        return [
            next(printed)
            if block.language == "python"
            else _run(["bash", "-euo", "pipefail", "-c", here(block)], folder, group)
            for block in blocks
        ]


@contextmanager
def _ended_together() -> Iterator[int]:
    """A group of processes, none of which outlives the page that started it, such as a server."""
    with subprocess.Popen(["sleep", "infinity"], process_group=0) as first:
        try:
            yield first.pid
        finally:
            os.killpg(first.pid, signal.SIGKILL)


def _free_ports() -> Iterator[int]:
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                yield port


def _run(command: list[str], folder: Path, group: int) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment.pop("HF_HUB_OFFLINE", None)  # which other tests of this process set; no reader has it
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    ended = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        process_group=group,
    )
    assert ended.returncode == 0, f"{command[-1]}\n{ended.stdout}{ended.stderr}"
    return ended.stdout


def is_as_shown(block: Block, printed: str) -> bool:
    """Return whether a block printed what its page says."""
    if block.shown is None:
        return True
    if block.shown_as == "json":
        return agrees(json.loads(block.shown), json.loads(printed))
    numbers = zip(_DECIMAL.findall(block.shown), _DECIMAL.findall(printed), strict=False)
    return _without_numbers(block.shown) == _without_numbers(printed) and all(
        _is_near(float(shown), float(real)) for shown, real in numbers
    )


def _without_numbers(text: str) -> list[str]:
    return [line.rstrip() for line in _DECIMAL.sub("#.#", text).strip().splitlines()]


def agrees(shown: Any, real: Any) -> bool:
    """Return whether a JSON value is what was shown of it, by the rules above."""
    if isinstance(shown, dict):
        return isinstance(real, dict) and all(name in real and agrees(shown[name], real[name]) for name in shown)
    if isinstance(shown, list):
        if "..." in shown:
            told = [entry for entry in shown if entry != "..."]
            return isinstance(real, list) and all(any(agrees(entry, one) for one in real) for entry in told)
        return isinstance(real, list) and len(shown) == len(real) and all(map(agrees, shown, real))
    if isinstance(shown, float):
        return isinstance(real, float) and _is_near(shown, real)
    return bool(shown == real) and type(shown) is type(real)


def _is_near(shown: float, real: float) -> bool:
    return abs(shown - real) <= TOLERANCE + 1e-9
