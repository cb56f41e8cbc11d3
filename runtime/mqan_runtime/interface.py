"""How a bundle is opened, checked and run."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mqan_core.bundle import open_bundle
from mqan_core.errors import BundleError, MqanError
from mqan_core.manifest import MANIFEST

if TYPE_CHECKING:  # onnxruntime is loaded with an engine, and not by who only names it
    from mqan_runtime.engine import Engine

SAMPLE: Final = ("The kettle is in the kitchen.", "Where is the kettle?")
"""A context and a question, to try a model with."""


def open_engine(folder: Path, *, provider: Any = "auto", num_threads: int = 1, precision: Any = "auto") -> "Engine":
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

    engine = Engine(open_bundle(folder), provider=provider, num_threads=num_threads, precision=precision)
    _try_out(engine, folder)
    return engine


def _try_out(engine: "Engine", folder: Path) -> None:
    """Answer once: graphs can have the right names and types and yet not run with the sizes that are stated."""
    try:
        engine.answer([engine.read(*SAMPLE)], [1])
    except MqanError:
        raise
    except Exception as error:  # onnxruntime and numpy raise many types
        if engine.provider != "CPUExecutionProvider":  # it may be the device's fault
            raise
        raise BundleError(f"bundle {folder}: does not run with the sizes that {MANIFEST} states: {error}") from error
