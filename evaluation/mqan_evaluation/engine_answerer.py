"""A bundle's engine as what answers questions."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mqan_core.answering import open_answering_bundle
from mqan_core.options import Options
from mqan_evaluation.answerers import Ask, Decision, decide_all
from mqan_evaluation.evaluate import answer_with_engine
from mqan_runtime.answering_engine import AnsweringEngine
from mqan_runtime.session import CUDA, Precision


class EngineAnswerer:
    """A bundle with a pretrained reader, without the calibration that it may have.

    Args:
        engine: what runs it.
    """

    def __init__(self, engine: AnsweringEngine) -> None:
        self.engine = engine
        manifest = engine.bundle.manifest
        self.title = f"{manifest.name} {manifest.version}"
        self.where = f"in onnxruntime on a {'GPU' if engine.provider == CUDA else 'CPU'}, {engine.precision}"
        self.sources = tuple(str(name) for name in manifest.training.get("tasks", ()))

    @classmethod
    def open(cls, folder: Path, *, precision: Precision = "auto") -> "EngineAnswerer":
        """Open and verify a bundle.

        Raises:
            BundleError: it is damaged, or of another format.
        """
        bundle = open_answering_bundle(folder)
        plain = replace(bundle, manifest=replace(bundle.manifest, calibration={}))
        return cls(AnsweringEngine(plain, precision=precision))

    def answer(self, asked: Sequence[Ask]) -> list[Decision | None]:
        """Answer a batch of questions."""
        return decide_all(
            asked,
            lambda ask: self.engine.read(ask.context, ask.question, Options(choices=tuple(ask.choices))),
            answer_with_engine(self.engine),
        )
