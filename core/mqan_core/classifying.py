"""The bundle of a model that classifies by fixed tasks: format 8, of the kind ``shared-memory`` or ``mt-dnn``.

    manifest.json      what is here, with sizes and SHA-256; the tasks: their questions, classes and scores
    encoder.onnx       what all tasks share: numbers of words -> their vectors; word pieces -> states
    task-NAME.onnx     what is a task's own: of shared memory one step, a word; of MT-DNN its output layer
    vocab.json         the words, or the word pieces, that are read
    README.md          model card

As with every bundle, a file that is used is read once, and what was hashed is what is used.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field
from pydantic_core import from_json

from mqan_core.bundle import MALFORMED, GraphsBundle, read_manifest, read_verified, strings
from mqan_core.errors import BundleError
from mqan_core.lexicon import Lexicon
from mqan_core.manifest import (
    CLASSIFYING_FORMAT,
    ENCODER,
    MODEL_CARD,
    STRICT,
    VOCABULARY,
    FileEntry,
    FreeForm,
    Label,
    Name,
    Scores,
)
from mqan_core.packing import Packer
from mqan_core.text import HALF_SPACE
from mqan_core.vocab import Vocabulary
from mqan_core.word_pieces import WordPieces
from mqan_core.wordings import AcceptedQuestion, Wording

_MOST_TASKS: Final = 64
_MOST_CLASSES: Final = 255

Kind = Literal["shared-memory", "mt-dnn"]
TaskName = Annotated[str, Field(pattern=r"\A[a-z0-9][a-z0-9-]{0,39}\z")]
Size = Annotated[int, Field(ge=1, le=4096)]


@dataclass(frozen=True, slots=True)
class ClassTask:
    """A task of such a model.

    Attributes:
        name: its name, which names its graph, too.
        labels: its classes, in the order of the graph's probabilities.
        wordings: how it is asked.
        is_scale: whether the classes are levels, low to high, of which an expected value makes sense.
    """

    __pydantic_config__ = STRICT

    name: TaskName
    labels: Annotated[tuple[Label, ...], Field(min_length=2, max_length=_MOST_CLASSES)]
    wordings: Annotated[tuple[Wording, ...], Field(min_length=1, max_length=32)]
    is_scale: bool = False

    def __post_init__(self) -> None:
        if len(set(self.labels)) < len(self.labels):
            raise ValueError("a class is there twice")
        if len({wording.num_texts for wording in self.wordings}) > 1:
            raise ValueError("some wordings are of one text, and some of two")

    @property
    def graph(self) -> str:
        """Name of the file of its graph."""
        return f"task-{self.name}.onnx"


@dataclass(frozen=True, slots=True)
class MemorySizes:
    """Sizes of a word-by-word reader and of the memories that it reads.

    Attributes:
        hidden_width: of the LSTM, H.
        num_memories: how many it reads.
        segments: of a memory, K.
        segment_width: of a segment, M.
    """

    __pydantic_config__ = STRICT

    hidden_width: Size
    num_memories: Annotated[int, Field(ge=0, le=2)]
    segments: Annotated[int, Field(ge=1, le=1024)]
    segment_width: Annotated[int, Field(ge=1, le=1024)]


@dataclass(frozen=True, slots=True)
class ClassifyingManifest:
    """What a bundle of format 8 says about itself.

    Attributes:
        name: name of the model.
        version: version of the model.
        kind: which of the two systems it is.
        tasks: what it answers.
        most_read: most words, or word pieces with their marks, that it reads.
        files: name -> size and hash.
        memory: sizes of shared memory; None for MT-DNN.
        scores: task -> {metric: value}, as measured on the bundle.
        training: provenance, free-form (recipe, steps, data).
        format_version: which files there are, and what is in them.
    """

    __pydantic_config__ = STRICT

    name: Name
    version: Name
    kind: Kind
    tasks: Annotated[tuple[ClassTask, ...], Field(min_length=1, max_length=_MOST_TASKS)]
    most_read: Annotated[int, Field(ge=8, le=4096)]
    files: Annotated[Mapping[str, FileEntry], Field(max_length=_MOST_TASKS + 3)]
    memory: MemorySizes | None = None
    scores: Scores = field(default_factory=dict)
    training: FreeForm = field(default_factory=dict)
    format_version: Literal[8] = CLASSIFYING_FORMAT
    FORMAT: ClassVar[int] = CLASSIFYING_FORMAT
    MODEL: ClassVar[str] = "a model of fixed tasks"

    def __post_init__(self) -> None:
        names = [task.name for task in self.tasks]
        asked = [wording for task in self.tasks for wording in task.wordings]
        if len(set(names)) < len(names):
            raise ValueError("a task is there twice")
        if len(set(asked)) < len(asked):
            raise ValueError("a wording is there twice: it would not say which task is meant")
        if (self.kind == "shared-memory") != (self.memory is not None):
            raise ValueError("memory is of the kind shared-memory, and only of that")
        if self.memory is not None and any(wording.num_texts > 1 for wording in asked):
            raise ValueError("a model of the kind shared-memory reads one text, and a wording has two")

    @property
    def expected_files(self) -> set[str]:
        """The names of all files, but for the manifest."""
        return {ENCODER, VOCABULARY, MODEL_CARD, *(task.graph for task in self.tasks)}


@dataclass(frozen=True, slots=True)
class ClassifyingBundle(GraphsBundle[ClassifyingManifest]):
    """An opened and verified bundle of format 8.

    Attributes:
        reader: makes numbers of texts: a lexicon of shared memory, a packer of MT-DNN.
        vocabulary: the classes, and the words that have vectors.
    """

    reader: Lexicon | Packer
    vocabulary: Vocabulary

    @property
    def questions(self) -> tuple[AcceptedQuestion, ...]:
        """The questions that it takes."""
        return tuple(
            AcceptedQuestion(task.name, wording, task.labels)
            for task in self.manifest.tasks
            for wording in task.wordings
        )


def open_classifying_bundle(folder: Path) -> ClassifyingBundle:
    """Open a bundle of format 8; its graphs are read, and checked, when they are asked for.

    Raises:
        BundleError: the manifest or the vocabulary is missing, is a link, is malformed, or is not what it must be.
    """
    manifest, sha256 = read_manifest(folder, ClassifyingManifest)
    lists = read_verified(folder, VOCABULARY, manifest.files[VOCABULARY])
    try:
        named = from_json(lists)  # refuses lone surrogates, which no response could hold
        reader = _READERS[manifest.kind](named, manifest.most_read)
        labels = dict.fromkeys(piece_of(label) for task in manifest.tasks for label in task.labels)
        vocabulary = Vocabulary(list(labels), reader.words if isinstance(reader, Lexicon) else ())
    except MALFORMED as error:
        raise BundleError(f"bundle {folder}: {VOCABULARY} is malformed: {error}") from error
    return ClassifyingBundle(folder, manifest, sha256, reader, vocabulary)


def piece_of(label: str) -> str:
    """Return a class as one piece of an answer, with its half spaces."""
    return HALF_SPACE + label.replace(" ", HALF_SPACE * 2) + HALF_SPACE


_READERS: Final[Mapping[Kind, Callable[[Any, int], Lexicon | Packer]]] = {
    "shared-memory": lambda named, _: Lexicon(strings(named["words"])),
    "mt-dnn": lambda named, most: Packer(WordPieces(strings(named["word_pieces"])), most),
}
