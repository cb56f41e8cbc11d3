"""Rows that join, leave and go on with others while they decode get the answer that they get alone."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from mqan_core.answer.types import Answer
from mqan_core.ask.options import Options
from mqan_core.bundle import open_bundle
from mqan_runtime.engine import Engine
from mqan_runtime.session import Precision
from mqan_runtime.steps import FIRST_ROOM, Decoding, ReadRequest
from tests.answering import check_same, make_examples

Sentences = Callable[[random.Random, int], str]


@pytest.fixture(scope="module")
def engine(tiny_bundle: Path) -> Engine:
    return Engine.open(tiny_bundle)


@pytest.fixture(scope="module")
def device_engine(tiny_bundle: Path) -> Engine:
    """An engine that decodes in fixed buffers, as on a GPU; some requests find none that is free or large enough."""
    return Engine(open_bundle(tiny_bundle), provider="cpu", places=[(1, 16), (4, 24)])


def make_requests(engine: Engine, sentences: Sentences, rng: random.Random, number: int) -> list[ReadRequest]:
    return [engine.read(sentences(rng, rng.randint(1, 30)), sentences(rng, rng.randint(1, 9))) for _ in range(number)]


def take_step(engine: Engine, decoding: Decoding) -> dict[int, Answer]:
    return {key: engine.write(ended) for key, ended in engine.step(decoding)}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("places", [None, [(1, 24), (4, 48)]], ids=["host", "fixed buffers"])
@pytest.mark.parametrize(("reader", "precision"), [("words", "float32"), ("pieces", "float32"), ("pieces", "int8")])
def test_however_rows_come_together_answers_are_those_they_get_alone(
    reader: str,
    precision: Precision,
    places: list[tuple[int, int]] | None,
    seed: int,
    sentences: Sentences,
    request: pytest.FixtureRequest,
) -> None:
    bundle = open_bundle(request.getfixturevalue("tiny_bundle" if reader == "words" else "small_bundle"))
    engine = Engine(bundle, provider="cpu", precision=precision, places=places)
    rng = random.Random(seed)
    if reader == "words":
        requests = make_requests(engine, sentences, rng, 24)
    else:
        examples = make_examples(24, seed + 10)
        requests = [engine.read(e.context, e.question, Options(choices=e.choices)) for e in examples]
    limits = [rng.choice((1, 2, 5, 9, 40, engine.max_answer_tokens)) for _ in requests]
    waiting, dropped = list(range(24)), set()
    decodings: list[Decoding] = []
    answers: dict[int, Answer] = {}
    while waiting or decodings:
        if waiting and rng.random() < 0.5:
            batch = [waiting.pop() for _ in range(min(len(waiting), rng.randint(1, 4)))]
            decodings.append(engine.start([requests[i] for i in batch], [limits[i] for i in batch], batch))
        if len(decodings) > 1 and rng.random() < 0.3:
            chosen = rng.sample(decodings, 2)
            decodings = [d for d in decodings if d not in chosen] + [engine.merge(chosen)]
        for decoding in decodings:
            answers.update(take_step(engine, decoding))
            if decoding.num_live and rng.random() < 0.05:
                leaving = rng.choice(decoding.live_keys).key
                engine.drop(decoding, [leaving])
                dropped.add(leaving)
        decodings = [d for d in decodings if d.num_live]
    assert set(answers) | dropped == set(range(24))
    assert not set(answers) & dropped
    for i, answer in answers.items():
        check_same(answer, engine.answer([requests[i]], [limits[i]])[0])


def test_who_has_left_a_place_never_passes_its_last_position(device_engine: Engine, sentences: Sentences) -> None:
    """A row that is far on leaves, and one that has just begun goes on beside it to its own end."""
    old, young = make_requests(device_engine, sentences, random.Random(8), 2)
    first = device_engine.start([old], [device_engine.max_answer_tokens], ["old"])
    while first.num_live and first.num_steps < 90:
        device_engine.step(first)
    assert first.num_live, "an untrained network does not end its answers"
    both = device_engine.merge([first, device_engine.start([young], [device_engine.max_answer_tokens], ["young"])])
    device_engine.drop(both, ["old"])
    answers: dict[str, Answer] = {}
    while both.num_live:
        answers.update((key, device_engine.write(ended)) for key, ended in device_engine.step(both))
    check_same(answers["young"], device_engine.answer([young], [device_engine.max_answer_tokens])[0])


def test_a_row_leaves_at_the_step_that_ends_it(engine: Engine, sentences: Sentences) -> None:
    request, other = make_requests(engine, sentences, random.Random(3), 2)
    alone = len(engine.answer([request], [3])[0].tokens)
    decoding = engine.start([request, other], [3, 100], ["short", "long"])
    ended: list[str] = []
    while "short" not in ended:
        ended += [key for key, _ in engine.step(decoding)]
    assert decoding.num_steps in (alone, alone + 1)  # cut at its limit, or ended by itself
    assert decoding.num_live == (0 if "long" in ended else 1)


def test_rows_that_left_make_room(engine: Engine, sentences: Sentences) -> None:
    requests = make_requests(engine, sentences, random.Random(4), 8)
    decoding = engine.start(requests, [60] * 8, range(8))
    engine.drop(decoding, range(1, 8))
    engine.step(decoding)
    assert decoding.num_tokens == decoding.sizes["C"] + decoding.sizes["Q"]


def test_the_longest_answers_stay_within_the_positions(engine: Engine, sentences: Sentences) -> None:
    """A row that has ended goes on in the buffers; its place among positions must not run out."""
    requests = make_requests(engine, sentences, random.Random(5), 3)
    limits = [1, engine.max_answer_tokens, engine.max_answer_tokens]
    first: Decoding = engine.start(requests[:2], limits[:2], [0, 1])
    answers = take_step(engine, first)
    for _ in range(FIRST_ROOM * 2):
        if first.num_live:
            answers.update(take_step(engine, first))
    late = engine.start(requests[2:], limits[2:], [2])
    both = engine.merge([first, late]) if first.num_live else late
    while both.num_live:
        answers.update(take_step(engine, both))
    for i, request in enumerate(requests):
        check_same(answers[i], engine.answer([request], [limits[i]])[0])
