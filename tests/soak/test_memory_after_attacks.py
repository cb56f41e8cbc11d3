"""Attacks by HTTP/2 take a server's memory for a while, not for good."""

from typing import Any

import grpc

from tests.fuzz.test_http import ANSWER, ATTACKS, MESSAGE, attack
from tests.processes import held_by


def test_memory_comes_back(start_server: Any) -> None:
    """After all attacks, the same again and again takes no more.

    What the process holds rises and falls by a fifth from round to round: memory is given back at times, not at once.
    """
    server = start_server("local", log_level="error")
    port = int(server.rpc.rpartition(":")[2])

    def held_after_all() -> int:
        for kind in ATTACKS:
            attack(port, kind, 0.001)
        with grpc.insecure_channel(server.rpc) as channel:
            call: Any = channel.unary_unary(ANSWER.decode())
            call(MESSAGE, timeout=30, wait_for_ready=True)
        return held_by(server.process.pid).memory_kib

    held_after_all()
    early, later = ([held_after_all() for _ in range(rounds)] for rounds in (2, 4))
    print(f"\nheld after all attacks: {early}, then {later} KiB")
    assert min(later) <= 1.05 * max(early)
    assert server.stop() == 0
