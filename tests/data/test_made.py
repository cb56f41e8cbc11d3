"""Texts made by program: every layout, what stands where, what is refused, what is held back."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from mqan_core.example import Example
from mqan_core.text.tokens import read_tokens
from mqan_data.synthetic.document import Document, make_document
from mqan_data.synthetic.kind import Layout, kind_names, load_kind, shared
from mqan_data.synthetic.source import MadeSource, made_sources
from mqan_data.synthetic.template import check_template, write
from mqan_data.synthetic.values import Values

KINDS = kind_names()
_BLANK = {"", "-", "---", "n/a", "none", "none known", "null", "null,", '""', "________", "illegible"}
_YES_NO = {"yes", "no", "true", "false"}


@cache
def _document(name: str, place: int, seed: int) -> Document:
    kind = load_kind(name)
    return make_document(kind, kind.layouts[place], seed)


def _documents(name: str, number: int = 25) -> Iterator[tuple[Layout, Document]]:
    for place, layout in enumerate(load_kind(name).layouts):
        for seed in range(number):
            yield layout, _document(name, place, seed)


def _examples(source: MadeSource, number: int = 250) -> Iterator[Example]:
    for index in range(number):
        yield source.draw(index, np.random.default_rng([7, index]))


@pytest.mark.parametrize("name", KINDS)
def test_every_value_stands_where_it_says_and_is_whole_words(name: str) -> None:
    for layout, document in _documents(name):
        row = document.row
        tokens = read_tokens(row.text)
        starts, ends = {token.start for token in tokens}, {token.end for token in tokens}
        assert not re.search(r"\{\{|\}\}\w|\[\[|\|\||<<|>>", row.text), (layout.name, row.text)
        for key, mentions in row.mentions.items():
            assert key in row.scheme
            for mention in mentions:
                assert mention.start is not None
                end = mention.start + len(mention.text)
                assert row.text[mention.start : end] == mention.text, (layout.name, key)
                assert mention.start in starts, (layout.name, key, mention)
                assert end in ends, (layout.name, key, mention)


@pytest.mark.parametrize("name", KINDS)
def test_every_layout_can_write_all_of_its_fields(name: str) -> None:
    kind = load_kind(name)
    names = {f"{rows}.{spec.name}.0" for rows, spec in kind.rows.items()}  # a row's name has no cell of its own
    for place, layout in enumerate(kind.layouts):
        missing = {f"{key}.0" if "." in key else key for key in kind.keys(layout)} - names
        for seed in range(60):
            missing -= set(_document(name, place, seed).row.mentions)
            if not missing:
                break
        assert not missing, layout.name


def test_held_back_layouts_are_never_trained_on() -> None:
    number = Counter[str]()
    for train, validation in zip(made_sources("train"), made_sources("validation"), strict=True):
        templates = [layout.text for layout in (*train.layouts, *validation.layouts)]
        assert len(set(templates)) == len(templates) == len(train.kind.layouts)
        assert not any(layout.held_back for layout in train.layouts)
        number.update(train=len(train.layouts), validation=len(validation.layouts))
    assert number["train"] >= 100
    assert number["validation"] >= 30


@pytest.mark.parametrize("name", KINDS)
def test_answers_are_right_by_construction(name: str) -> None:
    kinds: Counter[str] = Counter()
    free = {label for labels in load_kind(name).labels.values() if labels.free for label in labels.labels}
    for split in ("train", "validation"):
        for example in _examples(MadeSource(name, split)):
            labels = [choice.label for choice in example.choices]
            assert example.question.strip()
            assert "{" not in example.question.replace(example.context, "")
            if not example.answers:
                kinds["refused"] += 1
                assert example.answer_start is None
                continue
            answer = example.answers[0]
            if labels:
                kinds["choices"] += 1
                assert set(example.answers) <= set(labels)
            elif example.answer_start is not None:
                kinds["quoted"] += 1
                assert example.context.startswith(answer, example.answer_start)
            elif answer.lower() in _YES_NO:
                kinds["yes or no"] += 1
            elif answer in example.question:
                kinds["in the question"] += 1
            elif answer in free:
                kinds["label"] += 1
            else:
                kinds["list"] += 1
                assert all(part in example.context for part in re.split(", ", answer)), example
    assert {"refused", "choices", "quoted", "yes or no", "in the question"} <= set(kinds)
    assert kinds["refused"] < 0.5 * sum(kinds.values())


def _follows(name: str, text: str) -> list[str]:
    found = re.findall(rf"^[^\w\n]*{re.escape(name)}\"?[ .]*[:=][ \t]*(.*)$", text, re.IGNORECASE | re.MULTILINE)
    return [value.strip() for value in found]


@pytest.mark.parametrize("name", KINDS)
def test_what_is_refused_is_not_in_the_text(name: str) -> None:
    refused = 0
    for layout, document in _documents(name):
        row = document.row
        for key, field in row.scheme.items():
            if key in row.mentions or key.startswith("any "):
                continue
            refused += 1
            assert not field.only_filled
            for called in (field.name, *field.synonyms):
                behind = _follows(called, row.text)
                assert set(value.casefold() for value in behind) <= _BLANK, (layout.name, key, called, behind)
    assert refused > 100


def test_a_type_that_is_refused_has_no_value_in_the_text() -> None:
    patterns = {
        "email": r"\S@\S",
        "url": r"https?://|www\.",
        "ip": r"\d+\.\d+\.\d+\.\d+",
        "percent": r"\d ?(%|percent)",
    }
    refused: Counter[str] = Counter()
    for name in KINDS:
        for layout, document in _documents(name):
            for kind, pattern in patterns.items():
                if f"any {kind}" in document.row.scheme and f"any {kind}" not in document.row.mentions:
                    refused[kind] += 1
                    assert not re.search(pattern, document.row.text), (name, layout.name, kind)
    assert set(refused) == set(patterns)


def test_every_label_can_be_right() -> None:
    for name in KINDS:
        kind = load_kind(name)
        found: dict[str, set[str]] = {}
        for _, document in _documents(name, 40):
            for labels, label in document.labels.items():
                found.setdefault(labels, set()).add(label)
        for labels in set(kind.labels) - set(shared().labels):
            assert found[labels] == set(kind.labels[labels].labels), (name, labels)


def test_values_do_not_depend_on_the_process() -> None:
    code = "from mqan_data.synthetic.values import Values; print([Values(s).draw('city') for s in range(200)])"
    printed = {
        subprocess.check_output([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    }
    assert len(printed) == 1


def test_without_symbols_no_amount_or_phone_number_begins_or_ends_with_one() -> None:
    for seed in range(300):
        values = Values(seed, symbols=False)
        for kind in ("money", "price", "budget", "phone"):
            assert not re.search(r"^[+$€£₹]|[€£₹]$", values.draw(kind))


class _Facts:
    def __init__(self, rows: int, seed: int) -> None:
        self.random, self._rows = Values(seed).random, rows

    def value(self, key: str, row: int | None) -> str:
        return key.upper() if row is None else f"{key}{row}"

    def phrase(self, labels: str) -> str:
        return f"<<phrase||phrase>> of {{{{{labels}}}}}"

    def number_of_rows(self, name: str) -> int:
        return self._rows


def _written(template: str, seed: int = 0, rows: int = 2) -> str:
    text, places = write(template, _Facts(rows, seed))  # type: ignore[arg-type]
    assert all(text.startswith(place.value, place.start) for place in places)
    return text


def test_rows_and_optional_lines_take_their_line_breaks_along() -> None:
    assert _written("a\n{{#r}}\n{{r.x}};\n{{/r}}\nb") == "a\nr.x0;\nr.x1;\nb"
    assert _written("a {{#r}}{{r.x}}{{;}}, {{/r}}.\nb", rows=3) == "a r.x0, r.x1, r.x2.\nb"
    assert _written("{{#r}}{{r.x}} {{/r}}\nb") == "r.x0 r.x1 \nb"
    assert {_written("a\n  [[{{x}}]]\nb", seed) for seed in range(20)} == {"a\n  X\nb", "a\nb"}
    assert {_written("a [[{{x}}]]\nb", seed) for seed in range(20)} == {"a X\nb", "a \nb"}
    assert {_written("a[[ [[b]]<<c||d>>]]", seed) for seed in range(60)} == {"a", "a bc", "a bd", "a c", "a d"}
    assert {_written("<<a||b {{x}}||>>\n{{=m}}", seed) for seed in range(40)} == {
        "a\nphrase of M",
        "b X\nphrase of M",
        "phrase of M",
    }


@pytest.mark.parametrize("template", ["[[a", "a]]", "{{/r}}", "{{#r}}a", "<<a||[[b>>"])
def test_brackets_must_fit(template: str) -> None:
    with pytest.raises(ValueError, match="opens or closes nothing"):
        check_template(template)


def test_a_file_that_names_what_is_not_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqan_data.synthetic.kind.KINDS", tmp_path)
    (tmp_path / "broken_a.yaml").write_text("layouts: [{name: x, text: '{{nothing}}'}]")
    (tmp_path / "broken_b.yaml").write_text("layouts: [{name: x, text: 'a', labels: {document: poem}}]")
    (tmp_path / "broken_c.yaml").write_text("layouts: [{name: x, text: 'a'}]")
    with pytest.raises(ValueError, match="layout x: there is no field 'nothing'"):
        load_kind("broken_a")
    with pytest.raises(ValueError, match="no label 'poem'"):
        load_kind("broken_b")
    with pytest.raises(ValueError, match="no layout for validation"):
        MadeSource("broken_c", "validation")
