"""Which task each step trains on: a weighted round robin, in phases."""

from collections.abc import Mapping, Sequence

from mqan_training.config import TrainConfig


def round_of(weights: Mapping[str, int]) -> list[str]:
    """Spread the tasks of one round evenly: a task of weight w stands at every 1/w of the round.

    Raises:
        ValueError: a weight is negative or all are 0.
    """
    if any(weight < 0 for weight in weights.values()) or not any(weights.values()):
        raise ValueError(f"task weights must not be negative and not all 0, found {dict(weights)}")
    places = [((i + 0.5) / weight, name) for name, weight in weights.items() for i in range(weight)]
    return [name for _, name in sorted(places, key=lambda place: place[0])]


def schedule(config: TrainConfig) -> list[str]:
    """Return the task of every step of a run.

    Raises:
        ValueError: a phase names a task that the recipe does not have, or is longer than the run.
    """
    names = [task.name for task in config.tasks]
    tasks: list[str] = []
    for phase in config.phases:
        for name in phase.weights:
            if name not in names:
                raise ValueError(f"phases: {name!r} is not among the tasks {', '.join(names)}")
        tasks += _repeat(round_of(phase.weights), phase.steps)
    if len(tasks) > config.steps:
        raise ValueError(f"phases: take {len(tasks)} steps, the run has {config.steps}")
    return tasks + _repeat(round_of({t.name: t.weight for t in config.tasks}), config.steps - len(tasks))


def _repeat(one_round: Sequence[str], steps: int) -> list[str]:
    return [one_round[i % len(one_round)] for i in range(steps)]
