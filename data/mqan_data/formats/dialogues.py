"""Dialogues to records: the text is what was said so far, the record what holds after it."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from mqan_data.files import File, read_json_lines, read_lines
from mqan_data.formats.dataset_file import Field, FieldsPart, Part
from mqan_data.formats.records import Record, join_tokens, read_json_value

_SPEAKERS = (  # the two parts of a conversation, by turns of the dialogues of a file
    ("User", "System"),
    ("Customer", "Agent"),
    ("user", "assistant"),
    ("Guest", "Assistant"),
    ("Caller", "Operator"),
    ("A", "B"),
)
Turn = tuple[str, str, Mapping[str, str], Record]
"""What the system said and what the user then said, the state after it, and what else a record holds."""
_TURNS = 10  # of a dialogue that are shown, the last ones
_ANY = frozenset({"dontcare", "dont care", "do n't care", "not mentioned", "none", ""})  # no value at all


def _shown(turns: Sequence[tuple[str, str]]) -> Record:
    """Return the last turns of a conversation, one a line, and whether there are more."""
    text = "\n".join(f"{speaker}: {text}" for speaker, text in turns[-_TURNS:])
    return {"text": text, "cut": len(turns) > _TURNS}


def format_sgd(files: Sequence[File], part: Part) -> Iterator[Record]:
    """Schema-Guided Dialogue: ``dialogues.json|schema.json``; option ``view``: state, spans or requested."""
    schemas = {service["service_name"]: service["slots"] for service in read_json_value(files[1])}
    schemes = {service: sgd_fields(slots) for service, slots in schemas.items()}
    view = part.options["view"]
    for number, dialogue in enumerate(read_json_value(files[0])):
        user, system = _SPEAKERS[number % len(_SPEAKERS)]
        turns: list[tuple[str, str]] = []
        told: set[str] = set()  # slots that have been spoken of
        for turn in dialogue["turns"]:
            turns.append((user if turn["speaker"] == "USER" else system, turn["utterance"].strip()))
            frames = turn["frames"]
            told.update(entry["slot"] for frame in frames for entry in (*frame["slots"], *frame["actions"]))
            if view == "spans":
                yield _sgd_spans(turn["utterance"], frames, schemes)
            elif turn["speaker"] == "USER" and view == "requested":
                yield from (_sgd_requested(_shown(turns), frame, schemas) for frame in frames)
            elif turn["speaker"] == "USER":
                yield from (_sgd_state(turns, frame, schemes, told) for frame in frames)


def _sgd_spans(text: str, frames: Any, schemes: Mapping[str, Mapping[str, Field]]) -> Record:
    """Return the slots whose values are marked in a turn; those of closed slots never are, so none is asked for."""
    scheme: Mapping[str, Field] = {}
    mentions: list[tuple[str, int, int]] = []
    for frame in frames:
        scheme = {**scheme, **schemes[frame["service"]]} if scheme else schemes[frame["service"]]
        mentions += [(slot["slot"], slot["start"], slot["exclusive_end"]) for slot in frame["slots"]]
    scheme = {name: field for name, field in scheme.items() if not field.values}
    return {"text": text, "mentions": sorted(set(mentions), key=lambda m: (m[1], m[2], m[0])), "scheme": scheme}


def _sgd_state(
    turns: Sequence[tuple[str, str]], frame: Any, schemes: Mapping[str, Mapping[str, Field]], told: set[str]
) -> Record:
    state, shown = frame["state"], _shown(turns)
    folded = shown["text"].lower()
    values = {}
    for slot, written in state["slot_values"].items():
        values[slot] = [next((value for value in written if value.lower() in folded), written[0])]
    known = {slot: value for slot, value in values.items() if value[0].lower() not in _ANY}
    unclear = (values.keys() | told) - known.keys()  # "dontcare" is no value, and what the system says is no state
    scheme = schemes[frame["service"]]
    if not unclear.isdisjoint(scheme):
        scheme = {slot: field for slot, field in scheme.items() if slot not in unclear}
    intent = state["active_intent"]
    domain = "NONE" if intent == "NONE" else frame["service"].split("_")[0]
    return {**shown, "values": known, "scheme": scheme, "intent": intent, "domain": domain}


def _sgd_requested(shown: Record, frame: Any, schemas: Mapping[str, Any]) -> Record:
    requested, slots = set(frame["state"]["requested_slots"]), schemas[frame["service"]]
    options = [slot["description"][:1].lower() + slot["description"][1:] for slot in slots]
    flags = [slot["name"] in requested for slot in slots]
    return {**shown, "options": options, "flags": flags, "asks": "yes" if requested else "no"}


def sgd_fields(slots: Sequence[Mapping[str, Any]]) -> Mapping[str, Field]:
    fields = {}
    for slot in slots:
        values = slot["possible_values"] if slot["is_categorical"] else ()
        described = slot["description"].rstrip(".")
        fields[slot["name"]] = Field(
            name=slot["name"].replace("_", " "),
            description=described[:1].lower() + described[1:],
            type=_type_of(slot["name"]),
            values=tuple(value for value in values if value.lower() not in _ANY),
        )
    return fields


def _type_of(slot: str) -> str:
    for word in ("city", "location", "address", "date", "time", "name", "number", "price", "fare"):
        if word in slot:
            return word
    return "place" if slot.rsplit("_")[-1] in ("origin", "destination", "from", "to") else ""


def format_multiwoz(files: Sequence[File], part: Part) -> Iterator[Record]:
    """MultiWOZ as JSON lines of ``turns`` with ``system``, ``user`` and the cumulated ``state``."""
    dialogues = []
    for _, row in read_json_lines(files[0]):
        said = ([join_tokens(turn[who].split())[0] for who in ("system", "user")] for turn in row["turns"])
        dialogues.append([(*both, turn["state"], {}) for both, turn in zip(said, row["turns"], strict=True)])
    return _followed(part, dialogues, first=1)


def format_woz(files: Sequence[File], part: Part) -> Iterator[Record]:
    """WOZ 2.0: turns with what was said, and the state as ``values`` and ``requests``."""
    dialogues = [[_woz_turn(turn) for turn in row["dialogue"]] for row in read_json_value(files[0])]
    return _followed(part, dialogues, first=0)


def _woz_turn(turn: Any) -> Turn:
    said_by_system, said_by_user = (" ".join(turn[who].split()) for who in ("system_transcript", "transcript"))
    requests = [value for _, value in _slots(turn, "request")]
    return said_by_system, said_by_user, dict(_slots(turn, "inform")), {"requests": requests}


def _followed(part: Part, dialogues: Sequence[Sequence[Turn]], first: int) -> Iterator[Record]:
    """Yield a record a turn; the dialogues are numbered from ``first``, which tells what the speakers are called."""
    fields = part.fields if isinstance(part, FieldsPart) else {}
    values = _values_of(fields, (state for dialogue in dialogues for _, _, state, _ in dialogue))
    for number, dialogue in enumerate(dialogues, first):
        user, system = _SPEAKERS[number % len(_SPEAKERS)]
        turns: list[tuple[str, str]] = []
        for said_by_system, said_by_user, state, more in dialogue:
            turns += [(who, words) for who, words in ((system, said_by_system), (user, said_by_user)) if words]
            shown = _shown(turns)
            scheme = _open_fields(fields, values, state, shown["text"])
            yield {**shown, "values": _known(state), "scheme": scheme, **more}


def _known(state: Mapping[str, str]) -> dict[str, list[str]]:
    return {slot: [value.split("|")[0]] for slot, value in state.items() if value.split("|")[0].lower() not in _ANY}


def _values_of(fields: Mapping[str, Field], states: Iterable[Mapping[str, str]]) -> Mapping[str, set[str]]:
    values = {name: {value.lower() for value in field.values} for name, field in fields.items()}
    for state in states:
        for slot, (value,) in _known(state).items():
            values.setdefault(slot, set()).add(value.lower())
    return values


def _open_fields(
    fields: Mapping[str, Field], values: Mapping[str, set[str]], state: Mapping[str, str], text: str
) -> Mapping[str, Field]:
    """Return the fields that a state fills, and those that the text says nothing of.

    One that any value will do for is left out, and so is one of which the text says a value that the state has
    nowhere: it was offered to the user, who did not ask for it.
    """
    known, folded = _known(state), text.lower()
    filled = {value.lower() for given in known.values() for value in given}

    def is_offered(name: str) -> bool:
        stand = (value for value in values[name] - filled if value in folded)
        return any(re.search(rf"(?<!\w){re.escape(value)}(?!\w)", folded) for value in stand)

    return {
        name: field for name, field in fields.items() if name in known or (name not in state and not is_offered(name))
    }


def format_m2m(files: Sequence[File], part: Part) -> Iterator[Record]:
    """Simulated dialogues: ``turns`` with utterances and ``dialogue_state``."""
    fields = part.fields if isinstance(part, FieldsPart) else {}
    dialogues = [[*_m2m_turns(dialogue["turns"], fields)] for dialogue in read_json_value(files[0])]
    return _followed(part, dialogues, first=0)


def _m2m_turns(turns: Any, fields: Mapping[str, Field]) -> Iterator[Turn]:
    told: set[str] = set()
    for turn in turns:
        told.update(act["slot"] for act in turn.get("system_acts", ()) if "slot" in act)
        by_system, by_user = (turn.get(f"{who}_utterance", {"text": ""})["text"] for who in ("system", "user"))
        state = {entry["slot"]: entry["value"] for entry in turn["dialogue_state"]}
        values = _known(state)
        scheme = {name: field for name, field in fields.items() if name in values or name not in told}
        yield by_system, by_user, state, {"scheme": scheme}


def format_state_changes(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """WOZ 2.0 as decaNLP asks it: how what the system did and what the user then said changes the state.

    The answer has the informs that are new and all requests; ``reference`` has them by slot, and dialogue and turn.
    """
    for number, dialogue in enumerate(read_json_value(files[0])):
        before: list[tuple[str, str]] = []
        for place, turn in enumerate(dialogue["dialogue"]):
            informed, requested = _slots(turn, "inform"), [value for _, value in _slots(turn, "request")]
            changed = [pair for pair in informed if pair not in before]
            before = informed
            acts = ", ".join(act if isinstance(act, str) else ": ".join(act) for act in turn["system_acts"])
            yield {
                "id": f"en_{number}_{place}",
                "context": " ".join(f"{acts} -- {turn['transcript']}".split() if acts else turn["transcript"].split()),
                "answers": [write_state_change(changed, requested)],
                "reference": {"dialogue": number, "turn": place, "inform": dict(changed), "request": requested},
            }


def write_state_change(told: Sequence[tuple[str, str]], requests: Sequence[str]) -> str:
    """Write ``slot: value, slot: value; request, request``, or ``None``."""
    if not told and not requests:
        return "None"
    informs = ", ".join(f"{slot}: {value}" for slot, value in told)
    return f"{informs}; {', '.join(requests)}" if requests else f"{informs};"


def _slots(turn: Any, act: str) -> list[tuple[str, str]]:
    return [(slot, value) for acts in turn["belief_state"] if acts["act"] == act for slot, value in acts["slots"]]


def format_kvret(files: Sequence[File], part: Part) -> Iterator[Record]:
    """In-car assistant: a record for each turn of the driver (option ``view``: state, or table for its facts)."""
    for _, dialogue in read_json_lines(files[0]):
        if part.options["view"] == "table":
            yield from _kvret_table(dialogue["items"] or [], part.options)
            continue
        turns: list[tuple[str, str]] = []
        known: dict[str, list[str]] = {}
        for turn, answer in zip(dialogue["dialogue"], [*dialogue["dialogue"][1:], {}], strict=True):
            turns.append((turn["turn"].capitalize(), " ".join(turn["utterance"].split())))
            if turn["turn"] == "driver":
                known |= {slot: [value.strip()] for slot, value in (answer.get("slots") or {}).items()}
                yield {**_shown(turns), "values": dict(known), "intent": dialogue["intent"]}


def _kvret_table(items: Sequence[Mapping[str, str]], called: Mapping[str, str]) -> Iterator[Record]:
    if not items:
        return
    columns = list(items[0])
    lines = [" | ".join(columns), *(" | ".join(str(item[c]) for c in columns) for item in items)]
    text, end = "\n".join(lines), len(lines[0])
    first = next((name for name in ("location", "poi", "event") if name in columns), columns[0])
    for item, line in zip(items, lines[1:], strict=True):
        begin, end = end + 1, end + 1 + len(line)
        if [other[first] for other in items].count(item[first]) > 1:
            continue
        for number, column in enumerate(columns):
            value = str(item[column]).strip()
            known = value and value != "-"
            if column == first:
                continue
            place = text.index(value, begin + sum(len(str(item[before])) + len(" | ") for before in columns[:number]))
            name = called.get(column, column.replace("_", " "))
            wordings = [
                f"What is the {name} of {item[first]}?",
                f"{name} of {item[first]}",
                f"Look up the {name} for {item[first]}.",
                f"Which {name} does the row {item[first]} have?",
            ]
            yield {"text": text, "question": wordings, "answers": [value] if known else [], "start": place}


def format_conversation(files: Sequence[File], part: Part) -> Iterator[Record]:
    """Lines of a conversation in a CSV file (options ``group``, ``speaker``, ``utterance``: names of columns)."""
    lines = (line + "\n" for _, line in read_lines(files[0]))
    group, speaker, utterance = (part.options[name] for name in ("group", "speaker", "utterance"))
    for _, rows in groupby(csv.DictReader(lines), lambda row: row[group]):
        turns: list[tuple[str, str]] = []
        for row in rows:
            turns.append((row[speaker].strip("[]'\""), " ".join(row[utterance].split())))
            yield {**row, **_shown(turns), "who": turns[-1][0], "line": turns[-1][1]}
