"""The errors of the Python client as values: they go from process to process."""

import copy
import pickle

import pytest

from mqan_client import (
    ClientError,
    DeadlineExceededError,
    InvalidRequestError,
    OverloadedError,
    ServerError,
    UnauthenticatedError,
    UnavailableError,
)

KINDS = [
    ClientError,
    InvalidRequestError,
    UnauthenticatedError,
    OverloadedError,
    UnavailableError,
    DeadlineExceededError,
    ServerError,
]


@pytest.mark.parametrize("kind", KINDS)
def test_errors_come_back_from_another_process(kind: type[ClientError]) -> None:
    error = kind("A message.", code="a_code", request_id="id-1")
    error.add_note("A note.")
    for found in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(found) is kind
        assert (str(found), found.args) == ("A message.", ("A message.",))
        assert (found.message, found.code, found.request_id) == ("A message.", "a_code", "id-1")
        assert found.__notes__ == ["A note."]
