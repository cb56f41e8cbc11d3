"""The bundle of a model that answers questions with a pretrained reader: format 6, of the kind ``question-answering``.

    manifest.json              what is here, with sizes and SHA-256; which graph is for what; limits; scores
    embeddings.onnx            ids of word pieces -> their vectors, 8-bit; for every device
    reader-*.onnx              windows of word pieces -> all that the decoder reads of their words (weights inside)
    decoder_step-*.onnx        one step of greedy decoding (weights inside)
    vocab.json                 pieces of the generator, and word pieces of the reader
    README.md                  model card

The graphs run as they are hashed. A set of them for CPUs has 8-bit products, one for GPUs is float32 or float16; the
manifest says which is which. As with every bundle, a file that is used is read once, and what was hashed is what is
used.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field
from pydantic_core import from_json

from mqan_core.answer.calibration import Calibration
from mqan_core.bundle import MALFORMED, read_manifest, read_verified, strings
from mqan_core.errors import BundleError
from mqan_core.manifest import (
    ANSWERING_FORMAT,
    MANIFEST,
    MAX_ENTRIES,
    MODEL_CARD,
    STRICT,
    VOCABULARY,
    FileEntry,
    FreeForm,
    Label,
    Name,
    Scores,
    Width,
)
from mqan_core.text.vocab import Vocabulary
from mqan_core.text.word_pieces import WordPieces

EMBEDDINGS: Final = "embeddings.onnx"
MOST_OFFSET: Final = 20.0  # of a refusal's score, in logits
MOST_BYTES: Final = 60 * 10**6  # of all files of a bundle that is exported

Device = Literal["cpu", "cuda"]
Precision = Literal["int8", "float16", "float32"]
GraphName = Annotated[str, Field(pattern=r"\A(reader|decoder_step)-[a-z0-9]{1,20}\.onnx\z")]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of the graphs; the letters are those of the model's code."""

    __pydantic_config__ = STRICT

    width: Width  # D, of the decoder
    reader_width: Width  # M
    num_layers: Annotated[int, Field(ge=0, le=64)]  # L, of the decoder
    num_heads: Annotated[int, Field(ge=1, le=256)]  # H, of the decoder
    head_width: Width  # W
    num_generated: Annotated[int, Field(ge=2, le=2**20)]  # V
    num_word_pieces: Annotated[int, Field(ge=3, le=2**20)]
    evidence_width: Annotated[int, Field(ge=0, le=4096)] = 0  # E; 0 of a model that does not point at evidence


@dataclass(frozen=True, slots=True)
class Graphs:
    """The graphs for a kind of device.

    Attributes:
        precision: of their products.
        reader, decoder_step: names of their files.
    """

    __pydantic_config__ = STRICT

    precision: Precision
    reader: GraphName
    decoder_step: GraphName


@dataclass(frozen=True, slots=True)
class AnsweringManifest:
    """The manifest of a bundle of format 6; what the three kinds share is said at ``Manifest``.

    Attributes:
        graphs: device -> the graphs that run there.
        calibration: kind of question -> map of its probabilities, by the names of ``mqan_core.answer.calibration``.
        refusal_offset: what is added to the score of refusing a question that the decoder answers freely, in logits;
            choices, and what is to be one quotation, are decided without it.
    """

    __pydantic_config__ = STRICT

    name: Name
    version: Name
    sizes: Sizes
    max_positions: Annotated[int, Field(ge=2, le=2**14)]
    graphs: Annotated[Mapping[Device, Graphs], Field(min_length=1)]
    files: Annotated[Mapping[str, FileEntry], Field(max_length=32)]
    scores: Scores = field(default_factory=dict)
    training: FreeForm = field(default_factory=dict)
    calibration: Annotated[Mapping[Label, Calibration], Field(max_length=MAX_ENTRIES)] = field(default_factory=dict)
    refusal_offset: Annotated[float, Field(ge=-MOST_OFFSET, le=MOST_OFFSET)] = 0.0
    kind: Literal["question-answering"] = "question-answering"
    format_version: Literal[6] = ANSWERING_FORMAT
    FORMAT: ClassVar[int] = ANSWERING_FORMAT
    MODEL: ClassVar[str] = "a model with a pretrained reader"

    @property
    def expected_files(self) -> set[str]:
        """The names of all files, but for the manifest."""
        named = {name for some in self.graphs.values() for name in (some.reader, some.decoder_step)}
        return {EMBEDDINGS, VOCABULARY, MODEL_CARD, *named}


@dataclass(frozen=True, slots=True)
class AnsweringBundle:
    """An opened bundle of format 6, whose graphs are read, and checked, when they are asked for.

    Attributes:
        folder: where it lies.
        manifest: its manifest.
        sha256: hash of the manifest, which covers every other file: the identity of the model.
        vocabulary: pieces of the generator; it has no words with vectors.
        word_pieces: what the reader reads.
    """

    folder: Path
    manifest: AnsweringManifest
    sha256: str
    vocabulary: Vocabulary
    word_pieces: WordPieces

    def read_graph(self, name: str) -> bytes:
        """Return the bytes of a graph, checked against its hash.

        Raises:
            BundleError: it is missing, is a link, or is not what the manifest says.
        """
        return read_verified(self.folder, name, self.manifest.files[name])


def open_answering_bundle(folder: Path) -> AnsweringBundle:
    """Open a bundle of format 6; its graphs are read, and checked, when they are asked for.

    Raises:
        BundleError: the manifest or the vocabulary is missing, is a link, is malformed, or is not what it must be.
    """
    manifest, sha256 = read_manifest(folder, AnsweringManifest)
    lists = read_verified(folder, VOCABULARY, manifest.files[VOCABULARY])
    try:
        named = from_json(lists)  # refuses lone surrogates, which no response could hold
        vocabulary = Vocabulary(strings(named["pieces"]), refuses=True)
        word_pieces = WordPieces(strings(named["word_pieces"]))
    except MALFORMED as error:
        raise BundleError(f"bundle {folder}: {VOCABULARY} is malformed: {error}") from error
    sizes = manifest.sizes
    if (vocabulary.num_generated, len(word_pieces.pieces)) != (sizes.num_generated, sizes.num_word_pieces):
        raise BundleError(f"bundle {folder}: {VOCABULARY} does not have the sizes that {MANIFEST} states")
    return AnsweringBundle(folder, manifest, sha256, vocabulary, word_pieces)
