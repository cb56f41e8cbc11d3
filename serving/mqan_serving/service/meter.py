"""The place where a service tells what can be counted; who serves it decides where that goes."""

from contextlib import AbstractContextManager, nullcontext

from mqan_serving.contract.model import Model


class Meter:
    """Counts nothing; a subclass counts."""

    def describe_server(self, model: Model) -> None:
        """Tell what is served, too, and how many requests fit in."""

    def track_request(self) -> AbstractContextManager[None]:
        """Count a question as inside the server until it leaves."""
        return nullcontext()

    def forget(self, model: Model) -> None:
        """Tell what is served no more."""

    def observe(self, model: str, num_waiting: int, oldest_s: float) -> None:
        """Tell, twice a second, how many questions wait for a model, and for how long the oldest has been inside."""

    def count_batch(self, num_requests: int, num_tokens: int) -> None:
        """Count a batch that was encoded."""

    def count_step(self, num_requests: int) -> None:
        """Count a step of questions that decode together."""
