"""WOZ 2.0, English (Wen et al. 2017; Mrksic et al. 2017): the change a user's turn makes to the dialogue state.

Files: ``woz_{train,validate,test}_en.json`` of nmrksic/neural-belief-tracker.

The answer is ``slot: value, slot: value; request, request``: the inform slots that the turn changes, and all its
requests. With requests only it starts with ``;``, with informs only it ends with ``;``, with neither it is ``None``.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mqan_core.example import Example
from mqan_core.forms.state_change import write_state_change
from mqan_data.readers.files import check_split, find_file, malformed, read_json
from mqan_data.readers.task import Task, downloads

QUESTION = "What is the change in state?"
_FILE_OF_SPLIT = {"train": "woz_train_en.json", "validation": "woz_validate_en.json", "test": "woz_test_en.json"}
_URL = "https://raw.githubusercontent.com/nmrksic/neural-belief-tracker/master/data/woz/"

Inform = tuple[str, str]


def read(folder: Path, split: str, dropped: Counter[str] | None = None, /) -> Iterator[Example]:
    """Yield the turns of a split, dialogue by dialogue.

    Each ``reference`` holds ``dialogue`` and ``turn`` (indices from 0), ``inform`` (slot -> value that the turn
    changes) and ``request`` (list of slots).
    """
    check_split("woz", split, _FILE_OF_SPLIT)
    path = find_file("woz", folder, _FILE_OF_SPLIT[split])
    dialogues = read_json(path)
    if not isinstance(dialogues, list):
        raise malformed(path, None, "expected a list of dialogues.")
    where = ""
    try:
        for dialogue_index, dialogue in enumerate(dialogues):
            where = f"dialogue {dialogue_index}"
            informed: list[Inform] = []
            for turn_index, turn in enumerate(dialogue["dialogue"]):
                where = f"dialogue {dialogue_index}, turn {turn_index}"
                now_informed, requested = _state(turn["belief_state"])
                changed = [pair for pair in now_informed if pair not in informed]
                informed = now_informed
                reference = {
                    "dialogue": dialogue_index,
                    "turn": turn_index,
                    "inform": dict(changed),
                    "request": requested,
                }
                name = f"en_{dialogue_index}_{turn_index}"
                answers = (write_state_change(changed, requested),)
                yield Example("woz", name, _context(turn), QUESTION, answers, reference=reference)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise malformed(path, None, f"{where}: missing or malformed field ({error!r}).") from error


def _state(belief_state: list[dict[str, Any]]) -> tuple[list[Inform], list[str]]:
    """Return the inform slots and the requests of a belief state, in file order."""
    informed: list[Inform] = []
    requested: list[str] = []
    for item in belief_state:
        for slot, value in item.get("slots", ()):
            if item["act"] == "inform":
                informed.append((slot, value))
            else:
                requested.append(value)
    return informed, requested


def _context(turn: dict[str, Any]) -> str:
    """Return what the system did and what the user then said."""
    acts = ", ".join(act if isinstance(act, str) else ": ".join(act) for act in turn["system_acts"])
    return " ".join(f"{acts} -- {turn['transcript']}".split() if acts else turn["transcript"].split())


TASK = Task(
    name="woz",
    folder="woz",
    splits=tuple(_FILE_OF_SPLIT),
    metric="joint_goal_em",
    read=read,
    sources=downloads(
        _URL,
        {
            "woz_train_en.json": "7cd9e971553e5f3e80bb0c93164bf4c619c7f49f45d636a0512474cdeb074485",
            "woz_validate_en.json": "ae1ea9067fd05c0179d349f140b38de1b2db587d5bfcb4f99ef0d77474ab00ad",
            "woz_test_en.json": "3673e433b21a6b0d74e9144bd059e64b29bc3e1c5dc0e18654a98ec597c0d72c",
        },
    ),
)
