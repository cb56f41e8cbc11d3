"""Fits of adapters: they learn what rows teach, and keep to the model where rows teach nothing."""

from pathlib import Path

import numpy as np

from mqan_core.answer.adapter import AdapterHead, read_adapter, write_adapter
from mqan_core.example import Choice
from mqan_runtime.adapters import Fitted, Observed, fit_adapter

LABELS = ("a", "b", "c")
HEAD = AdapterHead("Which?", tuple(map(Choice, LABELS)), "a" * 64, 1)


def rows(number: int, seed: int, *, told: float, own: float) -> tuple[Observed, list[tuple[str, ...]]]:
    """Return rows of three labels whose vectors, and whose answers by the model, say so much of the right ones."""
    rng = np.random.default_rng(seed)
    right = np.arange(number) % 3
    vectors = rng.normal(size=(number, 12))
    vectors[:, :3] += told * np.eye(3)[right]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    logits = np.hstack([rng.normal(size=(number, 3)) + own * np.eye(3)[right], np.full((number, 1), -3.0)])
    return Observed(logits, vectors, LABELS), [(LABELS[label],) for label in right]


def accuracy(fitted: Fitted, seen: Observed, golds: list[tuple[str, ...]], folder: Path) -> float:
    """Return the share of other rows that the adapter, read from its file, answers rightly."""
    path = folder / "x.safetensors"
    write_adapter(path, fitted.head, fitted.center_F, fitted.weights_FK)
    adapter = read_adapter(path, "a" * 64, seen.vectors.shape[1])
    right = 0
    for own, vector, gold in zip(seen.own, seen.vectors, golds, strict=True):
        prior = np.exp(own) / np.exp(own).sum()
        masses, _ = adapter.masses(prior.tolist(), vector)
        right += (LABELS[int(np.argmax(masses))],) == gold
    return right / len(golds)


def test_rows_that_teach_are_learnt_from(tmp_path: Path) -> None:
    seen, golds = rows(60, 0, told=4.0, own=0.5)
    fitted = fit_adapter(seen, golds, HEAD)
    before, after = fitted.accuracy
    assert fitted.is_better
    assert after > before + 0.2
    others, right = rows(300, 1, told=4.0, own=0.5)
    assert accuracy(fitted, others, right, tmp_path) > 0.85
    assert np.abs(fitted.weights_FK.sum(axis=1)).max() < 1e-6  # one label gains what others lose


def test_rows_that_teach_nothing_change_nothing(tmp_path: Path) -> None:
    for seed in range(5):
        seen, golds = rows(24, seed, told=0.0, own=2.0)
        fitted = fit_adapter(seen, golds, HEAD)
        others, right = rows(600, 100 + seed, told=0.0, own=2.0)
        before = float(
            np.mean([(LABELS[int(np.argmax(own[:3]))],) == gold for own, gold in zip(others.own, right, strict=True)])
        )
        assert accuracy(fitted, others, right, tmp_path) > before - 0.02
        if not fitted.is_better:
            assert not fitted.weights_FK.any()


def test_a_few_more_right_rows_of_a_dozen_are_taken_for_chance() -> None:
    """Of 12 rows the fit gets three more right than the model, without fail; with the same told of 24 it is trusted."""
    few, many = (rows(number, 3, told=9.0, own=0.0) for number in (12, 24))
    for (seen, golds), trusted in ((few, False), (many, True)):
        seen.own[:] = np.where(np.arange(4) == 3, -3.0, 0.0)
        right = [LABELS.index(gold[0]) for gold in golds]
        seen.own[np.arange(len(right)), right] = 1.0
        for row in range(3 * len(right) // 12):  # which the model gets wrong
            seen.own[row, (right[row] + 1) % 3] = 1.5
        fitted = fit_adapter(seen, golds, HEAD)
        assert fitted.is_better is trusted


def test_how_common_labels_are_is_learnt_only_of_rows_that_say_it() -> None:
    seen, golds = rows(60, 3, told=1.0, own=0.0)
    assert not fit_adapter(seen, golds, HEAD).head.shares
    common = [n for n in range(60) if golds[n] == ("a",) or n < 12]
    fitted = fit_adapter(seen[common], [golds[n] for n in common], HEAD)
    assert fitted.head.shares
    assert fitted.accuracy[1] > fitted.accuracy[0]


def test_several_labels_and_none_at_all_are_learnt() -> None:
    seen, golds = rows(60, 4, told=4.0, own=0.0)
    several = AdapterHead("Which?", HEAD.choices, "a" * 64, 1, multiple=True)
    both = [("a", "b") if gold == ("a",) else () if gold == ("c",) else gold for gold in golds]
    fitted = fit_adapter(Observed(seen.own[:, :3], seen.vectors, LABELS), both, several)
    assert fitted.accuracy[1] > 0.8 > fitted.accuracy[0]
    none = AdapterHead("Which?", HEAD.choices, "a" * 64, 1, none=True)
    fitted = fit_adapter(seen, [() if gold == ("c",) else gold for gold in golds], none)
    assert fitted.weights_FK.shape[1] == 4
    assert fitted.accuracy[1] > 0.8 > fitted.accuracy[0]
