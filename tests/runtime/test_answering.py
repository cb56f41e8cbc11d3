"""Bundles with a pretrained reader: an answer is the same alone and in any batch, choices have no order, loops end."""

import itertools
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mqan_core.answer.adapter import Adapter, AdapterHead
from mqan_core.answer.decide import find_repeats
from mqan_core.answer.types import AdapterVersion, Source
from mqan_core.ask.options import Options, choices_of
from mqan_core.bundle import open_bundle
from mqan_core.errors import InputError
from mqan_core.example import Choice
from mqan_runtime.engine import Engine
from mqan_runtime.steps import Ended, ReadRequest
from tests.answering import LABELS, check_same, make_examples, make_text

PLACES = [(1, 32), (4, 64)]  # some requests find none that is free or large enough


@pytest.fixture(scope="module", params=["float32", "int8", "fixed buffers"])
def engine(small_bundle: Path, request: pytest.FixtureRequest) -> Engine:
    if request.param == "fixed buffers":  # as on a GPU
        return Engine(open_bundle(small_bundle), provider="cpu", precision="float32", places=PLACES)
    return Engine.open(small_bundle, provider="cpu", precision=request.param)


def read_all(engine: Engine, number: int, seed: int) -> list[ReadRequest]:
    return [engine.read(e.context, e.question, Options(choices=e.choices)) for e in make_examples(number, seed)]


def test_windows_may_be_read_together(small_bundle: Path) -> None:
    """As on a GPU: padded, up to 32 of several requests at once."""
    alone, together = (
        Engine(open_bundle(small_bundle), provider="cpu", precision="float32", num_together=most) for most in (None, 32)
    )
    requests = read_all(alone, 20, 5)
    assert max(len(request.windows) for request in requests) > 1
    limits = [20] * len(requests)
    for one, other in zip(alone.answer(requests, limits), together.answer(requests, limits), strict=True):
        check_same(one, other)


def test_fixed_buffers_give_the_answers_of_the_host(small_bundle: Path) -> None:
    """What is read stays in them, as on a GPU; so do choices, quotations, explanations and the text's vector."""
    bundle = open_bundle(small_bundle)
    host, device = (
        Engine(bundle, provider="cpu", precision="float32", places=places, num_together=8) for places in (None, PLACES)
    )
    options = (Options(explain=True), Options(contiguous=True, alternatives=2), Options(every=True))
    requests = [
        replace(host.read(e.context, e.question, replace(o, choices=e.choices)), wants_text_vector=True)
        for e, o in zip(make_examples(24, 9), itertools.cycle(options), strict=False)
        if not e.choices or o.explain
    ]
    found = []
    for engine in (host, device):
        decoding = engine.start(requests, [20] * len(requests), range(len(requests)))
        ended: dict[int, Ended] = {}
        while decoding.num_live:
            ended |= dict(engine.step(decoding))
        found.append([(engine.write(ended[key]), ended[key].row.text_vector) for key in range(len(requests))])
    for (one, one_vector), (other, other_vector) in zip(*found, strict=True):
        check_same(one, other)
        assert len(one.explanation) == len(other.explanation)
        steps = ([[c.text for c in step.candidates[:1]] for step in answer.explanation] for answer in (one, other))
        assert next(steps) == next(steps)
        assert [place.span for place in one.places] == [place.span for place in other.places]
        assert one_vector is not None
        assert float(one_vector @ one_vector) == pytest.approx(1, abs=1e-5)
        assert one_vector == pytest.approx(other_vector, abs=1e-5)


def test_an_adapter_answers_alone_as_in_any_batch(engine: Engine) -> None:
    bundle, rng = engine.bundle, np.random.default_rng(0)
    head = AdapterHead("What is it about?", choices_of(LABELS), bundle.sha256, 8)
    size = engine.text_width + len(LABELS) + 1
    weights = rng.normal(scale=4, size=(size, len(LABELS)))
    adapter = Adapter(AdapterVersion("labels", "0"), head, np.zeros(size), weights)
    texts = [make_text(random.Random(seed), 1 + 40 * seed) for seed in range(12)]
    options = Options(choices=head.choices, none=True, adapter=adapter)
    requests = [engine.read(text, head.question, options) for text in texts]
    alone = [engine.answer([request], [1])[0] for request in requests]
    for one, other in zip(engine.answer(requests, [1] * len(requests)), alone, strict=True):
        check_same(one, other)
        assert one.adapter == adapter.version
        assert not one.chosen or all(choice.evidence for choice in one.choices if choice.label in one.chosen)
    plain = [engine.read(text, head.question, replace(options, adapter=None)) for text in texts]
    assert [a.text for a in engine.answer(plain, [1] * len(plain))] != [a.text for a in alone]


def test_there_is_a_pause_before_each_window_of_a_long_text_but_the_first(engine: Engine) -> None:
    requests = read_all(engine, 20, 5)
    assert max(len(request.windows) for request in requests) > 1
    for request in requests:
        assert len(list(engine.start_in_turns([request], [20], [0]))) == len(request.windows) - 1


def test_there_is_a_pause_where_much_is_read_of_many_texts(engine: Engine) -> None:
    short = [request for request in read_all(engine, 60, 5) if len(request.windows) == 1]
    pauses = list(engine.start_in_turns(short, [20] * len(short), list(range(len(short)))))
    assert 0 < len(pauses) <= sum(request.num_read for request in short) / 512
    assert list(engine.start_in_turns(short[:2], [20] * 2, [0, 1])) == []


def test_choices_have_no_order_and_share_one_step(engine: Engine) -> None:
    rng = random.Random(4)
    for _ in range(10):
        context, question = make_text(rng, 20), make_text(rng, 5)
        labels = rng.sample(LABELS, 4)
        orders = list(itertools.permutations(labels))
        requests = [engine.read(context, question, Options(choices=choices_of(order))) for order in orders]
        decoding = engine.start(requests, [9] * len(requests), range(len(requests)))
        found = dict(engine.step(decoding))
        assert not decoding.num_live
        answers = [engine.write(found[i]) for i in range(len(orders))]
        first = {c.label: c.probability for c in answers[0].choices}
        for order, answer in zip(orders, answers, strict=True):
            assert [choice.label for choice in answer.choices] == list(order)
            assert {c.label: c.probability for c in answer.choices} == pytest.approx(first, abs=1e-5)
            assert (answer.text, answer.answered) == (answers[0].text, answers[0].answered)
            assert sum(c.probability for c in answer.choices) + answer.refusal == pytest.approx(1, abs=1e-4)
            assert sum(c.among_choices for c in answer.choices) == pytest.approx(1, abs=1e-5)


def test_the_step_hands_out_what_a_choice_looked_at(engine: Engine) -> None:
    requests = [request for request in read_all(engine, 60, 8) if request.request.choices]
    decoding = engine.start(requests, [5] * len(requests), range(len(requests)))
    found = dict(engine.step(decoding))
    for key, request in enumerate(requests):
        evidence = found[key].evidence
        assert evidence is not None
        assert evidence[: request.num_context_tokens].sum() == pytest.approx(1, abs=1e-5)
        assert not evidence[request.num_context_tokens :].any()


def test_a_chosen_label_is_quoted_and_a_refusal_has_no_text(engine: Engine) -> None:
    asked = [example for example in make_examples(120, 6) if example.choices]
    options = [Options(choices=example.choices, none=True) for example in asked]
    requests = [engine.read(e.context, e.question, o) for e, o in zip(asked, options, strict=True)]
    answers = engine.answer(requests, [5] * len(requests))
    assert {answer.answered for answer in answers} == {True, False}
    for answer in answers:
        if not answer.answered:
            assert (answer.text, answer.tokens, answer.probability) == ("", (), answer.refusal)
            continue
        best = max(answer.choices, key=lambda choice: choice.probability)
        assert (answer.text, answer.probability) == (best.label, best.probability)
        assert best.against_refusal > 0.5
        assert {token.source for token in answer.tokens} == {Source.QUESTION}
        for token in answer.tokens:
            assert token.span is not None
            assert best.label[token.span.start : token.span.end] == token.text


def test_no_answer_says_the_same_for_ever(engine: Engine) -> None:
    """An untrained network loops often; each loop ends at its fourth time, however many steps are left."""
    requests = [request for request in read_all(engine, 60, 7) if not request.request.choices]
    decoding = engine.start(requests, [engine.max_answer_tokens] * len(requests), range(len(requests)))
    num_cut = 0
    while decoding.num_live:
        for _, ended in engine.step(decoding):
            trace = ended.trace
            repeats = find_repeats(trace)
            if repeats is not None:
                num_cut += 1
                assert len(trace) - repeats.stop < 4  # it is looked for every fourth step
                answer = engine.write(ended)
                assert answer.truncated
                assert answer.probability <= 0.5
    assert num_cut > 3


def test_what_cannot_be_read_is_refused(engine: Engine) -> None:
    for context, question, labels, code in (
        (" \n", "Who?", (), "empty_context"),
        ("Ada.", "", (), "empty_question"),
        ("Ada.", "Who?", (" ",), "empty_choice"),
        ("Ada.", "who " * 300, (), "question_too_long"),
        ("Ada.", "Who?", ("no", "notes " * 300), "choices_too_long"),
    ):
        with pytest.raises(InputError) as caught:
            engine.read(context, question, Options(choices=choices_of(labels)))
        assert caught.value.code == code
    assert "begins with 'notes notes notes notes notes' takes 300 word pieces" in str(caught.value)
    with pytest.raises(InputError) as caught:  # a description is no label
        engine.read("Ada.", "Who?", Options(choices=(Choice("\u200b", "who sings"), Choice("Ada"))))
    assert caught.value.code == "empty_choice"
    with pytest.raises(ValueError, match="1 to 63"):
        engine.answer([engine.read("Ada.", "Who?")], [64])
    with pytest.raises(ValueError, match="0 requests"):
        engine.answer([], [])
    with pytest.raises(ValueError, match="1 requests with 1 limits and 2 keys"):
        engine.start([engine.read("Ada.", "Who?")], [3], [1, 2])
