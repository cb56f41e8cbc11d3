"""The folders that training writes: models (safetensors and JSON), results and logs.

model.safetensors   weights
model.json          what they are of: recipe, tasks, words; the weights' hash; written last
results.json        scores, written when a run has ended, with the settings that they were made with
log.jsonl           a line for each look at the tuning split, or for every so many steps
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from mqan_baselines.recipes import RecipeT, parse_recipe
from mqan_data.files import sha256_of
from mqan_training.checkpoint import CheckpointError

FORMAT_VERSION: Final = 1
RESULTS: Final = "results.json"
LOG: Final = "log.jsonl"
_WEIGHTS: Final = "model.safetensors"
_DOCUMENT: Final = "model.json"


def save_model(folder: Path, document: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
    """Write a model; one that was there before is replaced, weights first."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _DOCUMENT).unlink(missing_ok=True)
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, folder / _WEIGHTS)
    stated = {"format_version": FORMAT_VERSION, "sha256": sha256_of(folder / _WEIGHTS), **document}
    write_json(folder / _DOCUMENT, stated)


@contextmanager
def opened_model(
    folder: Path, recipe_type: type[RecipeT]
) -> Iterator[tuple[dict[str, Any], dict[str, Tensor], RecipeT]]:
    """Read a model's document, weights and recipe; what fails within, while its network is built, is damage, too."""
    try:
        document = json.loads((folder / _DOCUMENT).read_text(encoding="utf-8"))
        if document["format_version"] != FORMAT_VERSION:
            raise CheckpointError(f"{folder}: a model of a version that is unknown to this release")
        if document["sha256"] != weights_sha256(folder):
            raise CheckpointError(f"{folder}: {_WEIGHTS} does not have the SHA-256 that {_DOCUMENT} states")
        recipe = parse_recipe(document["recipe"], _DOCUMENT)
        if isinstance(recipe, recipe_type):
            yield document, load_file(folder / _WEIGHTS), recipe
            return
    except FileNotFoundError as error:
        raise CheckpointError(
            f"{folder} holds no model of `mqan_baselines`: {error.filename} is missing; give a folder below a run's"
        ) from error
    except CheckpointError:
        raise
    except (RuntimeError, AttributeError, KeyError, TypeError, ValueError, SafetensorError) as error:
        raise CheckpointError(f"{folder}: malformed model: {error!r}") from error
    raise ValueError(f"{folder} holds a model of the kind {recipe.kind!r}")


def weights_sha256(folder: Path) -> str:
    """Return the hash of a model's weights, which tells it from others."""
    return sha256_of(folder / _WEIGHTS)


def read_results(folder: Path, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the results that a run wrote; None if it has not ended here."""
    path = folder / RESULTS
    if not path.is_file():
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        had, results = dict(document["settings"]), dict(document["results"])
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: malformed results: {error!r}; delete the file to make them again") from error
    has = json.loads(json.dumps(settings))
    if other := [key for key in {**had, **has} if key not in had or key not in has or had[key] != has[key]]:
        raise ValueError(
            f"{path} has the results of a run with other settings ({', '.join(other)}): give another --output, or "
            "delete the folder"
        )
    return results


def write_results(folder: Path, settings: Mapping[str, Any], results: Mapping[str, Any]) -> None:
    write_json(folder / RESULTS, {"settings": settings, "results": results})


def write_json(path: Path, document: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(path.name + ".tmp")
    aside.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(aside, path)


def begin_log(folder: Path) -> None:
    """Begin the log of a run: what one that was cut wrote is dropped."""
    (folder / LOG).unlink(missing_ok=True)


def append_log(folder: Path, record: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOG).open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
