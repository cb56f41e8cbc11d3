"""Errors raised by training."""

from mqan_core.errors import MqanError


class MissingVectorsError(MqanError, FileNotFoundError):
    """Word vectors, or the encoder to make them with, are not in the file named; the message says how to get them."""


class CheckpointError(MqanError):
    """A checkpoint is missing, incomplete or damaged; the message says which file and why."""


class MissingEncoderError(MqanError):
    """A folder holds no pretrained transformer of BERT's layout; the message says what is missing."""


class DivergedError(MqanError, FloatingPointError):
    """A loss or the gradient of a run is not finite; the message says of which step, and what to change."""
