"""Label sets that were never trained on: choices, their order, their wording, their names, and yes or no."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from mqan_core.answer.types import Answer
from mqan_core.example import Choice, Example
from mqan_core.text.tokens import read_tokens
from mqan_core.text.word_pieces import BETWEEN, FIRST
from mqan_data.formats.dataset_file import LabelsPart, load_dataset, readable
from mqan_data.mixture import validation_examples
from mqan_data.questions.asked import YES_NO, fitted
from mqan_data.settings import parse, read_yaml
from mqan_evaluation.judging import ALL, forced_label, majority, mean, per_cent, said, sampled, share_right, unanswered
from mqan_evaluation.sections import Cell, Measuring, Section
from mqan_training.batch import sorted_batches
from mqan_training.losses import sentence_vectors
from mqan_training.model.bert import Bert, packaged_encoder, read_word_pieces

MOST_NAMED = 20  # most labels that are named within a question
_WORDINGS = Path(__file__).with_name("label_sets.yaml")
_ROWS = 32
_MOST_PIECES = 256  # what the encoder was trained on
Answers = list[Answer | None]


@dataclass(frozen=True, slots=True)
class LabelSet:
    """Other wordings of a set's question, and another name of each label."""

    questions: tuple[str, ...]
    synonyms: Mapping[str, str]


def held_back_sets(path: Path = _WORDINGS) -> dict[str, LabelSet]:
    """Return the label sets that are measured, by the name of their dataset."""
    sets = {name: parse(LabelSet, body, f"{path}: {name}") for name, body in read_yaml(path).items()}
    for name, label_set in sets.items():
        labels = {readable(key, label.name) for key, label in labels_part(name).labels.items()}
        given = label_set.synonyms
        if set(given) != labels or len(set(given.values())) != len(labels) or not label_set.questions:
            raise ValueError(
                f"{path}: {name}: give `questions`, and `synonyms` with a name of its own for each label; "
                f"wrong or missing are {sorted(set(given) ^ labels)}"
            )
    return sets


def labels_part(name: str) -> LabelsPart:
    parts = list(load_dataset(name).parts.values())
    if len(parts) != 1 or not isinstance(parts[0], LabelsPart):
        raise ValueError(f"{name}: expected one part with labels")
    return parts[0]


def by_synonyms(example: Example, synonyms: Mapping[str, str]) -> Example:
    """Return the question with another name for each label."""
    return replace(
        example,
        choices=tuple(Choice(synonyms[choice.label], choice.description) for choice in example.choices),
        answers=tuple(synonyms[answer] for answer in example.answers),
    )


def named_in_question(example: Example, rng: np.random.Generator) -> tuple[Example, Example]:
    """Return the question with the labels in its own words and no choices, in a random order and in the reverse.

    Of more than ``MOST_NAMED`` labels so many are named, the right one among them.
    """
    labels = [choice.label for choice in example.choices]
    wrong = [label for label in labels if label not in example.answers]
    drawn = [wrong[i] for i in rng.permutation(len(wrong))[: MOST_NAMED - 1]]
    named = [*example.answers[:1], *drawn]
    order = [named[i] for i in rng.permutation(len(named))]
    first, second = (_naming(example.question, names) for names in (order, order[::-1]))
    return replace(example, question=first, choices=()), replace(example, question=second, choices=())


def _naming(question: str, labels: Sequence[str]) -> str:
    mark = "; " if any("," in label for label in labels) else ", "
    *first, last = labels
    return f"{question} Choose from: {mark.join(first)} or {last}."


def yes_or_no(example: Example, template: str, is_true: bool, rng: np.random.Generator) -> Example:
    """Return the question whether a label is right: of the right one, where "yes" is to be true, or of a wrong one.

    ``template`` is the question with ``{label}``; the example has one right choice.
    """
    wrong = [choice.label for choice in example.choices if choice.label not in example.answers]
    label = example.answers[0] if is_true else wrong[int(rng.integers(len(wrong)))]
    answer = YES_NO[0] if is_true else YES_NO[1]
    question = fitted(template, {"label": label})
    return replace(example, question=question, choices=tuple(map(Choice, YES_NO)), answers=(answer,))


def label_sections(measuring: Measuring, names: list[str] | None = None) -> list[Section]:
    """Return right answers for held-back label sets beside baselines, and what changes with the question's form."""
    right: list[dict[str, Cell]] = []
    otherwise: list[dict[str, Cell]] = []
    similarity = SentenceSimilarity()
    for name, label_set in held_back_sets().items():
        if names is None or name in names:
            whole = validation_examples(measuring.data, name, ALL, measuring.seed)
            examples = sampled(whole, measuring.limit, measuring.seed)
            answers = measuring.ask(name, examples)
            right.append(_right_row(similarity, name, whole, examples, answers))
            otherwise.append(_otherwise_row(measuring, name, label_set, examples, answers))
    above = sum(float(row["accuracy"] or 0) > float(row["cosine"] or 0) for row in right)
    summary: dict[str, Cell] = {"sets": len(right), "above cosine on": above}
    for rows in (right, otherwise):
        if len(rows) > 1:
            rows.append(_mean_row(rows))
    return [
        Section("labels", "Label sets that were not trained on: right answers", right, summary),
        Section("labels-otherwise", "Label sets that were not trained on: the same questions, varied", otherwise),
    ]


def _right_row(
    similarity: "SentenceSimilarity", name: str, whole: list[Example], examples: list[Example], answers: Answers
) -> dict[str, Cell]:
    nearest = similarity.choose(
        [example.context for example in examples],
        [[choice.label for choice in example.choices] for example in examples],
    )
    forced = [forced_label(a) in e.answers for e, a in zip(examples, answers, strict=True)]
    return {
        "set": name,
        "labels": len(examples[0].choices),
        "examples": len(examples),
        "majority": majority(whole),
        "cosine": mean([label in e.answers for e, label in zip(examples, nearest, strict=True)]),
        "accuracy": share_right(examples, answers),
        "accuracy, never refusing": mean(forced),
        **unanswered(answers),
    }


def _otherwise_row(
    measuring: Measuring, name: str, label_set: LabelSet, examples: list[Example], answers: Answers
) -> dict[str, Cell]:
    template = labels_part(name).forms[0].yes_no[0]
    rngs = [np.random.default_rng([measuring.seed, i]) for i in range(len(examples))]

    def ask(view: str, examples: list[Example]) -> Answers:
        return measuring.ask(f"{name} ({view})", examples)

    in_reverse = ask("reversed", [replace(e, choices=e.choices[::-1]) for e in examples])
    worded = [
        share_right(examples, ask(f"wording {i}", [replace(e, question=question) for e in examples]))
        for i, question in enumerate(label_set.questions, start=1)
    ]
    renamed = [by_synonyms(e, label_set.synonyms) for e in examples]
    pairs = [named_in_question(e, rng) for e, rng in zip(examples, rngs, strict=True)]
    first, second = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    first_answers, second_answers = ask("named", first), ask("named, reversed", second)
    asked = [yes_or_no(e, template, i % 2 == 0, rng) for i, (e, rng) in enumerate(zip(examples, rngs, strict=True))]
    own = share_right(examples, answers)
    return {
        "set": name,
        "accuracy": own,
        "reversed: same": _same(answers, in_reverse),
        "labels in question: accuracy": share_right(first, first_answers),
        "reversed there: same": _same(first_answers, second_answers),
        "other wordings: accuracy": round(float(np.mean(worded)), 2),
        "largest change": round(max(abs(score - own) for score in worded), 2),
        "synonyms: accuracy": share_right(renamed, ask("synonyms", renamed)),
        "yes/no: accuracy": share_right(asked, ask("yes/no", asked)),
    }


def _same(first: Answers, second: Answers) -> float:
    texts = [[None if a is None else (said(a) or "").casefold() for a in some] for some in (first, second)]
    return per_cent(float(np.mean([a == b for a, b in zip(*texts, strict=True)])))


def _mean_row(rows: list[dict[str, Cell]]) -> dict[str, Cell]:
    means: dict[str, Cell] = {"set": "mean"}
    for column in list(rows[0])[1:]:
        numbers = [float(row[column]) for row in rows if isinstance(row[column], int | float)]  # type: ignore[arg-type]
        means[column] = round(float(np.mean(numbers)), 2) if column not in ("labels", "examples", "unread") else None
    return means


class SentenceSimilarity:
    """Chooses the label with the highest cosine similarity to the text, by the packaged encoder."""

    def __init__(self) -> None:
        folder = packaged_encoder()
        self._word_pieces, self._encoder = read_word_pieces(folder), Bert.from_folder(folder).eval()

    def choose(self, texts: Sequence[str], labels: Sequence[Sequence[str]]) -> list[str]:
        """Return the nearest of its labels for each text."""
        names = list(dict.fromkeys(label for some in labels for label in some))
        place = {name: i for i, name in enumerate(names)}
        similarity_TL = self.vectors(texts) @ self.vectors(names).T
        return [
            some[int(torch.argmax(row[[place[label] for label in some]]))]
            for row, some in zip(similarity_TL, labels, strict=True)
        ]

    def vectors(self, texts: Sequence[str]) -> Tensor:
        """Return the vectors of texts, [texts, M]."""
        rows: dict[int, Tensor] = {}
        for chosen in sorted_batches(list(map(len, texts)), _ROWS):
            pieces_US = pad_sequence([self._pieces(texts[i]) for i in chosen], batch_first=True)
            rows.update(zip(chosen, sentence_vectors(self._encoder, pieces_US), strict=True))
        return torch.stack([rows[i] for i in range(len(texts))])

    def _pieces(self, text: str) -> Tensor:
        ids = [i for token in read_tokens(text) for i in self._word_pieces.ids(token.word)]
        first, last = map(self._word_pieces.id_of, (FIRST, BETWEEN))
        return torch.tensor([first, *ids[: _MOST_PIECES - 2], last])
