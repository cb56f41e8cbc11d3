"""Records to typed rows: one reader a shape."""

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from string import Formatter
from typing import Any

from mqan_core.example import Choice, Example
from mqan_data.files import DatasetError, MissingFileError, find_file
from mqan_data.formats import dataset_file as parts
from mqan_data.formats import decanlp, dialogues, layouts, records, rows
from mqan_data.formats.records import DROPPED, TIMES, Record, as_text, pick, written

_FORMATS: Mapping[str, Callable[..., Iterator[Record]]] = {
    name.removeprefix("format_"): reader
    for module in (records, decanlp, dialogues, layouts)
    for name, reader in vars(module).items()
    if name.startswith("format_")
}
_GIVEN = frozenset({"label", "options"})  # names in templates that are filled in when a question is drawn
_SPACES = re.compile(r"[ \t\xa0]+")
_AS_JSON = {"True": "true", "False": "false"}


def read_rows(data: Path, dataset: parts.Dataset, part_name: str, split: str) -> Iterator[rows.Row]:
    """Yield the rows of a part of a dataset; nothing where the part has no files for the split."""
    part = dataset.parts[part_name]
    held_out = part.hold_out and not part.files.get("validation")
    source = "train" if held_out and split == "validation" else split
    with _fitting(f"{dataset.name}: part {part_name}, {split}"):
        for row in _ROWS[type(part)](part, read_records(dataset.folder_in(data), part, source)):
            is_chosen = held_out and zlib.crc32(row.texts()[0].encode()) % part.hold_out == 0
            if not held_out or split == "test" or is_chosen == (split == "validation"):
                yield row


def needed_files(part: parts.Part) -> list[str]:
    """Return the files that a part is read from; a task's test set is for a last score, and may be missing."""
    splits = [split for split in part.files if split != "test" or not isinstance(part, parts.TaskPart)]
    needed = [names for split in splits for names in part.files[split] if not names.endswith("?")]
    return [name.strip() for names in needed for name in names.split("|")]


def missing_files(folder: Path, part: parts.Part) -> list[str]:
    missing = []
    for name in needed_files(part):
        try:
            find_file(folder, name)
        except MissingFileError:
            missing.append(name.partition("#")[0])
    return missing


def read_examples(
    folder: Path, task: parts.TaskPart, split: str, dropped: Counter[str] | None = None
) -> Iterator[Example]:
    dropped = Counter() if dropped is None else dropped
    with _fitting(f"{task.name}, {split}"):
        for row, record in enumerate(read_records(folder, task, split, dropped)):
            values = {"split": split, "row": row, "line": row + 1, **record}
            answers = record.get("answers") or [task.answer.format(**values)]
            context = record["context"] if "context" in record else task.context.format(**values)
            question = task.question.format(**values)
            if "answers" not in record and not (context and answers[0]):
                dropped["no text or no answer"] += 1
                continue
            if task.labels:
                unknown = [answer for answer in answers if answer not in task.labels]
                if unknown:
                    raise DatasetError(f"{record['file']}:{values['line']}: unknown label {unknown[0]!r}.")
                answers = [task.labels[answer] for answer in answers]
            start, reference = record.get("start"), record.get("reference")
            yield Example(task.name, task.id.format(**values), context, question, tuple(answers), start, reference)


def read_records(folder: Path, part: parts.Part, split: str, dropped: Counter[str] | None = None) -> Iterator[Record]:
    """Yield the records of a split that ``keep`` keeps; count what the files hold but no record has, by reason."""
    if part.format not in _FORMATS:
        raise ValueError(f"There is no format {part.format!r}; there are {', '.join(sorted(_FORMATS))}.")
    dropped = Counter() if dropped is None else dropped
    for names in part.files.get(split, ()):
        try:
            files = [find_file(folder, name.strip()) for name in names.removesuffix("?").split("|")]
        except MissingFileError as error:
            if not names.endswith("?"):
                raise
            dropped[str(error).partition(". Give ")[0]] += 1
            continue
        for record in _FORMATS[part.format](files, part):
            if DROPPED in record:
                dropped[record.pop(DROPPED)] += record.pop(TIMES, 1)
            if not record:
                continue
            record.setdefault("file", names)
            record.setdefault("part", files[0].key)
            _tidy(record, part)
            for whole in _each(record, part.each) if part.each else (record,):
                if all(str(whole.get(column)) in values for column, values in part.keep.items()):
                    yield whole


def _tidy(record: Record, part: parts.Part) -> None:
    """Join lists of texts and tokens, by the options that all formats have."""
    for name in part.options.get("sentences", "").split():
        record[name] = " ".join(record[name])
    for name in part.options.get("lines", "").split():
        lines = record[name]
        record[name] = "\n".join(lines) if isinstance(lines, list) else lines.replace("<br>", "\n")
    for name in part.options.get("tokenised", "").split():
        record[name] = written(record[name])


def _each(record: Record, key: str) -> Iterator[Record]:
    for place, entry in enumerate(pick(record, key)):
        inner = entry if isinstance(entry, dict) else {"entry": entry}
        yield {**{name: value for name, value in record.items() if name != key}, **inner, "place": place}


@contextmanager
def _fitting(where: str) -> Iterator[None]:
    try:
        yield
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        why = str(error) if isinstance(error, ValueError) else repr(error)
        raise DatasetError(f"{where}: a row does not fit ({why}).") from error


def _columns(forms: Iterable[parts.Form]) -> list[str]:
    templates = (t for form in forms for t in (form.text, *form.questions, *form.options, *form.yes_no, *form.negated))
    names = (name for template in templates for _, name, _, _ in Formatter().parse(template) if name)
    return [name for name in dict.fromkeys(names) if name not in _GIVEN]


def clean(value: Any) -> str:
    """Return a text with runs of spaces made one; line breaks stay."""
    return _SPACES.sub(" ", as_text(value)).strip()


def _value(record: Record, name: str) -> str:
    return clean(f"{{{name}}}".format(**record))


def _label_rows(part: parts.LabelsPart, records: Iterable[Record]) -> Iterator[rows.LabelRow]:
    columns = _columns(part.forms)
    group_of = {value: label for label, values in part.groups.items() for value in values}
    for record in records:
        keys = [group_of.get(key, key) for key in _keys(part, record)]
        if not set(part.drop).isdisjoint(keys):
            continue
        right = tuple(dict.fromkeys(key for key in keys if key not in part.none))
        unknown = [key for key in right if key not in part.labels]
        if unknown:
            raise ValueError(f"label {unknown[0]!r} is not among `labels`")
        yield rows.LabelRow({name: _value(record, name) for name in columns}, right)


def _keys(part: parts.LabelsPart, record: Record) -> list[str]:
    if "{" not in part.label:
        found = pick(record, part.label)
        return [as_text(key) for key in found] if isinstance(found, list | tuple) else [as_text(found)]
    text = part.label.format(**record).strip()
    if part.round:
        return [str(round(float(text)))]
    if part.separator:
        return [key.strip() for key in text.split(part.separator) if key.strip()]
    return [_AS_JSON.get(text, text)]


def _field_rows(part: parts.FieldsPart, records: Iterable[Record]) -> Iterator[rows.FieldRow]:
    dropped = set(part.drop)
    for number, record in enumerate(records):
        scheme: Mapping[str, parts.Field] = record.get("scheme", part.fields)
        found: dict[str, list[rows.Mention]] = {}
        text = record["text"]
        for name, start, end in record.get("mentions", ()):
            if name not in dropped and text[start:end].strip():
                found.setdefault(name, []).append(rows.Mention(text[start:end], start))
        unclear: set[str] = set()
        for name, values in record.get("values", {}).items():
            if name in dropped:
                continue
            found[name] = [mention_of(text, value) for value in values]
            if found[name][0].start is None and (record.get("cut") or not scheme[name].values):
                del found[name]  # the text that is shown does not say it
                unclear.add(name)
        unknown = found.keys() - scheme.keys()
        if unknown:
            raise ValueError(f"field {sorted(unknown)[0]!r} is not among `fields`")
        if unclear:
            scheme = {name: field for name, field in scheme.items() if name not in unclear}
        can_be_refused = any(not field.only_filled for field in scheme.values())
        empty_stays = can_be_refused and number % 100 < 100 * part.keep_empty
        if scheme and (found or empty_stays) and text.strip():
            yield rows.FieldRow(text, {name: tuple(mentions) for name, mentions in found.items()}, scheme)


def mention_of(text: str, value: str) -> rows.Mention:
    """Return a value as it stands in a text, at the last place where it stands as whole words."""
    folded, wanted = text.lower(), value.lower()
    start = folded.rfind(wanted) if wanted and len(folded) == len(text) else -1
    while start >= 0:
        end = start + len(wanted)
        if not (text[start - 1 : start].isalnum() and wanted[0].isalnum()) and not (
            text[end : end + 1].isalnum() and wanted[-1].isalnum()
        ):
            return rows.Mention(text[start:end], start)
        start = folded.rfind(wanted, 0, end - 1)
    return rows.Mention(value, None)


def _choice_rows(part: parts.ChoicesPart, records: Iterable[Record]) -> Iterator[rows.ChoiceRow]:
    columns = _columns(part.forms)
    for record in records:
        if len(part.choices) == 1 and "{" not in part.choices[0]:
            options = tuple(clean(option) for option in pick(record, part.choices[0]))
        else:
            options = tuple(clean(template.format(**record)) for template in part.choices)
        if part.flags:
            flags = pick(record, part.flags)
            right = tuple(place for place, flag in enumerate(flags) if flag in (1, True, "1", "true"))
        else:
            right = _right(part, clean(part.right.format(**record)), options)
        kept = [place for place, option in enumerate(options) if option and option not in options[:place]]
        places = tuple(kept.index(options.index(options[place])) for place in right if options[place])
        if len(kept) > 1:
            values = {name: _value(record, name) for name in columns}
            meanings = map(clean, pick(record, part.descriptions)) if part.descriptions else ()
            described = dict(zip(options, meanings, strict=bool(part.descriptions)))
            offered = tuple(options[place] for place in kept)
            yield rows.ChoiceRow(values, offered, tuple(dict.fromkeys(places)), described)


def _right(part: parts.ChoicesPart, given: str, options: tuple[str, ...]) -> tuple[int, ...]:
    keys, wanted = list(part.keys), given
    if given not in keys:
        if given == "none":
            return ()
        keys, wanted = [option.casefold() for option in options], given.casefold()
    if wanted not in keys[: len(options)]:
        raise ValueError(f"answer {given!r} is not among the choices {options}")
    return (keys.index(wanted),)


def _question_rows(part: parts.QuestionsPart, records: Iterable[Record]) -> Iterator[rows.QuestionRow]:
    for record in records:
        answers = _texts(record, part.answers)
        start = pick(record, part.start) if part.start and answers else None
        text = part.text.format(**record) if part.start else clean(part.text.format(**record))
        questions = _texts(record, part.question)
        if part.joined:
            answers = (", ".join(dict.fromkeys(answers)),) if answers else ()
        if text and questions:
            yield rows.QuestionRow(text, questions, answers, start if answers else None)


def _everyday_rows(_part: parts.EverydayPart, records: Iterable[Record]) -> Iterator[rows.EverydayRow]:
    for record in records:
        labels: Any = record.get("labels", record.get("levels", ()))
        meanings = record.get("descriptions", {})
        given: Any = record["answers"] if "answers" in record else record["answer"]
        answers: list[str] = given if isinstance(given, list) else [] if given in (None, "unknown") else [given]
        text, kind = record["text"], record["kind"]
        asked = record["name" if kind == "field" else "question"]
        choices = tuple(Choice(label, meanings.get(label, "")) for label in labels)
        evidence = _places(text, record.get("evidence", []), is_clean=False) or ()
        yield rows.EverydayRow(
            text, kind, asked, tuple(answers), choices, record.get("type", ""), evidence, record["facts"]
        )


def _fact_rows(part: parts.FactsPart, records: Iterable[Record]) -> Iterator[rows.FactRow]:
    verdict_of: dict[str, rows.Verdict] = dict.fromkeys(part.yes, "yes")
    verdict_of.update(dict.fromkeys(part.no, "no"))
    verdict_of.update(dict.fromkeys(part.unknown, "unknown"))
    for record in records:
        key = part.label.format(**record).strip()
        key = _AS_JSON.get(key, key)
        if key in part.drop:
            continue
        if key not in verdict_of:
            raise ValueError(f"label {key!r} is not among `yes`, `no`, `unknown` and `drop`")
        text = clean(part.text.format(**record))
        asked = clean((part.question or part.statement).format(**record))
        if text and " " in asked:
            evidence = _places(text, pick(record, part.evidence)) if part.evidence else None
            known = None if verdict_of[key] == "unknown" else evidence
            yield rows.FactRow(text, asked, verdict_of[key], known, bool(part.question))


def _places(text: str, passages: Any, *, is_clean: bool = True) -> tuple[tuple[int, int], ...] | None:
    """Return where passages stand; None where one of them does not, or none of them stands in one place alone."""
    listed = passages if isinstance(passages, list) else [passages]
    wanted = [clean(passage) if is_clean else str(passage) for passage in listed]
    if not all(passage and passage in text for passage in wanted):
        return None
    starts = ((text.index(passage), passage) for passage in wanted if text.count(passage) == 1)
    return tuple((start, start + len(passage)) for start, passage in sorted(starts)) or None


def _texts(record: Record, template: str) -> tuple[str, ...]:
    if "{" in template:
        filled = clean(template.format(**record))
        return (filled,) if filled else ()
    return tuple(clean(entry) for entry in pick(record, template))


_ROWS: Mapping[type[parts.AnyPart], Callable[[Any, Iterable[Record]], Iterator[rows.Row]]] = {
    parts.LabelsPart: _label_rows,
    parts.FieldsPart: _field_rows,
    parts.ChoicesPart: _choice_rows,
    parts.QuestionsPart: _question_rows,
    parts.FactsPart: _fact_rows,
    parts.EverydayPart: _everyday_rows,
}
