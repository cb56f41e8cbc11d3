"""Layouts of files with questions and claims on texts that only one publisher uses, to records."""

import hashlib
import random
import re
import zlib
from collections.abc import Iterator, Sequence

from mqan_data.files import File, read_json_lines
from mqan_data.formats.dataset_file import Part
from mqan_data.formats.records import Record, read_json_value
from mqan_data.formats.tokens import written

_ONE_IN = 12  # everyday texts that are for validation
_TOOLS_SHOWN = 12  # most tools beside the right ones
_MARKS_OF_PAGES = re.compile(r"^\(meta data\)\s*(?:[A-Z ]+:\s*)?")
_CITED = re.compile(r"\s*(?:<\|\w+\|>|cited work)[\d,\u2013-]*")
_EMPTY_BRACKETS = re.compile(r"\s*(?:\([\s,;\u2013-]*\)|\[[\s,;\d\u2013-]*\])")


def format_everyday(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """Everyday texts, a record a question; ``#train`` or ``#validation`` after a file's name tells which texts."""
    for _, row in read_json_lines(files[0]):
        digest = hashlib.md5(row["id"].encode(), usedforsecurity=False).hexdigest()
        if (int(digest, 16) % _ONE_IN == 0) == (files[0].key == "validation"):
            asked = row["questions"]
            facts = tuple((each["question"], each["answer"]) for each in asked if each["kind"] == "yes_no")
            yield from ({**question, "id": row["id"], "text": row["text"], "facts": facts} for question in asked)


def format_cases(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """ShARC: a rule, a person's case and what was asked of them; ``Irrelevant``: the rule is about something else."""
    for _, row in read_json_lines(files[0]):
        asked = "\n".join(f"{question} {answer}." for question, answer in row["history"])
        yield {**row, "text": "\n\n".join(filter(None, (row["rule"].strip(), row["scenario"].strip(), asked)))}


def format_conditional(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """ConditionalQA: a case and the sentences of the rules that count; answers under conditions are ``conditional``."""
    for _, row in read_json_lines(files[0]):
        text = "\n".join((row["scenario"].strip(), "", *row["evidences"])).strip()
        answers = [answer["answer"] for answer in row["answers"]]
        label = "conditional" if any(answer["conditions"] for answer in row["answers"]) else row["label"]
        if label == "extractive" and not (len(answers) == 1 and answers[0] in text):
            label = "composed"
        yield {**row, "text": text, "answers": answers, "label": label}


def format_trials(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """NLI4CT: statements on a section of one trial report or of two, with the numbers of the lines that count."""
    for _, row in read_json_lines(files[0]):
        reports = [("Primary trial", row["report"], row["evidence"])]
        if row["type"] == "Comparison":
            reports.append(("Secondary trial", row["second_report"], row["second_evidence"]))
        text = "\n\n".join("\n".join((f"{name}, {row['section']}:", *lines)) for name, lines, _ in reports)
        evidence = [lines[number] for _, lines, numbers in reports for number in numbers if lines[number].strip()]
        yield {**row, "text": text, "evidence": evidence}


def format_among_others(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """FoolMeTwice: claims whose evidence is put among other sentences of its page."""
    for _, row in read_json_lines(files[0]):
        evidence = row["evidence"].lstrip(" ,;")
        evidence = evidence[:1].upper() + evidence[1:]
        others = [s.strip() for s in row["other_sentences"] if not _share(s, evidence)]
        others.insert(zlib.crc32(row["claim"].encode()) % (len(others) + 1), evidence)
        yield {**row, "text": " ".join(others), "evidence": evidence}


def _share(sentence: str, evidence: str) -> bool:
    return sentence.strip()[:40] in evidence or evidence[:40] in sentence


def format_cited_pages(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """WiCE: claims with lines of the page that they cite."""
    for _, row in read_json_lines(files[0]):
        lines = (_MARKS_OF_PAGES.sub("", line).strip("# ") for line in row["evidence"])
        yield {**row, "text": "\n".join(filter(None, lines))}


def format_citing(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """Citation-Integrity: claims with marks of citations, and sentences of the cited paper."""
    for _, row in read_json_lines(files[0]):
        yield {
            **row,
            "claim": _EMPTY_BRACKETS.sub("", _CITED.sub("", row["claim"])).strip(" *"),
            "text": " ".join(row["evidence"]),
        }


def format_roles(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """QAMR and QA-SRL: tokenised sentences with questions, a record each; ``start`` where the answer stands once."""
    for _, row in read_json_lines(files[0]):
        text = written(row["sentence"])
        for asked in row["qa"]:
            answers = [written(answer).strip(" ,.;") for answer in asked.get("answers", [asked.get("span")]) if answer]
            if answers and all(answer in text for answer in answers):
                start = text.index(answers[0]) if text.count(answers[0]) == 1 else None
                question = asked["question"].strip().rstrip(" ?/") + "?"
                yield {"text": text, "question": question, "answers": answers, "start": start}


def format_question_at_end(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """Passages whose last sentence is a question, with an answer that is right or wrong."""
    for _, row in read_json_lines(files[0]):
        passage, question = _split(written(row["premise"]))
        if passage:
            answer = written(row["hypothesis"]).rstrip(".")
            yield {**row, "text": passage, "question": question, "answer": answer}


def _split(text: str) -> tuple[str, str]:
    ends = [match.end() for match in re.finditer(r"[.!?][\"')]*\s+(?=[A-Z])", text.rstrip())]
    place = ends[-1] if ends and text.rstrip().endswith("?") else 0
    return text[:place].strip(), text[place:].strip()


def format_tools(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """MetaTool: requests beside the file of the tools' descriptions.

    Where none serves a request, the row says which are shown; otherwise they are drawn by its text, the right ones too.
    """
    described: dict[str, str] = read_json_value(files[1])
    names = sorted(described)
    for _, row in read_json_lines(files[0]):
        right = row["label"].split("+")
        shown = row["tools"] if right == ["None"] else _shown(row["query"], right, names)
        tools = [name for name in shown if name in described]
        yield {
            "query": row["query"].strip('"'),
            "names": [name.replace("_", " ") for name in tools],
            "descriptions": [described[name] for name in tools],
            "flags": [name in right for name in tools],
            "right": "none" if right == ["None"] else right[0].replace("_", " "),
        }


def _shown(query: str, right: Sequence[str], names: Sequence[str]) -> list[str]:
    rng = random.Random(query)  # noqa: S311
    shown = [*right, *(name for name in rng.sample(names, rng.randint(1, _TOOLS_SHOWN)) if name not in right)]
    rng.shuffle(shown)
    return shown


def format_trees(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """EntailmentBank: sentences with ``sent2:`` between them."""
    for _, row in read_json_lines(files[0]):
        yield {**row, "premise": re.sub(r"\.?\s*sent\d+:\s*", ". ", row["premise"])}


def format_turns(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """MuTual: tokenised dialogues of a man and a woman in lower case, with four replies."""
    for _, row in read_json_lines(files[0]):
        turns = re.split(r"\s*\b([mf]) : ", " " + row["dialogue"])
        lines = [f"{who.upper()}: {_capital(said)}" for who, said in zip(turns[1::2], turns[2::2], strict=True)]
        options = [_capital(re.sub(r"^[mf] : ", "", option)) for option in row["options"]]
        yield {**row, "text": "\n".join(lines), "options": options}


def _capital(text: str) -> str:
    text = re.sub(r"\bi\b", "I", written(text))
    return re.sub(r"(?:^|[.!?] )[a-z]", lambda match: match.group().upper(), text)
