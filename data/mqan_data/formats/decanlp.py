"""Files of decaNLP's tasks (McCann et al. 2018) and of those beside them, to records that are asked as they are.

Where a record has no ``context``, ``question`` or ``answers``, the templates of the task give them.
"""

import hashlib
import html
import random
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from typing import Any, Final

from mqan_data.files import File, MissingFileError, malformed, read_json_lines, read_lines, read_texts, text_field
from mqan_data.formats.dataset_file import Part
from mqan_data.formats.records import DROPPED, TIMES, Record, entities_of, read_json_value
from mqan_data.metrics import UNANSWERABLE, normalize
from mqan_data.queries import write_query, write_table


def format_squad(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """SQuAD 1.1 and 2.0; a ``start`` that does not point at its answer is left out."""
    return (question for article in _articles(files[0]) for paragraph in article for question in paragraph)


def _articles(file: File) -> Iterator[list[list[Record]]]:
    """Yield the articles: of each paragraph that has questions, these."""
    for article in read_json_value(file)["data"]:
        asked = ([_asked(p["context"], question) for question in p["qas"]] for p in article["paragraphs"])
        yield [questions for questions in asked if questions]


def _asked(text: str, question: Any) -> Record:
    answers = [answer["text"] for answer in question["answers"]]
    start = question["answers"][0]["answer_start"] if answers else None
    asked = " ".join(question["question"].split())
    record = {"id": question["id"], "text": text, "question": asked, "answers": answers, "start": start}
    if answers and not (isinstance(start, int) and text.startswith(answers[0], start)):
        record |= {"start": None, DROPPED: "start that does not point at its answer (the question stays)"}
    return record


def format_squad_twice(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """Each question once of its own paragraph and once of the next of its article, which does not answer it.

    Paragraph by paragraph, its own questions come first, then those of the paragraph before it.
    """
    for article in _articles(files[0]):
        if len(article) < 2:
            yield {DROPPED: "the article has one paragraph only", TIMES: sum(map(len, article))}
            continue
        own: list[list[Record]] = []
        for questions, following in zip(article, [*article[1:], article[0]], strict=True):
            text = f" {normalize(following[0]['text'])} "
            kept = [q for q in questions if not any(f" {normalize(answer)} " in text for answer in q["answers"])]
            own.append(kept)
            if len(kept) < len(questions):
                yield {DROPPED: "the next paragraph holds the answer, too", TIMES: len(questions) - len(kept)}
        for place, questions in enumerate(article):
            yield from own[place]
            text = questions[0]["text"]
            for q in own[place - 1]:
                yield {"id": f"{q['id']}/next", "text": text, "question": q["question"], "answers": [UNANSWERABLE]}


def format_titles(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """SQuAD: paragraphs with the title of their article and those of 29 others to choose from."""
    articles = read_json_value(files[0])["data"]
    titles = [article["title"].replace("_", " ") for article in articles]
    for number, article in enumerate(articles):
        for place, paragraph in enumerate(article["paragraphs"]):
            others = random.Random(f"{number}/{place}").sample(titles, min(30, len(titles)))  # noqa: S311
            options = [titles[number], *(title for title in others if title != titles[number])][:30]
            yield {"text": paragraph["context"], "titles": sorted(options), "title": titles[number]}


def format_relations(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """QA-ZRE: relation, question with ``XXX`` for the subject, subject, sentence and answers; several are one."""
    for number, line in read_lines(files[0]):
        cells = line.split("\t")
        if len(cells) < 4:
            raise malformed(files[0], number, f"expected at least 4 columns, found {len(cells)}.")
        _, question, subject, text, *answers = cells
        answer = ", ".join(answers) or UNANSWERABLE
        yield {"line": number, "context": text, "question": question.replace("XXX", subject), "answers": [answer]}


_NUM_SLOTS: Final = 8
_CLEANED: Final = (  # by decaNLP, in this order: what treebank tokens stand for, and spaces that they brought along
    *{"-LRB-": "(", "-RRB-": ")", "-LAB-": "<", "-RAB-": ">", "-AMP-": "&", "%pw": " "}.items(),
    *((f" {mark}", mark) for mark in (*".,;!?:)", "'ll", "n't ", "%", "'t", "'s", "'m", "'d", "'re")),
    *((f"{mark} ", mark) for mark in "($"),
    (" - ", "-"),
    *((mark, "") for mark in ("``", "`", "''", "\u201c", "\u201d", " '")),
)


def format_verbs(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """QA-SRL 1.0: questions on the verbs of sentences; answers take the case of their place in the sentence.

    A sentence has a line with its name and its number of predicates, the sentence, and for each predicate a line
    ``index TAB verb TAB number of questions`` and its questions: eight slots (``_`` for an empty one, the last is
    ``?``) and the answers with ``###`` between them, all tab-separated. A blank line ends it.
    """
    name = context = ""
    place = "name"  # what the next line has to be
    for number, line in read_lines(files[0]):
        cells = line.split("\t")
        if not line.strip():
            place = "name"
        elif place == "name":
            name, place = cells[0], "sentence"
        elif place == "sentence":
            context, place = clean_treebank(line), "predicate"
        elif len(cells) == 3 and cells[0].isdecimal() and cells[2].isdecimal():
            place = "question"
        elif place == "question" and len(cells) == _NUM_SLOTS + 1 and cells[_NUM_SLOTS - 1] == "?":
            question = clean_treebank(" ".join(slot for slot in cells[: _NUM_SLOTS - 1] if slot != "_") + "?")
            given = [clean_treebank(answer) for answer in cells[_NUM_SLOTS].split("###")]
            found = [_cased_as_in(context, answer) for answer in given]
            answers = [answer or own for answer, own in zip(found, given, strict=True)]
            yield {"id": f"{name}/{number}", "context": context, "question": question, "answers": answers}
            if None in found:
                yield {DROPPED: "answer is not in the sentence (the example stays)", TIMES: found.count(None)}
        else:
            raise malformed(files[0], number, f"expected a {place}, found {line!r}.")


def clean_treebank(text: str) -> str:
    """Return a treebank-tokenised text as it would be written, without quotation marks."""
    text = " ".join(text.split())
    for token, written in _CLEANED:
        text = text.replace(token, written)
    return " ".join(text.split())


def _cased_as_in(context: str, answer: str) -> str | None:
    for variant in (answer, answer[:1].lower() + answer[1:], answer[:1].upper() + answer[1:], answer.lower()):
        if variant in context:
            return variant
    start = context.lower().find(answer.lower())
    if start >= 0 and len(context.lower()) == len(context):
        return context[start : start + len(answer)]
    return None


_BRACKETS: Final = re.compile(r"\[.*\]")


def format_schemas(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """MWSC: three lines and a blank one: a context and a question with two variants in brackets, and two answers.

    The key is a slice of the examples, two a schema. Two habits of the original are kept, because the published scores
    rest on them: a schema without a blank line after it is not used (the last of the file), and the bracket pattern is
    greedy, which garbles a line with two brackets.
    """
    records: list[Record] = []
    schema: list[str] = []
    for number, line in read_lines(files[0]):
        if line.strip():
            schema.append(line.strip())
            continue
        if len(schema) != 3 or schema[2].count("/") != 1:
            raise malformed(files[0], number, f"expected three lines before it, the last with a slash: {schema!r}.")
        answers = schema[2].split("/")
        for which in (0, 1):
            variants = [_BRACKETS.sub(lambda m, w=which: m[0][1:-1].split("/")[w], text) for text in schema[:2]]  # type: ignore[misc]
            question = f"{variants[1]} {answers[0]} or {answers[1]}?"
            records.append({"context": variants[0], "question": question, "answers": [answers[which]]})
        schema = []
    if schema:
        yield {DROPPED: "schema without a blank line after it"}
    first, last = (int(bound) if bound else None for bound in files[0].key.split(":"))
    yield from [{"id": str(place), **record} for place, record in enumerate(records)][first:last]


def format_sql(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """WikiSQL: questions beside tables; ``reference`` holds ``sql`` and ``header``."""
    headers = dict(_headers(files[1]))
    for number, row in read_json_lines(files[0]):
        name = text_field(files[0], number, row, "table_id")
        if name not in headers:
            raise malformed(files[0], number, f"there is no table {name!r}.")
        header = headers[name]
        try:
            query = write_query(row["sql"], header)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise malformed(files[0], number, f"`sql` is missing or malformed ({error!r}).") from error
        reference = {"sql": row["sql"], "header": header}
        context = write_table(header, text_field(files[0], number, row, "question"))
        yield {"line": number, "context": context, "answers": [query], "reference": reference}


def _headers(file: File) -> Iterator[tuple[str, list[str]]]:
    for number, row in read_json_lines(file):
        header: Any = row.get("header")
        if not isinstance(header, list) or not all(isinstance(name, str) for name in header):
            raise malformed(file, number, "`header` must be a list of strings.")
        yield text_field(file, number, row, "id"), header


_METADATA: Final = re.compile(r"<(url|keywords|talkid|description|reviewer|translator|title|speaker)")
_SEGMENT: Final = re.compile(r"\s*<seg [^>]*>(.*)</seg>\s*")


def format_talks(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """IWSLT: files of ``source`` and ``target`` sentences, without the metadata of the talks and without markup."""
    for source, target in zip_longest(*map(_sentences, files)):
        if source is None or target is None:
            raise malformed(files[0], None, f"has not as many lines as {files[1]}.")
        yield {"line": source[0], "source": source[1].strip(), "target": target[1].strip()}


def _sentences(file: File) -> Iterator[tuple[int, str]]:
    is_xml = (file.member or file.path.name).endswith(".xml")
    for number, line in read_lines(file):
        segment = _SEGMENT.fullmatch(line) if is_xml else None
        if segment:
            yield number, html.unescape(segment[1])
        elif not is_xml and not _METADATA.search(line):
            yield number, line


_SENTENCE_ENDS: Final = (".", "!", "?", "...", "'", "`", '"', "\u2019", "\u201d", ")")
_HIGHLIGHT: Final = "@highlight"


def format_stories(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """CNN/Daily Mail: a list of stories, by name or by address, beside the stories, of the publisher of the key."""
    names = set()
    for line in filter(None, (line.strip() for _, line in read_lines(files[0]))):
        hashed = hashlib.sha1(line.encode(), usedforsecurity=False).hexdigest()
        names.add(hashed if "://" in line else line.removesuffix(".story"))
    for found, text in read_texts(files[1], r"(?:.*/)?([^/]+)\.story"):
        if found[1] not in names:
            continue
        names.remove(found[1])
        article, highlights = _split_story(files[1], text)
        if article and highlights:
            yield {"id": f"{files[1].key}/{found[1]}", "context": article, "answers": [highlights]}
        else:
            yield {DROPPED: "story without article or highlights"}
    if names:
        yield {DROPPED: "story is not there", TIMES: len(names)}


def _split_story(file: File, text: str) -> tuple[str, str]:
    """Return article and highlights, each on one line, with full stops where they are missing."""
    article: list[str] = []
    highlights: list[str] = []
    current = article
    for line in map(str.strip, text.split("\n")):
        if line.startswith(_HIGHLIGHT):
            current = highlights
        elif _HIGHLIGHT in line:
            raise malformed(file, None, f"has {_HIGHLIGHT} inside a line.")
        elif line:
            current.append(line if line.endswith(_SENTENCE_ENDS) else line + ".")
    return unicodedata.normalize("NFKC", " ".join(article)), unicodedata.normalize("NFKC", " ".join(highlights))


def format_movie_reviews(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """Large movie reviews: as JSON lines, or the part of the key of the official folder or archive."""
    if ".jsonl" in files[0].path.name:
        for number, row in read_json_lines(files[0]):
            name, label, text = (text_field(files[0], number, row, field) for field in ("id", "label", "text"))
            yield {"id": name, "label": label, "context": text.partition("\n")[0]}
        return
    for found, text in read_texts(files[0], rf"(?:aclImdb/)?({files[0].key}/(pos|neg)/[^/]+)\.txt"):
        yield {"id": found[1], "label": found[2], "context": text.partition("\n")[0]}


_REVIEW: Final = re.compile(r"<review>(.*?)</review>", re.DOTALL)
_TEXT: Final = re.compile(r"<review_text>(.*?)</review_text>", re.DOTALL)
_SHARES: Final = {"train": (0.0, 0.7), "dev": (0.7, 0.8), "test": (0.8, 1.0)}


def format_product_reviews(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """Multi-domain sentiment: pseudo-XML by domain and label, without an official split (``_SHARES`` of each file).

    Where ``splits.json`` lies beside the archive, it gives the indices: domain -> key -> label -> list.
    """
    path = files[0].path.with_name("splits.json")
    splits = read_json_value(File(path)) if path.exists() else None
    if splits is not None and not any(files[0].key in of_domain for of_domain in splits.values()):
        raise MissingFileError(f"{path} has no {files[0].key} part.")
    pattern = r"(?:\./)?sorted_data_acl/([^/]+)/(negative|positive)\.review"
    for found, text in read_texts(files[0], pattern, "latin-1"):
        domain, label = found.groups()
        reviews = _REVIEW.findall(text)
        if splits is None:
            indices: Iterable[int] = range(*(round(share * len(reviews)) for share in _SHARES[files[0].key]))
        else:
            indices = splits[domain][files[0].key][label]
        for index in indices:
            review = _TEXT.search(reviews[index]) if 0 <= index < len(reviews) else None
            if review is None:
                raise malformed(files[0], None, f"{found[0]} has no review {index} with a <review_text>.")
            yield {"id": f"{domain}/{label}/{index}", "domain": domain, "label": label, "context": review[1].strip()}


def _listed(entities: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{text} -- {kind}" for text, kind in entities) or "None"


def format_entities_by_token(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """WNUT-17: ``token TAB tag`` a line with BIO tags, a blank line after each sentence."""
    for is_sentence, lines in groupby(read_lines(files[0]), lambda line: bool(line[1].strip())):
        tokens, tags = [], []
        for number, line in lines if is_sentence else ():
            token, _, tag = line.partition("\t")
            if not token or (tag != "O" and tag[:2] not in ("B-", "I-")):
                raise malformed(files[0], number, f"expected a token, a tab and a BIO tag, found {line!r}.")
            tokens.append(token)
            tags.append(tag)
        if is_sentence:
            found = [(" ".join(tokens[a:b]), kind.replace("-", " ")) for kind, a, b in entities_of(tags)]
            yield {"context": " ".join(tokens), "answers": [_listed(found)]}


def format_context_question_answer(files: Sequence[File], _part: Part) -> Iterator[Record]:
    """JSON lines ``{context, question, answer}``; the answer is a string or a list of strings, all of them right."""
    for number, row in read_json_lines(files[0]):
        answer = row.get("answer")
        answers = [answer] if isinstance(answer, str) else answer
        if not isinstance(answers, list) or not answers or not all(isinstance(text, str) for text in answers):
            raise malformed(files[0], number, "`answer` must be a string or a list of one or more strings.")
        context, question = (text_field(files[0], number, row, field) for field in ("context", "question"))
        yield {"line": number, "context": context, "question": question, "answers": answers}
