"""The one interface of engines, whatever the kind of bundle."""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from mqan_core.answer import Answer, AnswerToken
from mqan_core.answering import open_answering_bundle
from mqan_core.bundle import open_bundle, read_file, read_verified
from mqan_core.classifying import open_classifying_bundle
from mqan_core.errors import BundleError, InputError, MqanError
from mqan_core.manifest import (
    ANSWERING_FORMAT,
    CLASSIFYING_FORMAT,
    FORMAT_VERSION,
    MANIFEST,
    MAX_MANIFEST_BYTES,
    FileEntry,
    read_format,
)
from mqan_core.options import PLAIN, Options
from mqan_core.vocab import Vocabulary
from mqan_core.wordings import AcceptedQuestion, samples_of


class ServedManifest(Protocol):
    """A manifest of any kind."""

    @property
    def name(self) -> str:
        """Name of the model."""

    @property
    def version(self) -> str:
        """Version of the model."""

    @property
    def scores(self) -> Mapping[str, Mapping[str, float]]:
        """Task -> {metric: value}."""

    @property
    def training(self) -> Mapping[str, Any]:
        """Provenance."""

    @property
    def files(self) -> Mapping[str, FileEntry]:
        """Name -> size and hash."""


class ServedBundle(Protocol):
    """An opened bundle, whatever its kind."""

    @property
    def manifest(self) -> ServedManifest:
        """Its manifest."""

    @property
    def sha256(self) -> str:
        """The identity of the model."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that it generates."""

    @property
    def questions(self) -> tuple[AcceptedQuestion, ...]:
        """The questions that it takes; none where it takes any."""


class Stepper(Protocol):
    """A decoder whose calls block, of requests of ``ServedEngine.read``; decodings are those of ``start_in_turns``."""

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


class ServedEngine(Stepper, Protocol):
    """A bundle that is ready to answer, as a server needs it."""

    @property
    def bundle(self) -> ServedBundle:
        """The bundle that is run."""

    @property
    def provider(self) -> str:
        """The execution provider that really runs it."""

    @property
    def max_answer_tokens(self) -> int:
        """Most tokens that an answer can have."""

    def read(self, context: str, question: str, options: Options = PLAIN) -> Any:
        """Tokenise a request.

        Raises:
            InputError: it cannot be answered.
        """


class AnswerEngine(ServedEngine, Protocol):
    """A bundle, ready to answer."""

    @property
    def precision(self) -> str:
        """Of the products that dominate."""

    def start(self, requests: Sequence[Any], max_answer_tokens: Sequence[int], keys: Sequence[Any]) -> Any:
        """Read a batch without a pause; return its decoding."""

    def answer(self, requests: Sequence[Any], max_answer_tokens: Sequence[int]) -> list[Answer]:
        """Answer a batch; each answer is what its request would get alone."""


def open_engine(folder: Path, *, provider: Any = "auto", num_threads: int = 1, precision: Any = "auto") -> AnswerEngine:
    """Open and verify a bundle of any kind and make it ready.

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
    # onnxruntime is loaded here, and not by who only names the interface
    from mqan_runtime.answering_engine import AnsweringEngine
    from mqan_runtime.classifying_engine import ClassifyingEngine
    from mqan_runtime.engine import Engine

    openers: Mapping[int, Callable[..., AnswerEngine]] = {
        ANSWERING_FORMAT: AnsweringEngine.open,
        FORMAT_VERSION: Engine.open,
        CLASSIFYING_FORMAT: ClassifyingEngine.open,
    }
    engine = openers[format_of(folder)](folder, provider=provider, num_threads=num_threads, precision=precision)
    _try_out(engine, folder)
    return engine


def _try_out(engine: AnswerEngine, folder: Path) -> None:
    """Answer once: graphs can have the right names and types and yet not run with the sizes that are stated."""
    try:
        samples = [engine.read(*sample) for sample in samples_of(engine.bundle.questions)]
        engine.answer(samples, [1] * len(samples))
    except InputError as error:
        raise BundleError(f"bundle {folder}: does not take a question of its own: {error}") from error
    except MqanError:
        raise
    except Exception as error:  # onnxruntime and numpy raise many types
        if engine.provider != "CPUExecutionProvider":  # it may be the device's fault
            raise
        raise BundleError(f"bundle {folder}: does not run with the sizes that {MANIFEST} states: {error}") from error


def verify_files(folder: Path) -> ServedBundle:
    """Check every file of a bundle against its hash, also those that no engine here would read; return the bundle.

    Raises:
        BundleError: a file is missing, is a link, or is not what the manifest says.
    """
    bundle = _OPENERS[format_of(folder)](folder)
    for name, entry in bundle.manifest.files.items():
        read_verified(folder, name, entry)
    return bundle


_OPENERS: Mapping[int, Callable[[Path], ServedBundle]] = {
    ANSWERING_FORMAT: open_answering_bundle,
    FORMAT_VERSION: open_bundle,
    CLASSIFYING_FORMAT: open_classifying_bundle,
}


def format_of(folder: Path) -> int:
    """Return the format version of a bundle.

    Raises:
        BundleError: the manifest is missing, malformed, or of an unknown version.
    """
    return read_format(read_file(folder, MANIFEST, MAX_MANIFEST_BYTES))
