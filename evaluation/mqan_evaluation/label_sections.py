"""Label sets that were never trained on: choices, their order, their wording, their names, and yes or no."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from mqan_core.answer.types import Answer
from mqan_core.example import Example
from mqan_core.text.tokens import read_tokens
from mqan_core.text.word_pieces import BETWEEN, FIRST
from mqan_data.mixture import validation_examples
from mqan_evaluation.judging import ALL, forced_label, majority, mean, per_cent, said, sampled, share_right, unanswered
from mqan_evaluation.label_views import LabelSet, by_synonyms, held_back_sets, labels_part, named_in_question, yes_or_no
from mqan_evaluation.sections import Cell, Measuring, Section
from mqan_training.batch import sorted_batches
from mqan_training.losses import sentence_vectors
from mqan_training.model.bert import Bert, packaged_encoder, read_word_pieces

_ROWS = 32
_MOST_PIECES = 256  # what the encoder was trained on

Answers = list[Answer | None]


def label_sections(measuring: Measuring, names: list[str] | None = None) -> list[Section]:
    """Measure label sets that are held back, all or those named.

    Returns:
        Two tables: right answers beside the baselines, and what changes when the question is put otherwise.
    """
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
    for rows in (right, otherwise):
        if len(rows) > 1:
            rows.append(_mean_row(rows))
    return [
        Section("labels", "Label sets that were not trained on: right answers", right, _bars(right)),
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
    ask = partial(_ask, measuring, name)
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


def _ask(measuring: Measuring, name: str, view: str, examples: list[Example]) -> Answers:
    return measuring.ask(f"{name} ({view})", examples)


def _same(first: Answers, second: Answers) -> float:
    texts = [[None if a is None else (said(a) or "").casefold() for a in some] for some in (first, second)]
    return per_cent(float(np.mean([a == b for a, b in zip(*texts, strict=True)])))


def _mean_row(rows: list[dict[str, Cell]]) -> dict[str, Cell]:
    means: dict[str, Cell] = {"set": "mean"}
    for column in list(rows[0])[1:]:
        numbers = [float(row[column]) for row in rows if isinstance(row[column], int | float)]  # type: ignore[arg-type]
        means[column] = round(float(np.mean(numbers)), 2) if column not in ("labels", "examples", "unread") else None
    return means


def _bars(rows: list[dict[str, Cell]]) -> dict[str, Cell]:
    sets = [row for row in rows if row["set"] != "mean"]
    above = sum(float(row["accuracy"] or 0) > float(row["cosine"] or 0) for row in sets)
    return {"sets": len(sets), "above cosine on": above}


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
