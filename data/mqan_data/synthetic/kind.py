"""What the files of ``kinds/`` and ``shared.yaml`` say: fields, rows, label sets and layouts of a kind of text."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path

from mqan_data.formats.dataset_file import Field, Form, Label, LabelsPart, Texts, readable
from mqan_data.settings import parse, read_yaml
from mqan_data.synthetic.template import check_template, keys_of
from mqan_data.synthetic.values import Values

KINDS = Path(__file__).resolve().parent / "kinds"
_SHARED = Path(__file__).resolve().parent / "shared.yaml"


@dataclass(frozen=True, slots=True)
class FieldSpec(Field):
    """One field: how it is filled, and how it is asked for."""

    value: str = ""  # kind of value (``Values.draw``); or else
    patterns: Texts = ()  # codes to fill in, or
    one_of: Texts = ()  # the values themselves, or
    words: str = ""  # name of a list of ``shared.yaml``
    of: str = ""  # field that the value is made from
    unless: Texts = ()  # fields that also answer the question: where they stand it is not asked for in vain

    def draw(self, values: Values, of: str) -> str:
        if self.patterns:
            return values.pattern(values.random.choice(self.patterns))
        if self.one_of or self.words:
            return values.random.choice(self.one_of or shared().words[self.words])
        return values.draw(self.value, of)


@dataclass(frozen=True, slots=True)
class TypeSpec(Field):
    """Values of one type, where it does not matter which; only filled where words of templates may say such a thing."""

    within: Texts = ()  # types whose values hold one of this type: where they stand it is not asked for
    hinted_by: Texts = ()  # types whose values hint at one of this type: where they stand it is not asked for in vain


@dataclass(frozen=True, slots=True)
class RowsSpec:
    """Rows of a table or list: how many, and the columns."""

    least: int
    most: int
    name: str  # of the column that says which row is meant
    columns: Mapping[str, FieldSpec]  # their wordings may name the row as {row}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSet(Form):
    """Labels of which a text has one, as in ``LabelsPart``, and the form in which they are asked for."""

    text: str = "{text}"
    kind: str
    kinds: str = ""
    labels: Mapping[str, Label]
    ordered: bool = False
    free: bool = False
    phrases: Mapping[str, Texts] = field(default_factory=dict)  # by label, from which ``{{=name}}`` draws

    def part(self) -> LabelsPart:
        of_labels = {name: getattr(self, name) for name in ("kind", "kinds", "labels", "ordered", "free")}
        return LabelsPart(format="made", files={}, label="", forms=(self,), **of_labels)


@dataclass(frozen=True, slots=True)
class Layout:
    name: str
    text: str  # template
    held_back: bool = False  # for validation only
    symbols: bool = True  # whether values may begin or end with a symbol (``Values``)
    labels: Mapping[str, str] = field(default_factory=dict)  # the right label of sets, by name of the set


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of text; its fields and label sets include the shared ones."""

    layouts: tuple[Layout, ...]
    fields: Mapping[str, FieldSpec] = field(default_factory=dict)
    rows: Mapping[str, RowsSpec] = field(default_factory=dict)
    labels: Mapping[str, LabelSet] = field(default_factory=dict)

    def keys(self, layout: Layout) -> set[str]:
        return keys_of(layout.text, {name: chain(*labels.phrases.values()) for name, labels in self.labels.items()})

    def __getitem__(self, key: str) -> FieldSpec:
        """Return the field of a key, or the column of "rows.column"."""
        rows, _, column = key.partition(".")
        return self.rows[rows].columns[column] if column else self.fields[key]


@dataclass(frozen=True, slots=True)
class Shared:
    """What all kinds share: lists to draw values from, types, and label sets."""

    words: Mapping[str, Texts]
    types: Mapping[str, TypeSpec]
    labels: Mapping[str, LabelSet]


def kind_names() -> list[str]:
    return sorted(path.stem for path in KINDS.glob("*.yaml"))


@cache
def shared() -> Shared:
    return parse(Shared, read_yaml(_SHARED), str(_SHARED))


@cache
def load_kind(name: str) -> Kind:
    path = KINDS / f"{name}.yaml"
    content = parse(Kind, read_yaml(path), str(path))
    kind = Kind(
        tuple(replace(layout, text=layout.text.strip("\n")) for layout in content.layouts),
        _named(content.fields),
        {key: replace(rows, columns=_named(rows.columns)) for key, rows in content.rows.items()},
        {**shared().labels, **content.labels},
    )
    for layout in kind.layouts:
        where = f"{path}: layout {layout.name}"
        try:
            _ = [kind[key] for key in sorted(kind.keys(layout))]
        except KeyError as error:
            raise ValueError(f"{where}: there is no field {error}; define it under `fields` or `rows`.") from error
        for set_name, label in layout.labels.items():
            if set_name not in kind.labels or label not in kind.labels[set_name].labels:
                message = f"{where}: there is no label {label!r} in a set {set_name!r}; define it under `labels`."
                raise ValueError(message)
    phrases = (phrase for labels in kind.labels.values() for phrase in chain(*labels.phrases.values()))
    for template in (*(layout.text for layout in kind.layouts), *phrases):
        check_template(template)
    named = set[str]().union(*map(kind.keys, kind.layouts))
    used = {key: spec for key, spec in kind.fields.items() if key in named}
    of_others = {spec.of for spec in used.values() if spec.of} - set(used)  # written by no layout and never asked for
    return replace(kind, fields={**{key: replace(kind.fields[key], only_filled=True) for key in of_others}, **used})


def _named(fields: Mapping[str, FieldSpec]) -> dict[str, FieldSpec]:
    return {key: replace(spec, name=readable(key, spec.name)) for key, spec in fields.items()}
