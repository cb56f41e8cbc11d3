"""Data of the baselines' tasks in their official formats, in small, and models trained on it."""

import gzip
import json
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mqan_baselines.recipes import MtDnnRecipe, SharedMemoryRecipe

MT_DNN_TASKS = ("cola", "rte", "sts-b", "qnli-ranking", "qnli")
GOOD, BAD = "a warm bright long story", "a dull odd flat mess"
_FILLERS = ["the", "film", "of", "two", "old", "friends", "and", "no", "plot", "at", "all"]
WORDS = sorted({*GOOD.split(), *BAD.split(), *_FILLERS, "is", "good", "bad", "who", "was", "late", "yesterday"})


def _sentence(rng: random.Random, is_good: bool) -> str:
    words = [*rng.sample((GOOD if is_good else BAD).split()[1:], 2), *rng.choices(_FILLERS, k=rng.randint(1, 5))]
    rng.shuffle(words)
    return " ".join(words)


def write_sentences(folder: Path, rng: random.Random) -> None:
    (folder / "sst").mkdir(parents=True)
    for part, number in (("train", 120), ("dev", 30)):
        rows = [(i % 2, _sentence(rng, i % 2 == 1)) for i in range(number)]
        binary = [f"{label},{text}" for label, text in rows]
        fine = [f"{4 if label else i % 2},{text}" for i, (label, text) in enumerate(rows)]
        (folder / "sst" / f"{part}_binary_sent.csv").write_text("\n".join(["label,sentence", *binary, ""]))
        (folder / "sst" / f"{part}_fine_sent.csv").write_text("\n".join(["label,sentence", *fine, ""]))
    (folder / "subj").mkdir()
    for name, is_good in (("quote.tok.gt9.5000", True), ("plot.tok.gt9.5000", False)):
        (folder / "subj" / name).write_text("".join(f"{_sentence(rng, is_good)}\n" for _ in range(80)), "latin-1")
    (folder / "cola").mkdir()
    for name in ("in_domain_train.tsv", "in_domain_dev.tsv", "out_of_domain_dev.tsv"):
        lines = [f"x01\t{i % 2}\t{'' if i % 2 else '*'}\t{_sentence(rng, i % 2 == 1)}\n" for i in range(24)]
        (folder / "cola" / name).write_text("".join(lines))


def write_pairs(folder: Path, rng: random.Random) -> None:
    (folder / "nli_extra" / "rte").mkdir(parents=True)
    (folder / "nli_extra" / "sick").mkdir()
    (folder / "stsb").mkdir()
    (folder / "mrpc").mkdir()
    for split, number in (("train", 48), ("dev", 16)):
        pairs = [(_sentence(rng, True), _sentence(rng, i % 2 == 0), i % 2 == 0) for i in range(number)]
        rte = [f"{i}\t{a}\t{b}\t{'' if alike else 'not_'}entailment" for i, (a, b, alike) in enumerate(pairs)]
        (folder / "nli_extra" / "rte" / f"{split}.tsv").write_text(
            "\n".join(["index\tsentence1\tsentence2\tlabel", *rte, ""])
        )
        stsb = [f"{a},{b},{4.5 if alike else 0.5}" for a, b, alike in pairs]
        (folder / "stsb" / f"stsb-en-{split}.csv").write_text("\n".join([*stsb, ""]))
        sick = [f"{i}\t{a}\t{b}\t3.5\t{'ENTAILMENT' if s else 'NEUTRAL'}" for i, (a, b, s) in enumerate(pairs)]
        head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
        name = {"train": "SICK_train.txt", "dev": "SICK_trial.txt"}[split]
        (folder / "nli_extra" / "sick" / name).write_text("\n".join([head, *sick, ""]))
        mrpc = [f"{int(alike)}\t{i}\t{i}\t{a}\t{b}" for i, (a, b, alike) in enumerate(pairs)]
        text = "\n".join(["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", *mrpc, ""])
        if split == "train":
            with gzip.open(folder / "mrpc" / "msr_paraphrase_train.txt.gz", "wt") as file:
                file.write(text)
        else:
            (folder / "mrpc" / "msr_paraphrase_test.txt").write_text(text)


def write_squad(folder: Path, rng: random.Random) -> None:
    (folder / "squad").mkdir()
    for name, told in (("train-v1.1.json", "story of the plot"), ("dev-v1.1.json", "plot of the story")):
        paragraphs = []
        for i in range(20):
            person = f"Person{i}"
            sentences = [f"{person} was late.", "The story was long.", "The plot was yesterday."]
            rng.shuffle(sentences)
            context = " ".join(sentences)
            answer = {"text": person, "answer_start": context.index(person)}
            question = {"id": f"q{i}", "question": f"Who was late in the {told}?", "answers": [answer]}
            paragraphs.append({"context": context, "qas": [question]})
        (folder / "squad" / name).write_text(json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}))


def write_data(folder: Path) -> Path:
    rng = random.Random(4)
    write_sentences(folder, rng)
    write_pairs(folder, rng)
    write_squad(folder, rng)
    return folder


def write_encoder(folder: Path) -> Path:
    pytest.importorskip("transformers", reason="needs the extra embed")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    from transformers import BertConfig, BertModel

    folder.mkdir(parents=True, exist_ok=True)
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    others = [*(c for c in letters if c not in WORDS), *(f"##{c}" for c in letters), ".", "?"]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *others]
    (folder / "vocab.txt").write_text("\n".join(pieces))
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
    )
    torch.manual_seed(3)
    BertModel(config).save_pretrained(folder)
    return folder


def memory_recipe(**changes: Any) -> "SharedMemoryRecipe":
    from mqan_baselines.recipes import SharedMemoryRecipe

    sizes = {"embedding_width": 8, "hidden_width": 8, "segments": 4, "segment_width": 4}
    steps = {"rate": 0.1, "steps": 80, "fine_tune_steps": 10, "tune_every": 20}
    settings: dict[str, Any] = {"kind": "shared-memory", "name": "tiny-memory", "tasks": ("sst-2", "subj")}
    return SharedMemoryRecipe(**{**settings, **sizes, **steps, **changes})


def train_shared_memory(folder: Path, data: Path, architecture: Any = "arc-ii", **changes: Any) -> Path:
    from mqan_baselines.shared_memory.learning import Texts, run

    recipe = memory_recipe(**{"most_words": 60, **changes})
    run(recipe, architecture, Texts(recipe, data), folder / architecture)
    return folder / str(architecture) / "sst-2"


def mt_dnn_recipe(encoder: Path, **changes: Any) -> "MtDnnRecipe":
    from mqan_baselines.recipes import MtDnnRecipe

    settings: dict[str, Any] = {"kind": "mt-dnn", "name": "tiny-mt-dnn", "encoder": str(encoder)}
    settings["tasks"] = MT_DNN_TASKS
    steps = {"rate": 5e-3, "batch": 8, "epochs": 2, "most_pieces": 48, "candidates": 3}
    return MtDnnRecipe(**{**settings, **steps, **changes})


def train_mt_dnn(folder: Path, data: Path, **changes: Any) -> Path:
    from mqan_baselines.mt_dnn.learning import run

    run(
        mt_dnn_recipe(write_encoder(folder / "encoder"), **{"epochs": 20, "tasks": MT_DNN_TASKS[:4], **changes}),
        data,
        folder / "mt-dnn",
    )
    return folder / "mt-dnn" / "joint"
