"""The command line: what it prints where, how it fails, and what it does not load."""

import hashlib
import json
import os
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import mqan_core
from mqan_cli import sections, show
from mqan_cli.main import app
from mqan_client import (
    Answer,
    AnswerSpan,
    AnswerToken,
    Masses,
    ModelVersion,
    Source,
    Span,
)
from mqan_client.documents import document_of
from mqan_core.example import Example
from mqan_data.formats.dataset_file import Dataset
from mqan_serving.default_bundle import default_bundle
from tests.serving.conftest import StandInEngine

MASSES = Masses(0.5, 0.25, 0.25)
CONTEXT = "The Eiffel Tower is in Paris."
ANSWER = Answer(
    text="Paris yes",
    probability=0.5,
    tokens=(
        AnswerToken("Paris", 0.75, Source.CONTEXT, MASSES, Span(23, 28)),
        AnswerToken("yes", 0.5, Source.VOCABULARY, MASSES, None),
    ),
    spans=(AnswerSpan(Source.CONTEXT, 23, 28, "Paris"),),
    truncated=False,
    model=ModelVersion("tiny", "1"),
    confidence=0.5,
)
VERBS = [
    "ask",
    "batch",
    "mcp",
    "embed",
    "train",
    "export",
    "evaluate",
    "serve",
    "key",
    "models",
    "models list",
    "verify",
    "data",
    "data get",
]

runner = CliRunner()


@pytest.fixture(scope="module")
def server_url(serve_local: Any) -> Iterator[str]:
    """A server that answers with the first three words of the text."""
    with serve_local(StandInEngine()) as (_, grpc_port):
        yield f"grpc://127.0.0.1:{grpc_port}"


@pytest.fixture
def server(server_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server that is asked where none is named."""
    monkeypatch.setenv("MQAN_SERVER", server_url)
    monkeypatch.delenv("MQAN_API_KEY", raising=False)


@pytest.fixture
def context_file(tmp_path: Path) -> str:
    path = tmp_path / "context.txt"
    path.write_text(CONTEXT, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help(verb: str, option: str) -> None:
    result = runner.invoke(app, [*verb.split(), option])
    assert result.exit_code == 0
    assert "Usage" in result.output


def test_every_verb_is_in_a_section_in_its_order() -> None:
    shown = runner.invoke(app, ["--help"], env={"COLUMNS": "100", "TERM": "dumb"}).output
    places = [shown.index(f"─ {section} ─") for section in sections.VERBS]
    assert places == sorted(places)
    found = re.findall(r"^│ ([a-z][a-z-]*) ", shown, re.MULTILINE)
    assert found == [name for names in sections.VERBS.values() for name in names]


def test_shells_can_complete_verbs() -> None:
    environment = {"_MQAN_COMPLETE": "complete_bash", "COMP_WORDS": "mqan ev", "COMP_CWORD": "1"}
    completed = subprocess.run(
        [Path(sys.executable).parent / "mqan"], env=os.environ | environment, capture_output=True, text=True, timeout=60
    )
    assert completed.stdout.split() == ["evaluate"]


def test_version() -> None:
    result = runner.invoke(app, ["--version"])
    manifest = json.loads((default_bundle() / "manifest.json").read_text())
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"mqan {mqan_core.__version__}",
        f"default model {manifest['name']} {manifest['version']}",
    ]


@pytest.mark.parametrize("content", [None, "{", "[]", "{}"])
def test_version_of_a_checkout_without_a_model(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    monkeypatch.setattr("mqan_serving.default_bundle._PLACES", (tmp_path,))
    result = runner.invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"mqan {mqan_core.__version__}\n")


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys\nfrom mqan_cli.main import app\n"
        "heavy = {'torch', 'ray', 'onnxruntime', 'onnx', 'fastapi', 'grpc', 'numpy'} & sys.modules.keys()\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_key_is_printed_once_and_its_hash_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "keys"
    monkeypatch.setenv("MQAN_API_KEY_FILE", str(file))
    made = runner.invoke(app, ["key", "alice"])
    key = made.stdout.strip()
    assert made.exit_code == 0
    assert file.read_text() == f"alice {hashlib.sha256(key.encode()).hexdigest()}\n"
    for words, reason in (
        (["alice"], "already"),
        (["two words"], "is no name"),
        (["bob", "--rate", "often"], "are no limits: give requests a second"),
    ):
        refused = runner.invoke(app, ["key", *words])
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert reason in refused.stderr
        assert "Traceback" not in refused.stderr
    assert len(file.read_text().splitlines()) == 1
    assert runner.invoke(app, ["key", "bob", "--rate", "5/20", "--quota", "1000"]).exit_code == 0
    assert re.fullmatch("bob [0-9a-f]{64} rate=5/20 quota=1000", file.read_text().splitlines()[1])


def test_a_key_is_shown_and_a_missing_or_wrong_one_told(serve_local: Any, tmp_path: Path) -> None:
    key = runner.invoke(app, ["key", "alice", "--file", str(tmp_path / "keys")]).stdout.strip()
    with serve_local(StandInEngine(), api_key_file=tmp_path / "keys") as (http_port, _):
        ask = ["ask", "--text", CONTEXT, "--server", f"http://127.0.0.1:{http_port}", "Where?"]
        for given, status, told in (
            (None, 1, "Set MQAN_API_KEY to yours"),
            ("mqan_of_another", 1, "The one in MQAN_API_KEY is not known"),
            (f"{key}\r", 2, "MQAN_API_KEY"),
            (key, 0, "probability"),
        ):
            result = runner.invoke(app, ask, env={"MQAN_API_KEY": given})
            assert (result.exit_code, bool(result.stdout)) == (status, status == 0)
            assert told in result.stderr
            assert given is None or given.strip() not in result.stderr


def test_an_unknown_verb_is_wrong_usage() -> None:
    assert runner.invoke(app, ["unknown"]).exit_code == 2


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("arguments", "piped", "answer"),
    [
        (["--file", "~/mail.txt"], None, "In Paris."),
        (["--file", "-"], "Ünï\r\ncode\n", "Ünï\r\ncode"),  # not a character is changed
        ([], "In Paris.\n", "In Paris."),
    ],
)
def test_ask_prints_the_answer_and_notes_its_sources_apart(
    arguments: list[str], piped: str | None, answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mail.txt").write_text("In Paris.", encoding="utf-8")
    result = runner.invoke(app, ["ask", *arguments, "Where?"], input=piped)
    assert (result.exit_code, result.stdout_bytes.decode()) == (0, f"{answer}\n")
    assert f"context 0-{len(answer)}: {answer.split()[0]}" in result.stderr
    assert re.search(r"probability 0\.\d+, stand-in 1", result.stderr)


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_at_a_port_of_the_other_protocol_the_error_names_the_two(
    scheme: str, serve_local: Any, context_file: str
) -> None:
    with serve_local() as (http_port, grpc_port):
        url = f"{scheme}://127.0.0.1:{http_port if scheme == 'grpc' else grpc_port}"
        result = runner.invoke(app, ["ask", "--file", context_file, "--server", url, "Where?"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"mqan: no answer from {url} (")
    assert result.stderr.endswith("gRPC and REST have ports of their own.\n")


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("arguments", "piped", "told"),
    [
        (["--file", "nowhere.txt", "Where?"], "text", "cannot read nowhere.txt"),
        (["--file", "~/nowhere.txt", "Where?"], "text", "cannot read ~/nowhere.txt"),
        (["--file", ".", "Where?"], "text", "--file"),
        (["--file", "", "Where?"], "text", "--file"),
        (["--file", "-", "--text", "text", "Where?"], "text", "--text"),
        (["--text", " ", "Where?"], "text", "--text"),
        (["--file", "-", "--server", "grpc://host", "--bundle", "folder", "Where?"], "text", "--bundle"),
        (["--file", "-", "--server", "grpc://127.0.0.1:1", "--provider", "cpu", "Where?"], "text", "--provider"),
        (["--file", "-", "--server", "host", "Where?"], "text", "host"),
        (["--file", "-", "--max-answer-tokens", "0", "Where?"], "text", "--max-answer-tokens"),
        (["--choices", " , ", "Where?"], "text", "name at least one label"),
        (["Where?"], "", "--text, --file or standard input"),
        (["--text", "text"], "Where?\n", "give the question"),
        (["Where?"], b"a\xff", "byte 1"),
    ],
)
def test_wrong_usage_is_status_2(arguments: list[str], piped: str | bytes, told: str) -> None:
    result = runner.invoke(app, ["ask", *arguments], input=piped)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in " ".join(result.stderr.replace("│", " ").split())


def test_standard_input_that_is_closed_is_wrong_usage() -> None:
    command = [sys.executable, "-c", "from mqan_cli.main import app; app()", "ask", "Where?"]
    finished = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", *command], capture_output=True, text=True)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert "standard input is closed" in finished.stderr
    assert "Traceback" not in finished.stderr


@pytest.mark.usefixtures("server")
def test_what_the_system_refuses_is_told_in_one_line(context_file: str) -> None:
    command = [sys.executable, "-c", "from mqan_cli.main import app; app()", "ask", "--file", context_file, "Where?"]
    with Path("/dev/full").open("w") as full:
        finished = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert finished.returncode == 1
    assert finished.stderr.splitlines()[-1] == "mqan: [Errno 28] No space left on device"


def test_a_text_that_no_answer_could_quote_is_refused() -> None:
    text = os.fsdecode(b"The value is \xff.")
    result = runner.invoke(app, ["ask", "Which?", "--text", text, "--bundle", str(default_bundle())])
    assert result.exit_code == 1
    assert "is not UTF-8 at character 13" in result.stderr


class TerminalStream:
    """Catches what is written, and says it is a terminal."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.written = ""

    def write(self, text: str) -> int:
        self.written += text
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return True


def show_on_terminal(monkeypatch: pytest.MonkeyPatch, answer: Answer, **environment: str) -> str:
    stream = TerminalStream()
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", "COLORTERM": "", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", stream)
    show.show(document_of(answer))
    return stream.written


def test_words_are_coloured_by_source(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert show_on_terminal(monkeypatch, ANSWER) == "\x1b[1;38;5;26mParis\x1b[0m \x1b[3;38;5;26myes\x1b[0m\n"
    assert "the model’s own word: yes" in capsys.readouterr().err


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = show_on_terminal(monkeypatch, ANSWER, NO_COLOR="1")
    assert shown == "\x1b[1mParis\x1b[0m \x1b[3myes\x1b[0m\n"  # kinds of words stay apart without colours


def test_a_quotation_cannot_steer_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a\x1b[2Jb\x07\x9bc"
    answer = Answer(text, 0.5, (), (), False, ANSWER.model)
    shown = show_on_terminal(monkeypatch, answer)
    assert shown == "a\ufffd[2Jb\ufffd\ufffdc\n"


def test_repeated_words_are_coloured_in_order() -> None:
    tokens = [{"text": text, "source": source} for text, source in (("a", "context"), ("b", "question"), ("a", "x"))]
    found = show.words_of({"answer": "a b a", "tokens": tokens})
    assert list(found) == [(0, 1, "context"), (2, 3, "question"), (4, 5, "x")]


def test_verify_says_where_the_bundle_runs() -> None:
    result = runner.invoke(app, ["verify", str(default_bundle()), "--provider", "cpu"])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("mqan-default ")
    assert any(line.startswith("vocab.json ") and line.endswith(" bytes, hash as stated") for line in lines)
    assert lines[-1] == "runs on CPUExecutionProvider, int8"


@pytest.mark.parametrize("flag", [[], ["--local"], ["--ray"]])
def test_serve_passes_settings_on(monkeypatch: pytest.MonkeyPatch, flag: list[str]) -> None:
    import mqan_serving.main

    served: list[Any] = []
    monkeypatch.setattr(mqan_serving.main, "serve_local", lambda settings: served.append(("local", settings)))
    monkeypatch.setattr(mqan_serving.main, "serve_ray", lambda settings: served.append(("ray", settings)))
    monkeypatch.setenv("MQAN_GRPC_PORT", "9001")
    result = runner.invoke(app, ["serve", *flag, "--http-port", "8001"])
    assert result.exit_code == 0
    ((how, settings),) = served
    assert how == ("ray" if flag == ["--ray"] else "local")
    assert (settings.http_port, settings.grpc_port, settings.host) == (8001, 9001, "127.0.0.1")


def test_serve_names_a_wrong_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQAN_MAX_BATCH_SIZE", "none")
    result = runner.invoke(app, ["serve"])
    assert result.exit_code == 1
    assert "MQAN_MAX_BATCH_SIZE" in result.stderr


def test_what_is_missing_is_named_with_its_extra(
    context_file: str, tiny_bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith(("mqan_runtime", "mqan_cli.local"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    result = runner.invoke(app, ["ask", "--file", context_file, "--bundle", str(tiny_bundle), "Where?"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "onnxruntime is not installed" in result.stderr
    assert f"{sys.executable} -m pip install 'onnxruntime>=" in result.stderr
    assert " -m pip install 'onnx" in result.stderr.partition("for NVIDIA GPUs")[2]


def without_ray(_: str) -> str:
    raise PackageNotFoundError


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (without_ray, f"Ray is not installed: {sys.executable} -m pip install 'ray[serve]"),
        (lambda _: "2.61.0", "Ray 2.61.0 is installed, but this server uses private parts of Ray 2.60"),
    ],
    ids=["missing", "another"],
)
def test_serve_asks_for_the_ray_it_was_tested_with(
    version: Callable[[str], str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mqan_serving.ray_serve import environment

    monkeypatch.setattr(environment, "version", version)
    result = runner.invoke(app, ["serve", "--ray"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr
    assert "or serve without Ray: mqan serve\n" in result.stderr


def test_data_get_names_the_tasks_there_are() -> None:
    result = runner.invoke(app, ["data", "get", "squadd"])
    assert result.exit_code == 1
    assert "squad" in result.stderr


@pytest.mark.parametrize("consent", [[], ["--allow-unverified"]], ids=["verified", "unverified"])
def test_data_get_fetches(consent: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from mqan_data import download

    def fetch(task: Dataset, folder: Path, *, allow_unverified: bool, console: Console) -> tuple[Path, ...]:
        assert allow_unverified == bool(consent)
        return (folder / task.folder / "file",)

    monkeypatch.setattr(download, "fetch", fetch)
    result = runner.invoke(app, ["data", "get", "squad", "--data", str(tmp_path), *consent])
    assert (result.exit_code, result.stdout) == (0, f"{tmp_path / 'squad' / 'file'}\n")


def test_data_get_says_where_all_that_a_recipe_trains_on_is_from(repository: Path, tmp_path: Path) -> None:
    recipe = repository / "training" / "recipes" / "permissive.yaml"
    result = runner.invoke(app, ["data", "get", "--recipe", str(recipe), "--list", "--data", str(tmp_path)])
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert "squad: 2 to download" in lines
    assert "everyday: there" in lines
    by_hand = "clinc150: by hand from https://github.com/clinc/oos-eval (licence: CC BY 3.0)"
    assert f"{by_hand} into {tmp_path / 'clinc150'}: data_full.json.gz" in lines
    assert not any(line.startswith("made_") for line in lines)
    assert list(tmp_path.iterdir()) == []
    result = runner.invoke(app, ["data", "get", "--list"])
    assert (result.exit_code, "name a dataset, a task, `all`, or a recipe" in result.stderr) == (1, True)


def test_overrides_are_pairs(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("name: x")
    assert runner.invoke(app, ["train", str(recipe), "--set", "steps"]).exit_code == 2


def test_an_exported_card_says_what_it_is_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mqan_export import bundle as exported
    from mqan_export.parity import Parity
    from mqan_training import checkpoint

    def write_card(loaded: object, folder: Path, examples: object, *, model_card: str, **_: str) -> Any:
        (folder / "README.md").write_text(model_card)
        return Parity(0, 0, 0, 0, 0.0)

    loaded = types.SimpleNamespace(recipe=types.SimpleNamespace(name="tiny", sources={"sst": 1}, reader=None))
    monkeypatch.setattr(checkpoint, "load_checkpoint", lambda _: loaded)
    monkeypatch.setattr(exported, "validation_mixture", lambda *_: [Example("sst", "1", "Dull.", "Is it?", ())])
    monkeypatch.setattr(exported, "export_bundle", write_card)
    result = runner.invoke(app, ["export", str(tmp_path), str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "README.md").read_text().startswith("# tiny 1\n")


def test_a_checkpoint_without_validation_rows_cannot_be_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mqan_training import checkpoint
    from mqan_training.recipe import Recipe

    reader = {"kind": "words", "vectors": "vectors.safetensors"}
    recipe = Recipe.model_validate({"name": "tiny", "reader": reader, "sources": {"imdb": 1}, "steps": 1})
    monkeypatch.setattr(checkpoint, "load_checkpoint", lambda _: types.SimpleNamespace(recipe=recipe))
    result = runner.invoke(app, ["export", str(tmp_path), str(tmp_path / "bundle"), "--data", str(tmp_path)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "of tasks that have validation rows" in result.stderr
    assert not (tmp_path / "bundle").exists()


TRAINABLE = "{name: x, steps: 1, sources: {sst: 1}}"


def test_training_on_ray_says_which_extra_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(TRAINABLE)
    monkeypatch.setitem(sys.modules, "ray.train", None)
    result = runner.invoke(app, ["train", str(recipe), "--output", str(tmp_path / "run"), "--ray-workers", "2"])
    assert result.exit_code == 1
    assert f"{sys.executable} -m pip install 'ray[train]" in result.stderr
