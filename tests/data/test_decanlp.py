"""Tasks of dataset files: exact examples of a few rows of our own, errors that say where, counts of the real files."""

import bz2
import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mqan_core.errors import MqanError
from mqan_core.example import Example
from mqan_data.files import DatasetError, MissingFileError
from mqan_data.tasks import task_named, tasks

FIXTURES = Path(__file__).parent / "fixtures"
SENTIMENT = "Is this review negative or positive?"
THREE = "entailment, neutral, or contradiction?"


def read(name: str, split: str, data: Path = FIXTURES, dropped: Counter[str] | None = None) -> list[Example]:
    task = task_named(name)
    return list(task.read(data / task.folder, split, dropped))


def write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def write_tar(path: Path, files: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:bz2" if path.suffix == ".bz2" else "w:gz") as archive:
        for name, content in files.items():
            encoded = content if isinstance(content, bytes) else content.encode()
            member = tarfile.TarInfo(name)
            member.size = len(encoded)
            archive.addfile(member, io.BytesIO(encoded))


def write_zip(path: Path, files: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


# --- SQuAD


def test_squad_keeps_the_context_and_normalises_the_question() -> None:
    dropped: Counter[str] = Counter()
    first, second = read("squad", "train", dropped=dropped)
    assert first.context == "The lamp of Cape Foam was lit in 1871.  It burned whale oil until 1902."
    assert (first.id, first.question, first.answers) == ("a1", "When was the lamp of Cape Foam lit?", ("1871",))
    assert first.answer_start is not None
    assert first.context[first.answer_start :].startswith("1871")
    assert second.answer_start is None  # the file says 0, where something else stands
    assert dropped == {"start that does not point at its answer (the question stays)": 1}
    (example,) = read("squad", "validation")
    assert example.answers == ("Ann Rae", "Rae", "Ann Rae")
    assert example.answer_start == 0


# --- SQuAD with unanswerable questions


def write_articles(folder: Path, *articles: list[tuple[str, list[tuple[str, str]]]]) -> None:
    document = [
        {
            "paragraphs": [
                {
                    "context": context,
                    "qas": [
                        {"id": q, "question": q, "answers": [{"text": a, "answer_start": context.index(a)}]}
                        for q, a in asked
                    ],
                }
                for context, asked in paragraphs
            ]
        }
        for paragraphs in articles
    ]
    write(folder / "squad" / "train-v1.1.json", json.dumps({"data": document}))


def test_unanswerable_questions_are_asked_of_the_next_paragraph_of_the_article(tmp_path: Path) -> None:
    lamp = ("The lamp was lit in 1871.", [("when?", "1871"), ("what was lit?", "The lamp")])
    keeper = ("Ann kept it from 1871 on.", [("who?", "Ann")])
    write_articles(tmp_path, [lamp, ("No questions.", []), keeper], [("Alone.", [("how?", "Alone")])])
    dropped: Counter[str] = Counter()
    found = read("squad_unanswerable", "train", tmp_path, dropped)
    assert [(e.id, e.context, e.question, e.answers) for e in found] == [
        ("what was lit?", lamp[0], "what was lit?", ("The lamp",)),
        ("who?/next", lamp[0], "who?", ("unanswerable",)),
        ("who?", keeper[0], "who?", ("Ann",)),
        ("what was lit?/next", keeper[0], "what was lit?", ("unanswerable",)),
    ]
    assert {e.task for e in found} == {"squad_unanswerable"}
    assert found[0].answer_start == 0
    assert dropped == {"the next paragraph holds the answer, too": 1, "the article has one paragraph only": 1}


# --- WOZ


def test_woz_asks_for_the_change_of_state_of_each_turn() -> None:
    examples = read("woz", "train")
    assert {example.question for example in examples} == {"What is the change in state?"}
    assert [(e.id, e.context, e.answers[0]) for e in examples] == [
        ("en_0_0", "Somewhere cheap in the north, please.", "price range: cheap, area: north;"),
        ("en_0_1", "food, area: north -- Thai. And the phone number?", "food: thai; phone"),
        ("en_0_2", "And address and postcode?", "; address, postcode"),
        ("en_0_3", "area -- Thanks!", "None"),
        ("en_0_4", "Rather dear than cheap.", "price range: expensive;"),
        ("en_1_0", "Hello.", "None"),
    ]
    assert examples[1].reference == {"dialogue": 0, "turn": 1, "inform": {"food": "thai"}, "request": ["phone"]}
    assert json.loads(json.dumps(examples[5].reference)) == {"dialogue": 1, "turn": 0, "inform": {}, "request": []}


# --- MWSC

SCHEMAS = """The vase fell off the shelf because it was [round/crooked]. 
What was [round/crooked]?
vase/shelf

[Ann/Bo] waved, then [left/sat].
Who waved?
A/B
 
Ida met Eva when she was [lost/home].
Who was [lost/home]?
Ida/Eva
"""


@pytest.fixture
def mwsc(tmp_path: Path) -> Path:
    plain = "Jo saw Al as he was [{0}/not {0}].\nWho was [{0}/not {0}]?\nJo/Al\n\n"
    filler = "".join(plain.format(number) for number in range(89))
    write(tmp_path / "mwsc" / "schema.txt", filler + SCHEMAS)
    return tmp_path


def test_mwsc_splits_are_in_file_order(mwsc: Path) -> None:
    dropped: Counter[str] = Counter()
    train, validation, test = (read("mwsc", split, mwsc, dropped) for split in ("train", "validation", "test"))
    assert [len(examples) for examples in (train, validation, test)] == [80, 2, 100]
    assert [int(example.id) for example in train + validation + test] == list(range(182))
    assert dropped == {"schema without a blank line after it": 3}  # once a split


def test_mwsc_fills_in_both_variants_and_is_greedy_as_the_original(mwsc: Path) -> None:
    assert [(e.context, e.question, e.answers[0]) for e in read("mwsc", "test", mwsc)[-4:]] == [
        ("The vase fell off the shelf because it was round.", "What was round? vase or shelf?", "vase"),
        ("The vase fell off the shelf because it was crooked.", "What was crooked? vase or shelf?", "shelf"),
        ("Ann.", "Who waved? A or B?", "A"),
        ("Bo] waved, then [left.", "Who waved? A or B?", "B"),
    ]


# --- IMDB

REVIEWS = {
    "aclImdb/README": b"not a review",
    "aclImdb/train/neg/0_3.txt": b"Dull.<br />Very.",
    "aclImdb/train/pos/0_9.txt": "Déjà vu, gladly.\nA second line.".encode(),
    "aclImdb/train/unsup/0_0.txt": b"unlabelled",
    "aclImdb/test/pos/0_10.txt": b"Test.",
}
TRAIN_REVIEWS = [
    ("train/neg/0_3", "Dull.<br />Very.", ("negative",)),
    ("train/pos/0_9", "Déjà vu, gladly.", ("positive",)),
]


def test_imdb_reads_the_official_archive_the_folder_and_json_lines_alike(tmp_path: Path) -> None:
    for layout in ("archive", "unpacked", "lines"):
        folder = tmp_path / layout / "imdb"
        folder.mkdir(parents=True)
        if layout == "archive":
            write_tar(folder / "aclImdb_v1.tar.gz", REVIEWS)
        elif layout == "unpacked":
            for name, content in REVIEWS.items():
                write(folder / name, content)
        else:
            rows = [
                {"id": name[8:-4], "label": name.split("/")[2], "text": content.decode()}
                for name, content in REVIEWS.items()
                if name.startswith(("aclImdb/train/neg", "aclImdb/train/pos"))
            ]
            with gzip.open(folder / "aclImdb.train.jsonl.gz", "wt", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        examples = read("imdb", "train", tmp_path / layout)
        assert [(example.id, example.context, example.answers) for example in examples] == TRAIN_REVIEWS
        assert {example.question for example in examples} == {SENTIMENT}
    assert [example.id for example in read("imdb", "test", tmp_path / "archive")] == ["test/pos/0_10"]


@pytest.mark.parametrize(
    ("task", "path"),
    [
        ("imdb", "imdb/aclImdb_v1.tar.gz"),
        ("imdb", "imdb/aclImdb.train.jsonl.gz"),
        ("zre", "zre/relation_splits.tar.bz2"),
    ],
)
def test_a_damaged_archive_is_a_dataset_error(tmp_path: Path, task: str, path: str) -> None:
    pack = bz2.compress if path.endswith("bz2") else gzip.compress
    for content in (b"not packed", pack(b"x" * 10_000)[:-12]):
        write(tmp_path / path, content)
        with pytest.raises(DatasetError, match=r"damaged or incomplete"):
            read(task, "train", tmp_path)


# --- product reviews


def reviews(label: str, number: int) -> bytes:
    review = "<review>\n<title>\nT\n</title>\n<review_text>\n{} caf\xe9 {}\n\nagain \n</review_text>\n</review>\n"
    return "".join(review.format(label, index) for index in range(number)).encode("latin-1")


@pytest.fixture
def products(tmp_path: Path) -> Path:
    folder = tmp_path / "multidomain"
    folder.mkdir()
    files = {
        f"sorted_data_acl/{domain}/{label}.review": reviews(label, 10)
        for domain in ("books", "kitchen_&_housewares")
        for label in ("negative", "positive", "unlabeled")
    }
    write_tar(folder / "domain_sentiment_data.tar.gz", files)
    return tmp_path


def test_product_reviews_without_splits_are_cut_by_position(products: Path) -> None:
    examples = {split: read("product_reviews", split, products) for split in ("train", "validation", "test")}
    assert [len(rows) for rows in examples.values()] == [28, 4, 8]
    assert len({example.id for rows in examples.values() for example in rows}) == 40
    first = examples["train"][0]
    assert first == Example(
        "product_reviews", "books/negative/0", "negative caf\xe9 0\n\nagain", SENTIMENT, ("negative",)
    )
    assert examples["validation"][-1].id == "kitchen_&_housewares/positive/7"


def test_product_reviews_follow_a_splits_file(products: Path) -> None:
    per_label = {"negative": [3], "positive": [9, 1]}
    splits: dict[str, Any] = {
        domain: {"train": per_label, "dev": per_label} for domain in ("books", "kitchen_&_housewares")
    }
    path = products / "multidomain" / "splits.json"
    path.write_text(json.dumps(splits))
    assert [example.id for example in read("product_reviews", "validation", products)][:3] == [
        "books/negative/3",
        "books/positive/9",
        "books/positive/1",
    ]
    with pytest.raises(MissingFileError, match=r"splits\.json has no test part"):
        read("product_reviews", "test", products)
    splits["books"]["train"] = {"negative": [10], "positive": []}
    path.write_text(json.dumps(splits))
    with pytest.raises(DatasetError, match="has no review 10"):
        read("product_reviews", "train", products)


# --- JSON lines


def test_jsonl_takes_one_answer_or_several() -> None:
    first, second = read("jsonl:emotion", "train")
    assert first == Example(
        "jsonl:emotion", "train/1", "My train left without me.", "Is this message happy or angry?", ("angry",)
    )
    assert (second.id, second.answers) == ("train/3", ("happy", "joyful"))
    assert len(read("jsonl:emotion", "validation")) == 1
    assert task_named("jsonl:mine:nf1").metric == "nf1"
    with pytest.raises(ValueError, match="scored by em, nf1, .*; 'lfem' is none"):
        task_named("jsonl:mine:lfem")
    with pytest.raises(MissingFileError, match=r"found no test\.jsonl in .*emotion\. .*Put \./ before"):
        read("jsonl:emotion", "test")


# --- translation


def test_multi30k_translates_both_ways_and_drops_empty_pairs(tmp_path: Path) -> None:
    write(tmp_path / "multi30k" / "val.en", "A dog.\n\n Two cats. \n")
    write(tmp_path / "multi30k" / "val.de", "Ein Hund.\nLeer.\nZwei Katzen.\n")
    dropped: Counter[str] = Counter()
    english, _ = read("multi30k.en.de", "validation", tmp_path, dropped)
    assert english == Example(
        "multi30k.en.de", "validation/1", "A dog.", "Translate from English to German", ("Ein Hund.",)
    )
    assert dropped == {"no text or no answer": 1}
    _, german = read("multi30k.de.en", "validation", tmp_path)
    assert (german.id, german.context, german.answers) == ("validation/3", "Zwei Katzen.", ("Two cats.",))
    assert german.question == "Translate from German to English"


def test_iwslt_reads_the_official_markup_packed_and_unpacked(tmp_path: Path) -> None:
    files = {
        "en-de/train.tags.en-de.en": "<url>x</url>\n<title>T</title>\nHello & bye.\n<speaker>S</speaker>\nYes.\n",
        "en-de/train.tags.en-de.de": "<url>x</url>\n<title>T</title>\nHallo & tschüss.\nJa.\n",
        "en-de/IWSLT16.TED.tst2013.en-de.en.xml": '<doc docid="1">\n<title>T</title>\n<seg id="1"> Q &amp; A. </seg>\n',
        "en-de/IWSLT16.TED.tst2013.en-de.de.xml": '<doc docid="1">\n<seg id="1"> F &amp; A. </seg>\n</doc>\n',
    }
    write_tar(tmp_path / "packed" / "iwslt" / "en-de.tgz", files)
    for name, content in files.items():
        write(tmp_path / "unpacked" / "iwslt" / name, content)
    for layout in ("packed", "unpacked"):
        pairs = [(e.context, e.answers[0]) for e in read("iwslt.en.de", "train", tmp_path / layout)]
        assert pairs == [("Hello & bye.", "Hallo & tschüss."), ("Yes.", "Ja.")]
        (example,) = read("iwslt.en.de", "validation", tmp_path / layout)
        assert (example.context, example.answers) == ("Q & A.", ("F & A.",))
        assert example.question == "Translate from English to German"


# --- summaries

STORY = (
    "(CNN) -- It rained \n\nPeople said \u201cfine\u201d\n\n"
    "@highlight\n\nRain \ufb01nally\n\n@highlight\n\nWho cares?\n"
)


def test_cnn_dailymail_reads_the_official_lists(tmp_path: Path) -> None:
    folder = tmp_path / "cnn_dailymail"
    name = hashlib.sha1(b"http://a/1").hexdigest()
    empty = hashlib.sha1(b"http://a/2").hexdigest()
    write_tar(
        folder / "cnn_stories.tgz",
        {"cnn/stories/other.story": STORY, f"cnn/stories/{name}.story": STORY, f"cnn/stories/{empty}.story": "A.\n"},
    )
    write(folder / "dailymail" / "stories" / f"{name}.story", STORY)
    write(folder / "cnn_wayback_training_urls.txt", "http://a/1\nhttp://a/2\nhttp://a/3\n")
    write(folder / "dailymail_wayback_training_urls.txt", "http://a/1\n")
    dropped: Counter[str] = Counter()
    first, second = read("cnn_dailymail", "train", tmp_path, dropped)
    assert (first.id, second.id) == (f"cnn/{name}", f"dailymail/{name}")
    assert (first.context, first.question) == (
        "(CNN) -- It rained. People said \u201cfine\u201d",
        "What is the summary?",
    )
    assert first.answers == ("Rain finally. Who cares?",)  # NFKC undoes the ligature
    assert dropped == {"story without article or highlights": 1, "story is not there": 1}
    assert task_named("cnn_dailymail").max_context_tokens == 400


def test_cnn_dailymail_reads_a_plain_list(tmp_path: Path) -> None:
    write_tar(
        tmp_path / "cnn_dailymail" / "cnn_stories.tgz", {"cnn/stories/b.story": STORY, "cnn/stories/a.story": STORY}
    )
    write(tmp_path / "cnn_dailymail" / "val.txt", "a.story\nb.story\n")
    assert [example.id for example in read("cnn_dailymail", "validation", tmp_path)] == ["cnn/b", "cnn/a"]
    write_tar(tmp_path / "cnn_dailymail" / "cnn_stories.tgz", {"cnn/stories/b.story": "text @highlight text"})
    with pytest.raises(DatasetError, match="inside a line"):
        read("cnn_dailymail", "validation", tmp_path)


# --- inference


def test_multinli_and_snli_read_json_lines_plain_and_zipped(tmp_path: Path) -> None:
    row = json.dumps({"sentence1": "It rains.", "sentence2": "It is wet.", "gold_label": "neutral", "pairID": "7n"})
    write_zip(
        tmp_path / "multinli" / "multinli_1.0.zip",
        {f"multinli_1.0/multinli_1.0_{part}.jsonl": row + "\n" for part in ("dev_matched", "dev_mismatched")},
    )
    write(tmp_path / "snli" / "snli_1.0_dev.jsonl", row)
    matched, mismatched = read("multinli", "validation", tmp_path)
    assert matched == Example(
        "multinli", "dev_matched/7n", 'Premise: "It rains."', f'Hypothesis: "It is wet." -- {THREE}', ("neutral",)
    )
    assert mismatched.id == "dev_mismatched/7n"
    (example,) = read("snli", "validation", tmp_path)
    assert (example.id, example.context, example.question) == ("validation/1", matched.context, matched.question)
    with pytest.raises(DatasetError, match=r"multinli_1\.0\.zip\(.*_train\.jsonl\): is not in the archive"):
        read("multinli", "train", tmp_path)


def test_multinli_says_when_the_mismatched_half_is_not_there(tmp_path: Path) -> None:
    write(tmp_path / "multinli" / "multinli_1.0_dev_matched.jsonl", "")
    dropped: Counter[str] = Counter()
    assert read("multinli", "validation", tmp_path, dropped) == []
    (reason,) = dropped
    assert reason.startswith("found no multinli_1.0_dev_mismatched.jsonl, ")
    with pytest.raises(MissingFileError):
        read("multinli", "train", tmp_path)


def test_sick_rte_and_xnli_read_tables(tmp_path: Path) -> None:
    extra = tmp_path / "nli_extra"
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    write_zip(extra / "sick" / "sick_trial.zip", {"SICK_trial.txt": header + '4\tA "boy"\tB\t3.6\tCONTRADICTION\r\n'})
    (example,) = read("sick", "validation", tmp_path)
    assert example == Example("sick", "4", 'Premise: "A "boy""', f'Hypothesis: "B" -- {THREE}', ("contradiction",))

    write(extra / "rte" / "dev.tsv", "index\tsentence1\tsentence2\tlabel\n0\tA\tB\tnot_entailment\n")
    (example,) = read("rte", "validation", tmp_path)
    assert (example.question, example.answers) == (
        'Hypothesis: "B" -- entailment or not entailment?',
        ("not entailment",),
    )

    rows = "language\tgold_label\tsentence1\tsentence2\nde\tneutral\tX\tY\nen\tentailment\tA\tB\n"
    write_zip(extra / "xnli" / "XNLI-1.0.zip", {"XNLI-1.0/xnli.dev.tsv": rows})
    (example,) = read("xnli", "validation", tmp_path)
    assert (example.id, example.context, example.answers) == ("validation/3", 'Premise: "A"', ("entailment",))


# --- roles

ROLES = (
    "WIKI1_7\t2\n"
    "The boats -LRB- two of them -RRB- did n't sink , `` they '' said .\n"
    "6\tsink\t2\n"
    "what\tdid\t_\tn't sink\t_\t_\t_\t?\tThe boats ### two of them ### ships\n"
    "what\tmight\tsomething\tsink\t_\tin\t_\t?\tThe Boats\n"
    "11\tsaid\t0\n"
    "\n"
)


def test_qasrl_writes_questions_and_answers_as_text(tmp_path: Path) -> None:
    write(tmp_path / "qasrl" / "wiki1.dev.qa", ROLES)
    dropped: Counter[str] = Counter()
    first, second = read("qasrl", "validation", tmp_path, dropped)
    assert first.context == "The boats (two of them) didn't sink, they said."
    assert first.question == "what didn't sink?"
    assert first.answers == ("The boats", "two of them", "ships")
    assert first.id == "WIKI1_7/4"
    assert (second.question, second.answers) == ("what might something sink in?", ("The boats",))
    assert dropped == {"answer is not in the sentence (the example stays)": 1}


# --- relations


def test_zre_joins_answers_and_knows_the_unanswerable(tmp_path: Path) -> None:
    rows = "r\tWho made XXX?\tBox\tAnn and Bo made Box.\tAnn\tBo\nr\tWhen did XXX sink?\tBox\tAnn made Box.\n"
    for data, name in ((tmp_path / "a", "dev.0"), (tmp_path / "b", "relation_splits/dev.0")):
        write(data / "zre" / name, rows)
    write_tar(tmp_path / "c" / "zre" / "relation_splits.tar.bz2", {"relation_splits/dev.0": rows})
    for layout in "abc":
        first, second = read("zre", "validation", tmp_path / layout)
        assert first == Example("zre", "validation/1", "Ann and Bo made Box.", "Who made Box?", ("Ann, Bo",))
        assert (second.context, second.answers) == ("Ann made Box.", ("unanswerable",))


# --- SQL

TABLES = json.dumps({"id": "t", "header": ["Ship", "Year built"]}) + "\n"
KEY_WORDS = (
    "MAX, MIN, COUNT, SUM, AVG, =, >, <, OP, SELECT, WHERE, AND, COL, TABLE, CAPTION, PAGE, SECTION, OP, COND, "
    "QUESTION, AGG, AGGOPS, CONDOPS"
)


def test_wikisql_has_the_question_in_the_context(tmp_path: Path) -> None:
    sql = {"sel": 0, "agg": 3, "conds": [[1, 1, 1900], [0, 0, "Ark  Royal"]]}
    row = json.dumps({"table_id": "t", "question": "How many?", "sql": sql}) + "\n"
    write(tmp_path / "wikisql" / "dev.tables.jsonl", TABLES)
    write(tmp_path / "wikisql" / "dev.jsonl", row)
    write_tar(
        tmp_path / "packed" / "wikisql" / "data.tar.bz2", {"data/dev.tables.jsonl": TABLES, "data/dev.jsonl": row}
    )
    (example,) = read("wikisql", "validation", tmp_path)
    assert example.context == f"The table has columns Ship, Year built and key words {KEY_WORDS}-- How many?"
    assert example.question == "What is the translation from English to SQL?"
    assert example.answers == ("SELECT COUNT Ship FROM table WHERE Year built > 1900 AND Ship = Ark Royal",)
    assert example.reference == {"sql": sql, "header": ["Ship", "Year built"]}
    assert read("wikisql", "validation", tmp_path / "packed") == [example]


# --- transfer


def test_wnut17_lists_entities_with_their_types(tmp_path: Path) -> None:
    rows = (
        "Rae\tB-person\nof\tO\nCape\tB-location\nFoam\tI-location\nAcme\tB-corporation\nLoud\tI-creative-work\n"
        "Ann\tB-person\nBo\tB-person\n\t\n\nNothing\tO\n"
    )
    write(tmp_path / "wnut17" / "emerging.dev.conll", rows)
    first, second = read("wnut17", "validation", tmp_path)
    assert first.context == "Rae of Cape Foam Acme Loud Ann Bo"
    assert first.question == "What are the tags for all entities?"
    assert first.answers == (
        "Rae -- person; Cape Foam -- location; Acme -- corporation; Loud -- creative work; Ann -- person; Bo -- person",
    )
    assert (second.context, second.answers) == ("Nothing", ("None",))


# --- all tasks

_SQUAD = '{"data": [{"paragraphs": [{"context": "c", "qas": [{"id": "1", "question": "q?"}]}]}]}'
_RTE = "index\tsentence1\tsentence2\tlabel\n0\tA\tB\t"


@pytest.mark.parametrize(
    ("task", "path", "content", "message"),
    [
        (
            "sst",
            "sst/dev_binary_sent.csv",
            "label,sentence\n1,ok\n2,fine\n",
            r"dev_binary_sent\.csv:2: unknown label '2'",
        ),
        ("sst", "sst/dev_binary_sent.csv", "label,sentence\n1,a,b\n", r"dev_binary_sent\.csv:2: expected 2 columns"),
        ("squad", "squad/dev-v1.1.json", "{", r"dev-v1\.1\.json: not JSON"),
        ("squad", "squad/dev-v1.1.json", "[]", "squad, validation: a row does not fit"),
        ("squad", "squad/dev-v1.1.json", _SQUAD, "squad, validation: a row does not fit .*answers"),
        ("mwsc", "mwsc/schema.txt", "c [a/b]\nq?\n\n", r"schema\.txt:3: expected three lines"),
        ("mwsc", "mwsc/schema.txt", "c [a/b]\nq?\na b\n\n", r"schema\.txt:4: .* the last with a slash"),
        ("mwsc", "mwsc/schema.txt", "c [a]\nq?\na/b\n\n", "mwsc, validation: a row does not fit"),
        ("rte", "nli_extra/rte/dev.tsv", "index\tsentence1\tlabel\n0\tA\tB\n", "a row does not fit .*sentence2"),
        ("rte", "nli_extra/rte/dev.tsv", _RTE + "entailment\tx\n", r"dev\.tsv:2: expected 4 columns, found 5"),
        ("rte", "nli_extra/rte/dev.tsv", _RTE + "maybe\n", r"dev\.tsv\):2: unknown label 'maybe'"),
        ("qasrl", "qasrl/wiki1.dev.qa", ROLES.replace("_\tin\t_\t?", "_\tin\t?"), r"dev\.qa:5: expected a question"),
        ("zre", "zre/dev.0", "r\tq\ts\n", r"dev\.0:1: expected at least 4 columns, found 3"),
        ("wnut17", "wnut17/emerging.dev.conll", "Rae person\n", r"dev\.conll:1: expected a token, a tab and a BIO tag"),
        ("multi30k.en.de", "multi30k/val.en", "A dog.\nA cat.\n", r"val\.en: has not as many lines as .*val\.de"),
        ("wikisql", "wikisql/dev.jsonl", '{"table_id": "u", "question": "q"}', r"dev\.jsonl:1: there is no table 'u'"),
        ("wikisql", "wikisql/dev.jsonl", '{"table_id": "t", "question": "q"}', r"dev\.jsonl:1: `sql` is missing"),
        ("jsonl:mine", "mine/val.jsonl", "[]", r"val\.jsonl:1: expected a JSON object, found list"),
        ("jsonl:mine", "mine/val.jsonl", '{"context": "c", "question": "q", "answer": []}', ":1: `answer` must be"),
        (
            "jsonl:mine",
            "mine/val.jsonl",
            '{"context": 3, "question": "q", "answer": "a"}',
            ":1: `context` must be",
        ),
        ("jsonl:mine", "mine/val.jsonl", '{"context": "c", "answer": "a"}', ":1: `question` must be .* it is missing"),
        ("jsonl:mine", "mine/val.jsonl", b"\xff", ":1: not utf-8"),
    ],
)
def test_a_malformed_row_is_named(tmp_path: Path, task: str, path: str, content: str | bytes, message: str) -> None:
    write(tmp_path / "wikisql" / "dev.tables.jsonl", TABLES)
    write(tmp_path / "multi30k" / "val.de", "Ein Hund.\n")
    write(tmp_path / path, content)
    with pytest.raises(DatasetError, match=message):
        read(task, "validation", tmp_path)


def test_task_named_suggests_near_names() -> None:
    assert task_named("sst") is tasks()["sst"]
    with pytest.raises(ValueError, match=r"no task 'squd'. Did you mean squad\?"):
        task_named("squd")
    with pytest.raises(ValueError, match=r"Known tasks: cnn_dailymail, imdb, iwslt.en.de"):
        task_named("???")


SPLITS_OF_TASKS = [(name, split) for name, task in tasks().items() for split in task.splits]


@pytest.mark.parametrize(("name", "split"), SPLITS_OF_TASKS)
def test_a_missing_file_says_where_it_was_looked_for(tmp_path: Path, name: str, split: str) -> None:
    folder = tmp_path / tasks()[name].folder
    with pytest.raises(FileNotFoundError) as caught:
        read(name, split, tmp_path)
    assert isinstance(caught.value, MqanError)
    assert str(folder) in str(caught.value)
    assert f"`mqan data get {name}`" in str(caught.value)
    assert "`--data DIR`" in str(caught.value)


@pytest.mark.parametrize("name", tasks())
def test_tasks_are_consistent(name: str) -> None:
    task = tasks()[name]
    assert task.name == name
    assert set(task.splits) <= {"train", "validation", "test"}
    assert all(source.url.startswith("https://") for source in task.sources)
    assert len({source.path for source in task.sources}) == len(task.sources)
    assert all(not source.sha256 or len(source.sha256) == 64 for source in task.sources)
    with pytest.raises(ValueError, match="has no split 'dev'"):
        read(name, "dev")


COUNTS = [
    ("squad", "train", 87_599), ("squad", "validation", 10_570),
    ("squad_unanswerable", "train", 166_510), ("squad_unanswerable", "validation", 19_632),
    ("sst", "train", 6_920), ("sst", "validation", 872),
    ("woz", "train", 2_536), ("woz", "validation", 830),
    ("mwsc", "train", 80), ("mwsc", "validation", 82),
    ("imdb", "train", 25_000),
    ("product_reviews", "train", 5_600), ("product_reviews", "validation", 800),
    ("iwslt.en.de", "train", 11_804), ("iwslt.en.de", "validation", 1_700),
    ("multi30k.en.de", "train", 29_000),
    ("multi30k.cs.en", "validation", 1_014),
    ("cnn_dailymail", "validation", 500),
    ("multinli", "train", 8_066), ("multinli", "validation", 2_000),
    ("sick", "train", 4_500), ("sick", "validation", 500),
    ("rte", "train", 2_490), ("rte", "validation", 277),
    ("xnli", "validation", 2_490),
    ("qasrl", "train", 6_414), ("qasrl", "validation", 2_183),
    ("zre", "train", 2_980), ("zre", "validation", 426),
    ("wikisql", "train", 56_355), ("wikisql", "validation", 8_421),
    ("subj", "train", 9_000),
    ("wnut17", "train", 3_394), ("wnut17", "validation", 1_009),
]  # fmt: skip


@pytest.mark.data
@pytest.mark.parametrize(("name", "split", "count"), COUNTS)
def test_real_files_have_the_sizes_their_readmes_say(data_folder: Path, name: str, split: str, count: int) -> None:
    examples = read(name, split, data_folder)
    assert len(examples) == count
    assert len({example.id for example in examples}) == count
    assert all(example.task == name and example.question and example.answers[0] for example in examples)
