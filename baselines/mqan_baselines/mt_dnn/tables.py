"""Table 3 of the paper: MT-DNN, each task alone, and without SAN; ours beside the published figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mqan_baselines.mt_dnn.learning import run
from mqan_baselines.recipes import MtDnnRecipe
from mqan_baselines.scores import markdown_table
from mqan_baselines.tasks import baseline_task

ROWS: Final[Mapping[str, Mapping[str, Any]]] = {
    "BERT": {"joint": False, "pair_head": "linear"},
    "ST-DNN": {"joint": False, "pair_head": "san"},
    "MT-DNN": {"joint": True, "pair_head": "san"},
    "MT-DNN without SAN": {"joint": True, "pair_head": "linear"},
}
"""The rows, as settings of a recipe. Those without ``joint`` are without the multi-task step."""

PUBLISHED: Final[Mapping[str, Mapping[str, float]]] = {
    "BERT": {
        "mnli": 84.5, "qqp": 90.4, "mrpc": 89.0, "rte": 65.0, "qnli": 88.4, "sst-2": 92.8, "cola": 55.4, "sts-b": 89.6,
    },
    "ST-DNN": {"mnli": 84.7, "qqp": 91.0, "mrpc": 89.1, "rte": 64.6, "qnli-ranking": 94.6},
    "MT-DNN": {
        "mnli": 85.3, "qqp": 91.6, "mrpc": 89.2, "rte": 79.1, "qnli-ranking": 95.7, "sst-2": 93.6, "cola": 59.5,
        "sts-b": 90.6,
    },
}  # fmt: skip
"""Development scores of table 3 (Liu et al. 2019), with BERT-base and all of GLUE; our encoder and data are smaller."""


def train_rows(recipe: MtDnnRecipe, data: Path, folder: Path) -> str:
    """Train each row that has not ended yet; return the table in Markdown."""
    results = {}
    for row, settings in ROWS.items():
        changed = recipe.model_copy(update=settings)
        results[row] = run(changed, data, folder / row.lower().replace(" ", "-"))
    return comparison(recipe.tasks, results)


def comparison(tasks: Sequence[str], results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of what ``learning.run`` returned: a row a way of training, beside ours the published scores."""
    names = {task: baseline_task(task).scores for task in tasks}
    heads = ["", *(f"{task}, {'/'.join(scores)} (published)" for task, scores in names.items()), "hours"]
    rows = []
    for row, result in results.items():
        ways = {row: result["tasks"]}
        if result.get("joint") not in (None, result["tasks"]):
            ways = {f"{row}, before fine-tuning": result["joint"], f"{row}, fine-tuned": result["tasks"]}
        for way, of_task in ways.items():
            cells = [way]
            for task, scores in names.items():
                ours = "/".join(f"{of_task[task][name]:.1f}" for name in scores)
                cells.append(f"{ours} ({PUBLISHED.get(row, {}).get(task, 'none')})")
            rows.append([*cells, f"{result['seconds'] / 3600:.2f}"])
    counts = next(iter(results.values()))["tasks"]
    told = ", ".join(f"{task} {counts[task]['num_test']}" for task in tasks)
    return f"{markdown_table(heads, rows)}\nTest rows: {told}.\n"
