"""The Python reference, made of the signatures, docstrings and fields of the client's public names."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import mqan_client
from mqan_client.documents import Asked, AskedRecord

_HEAD: Final = """# Python reference

The public names of the package `mqan_client`. [Python client](../../clients/python/README.md) has examples."""
_SECTIONS: Final = {
    "Clients": ("client", "async_client", "transport"),
    "What is asked": ("documents",),
    "Columns of pandas": ("tables",),
    "What comes back": ("results",),
    "Errors": ("errors",),
}
_OPTIONS: Final = (Asked, AskedRecord)  # that the methods take as keywords
_FIELD: Final = re.compile(r"^    (\w+)(?:: (.+?))?(?: = (.+?))?(?:  # (.+))?$", re.MULTILINE)
_METADATA: Final = re.compile(r"field\((?:default=(\w+), )?metadata=.*\)")
_IN_FULL: Final = re.compile(r"\*?<class '|'>?|~|(?<![\w/.])(?:[a-z]\w*\.)+(?=\w)")  # what `inspect` adds to names
_SECTION: Final = re.compile(r"^(Args|Returns|Raises):\n((?: .*\n?|\n)+)", re.MULTILINE)
_ENTRY: Final = re.compile(r"^    (\w+): ", re.MULTILINE)
_EXAMPLE: Final = re.compile(r"((?:^(?:>>>|\.\.\.) .*\n?)+)", re.MULTILINE)
_NAME: Final = re.compile(r"(?<!`)``([^`\n]+)``(?!`)")
_WIDTH: Final = 88


def python_page() -> str:
    """Return the page as Markdown."""
    imported = [one for one in vars(mqan_client).values() if getattr(one, "__module__", "").startswith("mqan_client.")]
    public = [*_OPTIONS, *imported]
    parts = [_HEAD]
    for title, modules in _SECTIONS.items():
        parts.append(f"## {title}")
        for module in modules:
            for one in public:
                if one.__module__ == f"mqan_client.{module}":
                    parts += _class(one) if inspect.isclass(one) else _call(one.__name__, one, "###")
    anchors = {found[1] for part in parts if (found := re.match(r"#+ .*\{ #(\S+) \}", part))}
    return _NAME.sub(lambda found: _link(found[1], anchors), "\n\n".join(parts)) + "\n"


def _class(one: type[Any]) -> Iterator[str]:
    name = one.__name__
    if "__init__" in vars(one) and not hasattr(one, "__dataclass_fields__"):
        yield from _call(name, one, "###")
    else:
        yield f"### {name} {{ #{name} }}"
        if issubclass(one, BaseException):
            yield "An error of the kinds " + ", ".join(f"``{base.__name__}``" for base in one.__bases__) + "."
        yield _text(one.__doc__ or "")
    body = re.split(r"^    (?:async )?def |^    @", inspect.getsource(one), maxsplit=1, flags=re.MULTILINE)[0]
    if rows := "".join(_row(*found) for found in _FIELD.findall(body.rpartition('"""')[2]) if found[1] or found[2]):
        yield f"| Field | Type | Default | What it is |\n|---|---|---|---|\n{rows}".rstrip()
    for method, member in vars(one).items():
        if inspect.isfunction(member) and not method.startswith("_"):
            yield from _call(f"{name}.{method}", member, "####")


def _row(name: str, kind: str, default: str, told: str) -> str:
    default = _METADATA.sub(r"\1", default)
    cells = (f"`{name}`", f"`{kind}`" if kind else "", f"`{default}`" if default else "", told[:1].upper() + told[1:])
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _call(name: str, called: Callable[..., Any], heading: str) -> Iterator[str]:
    yield f"{heading} {name} {{ #{name} }}"
    signature = inspect.signature(called)
    takes = [str(one) for one in signature.parameters.values() if one.name != "self"]
    keywords = [i for i, one in enumerate(signature.parameters.values()) if one.kind is one.KEYWORD_ONLY]
    if keywords:
        takes.insert(keywords[0] - (len(signature.parameters) - len(takes)), "*")
    returns = "" if inspect.isclass(called) else f" -> {inspect.formatannotation(signature.return_annotation)}"
    asynchronous = "async " if inspect.iscoroutinefunction(called) else ""
    line = f"{asynchronous}{name.rpartition('.')[2]}({', '.join(takes)}){returns}"
    if len(_IN_FULL.sub("", line)) > _WIDTH:
        line = line.replace(", ".join(takes), "\n    " + ",\n    ".join(takes) + ",\n")
    yield f"```python\n{_IN_FULL.sub('', line)}\n```"
    yield _text(called.__doc__ or "")


def _text(docstring: str) -> str:
    """Return a docstring as Markdown: its sections as lists, its examples as code."""
    text = _SECTION.sub(lambda found: f"{found[1]}:\n\n{_list(found[2])}\n\n", inspect.cleandoc(docstring))
    return _EXAMPLE.sub(r"```pycon\n\1\n```\n", text).replace("\n\n```\n", "\n```\n")


def _list(entries: str) -> str:
    named = _ENTRY.sub(r"\n- ``\1``: ", entries)
    return re.sub(r"\n+(- | +)", lambda at: "\n" + ("- " if at[1] == "- " else "  "), named).strip()


def _link(name: str, anchors: set[str]) -> str:
    return f"[`{name}`](#{name})" if name in anchors else f"`{name}`"
