"""What a question can ask of a bundle with a pretrained reader."""

import math
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from mqan_core.answer.explain import MOST_WEIGHTS, explain_choice
from mqan_core.answer.quotations import LEAST_SHARE
from mqan_core.answer.types import Answer, Source, Span
from mqan_core.ask.options import PLAIN, YES_NO, Options, choices_of
from mqan_core.ask.request import read_request
from mqan_core.errors import InputError
from mqan_core.text.vocab import Vocabulary
from mqan_runtime.engine import Engine
from mqan_training.start import Trained
from mqan_training.torch_answers import answer_batch
from tests.answering import LABELS, LETTERS, WORDS, make_text


@pytest.fixture(scope="module")
def engine(small_bundle: Path) -> Engine:
    return Engine.open(small_bundle, provider="cpu")


def ask(engine: Engine, context: str, question: str, options: Options = PLAIN) -> Answer:
    return engine.answer([engine.read(context, question, options)], [6])[0]


@pytest.mark.parametrize(
    "options",
    [
        Options(contiguous=True),
        Options(every=True),
        Options(alternatives=2),
        Options(sources=frozenset({Source.CONTEXT})),
    ],
)
def test_a_question_that_wants_words_of_the_text_keeps_its_list(engine: Engine, options: Options) -> None:
    answer = ask(engine, make_text(random.Random(4), 25), "Who is it? Choose from: walls, notes.", options)
    assert not answer.choices
    if not options.alternatives:  # with these, the first answer is free
        assert {token.source for token in answer.tokens} <= {Source.CONTEXT}


@pytest.mark.parametrize("options", [Options(refuses=False), Options(every=True, refuses=False)])
def test_only_one_quotation_can_always_be_given(engine: Engine, options: Options) -> None:
    with pytest.raises(InputError, match="Only one unbroken quotation can always be given"):
        engine.read("Ada.", "Who?", options)


def test_a_label_with_spaces_around_it_is_chosen_as_it_was_given(engine: Engine) -> None:
    for i in range(40):
        answer = ask(engine, make_text(random.Random(i), 25), "who ?", Options(choices_of([" the harbour", "walls  "])))
        if answer.answered:
            [chosen] = answer.chosen
            assert chosen in (" the harbour", "walls  ")
            assert [bool(choice.evidence) for choice in answer.choices] == [c.label == chosen for c in answer.choices]
            return
    pytest.fail("no label was ever chosen")


@pytest.mark.parametrize("num_words", [40, 500])
def test_labels_that_take_several_readings_are_chosen_from_together(
    small_bundle: Path, small_trained: Trained, num_words: int
) -> None:
    exact = Engine.open(small_bundle, provider="cpu", precision="float32")
    labels = [f"{' '.join(WORDS[i % 20] for i in range(k, k + 12))} {LETTERS[k % 36]}{k}" for k in range(255)]
    context = make_text(random.Random(4), num_words)
    windowed = exact.read(context, "who wrote notes?", Options(choices_of(labels)))
    assert sum(window.labels.start > 0 for window in windowed.windows) >= 2
    answer = exact.answer([windowed], [6])[0]
    assert [c.label for c in answer.choices] == labels
    [other] = answer_batch(small_trained, [windowed.request], 6)
    found = {c.label: c.probability for c in answer.choices}
    assert {c.label: c.probability for c in other.choices} == pytest.approx(found, abs=1e-5)
    turned = ask(exact, context, "who wrote notes?", Options(choices_of(labels[::-1])))
    assert {c.label: c.probability for c in turned.choices} == pytest.approx(found, abs=1e-6)
    alone = ask(exact, context, "who wrote notes?", Options(choices_of(["yes", "no"])))
    beside = exact.answer(
        [windowed, exact.read(context, "who wrote notes?", Options(choices_of(["yes", "no"])))], [6, 6]
    )
    assert [c.probability for c in beside[1].choices] == pytest.approx([c.probability for c in alone.choices], abs=1e-6)


def test_the_least_probability_counts_that_no_label_may_fit(engine: Engine) -> None:
    """A single label has the whole share of the labels, however unsure the answer is."""
    rng = random.Random(6)
    num_unsure = 0
    for _ in range(40):
        context, question = make_text(rng, 20), make_text(rng, 5)
        assert ask(engine, context, question, Options(choices_of(["notes"]))).confidence == 1
        plain = ask(engine, context, question, Options(choices_of(["notes"]), none=True))
        if plain.answered:
            num_unsure += 1
            assert plain.confidence == pytest.approx(plain.probability)
            assert plain.probability < 1
            for least in (plain.probability - 1e-6, plain.probability + 1e-6):
                held = ask(engine, context, question, Options(choices_of(["notes"]), min_probability=least))
                assert held.answered == (least < plain.probability)
                assert held.probability == plain.probability
    assert num_unsure > 5


def test_each_step_of_a_free_answer_is_explained(engine: Engine) -> None:
    rng, num_words = random.Random(12), 0
    for _ in range(60):
        context, question = make_text(rng, rng.randint(1, 60)), make_text(rng, 4)
        plain, answer = (ask(engine, context, question, options) for options in (PLAIN, Options(explain=True)))
        assert replace(answer, explanation=()) == plain
        assert len(answer.explanation) == max(1, len(answer.tokens) + (not answer.truncated))
        for token, step in zip(answer.tokens, answer.explanation, strict=False):
            num_words += 1
            weights = [weight for _, weight in (*step.context, *step.question)]
            # what is left of 1 is the vocabulary's, and what is left out
            assert sum(weights) <= token.masses.context + token.masses.question + 1e-4
            assert sum(weights) >= token.masses.context + token.masses.question - 0.001 * (len(context) + len(question))
            assert [w for _, w in step.context] == sorted((w for _, w in step.context), reverse=True)
            said = {candidate.text: candidate for candidate in step.candidates}
            assert said[token.text.lower()].probability == pytest.approx(token.probability, abs=1e-5)
            assert said[token.text.lower()].source is token.source
            assert sum(candidate.probability for candidate in step.candidates) <= 1 + 1e-4
            if token.source is Source.CONTEXT:
                assert token.span in {span for span, _ in step.context}
    assert num_words > 40


@pytest.mark.parametrize(
    "options",
    [
        *(PLAIN, Options(contiguous=True), Options(choices_of(["Ada", "Bob"]), none=True)),
        Options(choices_of(LABELS), multiple=True),
    ],
)
def test_an_answer_that_is_withheld_is_not_explained(engine: Engine, options: Options) -> None:
    rng, num_withheld = random.Random(15), 0
    for _ in range(20):
        context, question = make_text(rng, 30), make_text(rng, 4)
        given = ask(engine, context, question, replace(options, explain=True))
        withheld = ask(engine, context, question, replace(options, explain=True, min_probability=1.0))
        if given.answered:
            num_withheld += 1
            assert given.explanation
            assert (withheld.answered, withheld.explanation) == (False, ())
    assert num_withheld


def test_an_explanation_does_not_grow_with_the_text() -> None:
    request = read_request(Vocabulary(()), "a " * 300, "what?")
    [step] = explain_choice(np.linspace(0.9, 0.1, 300, dtype=np.float32), request)
    assert len(step.context) == MOST_WEIGHTS
    span, weight = step.context[0]
    assert span == Span(0, 1)
    assert weight == pytest.approx(0.9)


def test_what_is_asked_together_does_not_change_an_explanation(engine: Engine) -> None:
    rng = random.Random(13)
    texts = [(make_text(rng, rng.randint(1, 60)), make_text(rng, 4)) for _ in range(12)]
    requests = [engine.read(*text, Options(explain=i % 2 == 0)) for i, text in enumerate(texts)]
    for i, together in enumerate(engine.answer(requests, [6] * len(requests))):
        alone = engine.answer([requests[i]], [6])[0]
        assert bool(together.explanation) == (i % 2 == 0)
        assert len(alone.explanation) == len(together.explanation)
        for one, other in zip(alone.explanation, together.explanation, strict=True):
            assert dict(one.context) == pytest.approx(dict(other.context), abs=1e-3)
            assert {c.text for c in one.candidates if c.probability > 0.01} <= {c.text for c in other.candidates}


@pytest.mark.parametrize(
    "options", [Options(contiguous=True), Options(every=True), Options(contiguous=True, alternatives=2)]
)
def test_a_quotation_is_explained_by_its_one_step(engine: Engine, options: Options) -> None:
    rng = random.Random(14)
    for _ in range(20):
        context, question = make_text(rng, 30), make_text(rng, 4)
        plain, answer = (ask(engine, context, question, o) for o in (options, replace(options, explain=True)))
        assert replace(answer, explanation=()) == plain
        [step] = answer.explanation
        likely = [candidate.probability for candidate in step.candidates]
        assert likely == sorted(likely, reverse=True)
        weights = dict(step.context)
        assert max(weights.values()) == pytest.approx(max(c.probability for c in step.candidates if c.text))
        first = answer.tokens[0] if answer.tokens else None
        if first is not None and first.span is not None and options.contiguous:
            assert weights[first.span] >= first.probability > 0


def test_a_label_is_explained_by_where_attention_was(engine: Engine) -> None:
    answer = ask(engine, "Ada met Bob. Bob left.", "who left?", Options(choices_of(["Ada", "Bob"]), explain=True))
    [step] = answer.explanation
    assert sum(weight for _, weight in step.context) == pytest.approx(1, abs=0.02)
    assert (step.question, step.candidates) == ((), ())


def test_a_contiguous_answer_is_exactly_one_quotation(engine: Engine) -> None:
    rng, num_answered = random.Random(7), 0
    for _ in range(200):
        context = make_text(rng, rng.choice([1, 30, 700]))
        answer = ask(engine, context, make_text(rng, 4), Options(contiguous=True))
        if not answer.answered:
            assert (answer.text, answer.spans, answer.probability) == ("", (), answer.refusal)
            continue
        num_answered += 1
        [span] = answer.spans
        assert (span.source, span.text, answer.text) == (Source.CONTEXT, context[span.start : span.end], span.text)
        assert len(answer.tokens) <= 6
        assert answer.probability == pytest.approx(math.prod(t.probability for t in answer.tokens))
    assert num_answered > 30


def test_the_offset_of_refusals_moves_free_answers_and_no_others(engine: Engine) -> None:
    manifest = engine.bundle.manifest
    never, always = (
        Engine(replace(engine.bundle, manifest=replace(manifest, refusal_offset=offset)), provider="cpu")
        for offset in (-20.0, 20.0)
    )
    rng, num_answered = random.Random(17), 0
    for _ in range(60):
        context, question = make_text(rng, rng.choice([5, 30, 700])), make_text(rng, 4)
        plain, without, with_it = (ask(one, context, question) for one in (engine, never, always))
        num_answered += plain.answered
        assert without.refusal < plain.refusal < with_it.refusal
        assert without.answered or not plain.answered
        assert not with_it.answered
        for options in (Options(choices_of(["the harbour", "notes"])), Options(contiguous=True)):
            assert ask(never, context, question, options) == ask(engine, context, question, options)
    assert num_answered > 5


def test_a_quotation_that_must_be_given_is_the_likeliest(engine: Engine) -> None:
    rng, num_refused = random.Random(9), 0
    for _ in range(100):
        context, question = make_text(rng, rng.choice([1, 30, 700])), make_text(rng, 4)
        free = ask(engine, context, question, Options(contiguous=True, alternatives=1))
        given = ask(engine, context, question, Options(contiguous=True, refuses=False))
        assert given.answered
        assert given.refusal == free.refusal
        if free.answered:
            assert given.spans == free.spans
            continue
        num_refused += 1
        assert free.alternatives or given.probability < 0.001
    assert num_refused > 10
    assert not ask(engine, "...", "who?", Options(contiguous=True, refuses=False)).answered


def test_places_do_not_overlap_and_are_about_as_likely_as_the_likeliest(engine: Engine) -> None:
    rng, numbers = random.Random(8), set()
    for _ in range(100):
        context, question = make_text(rng, 60), make_text(rng, 4)
        answer = ask(engine, context, question, Options(every=True))
        if not answer.answered:
            assert answer.places == ()
            continue
        numbers.add(len(answer.places))
        spans = [place.span for place in answer.places]
        assert all(left.end <= right.start for left, right in pairwise(spans))
        assert answer.text == ", ".join(context[span.start : span.end] for span in spans)
        best = max(place.probability for place in answer.places)
        assert min(place.probability for place in answer.places) >= LEAST_SHARE * best
        assert answer.probability == pytest.approx(best)
        certain = ask(engine, context, question, Options(every=True, min_probability=1.0))
        assert (certain.answered, certain.places) == (False, ())
    assert max(numbers) > 1


def test_alternatives_are_quotations_that_the_answer_is_not(engine: Engine) -> None:
    rng, num_found = random.Random(9), 0
    for _ in range(100):
        context, question = make_text(rng, 60), make_text(rng, 4)
        plain = ask(engine, context, question)
        answer = ask(engine, context, question, Options(alternatives=3))
        others = answer.alternatives
        assert replace(answer, alternatives=()) == plain
        assert len(others) <= 3
        assert len({a.text.casefold() for a in (answer, *others)}) == 1 + len(others)
        for other in others:
            num_found += 1
            [span] = other.spans
            assert other.text == context[span.start : span.end]
            mine = [s for s in answer.spans if s.source is Source.CONTEXT]
            assert all(s.end <= span.start or span.end <= s.start for s in mine)
        assert [a.probability for a in others] == sorted((a.probability for a in others), reverse=True)
    assert num_found > 30


def test_quotations_are_the_same_in_any_batch(engine: Engine) -> None:
    rng = random.Random(10)
    kinds = (PLAIN, Options(contiguous=True), Options(every=True, alternatives=2), Options(YES_NO))
    requests = [engine.read(make_text(rng, 5 + 9 * i), make_text(rng, 4), kinds[i % 4]) for i in range(12)]
    alone = [engine.answer([request], [6])[0] for request in requests]
    for mine, together in zip(alone, engine.answer(requests, [6] * 12), strict=True):
        assert (mine.text, [p.span for p in mine.places]) == (together.text, [p.span for p in together.places])
        assert together.probability == pytest.approx(mine.probability, abs=1e-5)
        assert [a.text for a in mine.alternatives] == [a.text for a in together.alternatives]
