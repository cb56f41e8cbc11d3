"""Damaged bundles: each is refused with one line that says what is wrong, or is harmless.

MQAN_FUZZ_CASES=10000 pytest -s --timeout 9000 --session-timeout 9000 tests/fuzz
"""

import hashlib
import json
import multiprocessing
import os
import random
import resource
import shutil
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from mqan_core.bundle import verify_files
from mqan_core.errors import BundleError, EngineFailedError
from mqan_core.manifest import MANIFEST
from mqan_runtime.engine import Engine

_CASES_OF_REST_FOR_EACH = 20  # opening a bundle takes longer than a question
_CONTEXT, _QUESTION = "the old harbour was closed in 1923", "When was it closed ?"
_MOST_BYTES = 16 * 2**30  # of address space
_LONGEST_LINE = 600


def damage(content: bytes, chance: random.Random) -> bytes:
    """Return the bytes of a file with bits flipped, or bytes left out, repeated or overwritten."""
    data = bytearray(content)
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(data))
        end = min(len(data), place + chance.randint(1, 200))
        match chance.randrange(6):
            case 0:
                del data[place:end]
            case 1:
                data[place:place] = data[place:end]
            case 2:
                data[place:end] = chance.randbytes(end - place)
            case _:
                data[place] ^= 1 << chance.randrange(8)
    return bytes(data)


def spoil(folder: Path, chance: random.Random) -> str:
    """Damage a bundle in one of the ways there are; return which."""
    manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_bytes())
    name = chance.choice(sorted(manifest["files"]))
    content = (folder / name).read_bytes()
    way = chance.choice(["file", "manifest", "link", "hard link", "name", "hash", "size", "signed", "signed", "signed"])
    match way:
        case "file":
            (folder / name).write_bytes(damage(content, chance))
        case "manifest":
            (folder / MANIFEST).write_bytes(damage((folder / MANIFEST).read_bytes(), chance))
        case "link" | "hard link":
            elsewhere = folder.parent / f"{folder.name}-elsewhere"
            (folder / name).rename(elsewhere)
            make = os.symlink if way == "link" else os.link
            make(elsewhere, folder / name)
        case "name":
            entry = manifest["files"].pop(name)
            manifest["files"][chance.choice([f"../{name}", f"/etc/{name}", f"./{name}", "passwd", ""])] = entry
        case "hash":
            manifest["files"][name]["sha256"] = chance.choice(["", "0" * 64, None, 7, [name]])
        case "size":
            manifest["files"][name]["num_bytes"] = chance.choice([0, -1, 2**63, 1.5, None, "1"])
        case "signed":  # whoever made it stated the hash of what is damaged
            damaged = damage(content, chance)
            (folder / name).write_bytes(damaged)
            manifest["files"][name] = {"num_bytes": len(damaged), "sha256": hashlib.sha256(damaged).hexdigest()}
            way = f"signed {name}"
    if way not in ("file", "manifest"):
        (folder / MANIFEST).write_text(json.dumps(manifest))
    return way


def open_and_ask(folder: Path) -> str:
    """Return how a bundle opens: the line that refuses it, or nothing if it answers and its spans are right."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    try:
        verify_files(folder)
        engine = Engine.open(folder, provider="cpu")
        (answer,) = engine.answer([engine.read(_CONTEXT, _QUESTION)], [3])
    except (BundleError, EngineFailedError) as error:
        return str(error)
    assert 0 <= answer.probability <= 1
    for token in answer.tokens:
        source = {"context": _CONTEXT, "question": _QUESTION}.get(token.source.value)
        if token.span is not None and source is not None:
            assert source[token.span.start : token.span.end] == token.text
    return ""


def test_damaged_bundles_are_refused_or_harmless(tiny_bundle: Path, tmp_path: Path, num_cases: int) -> None:
    outcomes: Counter[str] = Counter()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:  # a crash is told, and is not ours
        for number in range(max(10, num_cases // _CASES_OF_REST_FOR_EACH)):
            folder = tmp_path / f"{number}"
            shutil.copytree(tiny_bundle, folder)
            way = spoil(folder, random.Random(number))
            line = pool.submit(open_and_ask, folder).result()
            assert len(line.splitlines()) <= 1, (number, way, line)
            assert len(line) < _LONGEST_LINE, (number, way, line)
            outcomes[f"{way}: {'refused' if line else 'harmless'}"] += 1
            shutil.rmtree(folder)
    print(f"\ndamaged bundles: {dict(sorted(outcomes.items()))}")
    harmless = {outcome.partition(":")[0] for outcome in outcomes if outcome.endswith("harmless")}
    assert all(way == "manifest" or way.startswith("signed ") for way in harmless)
