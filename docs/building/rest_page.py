"""The REST reference: what a server shows at ``/docs``, with headings that the site can list."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Final

from mqan_serving.pages import render_reference

_MAIN: Final = re.compile(r"<main>\n(.*)\n</main>", re.DOTALL)
_HEADING: Final = re.compile(r'<h2(?: id="(\w+)")?>(.*?)</h2>')
_OF_A_SERVER: Final = re.compile(r'<p><a href="\./">.*?</p>\n')
_PRE: Final = re.compile(r'<pre tabindex="0">(.*?)</pre>', re.DOTALL)


def rest_page(document: Path) -> str:
    """Return the page as Markdown.

    Args:
        document: file of the OpenAPI document.
    """
    html = render_reference(json.loads(document.read_text())).html
    main = _MAIN.search(html)
    if main is None:
        raise ValueError("mqan_serving.pages renders no <main>: see docs/building/rest_page.py")
    body = re.sub(r"<h1>.*?</h1>", "# REST reference", _OF_A_SERVER.sub("", main[1]))
    body = _PRE.sub(lambda code: f"\n```\n{unescape(code[1])}\n```\n", body)
    body = re.sub(r"<h3>(.*?)</h3>", r"\n**\1**\n", body)
    return _HEADING.sub(_heading, body)


def _heading(match: re.Match[str]) -> str:
    anchor = f" {{ #{match[1]} }}" if match[1] else ""
    return f"\n## {re.sub('<.*?>', '', match[2])}{anchor}\n"
