"""Errors raised by the core.

MqanError
 +- InputError    the caller's context, question or options cannot be answered
 +- BundleError   a bundle on disk is damaged, incomplete or of an unknown version
 +- EngineFailedError   an engine has failed for good; its process is to be replaced
"""


class MqanError(Exception):
    """Base of every error this project raises on purpose."""


class InputError(MqanError, ValueError):
    """The caller's input cannot be answered.

    Attributes:
        code: stable machine-readable code, for example ``context_too_long``.
        field: the input field at fault, for example ``context``.
        hint: one sentence that says how to fix it.
    """

    def __init__(self, code: str, field: str, message: str, hint: str) -> None:
        super().__init__(f"{message} {hint}")
        self.code = code
        self.field = field
        self.message = message
        self.hint = hint


class BundleError(MqanError):
    """A bundle cannot be opened; the message says in one line which file and why."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))  # what onnx has to say is often spread over many


class EngineFailedError(MqanError):
    """An engine has failed for good: nothing it computes from now on can be trusted; its process is to be replaced."""
