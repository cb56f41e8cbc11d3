"""What the options of ``mqan ask`` and ``mqan batch`` ask for, as the fields of a question of the REST API."""

import importlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import typer

if TYPE_CHECKING:
    from mqan_client.questions import Asked

Document = dict[str, Any]
"""An object of the REST API, such as the fields of a question by their names there."""

Parse = Literal["sql", "dialogue_state"]

KINDS: Final = ("choices", "yes_no", "scale", "multiple", "none")
LABELS_HELP: Final = (
    "Labels to choose from: LABEL or LABEL=WHAT IT COVERS, separated by commas, or by semicolons if there is one."
)
YES_NO_HELP: Final = "Answer with yes or no."
SCALE_HELP: Final = "Levels to choose from, low to high, separated by commas."
MULTIPLE_HELP: Final = "Several of the labels can be right."
NONE_HELP: Final = "None of the labels may be the answer, too."
SOURCES_HELP: Final = "Where words of a free answer may come from, of context, question and vocabulary."
MIN_PROBABILITY_HELP: Final = "Give no answer that is less likely."


def read_choices(text: str) -> list[str | dict[str, str]]:
    """Return the labels that a text lists, those with a description as objects of the REST API."""
    parts = (part.partition("=") for part in text.split(";" if ";" in text else ","))
    told = [(label.strip(), description.strip()) for label, _, description in parts]
    return [{"label": label, "description": what} if what else label for label, what in told if label]


def fields_of(
    *,
    choices: str | None = None,
    yes_no: bool = False,
    scale: str | None = None,
    multiple: bool = False,
    none: bool = False,
    sources: str | None = None,
    min_probability: float | None = None,
    **more: Any,
) -> Document:
    """Return what options ask for; what none of them gives is left out, and an empty list refused."""
    from mqan_client import Source

    given: Document = {"multiple": multiple, "none": none, "yes_no": yes_no, "min_probability": min_probability, **more}
    asked = {name: value for name, value in given.items() if value is not None and value is not False}
    if choices is not None:
        asked["choices"] = _at_least_one(read_choices(choices), "label", "--choices")
    if scale is not None:
        asked["scale"] = _at_least_one(_parts(scale), "level", "--scale")
    if sources is not None:
        asked["sources"] = _at_least_one(_parts(sources), "source", "--sources")
        for name in asked["sources"]:
            if name not in tuple(Source):
                known = ", ".join(Source)
                raise typer.BadParameter(f"{name} is no source; {known} are", param_hint="--sources")
    return asked


def for_client(asked: Mapping[str, Any]) -> "Asked":
    """Return fields of the REST API as a client takes them."""
    from mqan_client import Choice

    given = dict(asked)
    if "choices" in given:
        given["choices"] = [c if isinstance(c, str) else Choice(**c) for c in given["choices"]]
    return cast("Asked", given)


def texts_of(asked: Mapping[str, Any]) -> list[str]:
    """Return all that a question has to read: itself, its labels and what these cover."""
    listed = [*asked.get("choices", ()), *asked.get("scale", ())]
    return [asked["question"], *(one if isinstance(one, str) else ": ".join(one.values()) for one in listed)]


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _at_least_one(listed: list[Any], what: str, option: str) -> list[Any]:
    if not listed:
        raise typer.BadParameter(f"name at least one {what}", param_hint=option)
    return listed


def read_schema(given: str, option: str = "--record") -> Any:
    """Return the JSON Schema of a file, or of a class: ``module:Class``, such as a model of pydantic."""
    module, colon, name = given.partition(":")
    try:
        if not colon or Path(given).exists():
            return json.loads(Path(given).read_bytes())
        sys.path.insert(0, str(Path.cwd()))
        return getattr(importlib.import_module(module), name).model_json_schema()
    except (ImportError, AttributeError) as error:
        what = f"{given} is neither a file nor a class with model_json_schema(): {error}"
        raise typer.BadParameter(what, param_hint=option) from None
    except OSError as error:
        raise typer.BadParameter(f"cannot read {given}: {error.strerror}", param_hint=option) from None
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{given} is not JSON: {error}", param_hint=option) from None
