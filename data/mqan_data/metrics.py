"""The numbers by which answers are judged, all from 0 to 100 (McCann et al. 2018, section 2.1 and table 1).

Every task names one of ``METRICS``; its scorer returns that number first, and related ones after it. All comparisons
ignore case and runs of white space, because the model answers in lower case and restores case only where it quotes,
and characters that show nothing (soft hyphens, zero-width spaces), which it does not read.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from mqan_core.example import Example
from mqan_core.forms.grammars import fold, read_state_change
from mqan_core.text.tokens import INVISIBLE
from mqan_data.queries import gold_query, read_query

UNANSWERABLE = "unanswerable"  # the answer to a question that the context does not answer
_SHOWN = dict.fromkeys(map(ord, INVISIBLE))
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)

Scorer = Callable[[Sequence[str], Sequence[Example]], dict[str, float]]


def score(metric: str, predictions: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
    """Return a metric and related ones, from 0 to 100, of predictions for examples in the same order."""
    if metric not in METRICS:
        near = get_close_matches(metric, METRICS, n=2)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Known metrics: {', '.join(METRICS)}."
        raise ValueError(f"There is no metric {metric!r}. {hint}")
    if len(predictions) != len(examples):
        raise ValueError(f"There are {len(predictions)} predictions for {len(examples)} examples.")
    if not examples:
        raise ValueError("There is nothing to score.")
    shown = [replace(e, answers=tuple(answer.translate(_SHOWN) for answer in e.answers)) for e in examples]
    return METRICS[metric]([prediction.translate(_SHOWN) for prediction in predictions], shown)


def normalize(text: str) -> str:
    """Return the text as SQuAD compares it: in lower case, without ASCII punctuation and without articles."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def exact_match(prediction: str, gold: str) -> float:
    return float(fold(prediction) == fold(gold))


def normalized_exact_match(prediction: str, gold: str) -> float:
    return float(normalize(prediction) == normalize(gold))


def normalized_f1(prediction: str, gold: str) -> float:
    """Return the F1 of the normalised words, as SQuAD 1.1 computes it: 0 where there is no word in common."""
    predicted_words, gold_words = normalize(prediction).split(), normalize(gold).split()
    num_common = (Counter(predicted_words) & Counter(gold_words)).total()
    return _f1(num_common, len(predicted_words), len(gold_words))[0]


def _f1(num_right: int, num_said: int, num_true: int) -> tuple[float, float, float]:
    """Return F1, precision and recall, 0 to 1; each is 0 of nothing."""
    precision, recall = num_right / max(num_said, 1), num_right / max(num_true, 1)
    return 2 * precision * recall / (precision + recall) if num_right else 0.0, precision, recall


def _of_hundred(name: str, num_right: int, num_said: int, num_true: int) -> dict[str, float]:
    found = _f1(num_right, num_said, num_true)
    return {key: 100 * value for key, value in zip((name, "precision", "recall"), found, strict=True)}


def _mean_of_best(
    compare: Callable[[str, str], float], predictions: Sequence[str], examples: Sequence[Example]
) -> float:
    pairs = zip(predictions, examples, strict=True)
    return 100 * sum(max(compare(said, gold) for gold in e.answers) for said, e in pairs) / len(examples)


def _score_em(predictions: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
    return {"em": _mean_of_best(exact_match, predictions, examples)}


def _score_nf1(predictions: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
    return {
        "nf1": _mean_of_best(normalized_f1, predictions, examples),
        "nem": _mean_of_best(normalized_exact_match, predictions, examples),
        "em": _mean_of_best(exact_match, predictions, examples),
    }


def parse_state_change(text: str) -> tuple[dict[str, str], frozenset[str]]:
    """Read ``slot: value, slot: value; request, request``, in lower case.

    As in decaNLP, a text without exactly one semicolon (such as ``None``) changes nothing, and of the informs a part
    that is not ``slot: value`` is passed over; of two values for a slot the last counts.
    """
    change = read_state_change(text)
    if change is None:
        return {}, frozenset()
    told, requests, _ = change
    return {slot.folded: value.folded for slot, value in told}, frozenset(request.folded for request in requests)


def _score_joint_goal_em(predictions: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
    """Follow each dialogue turn by turn: ``joint_goal_em`` is the share of turns after which the accumulated state is
    the gold one, ``turn_goal_em`` and ``turn_request_em`` of those whose own informs, or requests, are right.
    """
    num_joint = num_goal = num_request = 0
    state: dict[str, str] = {}
    gold_state: dict[str, str] = {}
    dialogue = None
    turns = zip(predictions, map(_reference, examples), strict=True)
    for prediction, reference in sorted(turns, key=lambda turn: (turn[1]["dialogue"], turn[1]["turn"])):
        if reference["dialogue"] != dialogue:
            dialogue, state, gold_state = reference["dialogue"], {}, {}
        inform, request = parse_state_change(prediction)
        gold_inform = {fold(slot): fold(value) for slot, value in reference["inform"].items()}
        state |= inform
        gold_state |= gold_inform
        num_joint += state == gold_state
        num_goal += inform == gold_inform
        num_request += request == {fold(slot) for slot in reference["request"]}
    numbers = {"joint_goal_em": num_joint, "turn_goal_em": num_goal, "turn_request_em": num_request}
    shares = {name: 100 * number / len(examples) for name, number in numbers.items()}
    return {**shares, **_score_em(predictions, examples)}


def _score_bleu(predictions: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
    """Score by sacreBLEU's corpus BLEU in lower case; every example counts with its first gold."""
    from sacrebleu import corpus_bleu

    golds = [example.answers[0] for example in examples]
    return {"bleu": min(corpus_bleu(list(predictions), [golds], lowercase=True).score, 100.0)}


def _score_avg_rouge(predictions: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
    """Score summaries by the mean of ROUGE-1, ROUGE-2 and summary-level ROUGE-L F1 on word stems.

    As in decaNLP, a sentence ends at a full stop. Published scores come from the Perl script, which differs a little.
    """
    from rouge_score.rouge_scorer import RougeScorer

    kinds = {"rouge1": "rouge1", "rouge2": "rouge2", "rougeL": "rougeLsum"}
    scorer = RougeScorer(list(kinds.values()), use_stemmer=True)
    sums = dict.fromkeys(kinds, 0.0)
    for prediction, example in zip(predictions, examples, strict=True):
        found = scorer.score(_sentence_a_line(example.answers[0]), _sentence_a_line(prediction))
        for kind, name in kinds.items():
            sums[kind] += found[name].fmeasure
    scores = {kind: 100 * total / len(examples) for kind, total in sums.items()}
    return {"avg_rouge": sum(scores.values()) / len(scores), **scores}


def _sentence_a_line(text: str) -> str:
    return "\n".join(sentence.strip() for sentence in text.split(".") if sentence.strip())


def _score_corpus_f1(predictions: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
    """Score relations: right is an answer with the gold's words in any order; "unanswerable" is no answer."""
    num_right = num_answered = num_answerable = 0
    for prediction, example in zip(predictions, examples, strict=True):
        answer = _bag_of_words(prediction)
        golds = [bag for bag in map(_bag_of_words, example.answers) if bag is not None]
        num_answered += answer is not None
        num_answerable += bool(golds)
        num_right += answer is not None and answer in golds
    return _of_hundred("corpus_f1", num_right, num_answered, num_answerable)


def _bag_of_words(text: str) -> Counter[str] | None:
    words = [word for word in normalize(text).split() if word != "and"]
    return None if words == [UNANSWERABLE] else Counter(words)


def _score_unanswerable_f1(predictions: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
    """Score the answer "unanswerable", and by ``answerable_nf1`` the questions that have another answer."""
    said = [_bag_of_words(prediction) is None for prediction in predictions]
    true = [_bag_of_words(example.answers[0]) is None for example in examples]
    num_right = sum(a and b for a, b in zip(said, true, strict=True))
    scores = _of_hundred("unanswerable_f1", num_right, sum(said), sum(true))
    answerable = [(p, e) for p, e, not_there in zip(predictions, examples, true, strict=True) if not not_there]
    if answerable:
        scores["answerable_nf1"] = _mean_of_best(normalized_f1, *zip(*answerable, strict=True))
    return scores


def _score_lfem(predictions: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
    """Score SQL by exact match of the logical form."""
    num_right = 0
    for prediction, reference in zip(predictions, map(_reference, examples), strict=True):
        header = reference["header"]
        num_right += read_query(prediction, header) == gold_query(reference["sql"], header)
    return {"lfem": 100 * num_right / len(examples), **_score_em(predictions, examples)}


def _reference(example: Example) -> Mapping[str, Any]:
    if example.reference is None:
        raise ValueError(f"{example.task} {example.id} has no reference to score against.")
    return example.reference


def exact_and_f1(example: Example, text: str | None, labels: Collection[str]) -> tuple[float, float]:
    """Return exact match and F1 of an answer, 0 to 1; a refusal is right exactly where there is no answer.

    Free answers are compared as SQuAD does, with the most similar right one. ``text`` is None for a refusal; of
    several ``labels`` F1 is of the sets.
    """
    if example.multiple:
        chosen, right = set(labels), set(example.answers)
        both = len(chosen & right)
        return float(chosen == right), 2 * both / (len(chosen) + len(right)) if chosen or right else 1.0
    if text is None or not example.answers or example.choices:
        is_right = float(not example.answers if text is None else text in example.answers)
        return is_right, is_right
    exact, f1 = 0.0, 0.0
    for gold in example.answers:
        is_same = float(text.strip() == gold.strip())  # counts where normalising leaves nothing
        exact = max(exact, normalized_exact_match(text, gold) if normalize(gold) else is_same)
        f1 = max(f1, normalized_f1(text, gold) if normalize(gold) else is_same)
    return exact, f1


METRICS: dict[str, Scorer] = {
    "em": _score_em,
    "nf1": _score_nf1,
    "joint_goal_em": _score_joint_goal_em,
    "lfem": _score_lfem,
    "corpus_f1": _score_corpus_f1,
    "bleu": _score_bleu,
    "avg_rouge": _score_avg_rouge,
    "unanswerable_f1": _score_unanswerable_f1,
}
