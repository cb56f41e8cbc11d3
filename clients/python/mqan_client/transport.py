"""What a client needs of a transport, and the policy that both transports follow."""

from dataclasses import dataclass
from typing import Protocol

from mqan_client.results import Answer, Model


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked."""

    context: str
    question: str
    max_answer_tokens: int | None


@dataclass(frozen=True, slots=True)
class Retries:
    """When to ask again. A question always gets the same answer, so it may be asked twice.

    Attributes:
        max_attempts: most attempts of one call, the first included.
        initial_s: longest wait before the second attempt.
        max_s: longest wait before any attempt.
        factor: growth of the longest wait from attempt to attempt.
    """

    max_attempts: int = 5  # gRPC allows no more
    initial_s: float = 0.1
    max_s: float = 2.0
    factor: float = 2.0

    def longest_wait_s(self, num_attempts: int) -> float:
        """Return the longest wait after so many attempts."""
        return min(self.initial_s * self.factor ** (num_attempts - 1), self.max_s)


def authorization(api_key: str | None) -> dict[str, str]:
    """Return the header, or gRPC metadata, that carries a key.

    Raises:
        ValueError: no key looks like this.
    """
    if api_key is None:
        return {}
    if not api_key or not all("!" <= char <= "~" for char in api_key):
        raise ValueError("the API key is empty or has characters that no key has")
    return {"authorization": f"Bearer {api_key}"}


class Transport(Protocol):
    """Carries calls to a server and waits for the result."""

    def answer(self, question: Question, timeout_s: float) -> Answer:
        """Answer one question."""

    def get_model(self, timeout_s: float) -> Model:
        """Describe what is served."""

    def close(self) -> None:
        """Close all connections."""


class AsyncTransport(Protocol):
    """Carries calls to a server without blocking the event loop."""

    async def answer(self, question: Question, timeout_s: float) -> Answer:
        """Answer one question."""

    async def get_model(self, timeout_s: float) -> Model:
        """Describe what is served."""

    async def close(self) -> None:
        """Close all connections."""
