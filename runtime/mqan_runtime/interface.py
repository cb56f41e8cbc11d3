"""The one interface of engines: how a bundle of either format is opened, checked and run."""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from mqan_core.answer.types import Answer, AnswerToken
from mqan_core.ask.options import PLAIN, Options
from mqan_core.ask.request import Check
from mqan_core.bundle import Bundle, open_bundle
from mqan_core.errors import BundleError, MqanError
from mqan_core.manifest import MANIFEST

if TYPE_CHECKING:  # onnxruntime is loaded with an engine, and not by who only names the interface
    from mqan_runtime.row_engine import RowEngine

SAMPLE: Final = ("The kettle is in the kitchen.", "Where is the kettle?")
"""A context and a question, to try a model with."""


class ServedEngine(Protocol):
    """An engine as a server needs it; its calls block.

    Requests are those of ``read``, decodings those of ``start_in_turns``.
    """

    @property
    def bundle(self) -> Bundle:
        """What is run."""

    @property
    def provider(self) -> str:
        """The execution provider that really runs it."""

    @property
    def max_answer_tokens(self) -> int:
        """Most tokens that an answer can have."""

    def read(self, context: str, question: str, options: Options = PLAIN, check: Check | None = None) -> Any:
        """Tokenise a request, each text once; ``check`` sees each before its tokens are made.

        Raises:
            InputError: it cannot be answered.
        """

    def start_in_turns(
        self, requests: Sequence[Any], max_answer_tokens: Sequence[int], keys: Sequence[Any]
    ) -> Generator[None, None, Any]:
        """Read a batch, with a pause between parts of long requests; return its decoding."""

    def step(self, decoding: Any) -> Sequence[tuple[Any, Any]]:
        """Take a step; return the keys of those that it ended, and what to write."""

    def decided(self, decoding: Any, told: Mapping[Any, int]) -> Sequence[tuple[Any, Sequence[AnswerToken]]]:
        """Return the next words of what still decodes that no later step takes back.

        Args:
            decoding: after a step.
            told: how many words are known already, by key; of other keys nothing is returned.
        """

    def write(self, ended: Any) -> Answer:
        """Turn what was decoded into an answer."""

    def drop(self, decoding: Any, keys: Collection[Any]) -> None:
        """Let requests leave without an answer."""

    def merge(self, decodings: Sequence[Any]) -> Any:
        """Make one decoding of several."""


def open_engine(
    folder: Path, *, provider: Any = "auto", num_threads: int = 1, precision: Any = "auto"
) -> "RowEngine[Any]":
    """Open and verify a bundle and make it ready.

    Args:
        folder: the bundle.
        provider: ``cpu``, ``cuda``, or ``auto`` for a GPU when there is one.
        num_threads: threads within an operator.
        precision: ``float32`` computes what the checkpoint does to 1e-4; ``int8`` (a CPU's ``auto``) is faster.

    Raises:
        BundleError: the bundle is damaged, incomplete, of an unknown version, not allowed, or does not run on a CPU.
        RuntimeError: ``cuda`` was asked for and does not run here.
        ValueError: ``int8`` was asked for on a GPU.
    """
    from mqan_runtime.engine import Engine
    from mqan_runtime.word_engine import WordEngine

    bundle = open_bundle(folder)
    open_kind: Callable[..., RowEngine[Any]] = Engine if bundle.manifest.reader == "pieces" else WordEngine
    engine = open_kind(bundle, provider=provider, num_threads=num_threads, precision=precision)
    _try_out(engine, folder)
    return engine


def _try_out(engine: "RowEngine[Any]", folder: Path) -> None:
    """Answer once: graphs can have the right names and types and yet not run with the sizes that are stated."""
    try:
        engine.answer([engine.read(*SAMPLE)], [1])
    except MqanError:
        raise
    except Exception as error:  # onnxruntime and numpy raise many types
        if engine.provider != "CPUExecutionProvider":  # it may be the device's fault
            raise
        raise BundleError(f"bundle {folder}: does not run with the sizes that {MANIFEST} states: {error}") from error
