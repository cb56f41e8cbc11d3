"""The evaluation report: one HTML page with every table, examples, and for the paper's network heat maps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jinja2
import torch
from torch import Tensor

from mqan_core.answer.trace import TraceField, attribute
from mqan_core.ask.request import Request, read_request
from mqan_evaluation.sections import shown
from mqan_evaluation.suite import Measured
from mqan_training.model.greedy import GreedyStep, greedy_trace
from mqan_training.model.network import Network

_EXAMPLES: Final = 4  # right and wrong ones of each set
_HEATMAPS: Final = 2  # a set
_MAX_HEATMAP_TOKENS: Final = 160  # longer contexts do not read well as a heat map
_MAX_ANSWER_TOKENS: Final = 24


def write_report(
    path: Path, measured: Measured, answers: Sequence[Mapping[str, Any]], network: Network | None = None
) -> None:
    """Write the page, with examples of the answers to what a table names, and heat maps of the ``network``."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mqan_evaluation"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    rows = [row for section in measured.sections for row in section.rows]
    names = dict.fromkeys(str(row.get("task") or row.get("set")) for row in rows)
    sets = [_examples(name, [a for a in answers if a["section"] == name], network) for name in names]
    page = environment.get_template("report.html").render(
        measured=measured, shown=shown, sets=[one for one in sets if one["right"] or one["wrong"]]
    )
    path.write_text(page, encoding="utf-8")


def _examples(name: str, records: Sequence[Mapping[str, Any]], network: Network | None) -> dict[str, Any]:
    answered = [record for record in records if record.get("answer") is not None]
    by_confidence = sorted(answered, key=lambda record: -record["probability"])
    right, wrong = ([record for record in by_confidence if record["right"] is is_right] for is_right in (True, False))
    maps = [] if network is None else _heatmaps(network, [*right[:: max(len(right) // 8, 1)], *wrong])
    return {"name": name, "right": right[:_EXAMPLES], "wrong": wrong[:_EXAMPLES], "heatmaps": maps}


@dataclass(frozen=True, slots=True)
class WordHeat:
    """A word of an answer: gamma of equation 12, and the pointer mass of each context and question token."""

    text: str
    probability: float
    vocabulary: float
    context: Sequence[float]
    question: Sequence[float]


@dataclass(frozen=True, slots=True)
class Heatmap:
    """An answer, word by word, over the tokens of its request, which its pointers could reach."""

    request: Request
    answer: str
    words: Sequence[WordHeat]


def _heatmaps(network: Network, records: Sequence[Mapping[str, Any]]) -> list[Heatmap]:
    most = min(_MAX_ANSWER_TOKENS, network.mqan.config.max_positions - 1)
    maps: list[Heatmap] = []
    for record in records:
        request = read_request(network.vocabulary, record["context"], record["question"])
        if request.num_context_tokens <= _MAX_HEATMAP_TOKENS:
            maps.append(heatmap(network, request, most))
        if len(maps) == _HEATMAPS:
            break
    return maps


@torch.no_grad()
def heatmap(network: Network, request: Request, max_answer_tokens: int) -> Heatmap:
    """Answer a request greedily, then read the mixture of every step off a pass with the answer given."""
    decoder = network.mqan.decoder
    encoded, slots = network.encode_requests([request], torch.device("cpu"))
    step = GreedyStep(decoder)
    trace = greedy_trace(step, encoded, slots, step.start(encoded, max_answer_tokens + 1), max_answer_tokens + 1)[0]
    answer = attribute(trace, request, network.vocabulary, max_answer_tokens)
    inputs: list[Tensor] = [decoder.start]
    for row in trace[: max(len(answer.tokens) - 1, 0)].tolist():
        slot, piece = int(row[TraceField.SLOT]), int(row[TraceField.PIECE])
        inputs.append(slots.slot_inputs_BUD[0, slot] if slot >= 0 else slots.generator_inputs_VD[piece])
    mixture = decoder(torch.stack(inputs)[None], encoded)
    words = []
    for t, token in enumerate(answer.tokens):
        gamma, lambda_ = float(mixture.gamma_BA[0, t]), float(mixture.lambda_BA[0, t])
        context = (1 - gamma) * lambda_ * mixture.p_context_BAC[0, t]
        question = (1 - gamma) * (1 - lambda_) * mixture.p_question_BAQ[0, t]
        words.append(WordHeat(token.text, token.probability, gamma, context.tolist(), question.tolist()))
    return Heatmap(request, answer.text, words)
