"""The page in a browser, with a server behind it."""

import base64
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from google.protobuf import json_format

from mqan.v1.answer_pb2 import SOURCE_CONTEXT, AnswerRequest, FillRecordRequest
from mqan_core.answer.adapter import read_adapter
from mqan_core.bundle import read_manifest
from mqan_serving.pages import load_playground
from tests.serving.test_adapters import write

_HERE = Path(__file__).parent
_ASKED_ELSEWHERE = {name for test in _HERE.glob("*.py") for name in re.findall(r'browse\("(\w+)"', test.read_text())}
_SCENARIOS = [
    name
    for script in sorted(_HERE.glob("*.mjs"))
    for name in re.findall(r"^export async function (\w+)\(open\)", script.read_text(), re.MULTILINE)
    if name not in _ASKED_ELSEWHERE
]
_ATTACK = """<img src=x onerror="window.broken=1"></script><script>window.broken=1</script><mark>"'&lt;"""


@pytest.mark.parametrize("scenario", _SCENARIOS)
def test_scenario(browse: Any, page_server: str, scenario: str) -> None:
    browse(scenario, page_server)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_everybody_can_use_it(browse: Any, page_server: str, scheme: str, width: int) -> None:
    browse("accessible", page_server, colorScheme=scheme, width=width)


def test_every_example_is_answered_right(browse: Any, page_server: str, repository: Path) -> None:
    examples = json.loads((repository / "clients/page/src/examples.json").read_text())
    answers = browse("examples", page_server)
    assert list(answers) == [example["title"] for example in examples]
    assert len(examples) == 16
    wrong = {
        (example["title"], question["question"]): answer
        for example in examples
        for question, answer in zip(example["questions"], answers[example["title"]], strict=True)
        if "expected" in question and answer.lower() not in [right.lower() for right in question["expected"]]
    }
    assert wrong == {}
    without = [example for example in examples if not all("expected" in q for q in example["questions"])]
    assert all("poorly" in example["note"] for example in without)


def test_the_stored_answers_are_those_of_the_model(browse: Any, page_server: str) -> None:
    stored, live = browse("arrival", page_server)
    assert stored == live, "run `npm run arrival -- URL` in clients/page, then `npm run build`"


def test_copied_code_runs(browse: Any, page_server: str) -> None:
    code = browse("code", page_server)
    assert list(code) == ["curl", "Python", "TypeScript", "grpcurl", "Decision API", "JSON of the answers"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    by_curl = subprocess.run(["sh", "-c", code["curl"]], capture_output=True, text=True, timeout=60, check=True)
    answer = json.loads(by_curl.stdout)
    python = [sys.executable, "-c", code["Python"]]
    by_python = subprocess.run(python, capture_output=True, text=True, timeout=60, check=True, env=environment)
    assert answer["answer"] in by_python.stdout
    assert "127.0.0.1:" in code["grpcurl"]
    assert ":9000" not in code["grpcurl"], "the port is that of another server"
    assert "mqan.v1.QuestionAnswering/Answer" in code["grpcurl"]
    assert code["Decision API"].startswith("# System One has choices")
    assert "What's tall?" in code["Decision API"]


def test_copied_code_for_a_decision_api_runs(browse: Any, page_server: str) -> None:
    code = browse("code", page_server, labels=["it's high", "low"])["Decision API"]
    assert "What's tall?" in code.splitlines()[0]
    by_curl = subprocess.run(["sh", "-c", code], capture_output=True, text=True, timeout=60, check=True)
    answers = json.loads(by_curl.stdout)["answers"]
    assert list(answers) == ["question-2"]
    assert set(answers["question-2"]["probabilities"]) == {"it's high", "low"}


def test_copied_code_of_a_record_runs(browse: Any, page_server: str) -> None:
    code = browse("code", page_server, fields=[["tall", "number"], ["What's it called?", "text"]])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    by_curl = subprocess.run(["sh", "-c", code["curl"]], capture_output=True, text=True, timeout=60, check=True)
    fields = json.loads(by_curl.stdout)["fields"]
    assert (list(fields), fields["tall"]["value"]) == (["tall", "What's it called?"], 330.0)
    python = [sys.executable, "-c", code["Python"]]
    by_python = subprocess.run(python, capture_output=True, text=True, timeout=60, check=True, env=environment)
    assert "tall: 330.0" in by_python.stdout
    assert "mqan.v1.QuestionAnswering/FillRecord" in code["grpcurl"]
    assert "fillRecord" in code["TypeScript"]


def test_copied_code_of_grpcurl_has_messages_of_the_contract(browse: Any, page_server: str) -> None:
    commands = browse("codeOfEachKind", page_server, language="grpcurl").split("\n\n")
    messages = []
    for command in map(shlex.split, commands):
        kind = {"Answer": AnswerRequest, "FillRecord": FillRecordRequest}[command[-1].rpartition("/")[2]]
        messages.append(json_format.Parse(command[command.index("-d") + 1], kind()))
    *answers, record = messages
    labels = [("it's low", ""), ("🗼", "high")]
    assert {(message.context, message.question) for message in answers} == {('It\'s "high" 🗼.', "What's high?")}
    assert [[*message.sources] for message in answers] == [[], [SOURCE_CONTEXT], [], [], [], [], []]
    assert [message.yes_no for message in answers] == [False, False, True, False, False, False, False]
    chosen_from = [[(choice.label, choice.description) for choice in message.choices] for message in answers]
    assert chosen_from == [[], [], [], labels, labels, labels, []]
    assert [message.none for message in answers] == [False, False, False, False, True, False, False]
    assert [message.multiple for message in answers] == [False, False, False, False, False, True, False]
    assert [[*message.scale] for message in answers] == [[], [], [], [], [], [], ["it's low", "🗼: high"]]
    assert json.loads(record.schema)["properties"] == {"total": {"type": "number", "format": "money"}}


def test_a_server_that_asks_for_a_key(browse: Any, start_server: Any, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    made = subprocess.run(
        [sys.executable, "-c", "from mqan_cli.main import app; app()", "key", "page", "--file", str(keys)],
        capture_output=True,
        text=True,
        check=True,
    )
    key = next(word for word in made.stdout.split() if len(word) > 30)
    server = start_server("local", api_key_file=keys)
    browse("apiKey", server.rest, key=key)
    assert server.stop() == 0


def test_adapters_and_links_of_a_server(browse: Any, start_server: Any, repository: Path, tmp_path: Path) -> None:
    manifest, bundle = read_manifest(repository / "serving" / "bundles" / "default")
    write(tmp_path, bundle, manifest.text_width, "notes")
    server = start_server("local", adapters=tmp_path, page_links="Source=https://code.example/a?b=1&c=2")
    browse("adapters", server.rest)
    assert server.stop() == 0


def test_labels_that_were_corrected_make_an_adapter(browse: Any, page_server: str, tmp_path: Path) -> None:
    found = browse("correctedLabels", page_server)
    (tmp_path / "corrected.csv").write_bytes(found["written"].encode())
    mqan, *arguments = shlex.split(found["command"])
    assert mqan == "mqan"
    subprocess.run([sys.executable, "-m", "mqan_cli.main", *arguments], cwd=tmp_path, check=True, timeout=300)
    assert [path.name for path in (tmp_path / "adapters").iterdir()] == ["which-team-s.safetensors"]


def test_a_server_makes_the_adapter_that_the_command_makes(
    browse: Any, start_server: Any, repository: Path, tmp_path: Path
) -> None:
    desks = repository / "examples" / "desks.csv"
    server = start_server("local", makes_adapters=True)
    made = tmp_path / "made.safetensors"
    made.write_bytes(base64.b64decode(browse("madeAdapter", server.rest, table=desks.read_text())))
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"rows": []}, "rows is not a list"),
        ({"rows": [{"context": "It is late.", "labels": "K1"}]}, "labels no list"),
        ({"rows": [{"context": "It is late.", "labels": ["K9"]}] * 4}, "'K9' of a row is not among the choices"),
        ({"rows": [{"context": "It is late.", "labels": ["K1", "K2"]}] * 4}, "multiple is not set"),
        ({"rows": [{"context": "", "labels": [f"K{1 + i % 2}"]} for i in range(4)]}, "context is empty"),
    ]
    for rows, message in wrong:
        asked = {"question": "Which desk?", "choices": ["K1", "K2", "K3"], **rows}
        refused = httpx2.post(f"{server.rest}/v1/adapters", json=asked)
        assert (refused.status_code, message in refused.json()["message"]) == (422, True), refused.json()
    many = {"choices": [f"K{i}" for i in range(200)], "rows": [{"context": "It is late.", "labels": ["K1"]}] * 100}
    refused = httpx2.post(f"{server.rest}/v1/adapters", json={"question": "Which desk?", **many})
    assert (refused.status_code, refused.json()["code"]) == (413, "request_too_large")
    assert server.stop() == 0
    options = ["--text", "mail", "--label", "desk", "--name", "which-desk", "--output", str(tmp_path)]
    subprocess.run([sys.executable, "-m", "mqan_cli.main", "adapt", str(desks), *options], check=True, timeout=300)
    manifest, bundle = read_manifest(repository / "serving" / "bundles" / "default")
    ours, theirs = (
        read_adapter(path, bundle, manifest.text_width) for path in (made, tmp_path / "which-desk.safetensors")
    )
    assert ours.head == theirs.head
    assert np.abs(theirs.weights_FK).max() > 0.1
    assert np.allclose(ours.weights_FK, theirs.weights_FK, atol=1e-4)  # other batches round otherwise


def document(answer: str, **more: Any) -> dict[str, Any]:
    """An answer as the contract of REST has it."""
    model = {"name": "m", "version": "1"}
    plain = {"answer": answer, "probability": 0.75, "confidence": 0.75, "answered": True, "truncated": False}
    empty: dict[str, Any] = {
        name: [] for name in ("tokens", "spans", "choices", "chosen", "places", "alternatives", "steps")
    }
    return plain | empty | {"none": 0.0, "expected": None, "windows": 1, "model": model} | more


def test_a_model_that_cannot_explain_answers_all_the_same(browse: Any, start_server: Any, tiny_bundle: Path) -> None:
    context, question = "The kettle is in the kitchen.", "Where is the kettle?"
    server = start_server("local", bundle=tiny_bundle)
    browse("withoutExplanations", server.rest, context=context, question=question)
    assert server.stop() == 0


def test_choices_and_refusals(browse: Any, page_server: str) -> None:
    bill = {"source": "context", "start": 4, "end": 8, "text": "bill", "probability": 0.9}
    documents = {
        "Which team?": document(
            _ATTACK,
            none=0.125,
            chosen=[_ATTACK],
            choices=[
                {"label": _ATTACK, "probability": 0.75, "evidence": [bill]},
                {"label": "sales", "probability": 0.25, "evidence": []},
            ],
        ),
        "Who wrote it?": document("", answered=False),
        "Which day?": document("", answered=False, choices=[{"label": "May", "probability": 0.1, "evidence": []}]),
    }
    browse("kinds", page_server, documents=documents)


def test_no_script_of_the_page_ends_early() -> None:
    assert load_playground(9000).html.count("</script>") == 1
