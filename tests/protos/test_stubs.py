"""The committed stubs and the OpenAPI document are what the committed contract and the server make of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mqan_serving.rest.openapi import openapi_document

STUBS = ["answer_pb2.py", "answer_pb2.pyi", "answer_pb2_grpc.py"]


@pytest.fixture(scope="module")
def regenerated(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stubs")
    outputs = [f"--{kind}_out={folder}" for kind in ("python", "pyi", "grpc_python")]
    compiler = [sys.executable, "-m", "grpc_tools.protoc", f"-I{repository / 'protos'}"]
    command = [*compiler, *outputs, "mqan/v1/answer.proto"]
    subprocess.run(command, check=True, timeout=60)
    return folder / "mqan" / "v1"


@pytest.mark.parametrize("name", STUBS)
def test_committed_stub_equals_a_regeneration(repository: Path, regenerated: Path, name: str) -> None:
    committed = (repository / "protos" / "mqan" / "v1" / name).read_text()
    assert committed == (regenerated / name).read_text(), "run `make proto`"


def test_what_is_read_of_graphs_equals_a_regeneration(repository: Path, tmp_path: Path) -> None:
    runtime = repository / "runtime"
    outputs = [f"--{kind}_out={tmp_path}" for kind in ("python", "pyi")]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{runtime}", *outputs, "mqan_runtime/onnx_graph.proto"]
    subprocess.run(command, check=True, timeout=60)
    for name in ("onnx_graph_pb2.py", "onnx_graph_pb2.pyi"):
        made, committed = (folder / "mqan_runtime" / name for folder in (tmp_path, runtime))
        assert committed.read_text() == made.read_text(), "run `make proto`"


def test_the_committed_openapi_document_is_what_a_server_publishes(repository: Path) -> None:
    committed = json.loads((repository / "protos" / "openapi.json").read_text())
    assert committed == openapi_document(), "run `make proto`"
