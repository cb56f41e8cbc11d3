"""Links of the repository's own view, turned into those of the site."""

import posixpath
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

_FENCED: Final = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_LINK: Final = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
_README: Final = "README.md"


def rewrite_links(
    markdown: str, source: str, repository: Path, pages: Mapping[str, str], copy: Callable[[str], str]
) -> str:
    """Return a page with links that work on the site.

    A link to what is a page of the site leads there, one to another file to a copy of it. What the site cannot show (a
    folder without a page) keeps its text and loses its link. Fenced code and images are left alone.

    Args:
        markdown: the page, its links relative to where it stands in the repository.
        source: that place.
        repository: root of the checkout.
        pages: the site's pages by their places in the repository.
        copy: puts a file of the repository on the site and returns its place there.

    Raises:
        ValueError: a link leads nowhere.
    """
    here = posixpath.dirname(pages[source])

    def rewrite(match: re.Match[str]) -> str:
        text, link = match.groups()
        if "://" in link or link.startswith("#"):
            return match.group()
        path, hash_sign, anchor = link.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if not (repository / target).exists():
            raise ValueError(f"{source}: the link {link} leads nowhere. Is the path relative to {source}?")
        page = pages.get(target) or pages.get(f"{target}/{_README}")
        if page is None:
            if (repository / target).is_dir() or target.endswith(".md"):
                return text
            page, hash_sign, anchor = copy(target), "", ""
        elif target not in pages or not target.endswith(".md"):
            hash_sign, anchor = "", ""  # of a file that looks otherwise on the site
        return f"[{text}]({posixpath.relpath(page, here or '.')}{hash_sign}{anchor})"

    parts = _FENCED.split(markdown)  # every other one is code
    return "".join(_LINK.sub(rewrite, part) if i % 2 == 0 else part for i, part in enumerate(parts))
