"""A bundle in this process: what answers ``mqan ask``, and in each of its processes ``mqan batch``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import typer

from mqan_cli.answering import Provider, open_adapters
from mqan_cli.asked import Document, texts_of
from mqan_cli.batch.inputs import Row
from mqan_cli.batch.plan import Plan
from mqan_cli.batch.running import Cells, cell_of, cell_of_field, line_of
from mqan_cli.errors import CommandError
from mqan_core.answer.types import Answer
from mqan_core.errors import InputError
from mqan_core.forms.parsed import parse_answer
from mqan_runtime.engine import Engine
from mqan_serving.contract.answers import cite, document_of
from mqan_serving.contract.questions import Question

_MOST_TOGETHER: Final = 16  # questions that are answered at once
_MOST_TOKENS: Final = 16_384  # of their texts, each as long as the longest: what is in memory grows with them


def open_engine(folder: Path, provider: Provider) -> Engine:
    try:
        return Engine.open(folder, provider=provider)
    except RuntimeError as error:
        raise CommandError(str(error)) from None


class BundleAnswerer:
    """A bundle in this process, whose texts may have any length, with the adapters of MQAN_ADAPTERS."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self.engine = open_engine(folder, provider)
        self.adapters = open_adapters(self.engine.bundle.manifest, self.engine.bundle.sha256)

    def answer(self, text: str, asked: Document) -> Document:
        _check_characters(text, *texts_of(asked))
        return document_of(self._answer(Question(context=text, **asked)), self.engine.bundle.manifest)

    def fill(self, text: str, schema: Any) -> Document:
        from mqan_serving.records import documents, filling
        from mqan_serving.records.schema import read_schema
        from mqan_serving.service.answer_service import knows_of

        _check_characters(text, str(schema))
        wanted = filling.RecordRequest(text, tuple(read_schema(schema)), None)
        answers = [self._answer(question) for question in filling.ask_fields(wanted)]
        filled = filling.fill_fields(wanted, answers, knows_of(self.engine.bundle))
        return documents.record_document(filled, self.engine.bundle.manifest)

    def _answer(self, question: Question) -> Answer:
        question = self.adapters.adapt(question)
        limit = self.engine.max_answer_tokens
        wanted = limit if question.max_answer_tokens is None else question.max_answer_tokens
        if wanted > limit:
            raise typer.BadParameter(f"this bundle answers with at most {limit}", param_hint="--max-answer-tokens")
        request = self.engine.read(question.context, question.question, question.options)
        (found,) = self.engine.answer([request], [wanted])
        if question.parse is None:
            return found
        return parse_answer(question.parse, found, question.context, question.question)


class Worker(BundleAnswerer):
    """A bundle that answers rows."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        from mqan_serving.records.schema import read_schema

        super().__init__(folder, "cpu")
        self._questions = plan.questions
        self._fields = () if plan.schema is None else tuple(read_schema(plan.schema))

    def answer_rows(self, rows: Sequence[Row]) -> list[str]:
        found: list[dict[str, Answer | str]] = [{} for _ in rows]
        waiting = []
        limit = self.engine.max_answer_tokens
        for row, of_row in zip(rows, found, strict=True):
            for name, question in self._ask(row.text) if row.error is None else ():
                try:
                    request = self.engine.read(row.text, question.question, question.options)
                    waiting.append((of_row, name, request, min(question.max_answer_tokens or limit, limit)))
                except InputError as error:
                    of_row[name] = error.message
        waiting.sort(key=lambda one: one[2].num_context_tokens, reverse=True)
        while waiting:
            number = max(1, min(_MOST_TOGETHER, _MOST_TOKENS // max(1, waiting[0][2].num_context_tokens)))
            together, waiting = waiting[:number], waiting[number:]
            for (of_row, name, _, _), one in zip(together, self._answer_some(together), strict=True):
                of_row[name] = one
        return [self._line(row, of_row) for row, of_row in zip(rows, found, strict=True)]

    def _ask(self, text: str) -> list[tuple[str, Question]]:
        from mqan_serving.records.filling import RecordRequest, ask_fields

        asked = self._questions.items()
        questions = [(name, self.adapters.adapt(Question(context=text, **fields))) for name, fields in asked]
        of_fields = ask_fields(RecordRequest(text, self._fields, None))
        return [*questions, *zip((field.name for field in self._fields), of_fields, strict=True)]

    def _answer_some(self, asked: Sequence[tuple[Any, ...]]) -> Sequence[Answer | str]:
        try:
            return self.engine.answer([request for _, _, request, _ in asked], [most for *_, most in asked])
        except Exception as error:  # of one of them, which must not end the others
            return [repr(error)] if len(asked) == 1 else [found for one in asked for found in self._answer_some([one])]

    def _line(self, row: Row, found: dict[str, Answer | str]) -> str:
        from mqan_serving.records.filling import RecordRequest, fill_fields
        from mqan_serving.service.answer_service import knows_of

        answers = {name: one for name, one in found.items() if not isinstance(one, str)}
        asked = {name: fields for name, fields in self._questions.items() if name in answers}
        cells: Cells = {name: cell_of(answers[name], fields, cite(answers[name])) for name, fields in asked.items()}
        fields = tuple(field for field in self._fields if field.name in answers)
        record = RecordRequest(row.text, fields, None)
        filled = fill_fields(record, [answers[field.name] for field in fields], knows_of(self.engine.bundle))
        cells |= {field.name: cell_of_field(field) for field in filled.fields}
        failures = [f"{name}: {one}" for name, one in found.items() if isinstance(one, str)]
        return line_of(row, cells, row.error or "; ".join(failures) or None)


def _check_characters(*texts: str) -> None:
    """Refuse what no answer could quote: bytes of an argument that are not UTF-8 become lone surrogates."""
    for text in texts:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise CommandError(f"{text!r:.60} is not UTF-8 at character {error.start}") from None
