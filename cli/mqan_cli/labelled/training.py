"""The rows of ``mqan train --rows``, as questions to train on."""

from collections.abc import Mapping, Sequence

from mqan_cli.batch.inputs import Rows
from mqan_cli.errors import CommandError
from mqan_cli.labelled.rows import read_task
from mqan_core.example import Choice
from mqan_data.formats.rows import EverydayRow
from mqan_data.mixture import OwnRows


def read_own_rows(inputs: Sequence[str], text: str | None, asked: Mapping[str, str | None], *, none: bool) -> OwnRows:
    """Read rows that say what is right; arguments are the options of the command."""
    rows = list(Rows(inputs, text, ()))
    task = read_task(rows, none=none, **asked)
    listed = task.asked.get("choices") or task.asked.get("scale") or ()
    choices = tuple(Choice(one) if isinstance(one, str) else Choice(**one) for one in listed)
    kind = next((name for name in ("yes_no", "multiple", "scale", "choices") if name in task.asked), "free")
    kind = {"multiple": "several", "choices": "choice"}.get(kind, kind)
    found = [
        EverydayRow(row.text, kind, task.asked["question"], gold, choices)
        for row in rows
        if row.error is None and (gold := task.gold(row)) is not None
    ]
    if not found:
        raise CommandError("no row has a text and says what is right")
    return OwnRows(found)
