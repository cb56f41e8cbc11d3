"""The lines that a server prints when it is ready: three to try it with, as they can be pasted."""

import json
import shlex
import shutil
import sys
from pathlib import Path

from mqan_serving.settings import Settings, address

_TEXT, _QUESTION = "The tower is 330 m tall.", "How tall is the tower?"
_ASK = "mqan"  # the command


def announce(settings: Settings, what: str) -> None:
    """Print that a server is ready with ``what`` (the model, and what runs it), and lines to ask it with."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104  asked from here
    rest, rpc = address(host, settings.http_port), address(host, settings.grpc_port)
    body = json.dumps({"context": _TEXT, "question": _QUESTION})
    key = ' -H "authorization: Bearer $MQAN_API_KEY"' if settings.api_key_file else ""
    url, sent = shlex.quote(f"http://{rest}/v1/answer"), shlex.quote(body)
    lines = [
        f"mqan is ready: {what}. REST and a page on {rest}, gRPC on {rpc}. Try:",
        f"  http://{rest}/",
        f"  curl {url} -H 'content-type: application/json'{key} -d {sent}",
        f"  {_command()} ask {shlex.quote(_QUESTION)} --text {shlex.quote(_TEXT)} --server {shlex.quote(f'grpc://{rpc}')}",
    ]
    print("\n".join(lines), file=sys.stderr, flush=True)


def _command() -> str:
    installed = Path(sys.executable).parent / _ASK
    found = shutil.which(_ASK)
    if found is not None and (not installed.exists() or installed.samefile(found)):
        return _ASK
    if not installed.exists():
        return f"{shlex.quote(sys.executable)} -m mqan_cli.main"
    here = Path.cwd()
    return shlex.quote(str(installed.relative_to(here) if installed.is_relative_to(here) else installed))
