"""API keys: a file of names and hashes, which is read again when it changes.

Each line has the name of a key and its SHA-256 in hexadecimal; ``#`` begins a comment. A key has 256 random bits, so
there is nothing to guess that a slower hash would protect. ``mqan key NAME`` makes one; deleting its line revokes it.
"""

import hashlib
import hmac
import os
import re
import secrets
from pathlib import Path

from mqan_serving.errors import ServingError, SettingsError
from mqan_serving.telemetry import log

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HASH = re.compile(r"[0-9a-f]{64}")
_KEY_BYTES = 32

_State = tuple[int, int, int, int]


class ApiKeys:
    """Knows the callers of a server by their keys.

    A file that cannot be read any more, or not understood, is logged, and the keys read before stay valid: a slip of an
    editor shall not lock all callers out.

    Args:
        file: the keys; None lets everybody in.

    Raises:
        SettingsError: the file cannot be read or understood.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._hashes: dict[str, bytes] = {}
        self._state: _State | None = None
        if file is not None:
            self._state = _state_of(file)
            self._hashes = read_keys(file)

    def authenticate(self, authorization: str | None) -> str | None:
        """Return the name of the caller's key, or None where no keys are asked for.

        Args:
            authorization: the header or metadata of this name: ``Bearer KEY``.

        Raises:
            ServingError: ``unauthenticated``: the key is missing or unknown.
        """
        if self._file is None:
            return None
        self._reload(self._file)
        scheme, _, key = (authorization or "").partition(" ")
        given = hashlib.sha256(key.strip().encode("utf-8", "surrogatepass")).digest()
        name = None
        for candidate, expected in self._hashes.items():  # all of them: the time it takes tells nothing
            if hmac.compare_digest(given, expected):
                name = candidate
        if not authorization:
            raise ServingError("unauthenticated", "The request has no API key.")
        if scheme.lower() != "bearer" or name is None:
            raise ServingError("unauthenticated", "The API key is not one of this server's.")
        return name

    def _reload(self, file: Path) -> None:
        state = _state_of(file)
        if state == self._state:
            return
        self._state = state
        try:
            self._hashes = read_keys(file)
        except SettingsError as error:
            log("keys not reloaded", level="error", reason=str(error))
        else:
            log("keys reloaded", keys=len(self._hashes))


def read_keys(file: Path) -> dict[str, bytes]:
    """Return the hash of each key by its name.

    Raises:
        SettingsError: the file cannot be read, or a line of it is not a name and a hash.
    """
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise SettingsError(f"setting api_key_file (MQAN_API_KEY_FILE): cannot read {file}: {reason}") from None
    hashes: dict[str, bytes] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or not _NAME.fullmatch(words[0]) or not _HASH.fullmatch(words[1]) or words[0] in hashes:
            raise SettingsError(
                f"setting api_key_file (MQAN_API_KEY_FILE): {file}, line {number}: expected a name that is not used "
                "twice and the SHA-256 of its key; `mqan key NAME` writes such a line"
            )
        hashes[words[0]] = bytes.fromhex(words[1])
    return hashes


def add_key(file: Path, name: str) -> str:
    """Make a key, append its hash to a file, which is created where there is none, and return it.

    Raises:
        SettingsError: the file cannot be read or understood.
        ValueError: the name has other characters than letters, digits and ``._-``, or has a key already.
        OSError: the file cannot be written.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name: use 1 to 64 letters, digits and ._-")
    if file.exists() and name in read_keys(file):
        raise ValueError(f"{file} has a key named {name} already: delete its line first, or choose another name")
    key = f"mqan_{secrets.token_urlsafe(_KEY_BYTES)}"
    line = f"{name} {hashlib.sha256(key.encode()).hexdigest()}\n"
    separator = "\n" if file.exists() and file.read_bytes()[-1:] not in (b"", b"\n") else ""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "w", encoding="utf-8") as opened:
        opened.write(separator + line)
    return key


def _state_of(file: Path) -> _State | None:
    try:
        status = file.stat()
    except OSError:
        return None
    # the last, for a file that could not be read may be by a change of its rights alone
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns
