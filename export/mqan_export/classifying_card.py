"""The model card of a sibling system: its tasks, how they are asked, and what was measured on the bundle."""

from mqan_core.classifying import ClassifyingManifest

_SYSTEMS = {
    "shared-memory": "LSTMs that share an external memory (Liu, Qiu and Huang 2016)",
    "mt-dnn": "an encoder that all tasks share, with an output layer for each (MT-DNN, Liu et al. 2019)",
}


def class_card(manifest: ClassifyingManifest) -> str:
    """Return a model card."""
    measured_on = manifest.training.get("measured_on", {})
    lines = [
        f"# {manifest.name} {manifest.version}",
        "",
        f"{_SYSTEMS[manifest.kind]}. It answers the questions below, word for word, each with one of its classes.",
        f"It reads at most {manifest.most_read} {'words' if manifest.memory else 'word pieces'}.",
        "",
        "| task | question | context | classes | measured on the bundle |",
        "|---|---|---|---|---|",
    ]
    for task in manifest.tasks:
        scores = ", ".join(f"{metric} {value:.1f}" for metric, value in manifest.scores.get(task.name, {}).items())
        told = f"{scores} ({measured_on.get(task.name, 0)} rows)"
        for wording in task.wordings:
            cells = [task.name, _code(wording.question), _code(wording.context), ", ".join(task.labels), told]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _code(template: str) -> str:
    return f"`{template}`".replace("\n", "` line end `")
