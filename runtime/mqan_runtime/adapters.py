"""Making an adapter of labelled rows: what the model says of them, and a fit that is pulled towards it. Needs no torch.

The model's log probabilities of the labels are the prior, whose weight, like the strength of the ridge on all that is
added to it, is chosen by cross-validation on the rows. Where that does not show a gain of more than a standard error,
in log loss and in right answers, and four more rows that are answered rightly, the model's own answer stays: of a
dozen rows one or two more are chance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from mqan_core.answer.adapter import AdapterHead, Floats, adapted_logits, features_of, logs_of, probabilities
from mqan_core.answer.finish import prior_of
from mqan_core.ask.options import Options

if TYPE_CHECKING:  # it loads onnxruntime
    from mqan_runtime.engine import Engine

LEAST_ROWS: Final = 4
_RIDGES: Final = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01)  # the strongest first: each fit begins where the one before ended
_WEIGHTS: Final = (1.0, 0.5)  # of the prior
_SHARPNESS: Final = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5)
_FOLDS: Final = 4
_LEAST_GAIN: Final = 4  # more rows that are right; chosen on sets that are not those of benchmarks/adapters.py
_STEPS: Final = 60
_TOGETHER: Final = 16  # requests
_UNEVEN: Final = 2  # times as many rows of one label as of another tell how common they are


@dataclass(frozen=True, slots=True)
class Observed:
    """What the model says of rows: its logits of the outcomes, and a vector of each text."""

    own: Floats  # [rows, outcomes]; the last is the refusal's, but of several labels
    vectors: Floats  # [rows, width]
    labels: tuple[str, ...]  # the outcomes that are labels, in the order in which they are read

    def __getitem__(self, rows: Any) -> "Observed":
        return Observed(self.own[rows], self.vectors[rows], self.labels)


@dataclass(frozen=True)
class Fitted:
    """An adapter, and what cross-validation says of it.

    ``before`` and ``after`` are which outcomes the model and the adapter give each row, unseen by it.
    """

    head: AdapterHead
    center_F: Floats
    weights_FK: Floats
    is_better: bool
    gold: Floats  # [rows, outcomes], 1 where it holds
    before: Floats
    after: Floats

    @cached_property
    def accuracy(self) -> tuple[float, float]:
        """Shares of rows that are answered rightly, before and after."""
        before, after = ((said == self.gold).all(axis=1).mean() for said in (self.before, self.after))
        return float(before), float(after)


def observe(engine: "Engine", texts: Sequence[str], question: str, options: Options) -> Observed:
    """Ask an engine about texts; raise ``InputError`` where it cannot be asked."""
    prior: list[list[float]] = []
    vectors: list[Floats] = []
    labels: tuple[str, ...] = ()
    for start in range(0, len(texts), _TOGETHER):
        some = [engine.read(text, question, options) for text in texts[start : start + _TOGETHER]]
        labels = tuple(choice.label for choice in some[0].request.choices)
        wanted = [replace(request, wants_text_vector=True) for request in some]
        for request, ended in zip(wanted, engine.decode(wanted, [1] * len(wanted)), strict=True):
            decoded = engine.decoded(ended)
            if decoded.text_vector is None:
                raise ValueError("the model gives no vector of a text")
            prior.append(prior_of(decoded, request.request, engine.temperatures))
            vectors.append(decoded.text_vector)
    return Observed(logs_of(np.array(prior), options.multiple), np.array(vectors), labels)


def head_of(question: str, options: Options, bundle: str, num_rows: int, *, none: bool) -> AdapterHead:
    """Return what an adapter of rows is to answer; ``none`` says that rows without a label are among them."""
    kind = {"multiple": options.multiple, "is_scale": options.is_scale, "none": none and not options.multiple}
    return AdapterHead(question, options.choices, bundle, num_rows, **kind)


def fit_adapter(seen: Observed, golds: Sequence[Sequence[str]], head: AdapterHead) -> Fitted:
    """Fit an adapter to rows, each with its labels, none where there is no answer.

    The head says what it answers; its weight, its sharpness and whether it holds the shares are chosen here.
    """
    gold = np.array([[float(label in labels) for label in seen.labels] for labels in golds])
    if head.none:
        gold = np.hstack([gold, 1 - gold.max(axis=1, keepdims=True)])
    own, counts = seen.own[:, : gold.shape[1]], gold.sum(axis=0)
    is_uneven = counts.max() > _UNEVEN * max(1, counts.min())
    before = _losses(own, gold, head)
    tried: dict[tuple[AdapterHead, float], Floats] = {}
    for shares in (False, True) if is_uneven else (False,):
        for weight in _WEIGHTS:
            tried |= _left_out(seen, gold, replace(head, weight=weight, shares=shares))
    (best, ridge), found = min(tried.items(), key=lambda one: float(_losses(one[1], gold, head).mean()))
    right = [(_said(logits, head) == gold).all(axis=1).astype(float) for logits in (own, found)]
    gains = before - _losses(found, gold, head), right[1] - right[0]
    is_unsure = any(gain.mean() <= gain.std(ddof=1) / np.sqrt(len(gain)) for gain in gains)
    if is_unsure or gains[1].sum() < _LEAST_GAIN:
        nothing = np.zeros(features_of(seen.own[:1], seen.vectors[:1], head).shape[1])
        same = _said(own, head)
        return Fitted(head, nothing, np.zeros((len(nothing), gold.shape[1])), False, gold, same, same)
    sharpness = min(_SHARPNESS, key=lambda by: float(_losses(by * found, gold, head).mean()))
    center_F, weights_FK = dict(_fits(seen, gold, best, ridge))[ridge]
    whole = replace(best, sharpness=sharpness)
    return Fitted(whole, center_F, weights_FK, True, gold, _said(own, head), _said(found, head))


def _left_out(seen: Observed, gold: Floats, head: AdapterHead) -> dict[tuple[AdapterHead, float], Floats]:
    """Return, by the strength of the ridge, the logits that each row gets from fits to other rows."""
    folds = _folds(gold)
    found: dict[tuple[AdapterHead, float], Floats] = {(head, ridge): np.empty(gold.shape) for ridge in _RIDGES}
    for fold in np.unique(folds):
        rest, out = seen[folds != fold], seen[folds == fold]
        for ridge, (center_F, weights_FK) in _fits(rest, gold[folds != fold], head, _RIDGES[-1]):
            logits = adapted_logits(head, center_F, weights_FK, out.own, out.vectors)
            found[head, ridge][folds == fold] = logits[:, : gold.shape[1]]
    return found


def _folds(gold: Floats) -> npt.NDArray[np.int64]:
    """Return the fold of each row: rows of the same labels are in different ones."""
    _, kinds = np.unique(gold, axis=0, return_inverse=True)
    folds: npt.NDArray[np.int64] = np.empty(len(gold), np.int64)
    folds[np.argsort(kinds.ravel(), kind="stable")] = np.arange(len(gold)) % _FOLDS
    return folds


def _fits(
    seen: Observed, gold: Floats, head: AdapterHead, weakest: float
) -> Iterator[tuple[float, tuple[Floats, Floats]]]:
    """Yield the center and the weights for each ridge down to the weakest, each fitted from the one before."""
    features = features_of(seen.own, seen.vectors, head)
    center_F = features.mean(axis=0)
    features -= center_F
    features[:, -1] = float(head.shares)
    # what is added lies in the span of the rows: the fit is in their principal axes
    axes, sizes, basis = np.linalg.svd(features, full_matrices=False)
    own = seen.own[:, : gold.shape[1]]
    held = (1 - head.weight) * own.mean(axis=0)  # so that a smaller weight of the prior leaves the shares, too
    if not head.multiple:
        held -= held.mean()
    design, prior = axes * sizes, head.weight * own + held
    weights = np.zeros((len(sizes), gold.shape[1]))
    steepest = 0.5 * float(sizes.max(initial=0.0)) ** 2
    for ridge in (one for one in _RIDGES if one >= weakest):
        ahead, momentum = weights, 1.0  # Nesterov 1983
        for _ in range(_STEPS):
            error = probabilities(prior + design @ ahead, head.multiple) - gold
            following = ahead - (design.T @ error + ridge * ahead) / (steepest + ridge)
            later = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead, weights, momentum = following + (momentum - 1) / later * (following - weights), following, later
        weights_FK = basis.T @ weights
        weights_FK[-1] += held
        yield ridge, (center_F, weights_FK)


def _losses(logits: Floats, gold: Floats, head: AdapterHead) -> Floats:
    given = np.clip(probabilities(logits, head.multiple), 1e-12, 1 - 1e-12)
    losses: Floats = -(gold * np.log(given)).sum(axis=1)
    return losses - ((1 - gold) * np.log1p(-given)).sum(axis=1) if head.multiple else losses


def _said(logits: Floats, head: AdapterHead) -> Floats:
    return (logits > 0 if head.multiple else logits >= logits.max(axis=1, keepdims=True)).astype(float)
