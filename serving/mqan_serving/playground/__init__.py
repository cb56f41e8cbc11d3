"""The playground: one static page that asks the server it comes from and shows where each word came from."""

import base64
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

_PAGE = Path(__file__).with_name("index.html")


@dataclass(frozen=True, slots=True)
class Page:
    """A page and the policy it is served under."""

    html: str
    content_security_policy: str


def load_playground() -> Page:
    """Read the page; its policy allows exactly its own script and style, and requests to its own server."""
    html = _PAGE.read_text(encoding="utf-8")
    script, style = (_hash_of(html, tag) for tag in ("script", "style"))
    policy = (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Page(html, policy)


def _hash_of(html: str, tag: str) -> str:
    content = re.search(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
    if content is None:
        raise ValueError(f"the playground has no <{tag}>")
    digest = hashlib.sha256(content.group(1).encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
