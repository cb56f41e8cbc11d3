"""What the files of ``kinds/`` and ``shared.yaml`` say: fields, rows, label sets and layouts of a kind of text."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from mqan_data.formats.dataset_file import Field, Form, Label, LabelsPart
from mqan_data.settings import parse, read_yaml
from mqan_data.synthetic.template import Nodes, compile_template, slots_of
from mqan_data.synthetic.values import Values

KINDS = Path(__file__).resolve().parent / "kinds"
_SHARED = Path(__file__).resolve().parent / "shared.yaml"


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field: how it is filled, and how it is asked for.

    Attributes:
        value: kind of value (``Values.make_*``); or else
        patterns: codes to fill in, or
        one_of: the values themselves, or
        words: name of a list of ``shared.yaml``.
        of: field that the value is made from.
        unless: fields that also answer the question, so that this one is not asked for in vain where they stand.
        name, plural, synonyms, description, type, questions, only_filled: as in ``Field``.
    """

    value: str = ""
    patterns: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    words: str = ""
    of: str = ""
    unless: tuple[str, ...] = ()
    name: str = ""
    plural: str = ""
    synonyms: tuple[str, ...] = ()
    description: str = ""
    type: str = ""
    questions: tuple[str, ...] = ()
    only_filled: bool = False

    def asked(self, key: str) -> Field:
        """Return what it is called when it is asked for."""
        name = self.name or key.replace("_", " ")
        return Field(
            name, self.plural, self.synonyms, self.description, self.type, self.questions, (), self.only_filled
        )

    def draw(self, values: Values, of: str) -> str:
        """Return a value."""
        if self.patterns:
            return values.pattern(values.random.choice(self.patterns))
        if self.one_of or self.words:
            return values.random.choice(self.one_of or shared().words[self.words])
        return values.draw(self.value, of)


@dataclass(frozen=True, slots=True)
class RowsSpec:
    """Rows of a table or list.

    Attributes:
        least, most: how many rows.
        name: the column whose value says which row is meant.
        columns: by name; wordings may name the row as {row}.
    """

    least: int
    most: int
    name: str
    columns: Mapping[str, FieldSpec]


@dataclass(frozen=True, slots=True)
class LabelSet:
    """Labels of which a text has one.

    Attributes:
        kind, kinds, labels, ordered, free: as in ``LabelsPart``.
        questions, options, yes_no, negated: as in ``Form``.
        phrases: templates by label, from which ``{{=name}}`` draws.
    """

    kind: str
    labels: Mapping[str, Label]
    questions: tuple[str, ...]
    kinds: str = ""
    options: tuple[str, ...] = ()
    yes_no: tuple[str, ...] = ()
    negated: tuple[str, ...] = ()
    ordered: bool = False
    free: bool = False
    phrases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def part(self) -> LabelsPart:
        """Return it as part of a dataset, as ``ask_labels`` takes it."""
        form = Form("{text}", self.questions, self.options, self.yes_no, self.negated)
        return LabelsPart(
            shape="labels",
            format="made",
            files={},
            kind=self.kind,
            kinds=self.kinds,
            label="",
            labels=self.labels,
            forms=(form,),
            ordered=self.ordered,
            free=self.free,
        )


@dataclass(frozen=True, slots=True)
class TypeSpec:
    """What values of one type are called where it does not matter which.

    Attributes:
        name, plural, synonyms, questions: as in ``Field``.
        within: types whose values hold one of this type, so that it is not asked for where they stand.
        hinted_by: types whose values hint at one of this type, so that it is not asked for in vain where they stand.
        only_filled: never asked for in vain, because words of templates and phrases may say such a thing.
    """

    name: str
    plural: str = ""
    synonyms: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    hinted_by: tuple[str, ...] = ()
    only_filled: bool = False


@dataclass(frozen=True, slots=True)
class Shared:
    """What all kinds share.

    Attributes:
        words: lists to draw values from.
        types: by name.
        fields: by key.
        labels: sets, by name.
    """

    words: Mapping[str, tuple[str, ...]]
    types: Mapping[str, TypeSpec]
    fields: Mapping[str, FieldSpec]
    labels: Mapping[str, LabelSet]


@dataclass(frozen=True, slots=True)
class LayoutSpec:
    """One layout, as it stands in the file.

    Attributes:
        name: unique within the kind.
        text: template.
        held_back: whether it is for validation only.
        symbols: whether values may begin or end with a symbol (``Values``).
        labels: the right label of sets, by name of the set.
    """

    name: str
    text: str
    held_back: bool = False
    symbols: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _File:
    layouts: tuple[LayoutSpec, ...]
    fields: Mapping[str, FieldSpec] = field(default_factory=dict)
    rows: Mapping[str, RowsSpec] = field(default_factory=dict)
    labels: Mapping[str, LabelSet] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Layout:
    """One layout, read.

    Attributes:
        spec: as it stands in the file.
        nodes: the template.
        keys: of the fields and columns that it can write.
    """

    spec: LayoutSpec
    nodes: Nodes
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of text.

    Attributes:
        name: of the file.
        fields: own and shared, by key, as far as a layout names them.
        rows, labels: by name; label sets own and shared.
        phrases: of the label sets, read: by set and label.
        layouts: all.
    """

    name: str
    fields: Mapping[str, FieldSpec]
    rows: Mapping[str, RowsSpec]
    labels: Mapping[str, LabelSet]
    phrases: Mapping[str, Mapping[str, tuple[Nodes, ...]]]
    layouts: tuple[Layout, ...]


def kind_names() -> list[str]:
    """Return the names of all kinds, in order."""
    return sorted(path.stem for path in KINDS.glob("*.yaml"))


@cache
def shared() -> Shared:
    """Read what all kinds share."""
    return parse(Shared, read_yaml(_SHARED), str(_SHARED))


@cache
def load_kind(name: str) -> Kind:
    """Read a kind of text.

    Raises:
        ValueError: the file is malformed, or a template names a field, rows or labels that are not there.
    """
    path = KINDS / f"{name}.yaml"
    content = parse(_File, read_yaml(path), str(path))
    fields = {**shared().fields, **content.fields}
    labels = {**shared().labels, **content.labels}
    phrases = {
        key: {label: tuple(map(compile_template, some)) for label, some in labels[key].phrases.items()}
        for key in labels
        if labels[key].phrases
    }
    layouts = []
    for spec in content.layouts:
        where = f"{path}: layout {spec.name}"
        nodes = compile_template(spec.text.strip("\n"))
        keys = slots_of(nodes, {key: [p for some in by.values() for p in some] for key, by in phrases.items()})
        _check(keys, spec, fields, content, labels, where)
        layouts.append(Layout(spec, nodes, frozenset(keys)))
    named = set().union(*(layout.keys for layout in layouts))
    own = {key: spec for key, spec in fields.items() if key in named}
    return Kind(name, {**_origins(own, fields), **own}, content.rows, labels, phrases, tuple(layouts))


def _origins(own: Mapping[str, FieldSpec], fields: Mapping[str, FieldSpec]) -> dict[str, FieldSpec]:
    """Return fields that values are made from although no layout writes them; they are never asked for."""
    missing = {spec.of for spec in own.values() if spec.of} - set(own)
    return {key: replace(fields[key], only_filled=True) for key in missing}


def _check(
    keys: set[str],
    spec: LayoutSpec,
    fields: Mapping[str, FieldSpec],
    content: _File,
    labels: Mapping[str, LabelSet],
    where: str,
) -> None:
    for key in sorted(keys):
        rows, _, column = key.partition(".")
        known = column in content.rows[rows].columns if column and rows in content.rows else key in fields
        if not known:
            raise ValueError(f"{where}: there is no field {key!r}; define it under `fields` or `rows`.")
    for name, label in spec.labels.items():
        if name not in labels or label not in labels[name].labels:
            raise ValueError(f"{where}: there is no label {label!r} in a set {name!r}; define it under `labels`.")
