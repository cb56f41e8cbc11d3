"""Readers: exact templates on a few rows of our own, errors that say where, and the counts of the real files."""

import gzip
import io
import json
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mqan_core.errors import MqanError
from mqan_core.example import Example
from mqan_data.errors import DatasetError, MissingFileError
from mqan_data.readers.jsonl import jsonl_task
from mqan_data.readers.registry import TASKS, task_named
from mqan_data.readers.task import Task

FIXTURES = Path(__file__).parent / "fixtures"
SENTIMENT = "Is this review negative or positive?"


def read(task: Task | str, split: str, data: Path = FIXTURES, dropped: Counter[str] | None = None) -> list[Example]:
    """Read a split of a task below a data folder."""
    task = task_named(task) if isinstance(task, str) else task
    return list(task.read(data / task.folder, split, dropped))


def write_archive(path: Path, files: dict[str, bytes]) -> None:
    """Write a tar.gz with these members."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


# --- SST


def test_sst_asks_for_one_of_two_labels() -> None:
    first, second = read("sst", "train")
    assert first == Example(
        "sst", "train/0", 'Warm, witty and never "cute" for its own sake.', SENTIMENT, ("positive",)
    )
    assert second.answers == ("negative",)
    assert read("sst", "validation")[0].context == "It's neither brave nor new."


@pytest.mark.parametrize("row", ["2,fine", "fine", "1,a,b", ""])
def test_sst_names_the_line_of_a_malformed_row(tmp_path: Path, row: str) -> None:
    (tmp_path / "sst").mkdir()
    (tmp_path / "sst" / "train_binary_sent.csv").write_text(f"label,sentence\n1,ok\n{row}\n0,ok\n")
    with pytest.raises(DatasetError, match=r"train_binary_sent\.csv:3: expected a label 0 or 1"):
        read("sst", "train", tmp_path)


# --- SQuAD


def test_squad_keeps_the_context_and_normalises_the_question() -> None:
    dropped: Counter[str] = Counter()
    first, second = read("squad", "train", dropped=dropped)
    assert first.context == "The lamp of Cape Foam was lit in 1871.  It burned whale oil until 1902."
    assert (first.id, first.question, first.answers) == ("a1", "When was the lamp of Cape Foam lit?", ("1871",))
    assert first.answer_start is not None
    assert first.context[first.answer_start :].startswith("1871")
    assert second.answer_start is None  # the file says 0, where something else stands
    assert dropped == {"answer_start does not point at the answer (the example stays, without it)": 1}


def test_squad_keeps_every_gold_answer() -> None:
    (example,) = read("squad", "validation")
    assert example.answers == ("Ann Rae", "Rae", "Ann Rae")
    assert example.answer_start == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"train-v1\.1\.json:1: not JSON"),
        ("[]", "expected an object with a list `data`"),
        ('{"data": [{"title": "x"}]}', "article 0: missing or malformed field .*paragraphs"),
        (
            '{"data": [{"paragraphs": [{"context": "c", "qas": [{"id": "1", "question": "q?", "answers": []}]}]}]}',
            "article 0, paragraph 0, question 0",
        ),
    ],
)
def test_squad_says_what_is_malformed(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "squad").mkdir()
    (tmp_path / "squad" / "train-v1.1.json").write_text(content)
    with pytest.raises(DatasetError, match=message):
        read("squad", "train", tmp_path)


# --- SQuAD with unanswerable questions


def write_articles(folder: Path, *articles: list[tuple[str, list[tuple[str, str]]]]) -> None:
    """Write a training file of articles: paragraphs, each with its questions and answers."""
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
    (folder / "squad").mkdir()
    (folder / "squad" / "train-v1.1.json").write_text(json.dumps({"data": document}))


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


def test_woz_answers_are_changes_of_state() -> None:
    assert [example.answers for example in read("woz", "train")] == [
        ("price range: cheap, area: north;",),
        ("food: thai; phone",),
        ("; address, postcode",),
        ("None",),
        ("price range: expensive;",),
        ("None",),
    ]


def test_woz_contexts_are_system_acts_and_transcript() -> None:
    examples = read("woz", "train")
    assert {example.question for example in examples} == {"What is the change in state?"}
    assert [example.context for example in examples] == [
        "Somewhere cheap in the north, please.",
        "food, area: north -- Thai. And the phone number?",
        "And address and postcode?",
        "area -- Thanks!",
        "Rather dear than cheap.",
        "Hello.",
    ]


def test_woz_references_place_the_turn_in_its_dialogue() -> None:
    examples = read("woz", "train")
    assert [example.id for example in examples] == ["en_0_0", "en_0_1", "en_0_2", "en_0_3", "en_0_4", "en_1_0"]
    assert examples[1].reference == {"dialogue": 0, "turn": 1, "inform": {"food": "thai"}, "request": ["phone"]}
    assert json.loads(json.dumps(examples[5].reference)) == {"dialogue": 1, "turn": 0, "inform": {}, "request": []}


def test_woz_says_which_turn_is_malformed(tmp_path: Path) -> None:
    (tmp_path / "woz").mkdir()
    turn = {"system_acts": [], "transcript": "Hi.", "belief_state": [{"act": "inform", "slots": [["food"]]}]}
    path = tmp_path / "woz" / "woz_train_en.json"
    path.write_text(json.dumps([{"dialogue": []}, {"dialogue": [turn]}]))
    with pytest.raises(DatasetError, match="dialogue 1, turn 0: missing or malformed"):
        read("woz", "train", tmp_path)
    path.write_text(json.dumps([{"dialogue": []}, {}]))
    with pytest.raises(DatasetError, match="dialogue 1: missing or malformed"):
        read("woz", "train", tmp_path)


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
    """A data folder with 92 schemas, of which 91 end in a blank line."""
    (tmp_path / "mwsc").mkdir()
    plain = "Jo saw Al as he was [{0}/not {0}].\nWho was [{0}/not {0}]?\nJo/Al\n\n"
    filler = "".join(plain.format(number) for number in range(89))
    (tmp_path / "mwsc" / "schema.txt").write_text(filler + SCHEMAS)
    return tmp_path


def test_mwsc_splits_are_in_file_order(mwsc: Path) -> None:
    dropped: Counter[str] = Counter()
    train, validation, test = (read("mwsc", split, mwsc, dropped) for split in ("train", "validation", "test"))
    assert [len(examples) for examples in (train, validation, test)] == [80, 2, 100]
    assert [int(example.id) for example in train + validation + test] == list(range(182))
    assert dropped == {"schema without a blank line after it": 3}  # once a split


def test_mwsc_fills_in_both_variants(mwsc: Path) -> None:
    round_vase, crooked_shelf = read("mwsc", "test", mwsc)[-4:-2]
    assert round_vase.context == "The vase fell off the shelf because it was round."
    assert round_vase.question == "What was round? vase or shelf?"
    assert round_vase.answers == ("vase",)
    assert crooked_shelf.question == "What was crooked? vase or shelf?"
    assert crooked_shelf.answers == ("shelf",)


def test_mwsc_brackets_are_greedy_as_in_the_original(mwsc: Path) -> None:
    first, second = read("mwsc", "test", mwsc)[-2:]
    assert first.context == "Ann."
    assert second.context == "Bo] waved, then [left."
    assert second.question == "Who waved? A or B?"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("c [a/b]\nq?\n\n", r"schema\.txt:3: expected three lines"),
        ("c [a/b]\nq?\na b\n\n", r"schema\.txt:3: expected two answers"),
        ("\nc", r"schema\.txt:1: expected three lines"),
        ("c [a]\nq?\na/b\n\n", r"schema\.txt:1: a bracket needs two variants"),
    ],
)
def test_mwsc_names_the_line_of_a_malformed_schema(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "mwsc").mkdir()
    (tmp_path / "mwsc" / "schema.txt").write_text(content)
    with pytest.raises(DatasetError, match=message):
        read("mwsc", "train", tmp_path)


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
            write_archive(folder / "aclImdb_v1.tar.gz", REVIEWS)
        elif layout == "unpacked":
            for name, content in REVIEWS.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
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


def test_imdb_has_no_validation_split() -> None:
    with pytest.raises(ValueError, match="imdb has no split 'validation'; it has train, test"):
        read("imdb", "validation")


def test_imdb_says_what_is_malformed(tmp_path: Path) -> None:
    folder = tmp_path / "imdb"
    folder.mkdir()
    with gzip.open(folder / "aclImdb.train.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write('{"id": "1", "label": "bad", "text": "x"}\n')
    with pytest.raises(DatasetError, match=r"jsonl\.gz:1: `label` must be pos or neg, found 'bad'"):
        read("imdb", "train", tmp_path)
    (folder / "aclImdb").mkdir()
    with pytest.raises(DatasetError, match=r"neg: holds no reviews"):
        read("imdb", "test", tmp_path)


@pytest.mark.parametrize("content", [b"not gzip", gzip.compress(b"x" * 5000)[:-12]], ids=["not gzip", "cut off"])
def test_a_damaged_archive_is_a_dataset_error(tmp_path: Path, content: bytes) -> None:
    for folder, name in (("imdb", "aclImdb_v1.tar.gz"), ("multidomain", "domain_sentiment_data.tar.gz")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_bytes(content)
    (tmp_path / "lines" / "imdb").mkdir(parents=True)
    (tmp_path / "lines" / "imdb" / "aclImdb.train.jsonl.gz").write_bytes(content)
    for task, data in (("imdb", tmp_path), ("product_reviews", tmp_path), ("imdb", tmp_path / "lines")):
        with pytest.raises(DatasetError, match=r"\.gz"):
            read(task, "train", data)


# --- product reviews


def reviews(label: str, number: int) -> bytes:
    """Write a file of the multi-domain sentiment dataset."""
    review = "<review>\n<title>\nT\n</title>\n<review_text>\n{} caf\xe9 {}\n\nagain \n</review_text>\n</review>\n"
    return "".join(review.format(label, index) for index in range(number)).encode("latin-1")


@pytest.fixture
def products(tmp_path: Path) -> Path:
    """A data folder with two domains of ten reviews a label."""
    folder = tmp_path / "multidomain"
    folder.mkdir()
    files = {
        f"sorted_data_acl/{domain}/{label}.review": reviews(label, 10)
        for domain in ("books", "kitchen_&_housewares")
        for label in ("negative", "positive", "unlabeled")
    }
    write_archive(folder / "domain_sentiment_data.tar.gz", files)
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
    path.write_text("[]")
    with pytest.raises(DatasetError, match=r"splits\.json: expected an object"):
        read("product_reviews", "test", products)
    splits["books"]["test"] = {"positive": [2]}
    path.write_text(json.dumps(splits))
    with pytest.raises(DatasetError, match=r"splits\.json: gives no test indices for books, negative"):
        read("product_reviews", "test", products)
    splits["books"]["train"] = {"negative": [10], "positive": []}
    path.write_text(json.dumps(splits))
    with pytest.raises(DatasetError, match="has no review 10"):
        read("product_reviews", "train", products)
    splits["books"]["train"] = {"negative": ["1"]}
    path.write_text(json.dumps(splits))
    with pytest.raises(DatasetError, match="list of whole numbers"):
        read("product_reviews", "train", products)


# --- JSON lines


def test_jsonl_takes_one_answer_or_several() -> None:
    task = jsonl_task("emotion", "emotion", "em")
    first, second = read(task, "train")
    assert first == Example(
        "emotion", "train/1", "My train left without me.", "Is this message happy or angry?", ("angry",)
    )
    assert (second.id, second.answers) == ("train/3", ("happy", "joyful"))
    assert len(read(task, "validation")) == 1
    with pytest.raises(MissingFileError, match=r"found no test\.jsonl in .*emotion\. A folder is looked for"):
        read(task, "test")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "not JSON"),
        ("[]", "expected a JSON object, found list"),
        ('{"context": "c", "question": "q"}', "`answer` must be a string or a list"),
        ('{"context": "c", "question": "q", "answer": []}', "`answer` must be"),
        ('{"context": "c", "question": "q", "answer": ["a", 1]}', "`answer` must be"),
        ('{"context": 3, "question": "q", "answer": "a"}', "`context` must be a string; it is int"),
        ('{"context": "c", "answer": "a"}', "`question` must be a string; it is missing"),
        (b"\xff", "not utf-8"),
    ],
)
def test_jsonl_names_the_line_of_a_malformed_row(tmp_path: Path, row: str | bytes, message: str) -> None:
    (tmp_path / "mine").mkdir()
    good = b'{"context": "c", "question": "q", "answer": "a"}\n'
    content = row if isinstance(row, bytes) else row.encode()
    (tmp_path / "mine" / "train.jsonl").write_bytes(good + content)
    with pytest.raises(DatasetError, match=rf"train\.jsonl:[12]: {message}"):
        read(jsonl_task("mine", "mine"), "train", tmp_path)


# --- all tasks


def test_task_named_suggests_near_names() -> None:
    assert task_named("sst") is TASKS["sst"]
    with pytest.raises(ValueError, match=r"no task 'squd'. Did you mean squad\?"):
        task_named("squd")
    with pytest.raises(ValueError, match=r"Known tasks: squad, iwslt.en.de"):
        task_named("???")


SPLITS_OF_TASKS = [(name, split) for name, task in TASKS.items() for split in task.splits]


@pytest.mark.parametrize(("name", "split"), SPLITS_OF_TASKS)
def test_a_missing_file_says_where_it_was_looked_for(tmp_path: Path, name: str, split: str) -> None:
    folder = tmp_path / TASKS[name].folder
    with pytest.raises(FileNotFoundError) as caught:
        read(name, split, tmp_path)
    assert isinstance(caught.value, MqanError)
    assert f"in {folder}." in str(caught.value)
    assert f"`mqan data get {name}`" in str(caught.value)
    assert "`--data DIR`" in str(caught.value)


@pytest.mark.parametrize("name", TASKS)
def test_tasks_are_consistent(name: str) -> None:
    task = TASKS[name]
    assert task.name == name
    assert set(task.splits) <= {"train", "validation", "test"}
    assert all(source.url.startswith("https://") for source in task.sources)
    assert len({source.path for source in task.sources}) == len(task.sources)
    assert all(source.sha256 is None or len(source.sha256) == 64 for source in task.sources)
    with pytest.raises(ValueError, match="has no split 'dev'"):
        read(name, "dev")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "split", "count"),
    [
        ("squad", "train", 87_599),
        ("squad", "validation", 10_570),
        ("squad_unanswerable", "train", 166_510),
        ("squad_unanswerable", "validation", 19_632),
        ("sst", "train", 6_920),
        ("sst", "validation", 872),
        ("woz", "train", 2_536),
        ("woz", "validation", 830),
        ("mwsc", "train", 80),
        ("mwsc", "validation", 82),
        ("imdb", "train", 25_000),
        ("product_reviews", "train", 5_600),
        ("product_reviews", "validation", 800),
        ("iwslt.en.de", "train", 11_804),
        ("iwslt.en.de", "validation", 1_700),
        ("multi30k.en.de", "train", 29_000),
        ("multi30k.cs.en", "validation", 1_014),
        ("cnn_dailymail", "validation", 500),
        ("multinli", "train", 8_066),
        ("multinli", "validation", 2_000),
        ("sick", "train", 4_500),
        ("sick", "validation", 500),
        ("rte", "train", 2_490),
        ("rte", "validation", 277),
        ("xnli", "validation", 2_490),
        ("qasrl", "train", 6_414),
        ("qasrl", "validation", 2_183),
        ("zre", "train", 2_980),
        ("zre", "validation", 426),
        ("wikisql", "train", 56_355),
        ("wikisql", "validation", 8_421),
        ("subj", "train", 9_000),
        ("wnut17", "train", 3_394),
        ("wnut17", "validation", 1_009),
    ],
)
def test_real_files_have_the_sizes_their_readmes_say(data_folder: Path, name: str, split: str, count: int) -> None:
    examples = read(name, split, data_folder)
    assert len(examples) == count
    assert len({example.id for example in examples}) == count
    assert all(example.task == name and example.question and example.answers[0] for example in examples)
