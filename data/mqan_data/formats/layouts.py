"""Layouts of files that only one publisher uses, to records."""

import hashlib
import random
import re
import zlib
from collections.abc import Iterator, Sequence
from itertools import groupby

from mqan_data.files import File, read_json_lines, read_lines
from mqan_data.formats.dataset_file import Part
from mqan_data.formats.records import Record, format_csv, format_tsv, read_json_value, read_xml, without_marks, written

_UNORDERED = "taxonomy_animal"  # a task of instruction induction whose answers are lists in no order
_ANNOTATION = re.compile(r"\[\s*(\w+)\s*:\s*([^\]]*?)\s*\]")
_ONE_IN = 12  # everyday texts that are for validation
_TOOLS_SHOWN = 12  # most tools beside the right ones
_MARKS_OF_PAGES = re.compile(r"^\(meta data\)\s*(?:[A-Z ]+:\s*)?")
_CITED = re.compile(r"\s*(?:<\|\w+\|>|cited work)[\d,\u2013-]*")
_EMPTY_BRACKETS = re.compile(r"\s*(?:\([\s,;\u2013-]*\)|\[[\s,;\d\u2013-]*\])")


def format_aspects(files: Sequence[File], part: Part) -> Iterator[Record]:
    """Three lines a term: the text with ``$T$`` in its place, the term, its polarity."""
    lines = [line.strip() for _, line in read_lines(files[0])]
    for place in range(0, len(lines) - 2, 3):
        text, term, polarity = lines[place : place + 3]
        start = text.index("$T$")
        yield {
            "text": text.replace("$T$", term),
            "term": term,
            "polarity": polarity,
            "mentions": [("term", start, start + len(term))],
        }


def format_aspect_terms(files: Sequence[File], part: Part) -> Iterator[Record]:
    """The same, a record a sentence with all its terms."""
    for text, rows in groupby(format_aspects(files, part), lambda row: row["text"]):
        mentions = sorted({mention for row in rows for mention in row["mentions"]}, key=lambda m: m[1:])
        yield {"text": text, "mentions": mentions}


def format_mams(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """MAMS: sentences with terms or categories in ``aspects``, and their places in ``mentions``."""
    for sentence in read_xml(files[0]).iter("sentence"):
        text = sentence.findtext("text") or ""
        found = [element.attrib for kind in ("aspectTerm", "aspectCategory") for element in sentence.iter(kind)]
        aspects = [{"term": a.get("term") or a["category"], "polarity": a["polarity"]} for a in found]
        places = {("term", int(a["from"]), int(a["to"])) for a in found if "from" in a}
        yield {"text": text, "aspects": aspects, "mentions": sorted(places, key=lambda m: m[1:])}


def format_annotated(files: Sequence[File], part: Part) -> Iterator[Record]:
    """As ``tsv``, with fields in the text as ``[date : tomorrow]`` in one column (option ``column``)."""
    for row in format_tsv(files, part):
        yield {**row, **annotated(row[part.options["column"]])}


def annotated(text: str) -> Record:
    """Return a text without its annotations ``[field : value]``, and where the values stand."""
    mentions: list[tuple[str, int, int]] = []
    place = 0
    while match := _ANNOTATION.search(text, place):
        text = text[: match.start()] + match[2] + text[match.end() :]
        place = match.start() + len(match[2])
        mentions.append((match[1], match.start(), place))
    return {"text": text, "mentions": mentions}


def format_semeval_relations(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """SemEval-2010 task 8: a numbered sentence in quotes with two marked nouns, then the relation and a comment."""
    lines = [line for _, line in read_lines(files[0])]
    marks = {"first": ("<e1>", "</e1>"), "second": ("<e2>", "</e2>")}
    for place, line in enumerate(lines):
        number, _, text = line.partition("\t")
        if number.isdecimal():
            text = text.strip().strip('"')
            yield {**without_marks(text, marks), "relation": lines[place + 1].strip()}


def format_candidates(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """Four lines a sentence: it, the pronoun, the candidates with commas between them, the right one."""
    lines = [line.strip() for _, line in read_lines(files[0]) if line.strip()]
    for place in range(0, len(lines) - 3, 4):
        text, pronoun, candidates, answer = lines[place : place + 4]
        options = [candidate.strip() for candidate in candidates.split(",")]
        starts = [text.lower().find(option.lower()) for option in options]
        stands = [text[s : s + len(o)] if s >= 0 else o for s, o in zip(starts, options, strict=True)]
        right = [s for s, o in zip(stands, options, strict=True) if o.casefold() == answer.casefold()]
        if right:
            yield {"text": " ".join(text.split()), "pronoun": pronoun, "candidates": stands, "answer": right[0]}


def format_gap(files: Sequence[File], part: Part) -> Iterator[Record]:
    """GAP: tab-separated with header; both ``coref`` columns false: neither name."""
    names = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"]
    for row in format_tsv(files, part):
        start = int(row["Pronoun-offset"])
        before = len(re.findall(rf"\b{row['Pronoun']}\b", row["Text"][:start]))
        right = "A" if row["A-coref"] == "TRUE" else "B" if row["B-coref"] == "TRUE" else "none"
        around = row["Text"][max(0, start - 40) : start + 40]
        around = around.partition(" ")[2].rpartition(" ")[0]
        if before < len(names):
            yield {**row, "which": names[before], "around": around, "answer": right}


def format_mctest(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """MCTest: stories with four questions of four answers each, and the right letters beside them."""
    letters = [line.split("\t") for _, line in read_lines(files[1])]
    for (_, line), right in zip(read_lines(files[0]), letters, strict=True):
        _, _, story, *cells = line.split("\t")
        text = re.sub(r"(?:\\newline)+", lambda m: "\n" if m.group().count("n") > 2 else " ", story)
        for place, letter in enumerate(right):
            question, *options = cells[5 * place : 5 * place + 5]
            yield {"text": text, "question": question.partition(": ")[2], "candidates": options, "answer": letter}


def format_babi(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """bAbI: numbered lines; those with tabs are questions on what was said since line 1."""
    story: list[str] = []
    for _, line in read_lines(files[0]):
        number, _, rest = line.partition(" ")
        if number == "1":
            story = []
        question, *answer = rest.split("\t")
        if answer:
            yield {"text": " ".join(story), "question": question.strip(), "answers": [answer[0]]}
        else:
            story.append(rest.strip())


def format_nlu_sentences(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """NLU Evaluation Corpora: ``sentences`` with ``entities``, whose text is looked up in the sentence."""
    for sentence in read_json_value(files[0])["sentences"]:
        text, place = sentence["text"], 0
        mentions = []
        for entity in sentence["entities"]:
            start = text.lower().find(entity["text"].lower(), place)
            start = text.lower().find(entity["text"].lower()) if start < 0 else start
            if start >= 0:
                mentions.append((entity["entity"], start, start + len(entity["text"])))
        yield {**sentence, "mentions": sorted(mentions, key=lambda m: m[1])}


def format_nlupp(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """NLU++: a list of utterances with ``intents`` and ``slots``."""
    for row in read_json_value(files[0]):
        slots = row.get("slots", {})
        mentions = sorted(((name, *slot["span"]) for name, slot in slots.items()), key=lambda m: m[1])
        yield {"text": row["text"], "intents": row.get("intents", []), "mentions": mentions}


def format_info_boxes(files: Sequence[File], part: Part) -> Iterator[Record]:
    """InfoTabS: statements beside the file of the tables; the table becomes lines of ``key: value, value``."""
    tables = {row["table_id"]: row["table"] for _, row in read_json_lines(files[1])}
    for row in format_tsv(files, part):
        lines = [f"{key}: {', '.join(values)}" for key, values in tables[row["table_id"]].items()]
        yield {**row, "text": "\n".join(lines).removeprefix("title: ")}


def format_listed(files: Sequence[File], part: Part) -> Iterator[Record]:
    """JSON lines whose ``text`` holds the phrases of a list (options ``list``, ``field``); others are left out."""
    for _, row in read_json_lines(files[0]):
        text = " ".join(row["text"].split())
        found = {}
        for phrase in row[part.options["list"]]:
            match = re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text, re.IGNORECASE)
            if match:
                found[match.start()] = (part.options["field"], match.start(), match.end())
        yield {"text": text, "mentions": [found[start] for start in sorted(found)]}


def format_instructions(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """Instruction induction: tasks with wordings of their instruction; ``#train`` or ``#test`` names the list."""
    for task in read_json_value(File(files[0].path)):
        for given, wanted in task[files[0].key]:
            if task["task"] == _UNORDERED:
                wanted = ", ".join(sorted(wanted.split(", "), key=given.index))
            yield {"text": given, "question": task["instructions"], "answers": [wanted], "task": task["task"]}


def format_bookings(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """RESTAURANTS-8K: utterances with labelled spans, an absent start is 0; before them what they were asked for."""
    for row in read_json_value(files[0]):
        asked = [slot.replace("_", " ") for slot in (row.get("context") or {}).get("requestedSlots", ())]
        before = f"Agent: Please tell me the {' and the '.join(asked)}.\nGuest: " if asked else ""
        text = before + row["userInput"]["text"]
        spans = [(label["slot"], label["valueSpan"]) for label in row.get("labels", ())]
        mentions = [(s, len(before) + span.get("startIndex", 0), len(before) + span["endIndex"]) for s, span in spans]
        yield {"text": text, "mentions": sorted(mentions, key=lambda m: m[1])}


def format_facts(files: Sequence[File], part: Part) -> Iterator[Record]:
    """E2E: ``mr`` with facts as ``name[value], area[value]`` and the text ``ref``."""
    for row in format_csv(files, part):
        facts = re.findall(r"([\w ]+)\[([^\]]*)\]", row["mr"])
        yield {"text": row["ref"], "values": {name.strip(): [value] for name, value in facts}}


def format_legal(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """LegalBench: tasks with a prompt and a few rows; see ``instruction_of`` for the question."""
    for _, task in read_json_lines(files[0]):
        answers = list(dict.fromkeys(str(row["answer"]) for row in task["train"]))
        asked = set(re.findall(r"\{\{(\w+)\}\}", task["base_prompt"]))
        for row in task["train"]:
            shown = {name: str(value) for name, value in row.items() if name in asked}
            lines = [value if len(shown) == 1 else f"{name}: {value}" for name, value in shown.items()]
            yield {
                "text": "\n".join(lines),
                "question": instruction_of(task["base_prompt"]),
                "candidates": answers,
                "answer": str(row["answer"]),
                "task": task["task"],
            }


def instruction_of(prompt: str) -> str:
    """Return what a prompt asks: its words before the first example, and those of its last question."""
    blocks = [block.strip() for block in re.split(r"\n\s*\n", prompt.strip())]
    first = re.split(r"\n?(?:Q|Question|Clause|Example \d+|Input|Fact|Text)\s*:", blocks[0])[0]
    first, last = (re.sub(r"\{\{\w+\}\}", " ", text) for text in (first, blocks[-1]))
    last = re.sub(r"(?m)^[A-Z][\w ]{0,30}:|\b(?:A|Answer|Label)\s*:\s*$", " ", last)
    words = [" ".join(part.split()) for part in (first, last if len(blocks) > 1 else "")]
    return " ".join(part for part in words if re.search(r"\w", part))


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
        others = [s.strip() for s in row["other_sentences"]]
        others = [s for s in others if s[:40] not in evidence and evidence[:40] not in s]
        others.insert(zlib.crc32(row["claim"].encode()) % (len(others) + 1), evidence)
        yield {**row, "text": " ".join(others), "evidence": evidence}


def format_cited_pages(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """WiCE: claims with lines of the page that they cite."""
    for _, row in read_json_lines(files[0]):
        lines = (_MARKS_OF_PAGES.sub("", line).strip("# ") for line in row["evidence"])
        yield {**row, "text": "\n".join(filter(None, lines))}


def format_citing(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """Citation-Integrity: claims with marks of citations, and sentences of the cited paper."""
    for _, row in read_json_lines(files[0]):
        claim = _EMPTY_BRACKETS.sub("", _CITED.sub("", row["claim"])).strip(" *")
        yield {**row, "claim": claim, "text": " ".join(row["evidence"])}


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
        premise, answer = written(row["premise"]).rstrip(), written(row["hypothesis"]).rstrip(".")
        ends = [match.end() for match in re.finditer(r"[.!?][\"')]*\s+(?=[A-Z])", premise)]
        if ends and premise.endswith("?") and (passage := premise[: ends[-1]].strip()):
            yield {**row, "text": passage, "question": premise[ends[-1] :], "answer": answer}


def format_tools(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """MetaTool: requests beside the file of tools; the row says which are shown, or they are drawn by its text."""
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
