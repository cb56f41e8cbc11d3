"""Whether a server lives, and whether it should be sent requests."""

from enum import StrEnum


class State(StrEnum):
    """Stage in the life of a server."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    FAILED = "failed"


class Health:
    """The state of one server process.

    It only moves forward: starting, ready, draining; a failure can come at any time and is final.
    """

    def __init__(self) -> None:
        self.state = State.STARTING

    @property
    def is_ready(self) -> bool:
        """Whether requests should be sent here."""
        return self.state is State.READY

    @property
    def is_live(self) -> bool:
        """Whether the process works; one that does not should be replaced."""
        return self.state is not State.FAILED

    def set_ready(self) -> None:
        """Start to take requests: the model is loaded and has answered once."""
        if self.state is State.STARTING:
            self.state = State.READY

    def set_draining(self) -> None:
        """Stop taking requests; those in progress are finished."""
        if self.state is not State.FAILED:
            self.state = State.DRAINING

    def set_failed(self) -> None:
        """Give up: the engine no longer answers."""
        self.state = State.FAILED
