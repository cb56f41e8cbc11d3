"""Errors raised about data."""

from mqan_core.errors import MqanError


class DatasetError(MqanError):
    """A dataset file does not hold what its format says; the message gives file and line."""


class MissingFileError(DatasetError, FileNotFoundError):
    """A dataset file is not there; the message says where it was looked for and how to get it."""


class DownloadError(MqanError):
    """An official file could not be fetched or does not match its checksum."""
