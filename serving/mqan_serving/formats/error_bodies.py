"""Errors on the paths whose formats are others': by the path, since a request can be refused unread."""

from collections.abc import Callable
from typing import Any

from mqan_serving.contract.errors import Failure

_TYPES_OF_SYSTEMONE = {"unauthenticated": "authentication_error", "unknown_model": "api_usage_error"}
_INFERENCE = "/v2"  # and all below it: the Open Inference Protocol, which has names of models in its paths
_TYPES_OF_OPENAI = {401: "authentication_error", 429: "rate_limit_error"}


def body_of(path: str, failure: Failure) -> tuple[int, dict[str, Any]] | None:
    """Return status and body of an error in the format of a path; None where that is this server's own."""
    shape = _inference if path == _INFERENCE or path.startswith(f"{_INFERENCE}/") else _SHAPES.get(path)
    return None if shape is None else shape(failure)


def _systemone(failure: Failure) -> tuple[int, dict[str, Any]]:
    message = f"{failure.message} {failure.hint}"
    if failure.kind.http in (400, 422):
        problem = {"loc": ["body", *failure.place], "msg": message, "type": failure.code}
        return 422, {"detail": [problem]}
    kind = _TYPES_OF_SYSTEMONE.get(failure.code, failure.code)
    status = 400 if failure.code == "unknown_model" else failure.kind.http
    return status, {"detail": {"error_type": kind, "message": message}}


def _openai(failure: Failure) -> tuple[int, dict[str, Any]]:
    status = 400 if failure.kind.http == 422 else failure.kind.http
    kind = _TYPES_OF_OPENAI.get(status, "server_error" if status >= 500 else "invalid_request_error")
    param = ".".join(failure.place) or None
    message = f"{failure.message} {failure.hint}"
    return status, {"error": {"message": message, "type": kind, "param": param, "code": failure.code}}


def _hugging_face(failure: Failure) -> tuple[int, dict[str, Any]]:
    where = ".".join(failure.place)
    message = failure.message if where in failure.message else f"{where}: {failure.message}"
    return failure.kind.http, {"error": f"{message} {failure.hint}", "error_type": failure.code}


def _inference(failure: Failure) -> tuple[int, dict[str, Any]]:
    return failure.kind.http, {"error": f"{failure.message} {failure.hint}", "x_code": failure.code}


_SHAPES: dict[str, Callable[[Failure], tuple[int, dict[str, Any]]]] = {
    "/v1/systemone": _systemone,
    "/v1/decisions": _openai,
    "/api/alpha/decisions": _openai,
    "/v1/models": _openai,
    "/v1/hf/question-answering": _hugging_face,
    "/v1/hf/zero-shot-classification": _hugging_face,
}
