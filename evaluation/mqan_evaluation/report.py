"""The evaluation report: one HTML page with scores beside the paper's, sources, examples and pointer heat maps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jinja2

from mqan_core.ask.request import read_request
from mqan_data.metrics import exact_match, normalized_f1
from mqan_evaluation.heatmap import Heatmap, heatmap
from mqan_evaluation.sections import Section
from mqan_training.model.network import Network

# Table 2 of McCann et al. 2018: single-task S2S and MQAN, multitask MQAN, the same with an anti-curriculum.
PAPER_COLUMNS: Final = ("S2S, single", "MQAN, single", "MQAN, joint", "MQAN, anti-curriculum")
PAPER: Final[Mapping[str, tuple[float, float, float, float]]] = {
    "squad": (48.2, 75.5, 70.8, 74.3),
    "iwslt.en.de": (25.0, 25.5, 16.1, 13.7),
    "cnn_dailymail": (19.0, 24.0, 23.9, 24.6),
    "multinli": (67.5, 72.8, 70.5, 69.2),
    "sst": (86.4, 88.1, 86.2, 86.4),
    "qasrl": (63.5, 75.2, 75.8, 77.6),
    "zre": (20.0, 15.6, 28.0, 34.7),
    "woz": (85.3, 84.4, 80.6, 84.1),
    "wikisql": (60.0, 72.6, 62.0, 58.7),
    "mwsc": (43.9, 52.4, 48.8, 48.4),
}

_EXAMPLES = 4  # best and worst of each task
_HEATMAPS = 2  # a task
_MAX_HEATMAP_TOKENS = 160  # longer contexts do not read well as a heat map
_MAX_ANSWER_TOKENS = 24


@dataclass(frozen=True, slots=True)
class TaskExamples:
    """Examples of one task: the surest right and the surest wrong answers, and heat maps."""

    task: str
    best: Sequence[Mapping[str, Any]]
    worst: Sequence[Mapping[str, Any]]
    heatmaps: Sequence[Heatmap]


def write_report(
    path: Path, title: str, section: Section, answers: Sequence[Mapping[str, Any]], network: Network | None
) -> None:
    """Write the page.

    Args:
        path: file to write.
        title: name and version of the model.
        section: scores of its tasks, as ``paper_section`` returns them.
        answers: records of ``Measuring.answers``.
        network: the model in torch, for the heat maps; None for none.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mqan_evaluation"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    deca = [float(row["score"] or 0) for row in section.rows if row["task"] in PAPER]
    tasks = [str(row["task"]) for row in section.rows]
    page = environment.get_template("report.html").render(
        title=title,
        rows=[{**row, "paper": PAPER.get(str(row["task"]), ())} for row in section.rows],
        paper_columns=PAPER_COLUMNS,
        deca_score=sum(deca),
        deca_tasks=len(deca),
        deca_total=len(PAPER),
        tasks=[_examples(task, [record for record in answers if record["section"] == task], network) for task in tasks],
    )
    path.write_text(page, encoding="utf-8")


def _likeness(answer: str, gold: str) -> float:
    """Return F1 of the words, or 1 for equal answers that hold nothing but articles and punctuation."""
    return max(exact_match(answer, gold), normalized_f1(answer, gold))


def _examples(task: str, records: Sequence[Mapping[str, Any]], network: Network | None) -> TaskExamples:
    answered = [record for record in records if record.get("answer") is not None]
    quality = {id(record): max(_likeness(record["answer"], gold) for gold in record["gold"]) for record in answered}
    by_confidence = sorted(answered, key=lambda record: -record["probability"])
    right = [record for record in by_confidence if quality[id(record)] == 1]
    wrong = [record for record in by_confidence if quality[id(record)] == 0]
    heatmaps = [] if network is None else _heatmaps(network, [*right[:: max(len(right) // 8, 1)], *wrong])
    return TaskExamples(task, right[:_EXAMPLES], wrong[:_EXAMPLES], heatmaps)


def _heatmaps(network: Network, records: Sequence[Mapping[str, Any]]) -> list[Heatmap]:
    """Return heat maps of the first answers about texts that are short enough."""
    heatmaps: list[Heatmap] = []
    for record in records:
        request = read_request(network.vocabulary, record["context"], record["question"])
        if request.num_context_tokens <= _MAX_HEATMAP_TOKENS:
            heatmaps.append(heatmap(network, request, min(_MAX_ANSWER_TOKENS, network.mqan.config.max_positions - 1)))
        if len(heatmaps) == _HEATMAPS:
            break
    return heatmaps
