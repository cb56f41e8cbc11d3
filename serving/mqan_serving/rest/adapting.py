"""Making an adapter of rows whose labels a caller gives; the route is only there where the server is set to."""

import asyncio
import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from mqan_core.answer.adapter import Adapter, Floats, adapter_file, logs_of
from mqan_core.answer.types import AdapterVersion
from mqan_core.ask.request import reading_order
from mqan_runtime.adapters import LEAST_ROWS, Observed, fit_adapter, head_of
from mqan_serving.contract.calls import AskedText, Item, check_names, check_timeout_ms, entries_of, model_of
from mqan_serving.contract.errors import AnsweringError, Failure, refuse
from mqan_serving.contract.questions import Question, question_of, read_object
from mqan_serving.formats.foreign import Written
from mqan_serving.observability.logs import RequestLog, answer_and_log, using
from mqan_serving.service.models import Models

_MOST_ROWS: Final = 500
_MOST_TO_FIT: Final = 16_000  # rows times labels: some ten seconds
_FITTING = asyncio.Lock()  # one at a time: it takes a core


@dataclass(frozen=True, slots=True, eq=False)
class _Watching(Adapter):
    """Keeps what the model says of a row, and the vector of its text; what it decides counts for nothing."""

    seen: list[tuple[Sequence[float], Floats]] = field(default_factory=list)

    def masses(self, prior: Sequence[float], vector: Floats) -> tuple[list[float], float]:
        self.seen.append((prior, vector))
        share = 1 / (len(self.head.choices) + 1)
        return [share] * len(self.head.choices), share


async def make_adapter(body: bytes, models: Models, log: RequestLog) -> Written:
    document = await models.aside(len(body), lambda: read_object(body))
    rows = [_row_of(row, f"rows[{i}].") for i, row in enumerate(entries_of(document, "rows", _MOST_ROWS, ""))]
    rest = {name: value for name, value in document.items() if name != "rows"}
    golds = [labels for _, labels in rows]
    async with using(models, model_of(document), log, check_timeout_ms(document.get("timeout_ms"))) as service:
        question = service.adapters.adapt(question_of({**rest, "context": "-"}))
        _check(question, golds)
        options = question.options
        head = head_of(question.question, options, service.model.sha256, len(rows), none=not all(golds))
        watching = [_Watching(AdapterVersion("", ""), head, np.empty(0), np.empty(0)) for _ in rows]
        asked = [question.decided_by(one, context=text) for one, (text, _) in zip(watching, rows, strict=True)]
        (outcomes,) = await answer_and_log(service, log, [AskedText(None, tuple(Item(None, one) for one in asked))])
        for i, outcome in enumerate(outcomes):
            if isinstance(outcome.result, Failure):
                raise AnsweringError(outcome.result, (f"rows[{i}]",))
    prior, vectors = zip(*(one.seen[-1] for one in watching), strict=True)
    labels = tuple(choice.label for choice in reading_order(options.choices))
    seen = Observed(logs_of(np.array(prior), options.multiple), np.array(vectors), labels)
    async with _FITTING:
        fitted = await asyncio.to_thread(fit_adapter, seen, golds, head)
    before, after = fitted.accuracy
    file = base64.b64encode(adapter_file(fitted.head, fitted.center_F, fitted.weights_FK)).decode("ascii")
    return {"rows": len(rows), "before": before, "after": after, "is_better": fitted.is_better, "file": file}


def _row_of(row: Any, where: str) -> tuple[str, list[str]]:
    if not isinstance(row, Mapping):
        raise refuse("wrong_type", "rows", f"{where.rstrip('.')} is not an object.")
    check_names(row, {"context", "labels"}, where)
    context, labels = row.get("context"), row.get("labels")
    if not (isinstance(context, str) and isinstance(labels, list) and all(isinstance(one, str) for one in labels)):
        raise refuse("wrong_type", "rows", f"{where}context is not a string, or {where}labels no list of strings.")
    return context, labels


def _check(question: Question, golds: Sequence[Sequence[str]]) -> None:
    options = question.options
    known = {choice.label for choice in options.choices}
    unknown = [label for labels in golds for label in labels if label not in known]
    if unknown:
        raise refuse("invalid_input", "rows", f"The label {unknown[0][:64]!r} of a row is not among the choices.")
    if not options.multiple and any(len(labels) > 1 for labels in golds):
        raise refuse("invalid_input", "rows", "A row has several labels, but multiple is not set.")
    if len(golds) * len(known) > _MOST_TO_FIT:
        message = f"{len(golds)} rows times {len(known)} labels are more than the {_MOST_TO_FIT} that are accepted."
        raise refuse("request_too_large", "rows", message, "Send fewer rows, or use `mqan adapt`.")
    if len(golds) < LEAST_ROWS or len({frozenset(labels) for labels in golds}) < 2:
        raise refuse("invalid_input", "rows", f"Give at least {LEAST_ROWS} rows, of two labels.")
