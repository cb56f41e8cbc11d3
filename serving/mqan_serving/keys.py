"""API keys: a file of names and hashes, which is read again when it changes.

Each line has the name of a key and its SHA-256 in hexadecimal; ``#`` begins a comment. A key has 256 random bits, so
there is nothing to guess that a slower hash would protect. ``mqan key NAME`` makes one; deleting its line revokes it.
``rate=5/20`` after it lets its holder ask 5 times a second, and 20 times at once after a pause; ``quota=1000`` lets it
ask 1000 times a day; both of each process.
"""

import hashlib
import hmac
import math
import os
import re
import secrets
import stat
import threading
import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep, time

from mqan_serving.contract.errors import ServingError, SettingsError
from mqan_serving.observability.logs import log

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HASH = re.compile(r"[0-9a-f]{64}")
_LIMITS = re.compile(
    r"(?:rate=(?P<per_s>[0-9]{1,6}(?:\.[0-9]{1,6})?)(?:/(?P<at_once>[1-9][0-9]{0,5}))?)?"
    r"(?:(?:^| )quota=(?P<per_day>[1-9][0-9]{0,8}))?"
)
_DAY_S = 24 * 60 * 60
_KEY_BYTES = 32
_MAX_FILE_BYTES = 1024 * 1024  # some 10,000 keys
_LOOK_PERIOD_S = 0.25
_SETTLED_S = 1.0  # for which a file stays as it is that is not being written

_State = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Key:
    """The hash of a key, and how many requests a second, at once and a day (UTC) its holder may send."""

    sha256: bytes
    per_s: float = math.inf
    at_once: int = 1
    per_day: float = math.inf


@dataclass(slots=True)
class _Use:
    """The requests that the holder of a key may send at once, when that was so, and how many were sent in a day."""

    left: float
    at: float
    day: float = 0.0
    num_sent: int = 0


class ApiKeys:
    """The keys of a file, which a thread reads again when it changes; without a file everybody may ask.

    A new key is valid at once. A key is revoked only when the file has not changed for a second: one that is rewritten
    in place is empty, then incomplete, and locks nobody out meanwhile. A file that cannot be read any more, is empty or
    is malformed, is logged, and the keys read before stay valid. Each change tells ``keep`` the names that are left.

    Raises:
        SettingsError: the file cannot be read.
    """

    def __init__(self, file: Path | None, keep: Callable[[Collection[str]], None] = lambda _: None) -> None:
        self._file = file
        self._keep = keep
        self._keys: dict[str, Key] = {}
        self._uses: dict[str, _Use] = {}
        self._state: _State | None = None
        if file is None:
            return
        self._state = _state_of(file)
        self._keys = read_keys(file)
        self._seen, self._seen_at = self._state, monotonic()
        threading.Thread(target=_watch, args=(weakref.ref(self),), name="mqan-keys", daemon=True).start()

    def authenticate(self, authorization: str | None) -> str | None:
        """Return the name of the key in ``Bearer KEY``, None without a file; an unknown one is refused."""
        if self._file is None:
            return None
        scheme, _, key = (authorization or "").partition(" ")
        given = hashlib.sha256(key.strip().encode("utf-8", "surrogatepass")).digest()
        name = None
        for candidate, expected in self._keys.items():  # all of them: the time it takes tells nothing
            if hmac.compare_digest(given, expected.sha256):
                name = candidate
        if not authorization:
            raise ServingError("unauthenticated", "The request has no API key.")
        if scheme.lower() != "bearer" or name is None:
            raise ServingError("unauthenticated", "The API key is not one of this server's.")
        return name

    def check_rate(self, name: str | None) -> None:
        """Count a request of a key's holder; refuse one that comes sooner than its rate allows, or above its quota."""
        key = self._keys.get(name or "")
        if name is None or key is None:
            return
        now, (day, second) = monotonic(), divmod(time(), _DAY_S)
        use = self._uses.setdefault(name, _Use(key.at_once, now))
        if use.day != day:
            use.day, use.num_sent = day, 0
        if use.num_sent >= key.per_day:
            message = f"This API key may ask {key.per_day} times a day, in UTC."
            raise ServingError("rate_limited", message, retry_after_s=math.ceil(_DAY_S - second))
        if key.per_s < math.inf:
            use.left, use.at = min(key.at_once, use.left + (now - use.at) * key.per_s), now
            if use.left < 1:
                message = f"This API key may ask {key.per_s:g} times a second, and {key.at_once} times at once."
                raise ServingError("rate_limited", message, retry_after_s=math.ceil((1 - use.left) / key.per_s))
            use.left -= 1
        use.num_sent += 1

    def look(self) -> None:
        """Read the file if it has changed, and take what it says once that is certain."""
        assert self._file is not None  # noqa: S101  else nobody looks
        state = _state_of(self._file)
        if state == self._state:
            self._seen = state
            return
        if state != self._seen:
            self._seen, self._seen_at = state, monotonic()
        is_settled = monotonic() - self._seen_at >= _SETTLED_S
        try:
            keys = read_keys(self._file, may_be_empty=False)
        except SettingsError as error:
            if is_settled:
                self._state = state
                log("keys not reloaded", level="error", reason=str(error))
            return
        revokes = not self._keys.items() <= keys.items()
        if _state_of(self._file) == state and (is_settled or not revokes):
            for name in self._uses.keys() - keys.keys():
                del self._uses[name]
            self._state, self._keys = state, keys
            self._keep(keys.keys())
            log("keys reloaded", keys=len(keys))


def _watch(keys: "weakref.ref[ApiKeys]") -> None:
    while True:
        sleep(_LOOK_PERIOD_S)
        if (looking := keys()) is None:
            return
        try:
            looking.look()
        except Exception as error:  # whatever it is, the keys that are known go on
            log("keys not reloaded", level="error", exc_info=error)
        del looking


def read_keys(file: Path, *, may_be_empty: bool = True) -> dict[str, Key]:
    """Return the keys by their names, or raise ``SettingsError`` where a line is not a name, a hash and limits."""
    lines = _read(file).splitlines()
    if not (lines or may_be_empty):
        raise _refuse(f"{file} is empty; to let nobody in, leave a comment in it")
    keys: dict[str, Key] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        name, (sha256, *rest) = words[0], words[1:] or [""]
        is_key = _NAME.fullmatch(name) and _HASH.fullmatch(sha256) and name not in keys
        if not is_key or (limits := _read_limits(" ".join(rest))) is None:
            expected = "a name that is not used twice, the SHA-256 of its key, and no more than rate=5/20 quota=1000"
            raise _refuse(f"{file}, line {number}: expected {expected}; `mqan key NAME` writes such a line")
        keys[name] = Key(bytes.fromhex(sha256), *limits)
    return keys


def _read_limits(text: str) -> tuple[float, int, float] | None:
    """Return how many requests a second, at once (unless it says, as many as in a second) and a day are allowed."""
    found = _LIMITS.fullmatch(text)
    if found is None or not (per_s := float(found["per_s"] or math.inf)):
        return None
    at_once = found["at_once"] or (1 if per_s == math.inf else math.ceil(per_s))
    return per_s, int(at_once), int(found["per_day"]) if found["per_day"] else math.inf


def _read(file: Path) -> str:
    try:
        # Not blocking, so that a pipe in its place is refused and not waited for. A link is followed: a mounted secret.
        with open(file, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise _refuse(f"cannot read {file}: not a file; put the keys into one")
            content = opened.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _refuse(f"cannot read {file}: {error.strerror}") from None
    if len(content) > _MAX_FILE_BYTES:
        raise _refuse(f"{file} has more than {_MAX_FILE_BYTES} bytes; remove keys from it")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise _refuse(f"cannot read {file}: not UTF-8") from None


def _refuse(why: str) -> SettingsError:
    return SettingsError(f"setting api_key_file (MQAN_API_KEY_FILE): {why}")


def add_key(file: Path, name: str, rate: str | None = None, quota: int | None = None) -> str:
    """Make a key, append its hash, rate (``5/20``) and quota to a file, which need not exist, and return it.

    Raises:
        SettingsError: the file cannot be read.
        ValueError: the name has other characters than letters, digits and ``._-``, or a key, or a limit is none.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name: use 1 to 64 letters, digits and ._-")
    if file.exists() and name in read_keys(file):
        raise ValueError(f"{file} has a key named {name} already: delete its line first, or choose another name")
    given = {"rate": rate, "quota": quota}
    limits = " ".join(f"{limit}={value}" for limit, value in given.items() if value is not None)
    if _read_limits(limits) is None:
        raise ValueError(f"{limits!r} are no limits: give requests a second and how many at once, as 5/20, or a day")
    key = f"mqan_{secrets.token_urlsafe(_KEY_BYTES)}"
    line = f"{name} {hashlib.sha256(key.encode()).hexdigest()} {limits}".rstrip() + "\n"
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
