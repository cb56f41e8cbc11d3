"""Words that engines tell of rows that still decode are those of the answers in the end."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqan_core.answer.types import Answer, AnswerToken
from mqan_core.ask.options import Options
from mqan_core.bundle import open_bundle
from mqan_runtime import device as device_loop
from mqan_runtime.engine import Engine
from tests.answering import make_examples

Sentences = Callable[[random.Random, int], str]


@pytest.fixture(scope="module")
def answering_engine(small_bundle: Path) -> Engine:
    return Engine.open(small_bundle)


def decode(engine: Any, requests: list[Any], limits: list[int]) -> tuple[list[Answer], list[list[AnswerToken]], int]:
    """Return answers, the words that were told before, and how many of these came before the step that ended one."""
    decoding = engine.start(requests, limits, range(len(requests)))
    told: list[list[AnswerToken]] = [[] for _ in requests]
    answers: dict[int, Answer] = {}
    while decoding.num_live:
        answers |= {key: engine.write(done) for key, done in engine.step(decoding)}
        asked = {key: len(told[key]) for key in range(0, len(requests), 2) if key not in answers}  # every other one
        for key, tokens in engine.decided(decoding, asked):
            told[key] += tokens
    assert not any(told[1::2]), "nobody asked for these"
    return [answers[key] for key in range(len(requests))], told, sum(map(len, told))


def check(answers: list[Answer], told: list[list[AnswerToken]]) -> None:
    for answer, tokens in zip(answers, told, strict=True):
        assert tuple(tokens) == answer.tokens[: len(tokens)]


@pytest.mark.parametrize("places", [None, [(4, 40)]], ids=["host", "fixed buffers"])
def test_words_of_the_papers_network(
    tiny_bundle: Path, sentences: Sentences, places: list[tuple[int, int]] | None
) -> None:
    engine = Engine(open_bundle(tiny_bundle), provider="cpu", places=places)
    rng = random.Random(7)
    requests = [engine.read(sentences(rng, rng.randint(1, 30)), sentences(rng, 4)) for _ in range(4)]
    answers, told, number = decode(engine, requests, [40, 40, 9, 9])
    check(answers, told)
    assert number > 5


def test_fixed_buffers_bound_the_words_of_an_answer(
    tiny_bundle: Path, sentences: Sentences, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_loop, "_MOST_ROOM", 8)
    host, device = (Engine(open_bundle(tiny_bundle), provider="cpu", places=places) for places in (None, [(1, 16)]))
    assert (host.max_answer_tokens, device.max_answer_tokens) == (host.bundle.manifest.max_positions - 1, 7)
    assert (host.has_one_thread, device.has_one_thread) == (False, True)
    request = host.read(sentences(random.Random(7), 12), "what was closed")
    with pytest.raises(ValueError, match="must be 1 to 7"):
        device.answer([request], [8])
    [expected], [answer] = host.answer([request], [7]), device.answer([request], [7])
    assert (answer.text, answer.truncated) == (expected.text, expected.truncated)


def test_words_of_a_model_that_repeats_itself(answering_engine: Engine) -> None:
    examples = [example for example in make_examples(40, seed=5) if not example.choices]
    requests = [answering_engine.read(example.context, example.question) for example in examples]
    answers, told, number = decode(answering_engine, requests, [30] * len(requests))
    check(answers, told)
    assert any(answer.truncated and len(answer.tokens) < 30 for answer in answers[::2]), "one says the same for ever"
    assert number > 50
    for answer, tokens in zip(answers[::2], told[::2], strict=True):
        if not answer.truncated and answer.answered:
            assert len(answer.tokens) - len(tokens) <= 8, "but for what may be a repetition, each word came at once"


def test_what_may_be_withheld_is_not_told(answering_engine: Engine) -> None:
    examples = [example for example in make_examples(40, seed=5) if not example.choices]
    for options in (Options(min_probability=0.5), Options(contiguous=True), Options(every=True)):
        requests = [answering_engine.read(example.context, example.question, options) for example in examples]
        answers, _, number = decode(answering_engine, requests, [30] * len(requests))
        assert number == 0
        assert any(answer.tokens for answer in answers) or options.min_probability is not None
