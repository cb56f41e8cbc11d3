"""Every setting of a server, with its default and the reason for it.

Each is an environment variable with the prefix ``MQAN_`` (``MQAN_HTTP_PORT=8080``), a key of the file of ``--config``
(``http_port = 8080``) and an argument of ``deploy/serve.yaml``, whose own fields take the place of address, ports and
reflection. An empty variable is one that is not set, as ``${NAME:-}`` writes it.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from mqan_core.manifest import MANIFEST
from mqan_serving.contract.errors import SettingsError
from mqan_serving.default_bundle import default_bundle

_PREFIX = "MQAN_"
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}  # browsers leave out the port that the scheme implies
_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_FORMS = {
    "allowed_hosts": (_HOST.fullmatch, "no name of a host; give names such as answers.example, without ports"),
    "cors_origins": (
        _ORIGIN.fullmatch,
        "no origin; give scheme, host and port if any, such as https://app.example, without a path or a slash at the "
        "end, or * alone",
    ),
}
_LINK = r"^[^=]+=https?://\S+$"
_NEAR = 0.85  # of difflib: a letter or a word more or less, and none of the command line's own or of a cluster's
_KEY_FILE = f"{_PREFIX}API_KEY_FILE"
_NO_NAME = "is empty, which would open the server to everybody; name the file of keys, or unset it to mean that"
_DEFAULT_BUNDLE = default_bundle()
_MAX_BATCH_SIZE_ON_CPU = 4  # larger ones are padded more and hold more memory
_MAX_BATCH_SIZE_ON_GPU = 32

Port = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
Number = Annotated[int, Field(ge=1, le=100_000)]
Names = Annotated[tuple[str, ...], NoDecode]  # separated by commas


class Settings(BaseSettings):
    """Settings of a server."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, env_ignore_empty=True, extra="forbid", frozen=True)

    # What is served.
    bundle: Path | None = None
    """Folder of the model. Unset: the one in serving/bundles, so that a fresh clone answers."""
    bundles: str | None = None
    """Several models: name=folder with commas between, or a folder of bundles, which is watched: each folder in it is a
    model by its name. Unset: the bundle alone."""
    stable: str | None = None
    """Name of the model for requests that name none. Unset: the first of the bundles."""
    canary: str | None = None
    """Name of a model that gets a share of these requests."""
    canary_share: float = Field(0.0, ge=0, le=1)
    """That share, 0 to 1, of callers: by the header x-mqan-caller, else by API key."""
    models_memory: int | None = Field(None, ge=1)
    """MiB that a plain server may take, counted as 112, and for each open model 64 and twice its files. Above, the one
    used longest ago leaves. Unset: all that were asked for stay."""
    provider: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the model runs. auto: a GPU if there is one that works, else the CPU."""
    precision: Literal["auto", "float32", "int8"] = "auto"
    """Precision of the model. auto: 8-bit on a CPU, where it is faster; float32 on a GPU."""
    model_aliases: Names = ("mqan", "jev-*", "typesafe/jev-*", "~typesafe/jev-*")
    """Names, separated by commas, by which decision APIs may ask for the model beside its own; * stands for any
    characters. By default those that TypeSafe and OpenRouter tell their users to pin."""
    page_links: Annotated[tuple[Annotated[str, Field(pattern=_LINK)], ...], NoDecode] = ()
    """Links that the web page shows, separated by commas, such as Source=https://code.example/mqan."""
    adapters: Path | None = None
    """Folder of adapters, made by `mqan adapt`, that questions may name. Its files are read again when they change.
    Unset: none."""
    makes_adapters: bool = False
    """Whether POST /v1/adapters makes adapters of rows, also for the web page: seconds of a core's time."""
    num_threads: int = Field(1, ge=1, le=256)
    """Threads that answer on a CPU, each with its own batch: one for each spare core."""

    # Where.
    host: str = Field("127.0.0.1", min_length=1)
    """Address to listen on. Loopback by default: opening a server to a network should be deliberate."""
    http_port: Port = 8000
    """Port of REST; Ray Serve's usual one."""
    grpc_port: Port = 9000
    """Port of gRPC; Ray Serve's usual one."""

    # Who may ask.
    api_key_file: Path | None = None
    """File of API keys, made by `mqan key`. Unset: everybody who can reach the server may use it."""

    admin_key_file: Path | None = None
    """File of keys for changing the models (`mqan models`). Unset: that cannot be done over HTTP."""
    allowed_hosts: Names = ()
    """Host names, separated by commas, that HTTP requests may use; IP addresses and localhost always may. Unset: all
    names. Prevents DNS rebinding, where a web page makes its own name resolve to this server."""
    cors_origins: Names = ()
    """Origins, separated by commas, whose web pages may call the server from browsers (CORS), such as
    https://app.example; * alone: all. Unset: only the server's own page."""
    max_connections: int = Field(1000, ge=8, le=100_000)
    """Connections per port; above it, the one idle for longest is closed."""

    # Limits of a request. More is refused, never truncated.
    max_request_bytes: int = Field(1024 * 1024, ge=1024, le=64 * 1024 * 1024)
    """Bytes of a request; about 60 contexts of 4,000 tokens."""
    max_metadata_bytes: int = Field(8192, ge=1024, le=8192)
    """Bytes of HTTP headers or gRPC metadata, plus 32 for each entry: gRPC's default, for both."""
    max_context_tokens: Number = 4000
    """Tokens of a context: more than ten times the longest in training."""
    max_question_tokens: Number = 256
    """Tokens of a question: the longest in training have under 100."""
    max_word_length: int = Field(1000, ge=10)
    """Characters of one token. Copied tokens are sent back, so this limits the response."""
    max_answer_tokens: int = Field(100, ge=1, le=10_000)
    """Tokens of an answer: twice the longest in training; the default model allows up to 127."""

    # How requests share the engine.
    max_batch_size: int | None = Field(None, ge=1, le=4096)
    """Requests encoded together. Unset: 4 on a CPU, where more only costs memory and latency; else 32."""
    max_batch_tokens: int = Field(8192, ge=1)
    """Requests times longest input of a batch: limits memory and the wait for a batch."""
    max_running_tokens: int = Field(16384, ge=1)
    """The same for all requests being answered: limits their memory."""
    max_queued_requests: Number = 256
    """Requests that may wait; more are refused."""
    request_timeout_s: Seconds = 30.0
    """Seconds until a request times out: far longer than a full queue of short texts."""
    unready_after_s: Seconds = 20.0
    """Age in seconds of the oldest question above which the server reports 'not ready'. A full queue of short texts
    takes far less, so the machine is then too slow. One round of the engine, or one text's reading, that takes as long
    is also logged."""

    # How a server stops.
    drain_delay_s: float = Field(1.0, ge=0, le=600)
    """Seconds of 'not ready' before stopping: the probe period of a load balancer."""
    drain_timeout_s: Seconds = 30.0
    """Seconds for requests in progress to finish: fewer than request_timeout_s may cut some off."""

    # Ray Serve only.
    num_replicas: int = Field(1, ge=1, le=1000)
    """Processes that answer, each with its own copy of the model."""
    num_cpus: float = Field(1.0, gt=0)
    """Cores that Ray reserves for a replica; its engine uses one."""
    num_gpus: float = Field(0.0, ge=0)
    """GPUs that Ray reserves for a replica; 0: it sees none."""

    # How it is observed.
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severity of log lines. info: one line per request, without its text."""
    metrics_port: int | None = Field(None, ge=1, le=65535)
    """Port where each machine reports its own metrics, for clusters. Unset: only /metrics does."""
    metrics_need_key: bool = False
    """Whether /metrics requires an API key; metrics show how much is asked, never what."""
    reflection: bool = True
    """Whether gRPC tools may list the services; the contract is public."""

    @field_validator("api_key_file", mode="before")
    @classmethod
    def _refuse_no_name(cls, given: Any) -> Any:
        if given == "":
            raise ValueError(_NO_NAME)
        return given

    @field_validator("model_aliases", "page_links", mode="before")
    @classmethod
    def _split(cls, given: Any) -> Any:
        names = [name.strip() for name in given.split(",")] if isinstance(given, str) else given
        if isinstance(names, list | tuple) and not all(names):
            raise ValueError("one is empty; give names with commas between them")
        return names

    @field_validator("allowed_hosts", "cors_origins", mode="before")
    @classmethod
    def _read_names(cls, given: Any, info: ValidationInfo) -> Any:
        names = given
        if isinstance(given, str):
            names = [name.strip().lower() for name in given.split(",")] if given.strip() else []
        fits, what = _FORMS[info.field_name or ""]
        if not isinstance(names, list | tuple) or (info.field_name == "cors_origins" and tuple(names) == ("*",)):
            return names
        for name in names:
            if not isinstance(name, str) or not fits(name):
                raise ValueError(f"{name!r} is {what}")
        return [name.removesuffix(_DEFAULT_PORTS.get(name.partition("://")[0], "")) for name in names]

    @model_validator(mode="after")
    def _check_together(self) -> "Settings":
        longest = self.max_context_tokens + self.max_question_tokens
        if self.max_batch_tokens < longest:
            raise ValueError(
                f"max_batch_tokens is {self.max_batch_tokens}, but one request may have {longest} tokens "
                "(max_context_tokens + max_question_tokens); raise the first or lower the others"
            )
        if (self.provider, self.precision) == ("cuda", "int8"):
            raise ValueError("precision int8 is for the CPU; set precision to auto, or provider to cpu")
        if self.bundle is not None and self.bundles is not None:
            raise ValueError("bundle and bundles are both set; set one of them")
        if self.metrics_need_key and self.api_key_file is None:
            raise ValueError("metrics_need_key asks for an API key, but api_key_file names no file of them")
        names: dict[int, str] = {}
        for name, port in self.ports.items():
            if port in names:
                raise ValueError(f"{names[port]} and {name} are both {port}; choose two ports")
            names[port] = name
        return self

    @property
    def ports(self) -> dict[str, int]:
        names = ("http_port", "grpc_port", "metrics_port")
        return {name: port for name in names if (port := getattr(self, name)) is not None}

    @property
    def max_message_bytes(self) -> int:
        """Bytes of a gRPC message that the transport accepts: enough above the limit to explain it to the caller."""
        return 4 * self.max_request_bytes

    @property
    def max_admitted_requests(self) -> int:
        """Bound on the requests inside the server at once, waiting or being answered, on whatever provider it runs."""
        return self.max_queued_requests + (self.max_batch_size or _MAX_BATCH_SIZE_ON_GPU)

    def threads_on(self, provider: str) -> int:
        """Threads that answer on an execution provider: a GPU has one queue of work."""
        return self.num_threads if provider == "CPUExecutionProvider" else 1

    def batch_size_on(self, provider: str) -> int:
        default = _MAX_BATCH_SIZE_ON_CPU if provider == "CPUExecutionProvider" else _MAX_BATCH_SIZE_ON_GPU
        return self.max_batch_size or default


def load_settings(config: Path | None = None, /, **given: Any) -> Settings:
    """Read each setting from what is given, else the environment, else the file, else the defaults, or raise."""
    _check_spelling()
    if "api_key_file" not in given and any(os.environ[name] == "" for name in os.environ if name.upper() == _KEY_FILE):
        given["api_key_file"] = ""  # an empty variable is one that is not set, which needs to be meant here
    kept = {} if config is None else {n: v for n, v in _read_config(config).items() if not _variable_of(n)}
    try:
        return Settings(**kept | given)
    except ValidationError as error:
        lines = [_explain(str(e["loc"][0]) if e["loc"] else "", e["msg"]) for e in error.errors()]
        raise SettingsError("\n".join(lines)) from None


def origins(config: Path | None, given: Mapping[str, object]) -> dict[str, str]:
    """Return where each setting has its value from: an argument, a variable, the file or the default."""
    kept = {} if config is None else _read_config(config)
    return {
        name: "argument" if name in given else _variable_of(name) or (str(config) if name in kept else "default")
        for name in Settings.model_fields
    }


def _variable_of(name: str) -> str:
    wanted = f"{_PREFIX}{name}".upper()
    return next((variable for variable, value in os.environ.items() if variable.upper() == wanted and value), "")


def _read_config(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"{path} is no TOML: {error}") from None
    for name in found:
        if name not in Settings.model_fields:
            near = get_close_matches(name, Settings.model_fields, n=1)
            hint = f"; did you mean {near[0]}?" if near else "; `mqan settings` lists them"
            raise SettingsError(f"{name} in {path} is no setting{hint}")
    return {name: value for name, value in found.items() if value != "" or name == "api_key_file"}  # as for a variable


def _check_spelling() -> None:
    """Refuse variables that are nearly a setting's: others may be a cluster's own, for a service of the same name."""
    known = [f"{_PREFIX}{name}".upper() for name in Settings.model_fields]
    for name in os.environ:
        if name.startswith(_PREFIX) and name not in known:
            near = get_close_matches(name.upper(), known, n=1, cutoff=_NEAR)
            if near:
                raise SettingsError(f"{name} in the environment is no setting; did you mean {near[0]}?")


def find_bundle(settings: Settings) -> Path:
    folder = _DEFAULT_BUNDLE if settings.bundle is None else settings.bundle
    if not (folder / MANIFEST).is_file():
        not_set = "not set, and the default one, " if settings.bundle is None else ""
        raise SettingsError(
            _explain("bundle", f"{not_set}{folder} has no {MANIFEST}; give the folder of an exported bundle")
        )
    return folder.resolve()


def _explain(name: str, message: str) -> str:
    message = message.removeprefix("Value error, ")
    return f"setting {name} ({_PREFIX}{name.upper()}): {message}" if name else f"settings: {message}"


def address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
