"""Readers of translation, summaries, inference, roles, relations, SQL and entities, on rows of our own."""

import bz2
import hashlib
import io
import json
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from mqan_core.example import Example
from mqan_data.errors import DatasetError, MissingFileError
from mqan_data.readers import cnn_dailymail, qasrl
from mqan_data.readers.registry import task_named
from mqan_data.sql_execution import Table

THREE = "entailment, neutral, or contradiction?"


def read(name: str, split: str, data: Path, dropped: Counter[str] | None = None) -> list[Example]:
    """Read a split of a task below a data folder."""
    task = task_named(name)
    return list(task.read(data / task.folder, split, dropped))


def write(path: Path, content: str) -> None:
    """Write a text file and the folders it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


def write_tar(path: Path, files: dict[str, str]) -> None:
    """Write a compressed tar file with these members."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:bz2" if path.suffix == ".bz2" else "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content.encode())
            archive.addfile(member, io.BytesIO(content.encode()))


def write_zip(path: Path, files: dict[str, str]) -> None:
    """Write a zip file with these members."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


# --- translation


def test_multi30k_translates_both_ways_and_drops_empty_pairs(tmp_path: Path) -> None:
    write(tmp_path / "multi30k" / "val.en", "A dog.\n\n Two cats. \n")
    write(tmp_path / "multi30k" / "val.de", "Ein Hund.\nLeer.\nZwei Katzen.\n")
    dropped: Counter[str] = Counter()
    english, _ = read("multi30k.en.de", "validation", tmp_path, dropped)
    assert english == Example(
        "multi30k.en.de", "validation/1", "A dog.", "Translate from English to German", ("Ein Hund.",)
    )
    assert dropped == {"empty pair": 1}
    _, german = read("multi30k.de.en", "validation", tmp_path)
    assert (german.id, german.context, german.answers) == ("validation/3", "Zwei Katzen.", ("Two cats.",))
    assert german.question == "Translate from German to English"


def test_translations_need_as_many_lines(tmp_path: Path) -> None:
    write(tmp_path / "multi30k" / "train.en", "A dog.\n")
    write(tmp_path / "multi30k" / "train.cs", "Pes.\nKočka.\n")
    with pytest.raises(DatasetError, match=r"train\.en: has not as many lines as its counterpart in Czech"):
        read("multi30k.en.cs", "train", tmp_path)


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


def test_stories_get_the_full_stops_they_lack() -> None:
    assert cnn_dailymail.split_story(Path("x"), STORY) == (
        "(CNN) -- It rained. People said \u201cfine\u201d",
        "Rain finally. Who cares?",  # NFKC undoes the ligature
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
    assert first.question == "What is the summary?"
    assert first.answers == ("Rain finally. Who cares?",)
    assert dropped == {"story without article or highlights": 1, "story is not there": 1}
    assert task_named("cnn_dailymail").max_context_tokens == 400


def test_cnn_dailymail_reads_a_plain_list(tmp_path: Path) -> None:
    write_tar(
        tmp_path / "cnn_dailymail" / "cnn_stories.tgz", {"cnn/stories/b.story": STORY, "cnn/stories/a.story": STORY}
    )
    write(tmp_path / "cnn_dailymail" / "val.txt", "a.story\nb.story\n")
    assert [example.id for example in read("cnn_dailymail", "validation", tmp_path)] == ["cnn/b", "cnn/a"]
    with pytest.raises(DatasetError, match="inside a line"):
        cnn_dailymail.split_story(Path("x"), "text @highlight text")


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
    assert dropped == {"multinli_1.0_dev_mismatched.jsonl is not there": 1}
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
    dropped: Counter[str] = Counter()
    (example,) = read("xnli", "validation", tmp_path, dropped)
    assert dropped == {"row in another language": 1}
    assert (example.id, example.context, example.answers) == ("validation/3", 'Premise: "A"', ("entailment",))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("index\tsentence1\tlabel\n", r"dev\.tsv:1: expected the columns sentence1, sentence2, label, index"),
        ("index\tsentence1\tsentence2\tlabel\n0\tA\tB\n", r"dev\.tsv:2: expected 4 columns, found 3"),
        ("index\tsentence1\tsentence2\tlabel\n0\tA\tB\tmaybe\n", r"dev\.tsv:2: unknown label 'maybe'"),
    ],
)
def test_tables_name_the_line_of_a_malformed_row(tmp_path: Path, content: str, message: str) -> None:
    write(tmp_path / "nli_extra" / "rte" / "dev.tsv", content)
    with pytest.raises(DatasetError, match=message):
        read("rte", "validation", tmp_path)


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


def test_qasrl_names_the_line_of_a_malformed_row(tmp_path: Path) -> None:
    write(tmp_path / "qasrl" / "wiki1.dev.qa", ROLES.replace("_\tin\t_\t?", "_\tin\t?"))
    with pytest.raises(DatasetError, match=r"dev\.qa:5: expected a question"):
        read("qasrl", "validation", tmp_path)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("$ 5 , or 10 % !", "$5, or 10%!"),
        ("Tom 's state - owned  boat", "Tom's state-owned boat"),
        ("A -AMP- B", "A & B"),
        ("`` So '' , `he'", "So , he'"),  # as in decaNLP, which removes quotation marks last
    ],
)
def test_treebank_tokens_are_cleaned(text: str, clean: str) -> None:
    assert qasrl.clean(text) == clean


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
    write(tmp_path / "d" / "zre" / "dev.0", rows + "r\tq\ts\n")
    with pytest.raises(DatasetError, match=r"dev\.0:3: expected at least 4 columns, found 3"):
        read("zre", "validation", tmp_path / "d")


def test_a_damaged_bz2_archive_is_a_dataset_error(tmp_path: Path) -> None:
    (tmp_path / "zre").mkdir()
    for content in (b"BZh9 not really", bz2.compress(b"x" * 10_000)[:-8]):
        (tmp_path / "zre" / "relation_splits.tar.bz2").write_bytes(content)
        with pytest.raises(DatasetError, match=r"relation_splits\.tar\.bz2.*damaged or incomplete"):
            read("zre", "train", tmp_path)


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


def test_wikisql_keeps_the_rows_of_a_table_for_running_queries(tmp_path: Path) -> None:
    table = {"id": "t", "header": ["Ship", "Year"], "types": ["text", "real"], "rows": [["Vasa", 1628]]}
    row = {"table_id": "t", "question": "Which?", "sql": {"sel": 0, "agg": 0, "conds": []}}
    write(tmp_path / "wikisql" / "dev.tables.jsonl", json.dumps(table))
    write(tmp_path / "wikisql" / "dev.jsonl", json.dumps(row))
    (example,) = read("wikisql", "validation", tmp_path)
    assert example.reference is not None
    assert example.reference["table"] == Table(["Ship", "Year"], ["text", "real"], [["Vasa", 1628]])
    write(tmp_path / "wikisql" / "dev.tables.jsonl", json.dumps(table | {"rows": [["Vasa"]]}))
    with pytest.raises(DatasetError, match=r"dev\.tables\.jsonl:1: .*each of `rows` must be as long as `header`"):
        read("wikisql", "validation", tmp_path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"table_id": "u", "sql": {}}, r"dev\.jsonl:1: there is no table 'u'"),
        ({"table_id": "t"}, r"dev\.jsonl:1: `sql` is missing or malformed"),
        ({"table_id": "t", "sql": {"sel": 2, "agg": 0, "conds": []}}, r"dev\.jsonl:1: `sql` is missing or malformed"),
        ({"table_id": "t", "sql": {"sel": -1, "agg": 0, "conds": []}}, r"dev\.jsonl:1: `sql` .*numbered from 0"),
    ],
)
def test_wikisql_names_the_line_of_a_malformed_row(tmp_path: Path, row: dict[str, object], message: str) -> None:
    write(tmp_path / "wikisql" / "dev.tables.jsonl", TABLES)
    write(tmp_path / "wikisql" / "dev.jsonl", json.dumps(row | {"question": "q"}))
    with pytest.raises(DatasetError, match=message):
        read("wikisql", "validation", tmp_path)


# --- transfer


def test_subj_asks_for_one_of_two_labels(tmp_path: Path) -> None:
    (tmp_path / "subj").mkdir()
    (tmp_path / "subj" / "quote.tok.gt9.5000").write_bytes(b"a caf\xe9 of a film . \n\n")
    (tmp_path / "subj" / "plot.tok.gt9.5000").write_bytes(b"she leaves town .\n")
    dropped: Counter[str] = Counter()
    first, second = read("subj", "train", tmp_path, dropped)
    assert first == Example(
        "subj",
        "subjective/1",
        "a caf\xe9 of a film .",
        "Is this sentence subjective or objective?",
        ("subjective",),
    )
    assert second.answers == ("objective",)
    assert dropped == {"blank line": 1}


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
    write(tmp_path / "wnut17" / "emerging.dev.conll", "Rae person\n")
    with pytest.raises(DatasetError, match=r"dev\.conll:1: expected a token, a tab and a BIO tag"):
        read("wnut17", "validation", tmp_path)


def test_a_folder_of_json_lines_is_a_task_by_its_name(tmp_path: Path) -> None:
    write(tmp_path / "mine" / "val.jsonl", '{"context": "A b.", "question": "Q?", "answer": ["a", "b"]}\n')
    task = task_named("jsonl:mine:nf1")
    assert (task.name, task.folder, task.metric) == ("jsonl:mine:nf1", "mine", "nf1")
    (example,) = task.read(tmp_path / task.folder, "validation")
    assert (example.question, example.answers) == ("Q?", ("a", "b"))
    assert task_named("jsonl:mine").metric == "em"
    with pytest.raises(ValueError, match="scored by em, nf1, .*; 'lfem' is none"):
        task_named("jsonl:mine:lfem")


def test_ontonotes_lists_entities_of_the_documents_of_a_split(tmp_path: Path) -> None:
    folder = tmp_path / "ontonotes"
    annotations = folder / "ontonotes-release-5.0" / "data" / "files" / "data" / "english" / "annotations"
    sentences = (
        '<DOC DOCNO="nw/a/00/a_0001@0001@a@nw@en@on">\n'
        '<ENAMEX TYPE="ORG" S_OFF="1">AT&amp;T</ENAMEX> paid <ENAMEX TYPE="MONEY">$ 3 million</ENAMEX> .\n'
        "Nobody knows why .\n</DOC>\n"
    )
    write(annotations / "nw" / "a" / "00" / "a_0001.name", sentences)
    ids = folder / "english-ontonotes-5.0-development-document-ids.txt"
    write(ids, "annotations/nw/a/00/a_0001\n\n")
    first, second = read("ontonotes", "validation", tmp_path)
    assert (first.context, first.question) == ("AT&T paid $ 3 million .", "What are the tags for all entities?")
    assert first.answers == ("AT&T -- organization; $ 3 million -- monetary",)
    assert second.answers == ("None",)
    write(annotations / "nw" / "a" / "00" / "a_0001.name", '<ENAMEX TYPE="PERSON">Ann\n')
    with pytest.raises(DatasetError, match=r"a_0001\.name:1: entities are nested or not closed"):
        read("ontonotes", "validation", tmp_path)
    write(ids, "annotations/nw/a/00/a_0002\n")
    with pytest.raises(DatasetError, match=r"a_0002\.name"):
        read("ontonotes", "validation", tmp_path)
