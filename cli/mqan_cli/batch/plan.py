"""What ``mqan batch`` asks about each row: questions and fields of a record, each with columns of its own."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import typer

from mqan_cli.asked import Document, fields_of, read_schema

ERROR: Final = "error"
_ONLY: Final = "answer"  # the name of a question without one; its other columns need no prefix
_BESIDE: Final = ("probability", "start", "end")


@dataclass(frozen=True, slots=True)
class Plan:
    """Questions by name, a record's JSON Schema, if any, whose fields are names, too; and all names in order."""

    questions: dict[str, Document]
    schema: dict[str, Any] | None
    names: tuple[str, ...]

    def columns_of(self, name: str) -> dict[str, str]:
        """Return the columns of a question or field, by what stands in each."""
        more = ("expected",) if "scale" in self.questions.get(name, {}) else ()
        beside = (*_BESIDE, *(more if name in self.questions else ("reason",)))
        return {"value": name} | {what: what if name == _ONLY else f"{name}_{what}" for what in beside}

    @property
    def adapters(self) -> dict[str, str]:
        """The names of adapters, by those of their questions."""
        of_questions = ((name, asked.get("choices")) for name, asked in self.questions.items())
        return {name: choices["adapter"] for name, choices in of_questions if isinstance(choices, dict)}

    @property
    def wordings(self) -> dict[str, str]:
        """What is asked, by name; where an adapter has a question of its own, the adapter."""
        from mqan_serving.records.schema import read_schema as read_fields

        told = {name: asked["question"] or self.adapters.get(name, "") for name, asked in self.questions.items()}
        fields = [] if self.schema is None else read_fields(self.schema)
        return told | {field.name: field.question for field in fields}

    @property
    def columns(self) -> list[str]:
        return [*(column for name in self.names for column in self.columns_of(name).values()), ERROR]


def read_plan(given: Sequence[tuple[str, Any]], schema: str | None, file: Path | None) -> Plan:
    """Return what options in their order, a schema and a file of YAML ask for; refuse what would fail in every row."""
    questions = _of_options(given)
    entries = {} if file is None else _read_yaml(file)
    fields = {name: entry for name, entry in entries.items() if not _is_question(entry)}
    names = [*questions, *entries]
    questions |= {name: _question_of(entry) for name, entry in entries.items() if name not in fields}
    whole: dict[str, Any] | None = {"properties": fields} if fields else None
    if schema is not None:
        if fields:
            _refuse(f"{file} has fields of a record: leave out one of the two", "--schema")
        whole = read_schema(schema)
        names += whole.get("properties", ()) if isinstance(whole, dict) else ()
    plan = Plan(questions, whole, tuple(names))
    if not names and whole is None:
        _refuse("give at least one question: --question, --adapter, --schema or --ask", "--question")
    if twice := [column for column, count in Counter(plan.columns).items() if count > 1]:
        _refuse(f"two questions or fields have the columns {', '.join(twice)}: rename one", "--question")
    check_plan(plan)
    return plan


def _of_options(given: Sequence[tuple[str, Any]]) -> dict[str, Document]:
    for_all: dict[str, Any] = {}
    found: list[tuple[str, dict[str, Any]]] = []
    asks = any(option == "question" for option, _ in given)
    for option, value in given:
        if option == "question":
            found.append((value, dict(for_all)))
            continue
        if option == "adapter" and not asks:  # it has a question of its own
            found.append(("", dict(for_all)))
        (found[-1][1] if found else for_all)[option] = value
    if for_all and not found:
        _refuse("there are options of a question, and no question", "--question")
    questions: dict[str, Document] = {}
    for text, options in found:
        name, _, question = text.partition("=")
        if not name.isidentifier() or not question:
            name, question = (f"{_ONLY}_{len(questions) + 1}" if questions else _ONLY), text
        if name in questions:
            _refuse(f"two questions have the name {name}", "--question")
        questions[name] = {"question": question, **fields_of(**options)}
    return questions


def _is_question(entry: Any) -> bool:
    return isinstance(entry, str) or "question" in entry or _is_adapter(entry.get("choices"))


def _is_adapter(choices: Any) -> bool:
    return isinstance(choices, dict) and choices.keys() == {"adapter"}


def _question_of(entry: Any) -> Document:
    asked: Document = {"question": entry} if isinstance(entry, str) else {"question": "", **entry}
    choices = asked.get("choices")
    if isinstance(choices, dict) and not _is_adapter(choices):  # each label with what it covers
        told = choices.items()
        asked["choices"] = [{"label": label, "description": what} if what else label for label, what in told]
    return asked


def _read_yaml(path: Path) -> dict[str, Any]:
    import yaml

    try:
        document = yaml.safe_load(path.read_bytes())
    except (OSError, ValueError, yaml.YAMLError) as error:
        _refuse(f"cannot read {path}: {error}", "--ask")
    is_mapping = isinstance(document, dict) and all(isinstance(name, str) for name in document)
    if not is_mapping or not all(isinstance(entry, str | dict) for entry in document.values()):
        _refuse(f"{path} is no mapping of names to questions or fields", "--ask")
    return dict(document)


def check_plan(plan: Plan) -> None:
    from pydantic import ValidationError

    from mqan_core.errors import InputError
    from mqan_serving.contract.questions import AdapterField, Question
    from mqan_serving.records.schema import read_schema as read_fields

    name = "--schema"
    try:
        _ = plan.schema is not None and list(read_fields(plan.schema))
        for name in plan.questions:
            question = Question(context="-", **plan.questions[name])
            if not isinstance(question.choices, AdapterField):  # who answers knows its labels
                question.options.check()
    except InputError as error:
        _refuse(f"{error.message} {error.hint}", name)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        _refuse(f"{problem['loc'][0]}: {problem['msg']}", name)


def _refuse(message: str, option: str) -> NoReturn:
    raise typer.BadParameter(message, param_hint=option)
