"""The schedule of learning rates: they rise, stay and fall."""

import math


def rate_share(
    step: int, total_steps: int, warmup_steps: int, cooldown_steps: int, schedule: str = "constant"
) -> float:
    """Return which share of the highest rate a step has, counted from 1. It rises over the warm-up.

    ``constant`` stays, and falls linearly to 0 over the last ``cooldown_steps``, so that a run can be made longer or
    shorter until then (Haegele et al. 2024). ``inverse_sqrt`` is the paper's: it falls with the root of the step.
    ``linear`` falls from the warm-up on, to 0 at the last step.
    """
    warmup = max(warmup_steps, 1)
    rising = min(1.0, step / warmup)
    if schedule == "inverse_sqrt":
        return min(step / warmup, math.sqrt(warmup / step))
    if schedule == "linear":
        step, cooldown_steps = step + 1, total_steps - warmup
    return min(rising, max(total_steps - step + 1, 0) / cooldown_steps) if cooldown_steps > 0 else rising
