"""A bundle's engine as what answers questions."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mqan_core.ask.options import Options
from mqan_core.bundle import open_bundle
from mqan_evaluation.answerers import Ask, Decision, decide_all
from mqan_runtime.engine import Engine
from mqan_runtime.session import CUDA, Precision


class EngineAnswerer:
    """A bundle, without the calibration that it may have.

    Args:
        engine: what runs it.

    Attributes:
        has_one_thread: whether it answers on the thread alone that opened it.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        manifest = engine.bundle.manifest
        self.has_one_thread = engine.has_one_thread
        self.title = f"{manifest.name} {manifest.version}"
        self.where = f"in onnxruntime on a {'GPU' if engine.provider == CUDA else 'CPU'}, {engine.precision}"
        self.sources = tuple(str(name) for name in manifest.training.get("tasks", ()))

    @classmethod
    def open(cls, folder: Path, *, precision: Precision = "auto") -> "EngineAnswerer":
        """Open and verify a bundle that takes any question.

        Raises:
            BundleError: it is damaged, or of another format.
        """
        bundle = open_bundle(folder)
        plain = replace(bundle, manifest=replace(bundle.manifest, calibration={}))
        return cls(Engine(plain, precision=precision))

    def answer(self, asked: Sequence[Ask]) -> list[Decision | None]:
        """Answer a batch of questions."""
        limit = self.engine.max_answer_tokens
        return decide_all(
            asked,
            lambda ask: self.engine.read(
                ask.context, ask.question, Options(choices=tuple(ask.choices), multiple=ask.multiple)
            ),
            lambda requests: self.engine.answer(requests, [limit] * len(requests)),
        )
