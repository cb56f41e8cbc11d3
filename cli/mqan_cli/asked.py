"""What the options of ``mqan ask`` and ``mqan batch`` ask for, as the fields of a question of the REST API."""

import importlib
import json
import sys
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, Final, Literal, cast

import typer

from mqan_client import Choice, Source
from mqan_client.documents import Asked

Document = dict[str, Any]  # an object of the REST API, such as the fields of a question by their names there
Parse = Literal["sql", "dialogue_state"]

KINDS: Final = ("choices", "yes_no", "scale", "multiple", "none")
LEAST: Final = "min_probability"
_Value = tuple[Any, tuple[str, ...], dict[str, Any]]
# The options of a question: the type of what is given, the names that are not made of its own, and the rest.
_OPTIONS: Final[Mapping[str, _Value]] = {
    "choices": (str, ("--choices", "-c"), {
        "metavar": "LABELS",
        "help": "Labels to choose from: LABEL or LABEL=WHAT IT COVERS, separated by commas, or by semicolons if there "
        "is one.",
    }),
    "adapter": (str, (), {"metavar": "NAME", "help": "Let this adapter choose, between labels of its own."}),
    "none": (bool, ("--none",), {"help": "None of the labels may be the answer, too."}),
    "yes_no": (bool, ("--yes-no",), {"help": "Answer with yes or no."}),
    "scale": (str, (), {"metavar": "LEVELS", "help": "Levels to choose from, low to high, separated by commas."}),
    "multiple": (bool, ("--multiple",), {"help": "Several of the labels can be right."}),
    "sources": (str, (), {
        "metavar": "SOURCES",
        "help": "Where words of a free answer may come from, of context, question and vocabulary.",
    }),
    LEAST: (float, (), {"min": 0, "max": 1, "help": "Give no answer that is less likely."}),
}  # fmt: skip


def asks(*, before: str, repeats: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a question in place of its ``**given``; with ``repeats`` each may come often."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters = list(signature(command, eval_str=True).parameters.values())[:-1]
        place = [parameter.name for parameter in parameters].index(before)
        parameters[place:place] = [_parameter(name, *of, repeats=repeats) for name, of in _OPTIONS.items()]
        command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return command

    return decorate


def _parameter(name: str, kind: Any, names: tuple[str, ...], how: dict[str, Any], *, repeats: bool) -> Parameter:
    default: Any = None
    if kind is not bool:
        kind = (list[kind] if repeats else kind) | None
    elif repeats:
        kind, default, how = int, 0, {**how, "count": True, "show_default": False, "metavar": ""}
    else:
        default = False
    option = typer.Option(default, *names, **how)
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=option, annotation=kind)


def read_choices(text: str) -> list[str | dict[str, str]]:
    """Return the labels that a text lists, those with a description as objects of the REST API."""
    parts = (part.partition("=") for part in text.split(";" if ";" in text else ","))
    told = [(label.strip(), description.strip()) for label, _, description in parts]
    return [{"label": label, "description": what} if what else label for label, what in told if label]


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


_LISTS: Final[Mapping[str, tuple[Callable[[str], list[Any]], str]]] = {
    "choices": (read_choices, "label"),
    "scale": (_parts, "level"),
    "sources": (_parts, "source"),
}


def fields_of(**given: Any) -> Document:
    """Return what options ask for; what none of them gives is left out, and an empty list refused."""
    asked = {name: value for name, value in given.items() if value is not None and value is not False}
    for name in _LISTS.keys() & asked.keys():
        read, what = _LISTS[name]
        asked[name] = read(asked[name])
        if not asked[name]:
            raise typer.BadParameter(f"name at least one {what}", param_hint=f"--{name}")
    if "adapter" in asked:
        if "choices" in asked:
            raise typer.BadParameter("it has labels of its own: leave --choices out", param_hint="--adapter")
        asked["choices"] = {"adapter": asked.pop("adapter")}
    for name in asked.get("sources", ()):
        if name not in tuple(Source):
            raise typer.BadParameter(f"{name} is no source; {', '.join(Source)} are", param_hint="--sources")
    return asked


def for_client(asked: Mapping[str, Any]) -> Asked:
    """Return fields of the REST API as a client takes them."""
    given = dict(asked)
    if isinstance(given.get("choices"), dict):
        given |= given.pop("choices")
    elif "choices" in given:
        given["choices"] = [c if isinstance(c, str) else Choice(**c) for c in given["choices"]]
    return cast("Asked", given)


def texts_of(asked: Mapping[str, Any]) -> list[str]:
    """Return all that a question has to read: itself, its labels and what these cover."""
    choices = asked.get("choices", ())
    listed = [*(() if isinstance(choices, dict) else choices), *asked.get("scale", ())]
    return [asked["question"], *(one if isinstance(one, str) else ": ".join(one.values()) for one in listed)]


def read_schema(given: str) -> Any:
    """Return the JSON Schema of a file, or of a class: ``module:Class``, such as a model of pydantic."""
    module, colon, name = given.partition(":")
    try:
        if not colon or Path(given).exists():
            return json.loads(Path(given).read_bytes())
        sys.path.insert(0, str(Path.cwd()))
        return getattr(importlib.import_module(module), name).model_json_schema()
    except (ImportError, AttributeError) as error:
        what = f"{given} is neither a file nor a class with model_json_schema(): {error}"
        raise typer.BadParameter(what, param_hint="--schema") from None
    except OSError as error:
        raise typer.BadParameter(f"cannot read {given}: {error.strerror}", param_hint="--schema") from None
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{given} is not JSON: {error}", param_hint="--schema") from None
