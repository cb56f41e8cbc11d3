"""Documents in the formats of others under fuzzing: valid ones with parts changed are answered, or refused as the
documentation says, and quotations cut the caller's words.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqan_runtime.answering_engine import AnsweringEngine
from mqan_serving.foreign import FORMATS, Format
from mqan_serving.openapi import openapi_document
from tests.answering import make_trained, write_small_bundle
from tests.fuzz.conftest import Target, cases

_FUZZED = settings(max_examples=cases(), deadline=None, suppress_health_check=list(HealthCheck), database=None)
_QUOTING = "/v1/hf/question-answering"
_JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 30),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=30),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def reader(
    tmp_path_factory: pytest.TempPathFactory, serve_local: Callable[..., AbstractContextManager[tuple[int, int]]]
) -> Iterator[tuple[Target, httpx2.Client]]:
    """A server of a small pretrained reader, which answers every kind of question, and a client of it."""
    folder = tmp_path_factory.mktemp("formats") / "bundle"
    write_small_bundle(folder, make_trained())
    with serve_local(AnsweringEngine.open(folder), max_request_bytes=100_000) as (http_port, _):
        target = Target(f"http://127.0.0.1:{http_port}", "")
        with httpx2.Client(base_url=target.rest, trust_env=False, timeout=30) as client:
            yield target, client
    print(f"\nfuzzed: {dict(target.replies)}")


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every part of a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield (*place, key)
        yield from _places(part, (*place, key))


@st.composite
def changed(draw: st.DrawFn, document: dict[str, Any]) -> dict[str, Any]:
    """Return a document with some parts replaced, left out or added."""
    found = copy.deepcopy(document)
    for _ in range(draw(st.integers(0, 3))):
        *way, last = draw(st.sampled_from([*_places(found), ("added",)]))
        holder = found
        for key in way:
            holder = holder[key]
        if isinstance(holder, dict) and draw(st.integers(0, 4)) == 0:
            holder.pop(last, None)
        else:
            holder[last] = draw(_JSON)
    return found


@pytest.mark.parametrize("spoken", FORMATS, ids=lambda spoken: spoken.operation)
def test_changed_documents_are_answered_or_refused_as_documented(
    reader: tuple[Target, httpx2.Client], spoken: Format
) -> None:
    target, client = reader
    known = openapi_document()["paths"][spoken.path]["post"]["responses"]

    @_FUZZED
    @given(body=changed(spoken.request))
    def ask(body: dict[str, Any]) -> None:
        response = client.post(spoken.path, json=body)
        assert str(response.status_code) in known
        assert response.status_code < 500, response.text
        told = response.json()
        target.note(str(response.status_code), "" if response.is_success else response.text)
        if response.is_success and spoken.path == _QUOTING:
            for one in told if isinstance(told, list) else [told]:
                assert body["inputs"]["context"][one["start"] : one["end"]] == one["answer"]

    ask()
