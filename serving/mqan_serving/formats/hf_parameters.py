"""The ``parameters`` of Hugging Face's tasks, which may be left out."""

from typing import Any

from mqan_serving.contract.errors import shown_field
from mqan_serving.formats.adapting import as_object, refuse


def read_parameters(document: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Return the parameters of a document that are set.

    Args:
        document: the whole document.
        known: the names that its task has.

    Raises:
        PlacedError: they are no object, or one of them is none of the task's: it would change nothing, unnoticed.
    """
    given = document.get("parameters")
    parameters = {} if given is None else as_object(given, ("parameters",))
    for name in parameters:
        if name not in known:
            shown = shown_field(name, "a field of it")
            message = f"The field parameters has no {shown}." if shown == name else f"{shown} is unknown."
            hint = f"Send {', '.join(sorted(known))} only."
            raise refuse("unknown_field", ("parameters", shown), message, hint)
    return {name: value for name, value in parameters.items() if value is not None}
