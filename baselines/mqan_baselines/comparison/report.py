"""The tables of the comparison, in Markdown."""

from collections.abc import Mapping
from typing import Any, Final

from mqan_baselines.comparison.systems import cost_of_a_million
from mqan_baselines.scores import markdown_table

CANNOT: Final = "cannot be asked"
_MIB: Final = 2**20


def report(document: Mapping[str, Any]) -> str:
    return "\n".join((_accuracy(document), _renamed(document), _time(document), _few_shot(document)))


def cell(measured: Mapping[str, Any], num_rows: int) -> str:
    """Return an accuracy; beside it that of the answered rows, where some were refused; or that it cannot be asked."""
    if measured["accuracy"] is None:
        return CANNOT
    num_answered = num_rows - sum(measured["refused"].values())
    if num_answered in (0, num_rows):
        return f"{measured['accuracy']:.1f}"
    of_answered = measured["accuracy"] * num_rows / num_answered
    return f"{measured['accuracy']:.1f} ({of_answered:.1f} of {num_answered} answered)"


def _accuracy(document: Mapping[str, Any]) -> str:
    names = list(document["systems"])
    rows = []
    for task, found in document["tasks"].items():
        cells = [cell(found["systems"][name], found["questions"]) for name in names]
        rows.append([task, str(found["questions"]), f"{found['most_frequent']:.1f}", *cells])
    kept = [f"{name}: {_trained(system)}" for name, system in document["systems"].items()]
    untrained = ", ".join(document["not_trained_on"]) or "none"
    return (
        "## Accuracy\n\nPer cent of the test rows, the same for all systems. A row that is refused, as too "
        "long for a baseline, counts as wrong; what is right of the answered rows is in brackets.\n\n"
        f"{markdown_table(['task', 'rows', 'most frequent class', *names], rows)}\n"
        f"Trained on: {'; '.join(kept)}. Of these tasks, mqan was not trained on: {untrained}.\n"
    )


def _trained(system: Mapping[str, Any]) -> str:
    if not system["training"]:
        return f"{system['model']}, as it is"
    told = ", ".join(f"{key} {value}" for key, value in system["training"].items())
    return f"{told}, {system['seconds']:.0f} s"


def _renamed(document: Mapping[str, Any]) -> str:
    names = list(document["systems"])
    rows = [
        [task, found["question"].replace("|", "\\|"), ", ".join(found["labels"])]
        + [cell(found["systems"][name], found["questions"]) for name in names]
        for task, found in document["renamed"].items()
    ]
    return (
        "## Renamed classes\n\nThe same rows and the same meaning, in other words. A baseline refuses a question that "
        "is not its own (`unknown_question`).\n\n"
        f"{markdown_table(['task', 'question', 'classes', *names], rows)}"
    )


def _time(document: Mapping[str, Any]) -> str:
    names, price = list(document["systems"]), document["price"]
    rows = []
    for task, found in document["tasks"].items():
        cells = []
        for name in names:
            ms = found["systems"][name]["ms"]
            cells += [CANNOT, ""] if ms is None else [f"{ms:.2f}", f"{cost_of_a_million(ms, price):.2f}"]
        rows.append([task, f"{found['words']:g}", *cells])
    sizes = [[name, system["model"], f"{system['bytes'] / _MIB:.1f}"] for name, system in document["systems"].items()]
    heads = [head for name in names for head in (f"{name}, ms", "cost")]
    return (
        "## Size, time and cost\n\nMiB of weights in float32.\n\n"
        f"{markdown_table(['system', 'model', 'MiB'], sizes)}\n"
        "Milliseconds of processor time for an answer, in torch: one caller, one core, the median of the rows above, "
        f"the systems in turns. Cost of a million answers, from that time, at {price:g} for a core and hour (an "
        "assumption; `--price` takes another). Words are the median of context and question together.\n\n"
        f"{markdown_table(['task', 'words', *heads], rows)}"
    )


def _few_shot(document: Mapping[str, Any]) -> str:
    found = document["few_shot"]
    names = list(document["systems"])
    rows = [
        [str(number), *(cell(of[name], found["questions"]) if name in of else CANNOT for name in names)]
        for number, of in found["rows"].items()
    ]
    is_new = found["task"] in document["not_trained_on"]
    flat = "has no training row of it" if is_new else "is as it is, and was trained on the task"
    return (
        f"## From few rows\n\nAccuracy on {found['questions']} test rows of {found['task']}. The baselines learn this "
        "task alone, from so many training rows; ARC-II also chooses its checkpoint by up to as many rows of the "
        f"tuning split. mqan {flat}: its score does not change.\n\n"
        f"{markdown_table(['training rows', *names], rows)}"
    )
