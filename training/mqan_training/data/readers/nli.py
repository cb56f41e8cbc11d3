"""What the datasets of natural language inference share: one way to ask (McCann et al. 2018, table 1)."""

from mqan_core.example import Example

THREE_LABELS = ("entailment", "neutral", "contradiction")


def nli_example(
    task: str,
    name: str,
    premise: str,
    hypothesis: str,
    answer: str,
    choices: str = "entailment, neutral, or contradiction",
) -> Example:
    """Ask whether a hypothesis follows from a premise, in decaNLP's words."""
    return Example(task, name, f'Premise: "{premise}"', f'Hypothesis: "{hypothesis}" -- {choices}?', (answer,))
