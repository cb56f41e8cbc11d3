"""Dataset files: what is refused, and how the message names it."""

import re
from pathlib import Path

import pytest

from mqan_data.formats.dataset_file import DATASETS, LabelsPart, dataset_names, load_dataset, readable

_HEAD = "folder: x\nlicence: MIT\ncommercial: true\n"
_PART = """parts:
  a:
    shape: labels
    format: tsv
    files: {train: [a.tsv]}
    columns: [label, text]
    kind: topic
    label: "{label}"
    forms:
      - {text: "{text}", questions: [What is it about?]}
    labels: {b: {}, c_d: {description: the third}}
"""


def _written(tmp_path: Path, text: str) -> Path:
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_dataset_is_what_its_file_says(tmp_path: Path) -> None:
    dataset = load_dataset("x", _written(tmp_path, _HEAD + _PART))
    part = dataset.parts["a"]
    assert (dataset.name, dataset.commercial, dataset.held_back) == ("x", True, False)
    assert isinstance(part, LabelsPart)
    assert list(part.labels) == ["b", "c_d"]
    assert part.labels["c_d"].description == "the third"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_HEAD, "give `parts`, `tasks` or both"),
        (_HEAD + "colour: red\n", "colour: Unexpected keyword argument"),
        ("folder: x\ncommercial: true\n", "licence: Field required"),
        (_HEAD + _PART.replace("shape: labels", "shape: table"), "parts.a: Input tag 'table' found using 'shape'"),
        (_HEAD + _PART.replace("kind: topic", "kynd: topic"), "parts.a.labels.kynd: Unexpected keyword argument"),
        (_HEAD + _PART.replace("[What is it about?]", "[]"), "parts.a.labels: needs `forms` with `questions`"),
        (_HEAD + _PART + "    none: [b]\n", r"parts.a.labels: .*\['b'\] cannot be labels as well"),
        ("folder: [", "not YAML"),
    ],
)
def test_a_wrong_file_is_refused_with_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        load_dataset("x", _written(tmp_path, text))
    assert "x.yaml" in str(caught.value)


def test_an_unknown_name_lists_near_ones() -> None:
    with pytest.raises(ValueError, match="Did you mean clinc150"):
        load_dataset("clinc15")


def test_the_sets_to_measure_by_are_held_back() -> None:
    held_back = {
        *("banking77", "dbpedia14", "isear", "hate_davidson", "searchsnippets", "politeness", "youtube_spam"),
        *("restaurant8k", "e2e_nlg", "squad2_dev"),
    }
    assert held_back <= {name for name in dataset_names() if load_dataset(name).held_back}


@pytest.mark.parametrize("name", dataset_names())
def test_no_two_labels_of_a_set_share_a_name_or_description(name: str) -> None:
    for part_name, part in load_dataset(name).parts.items():
        owners: dict[str, str] = {}
        for key, label in part.labels.items() if isinstance(part, LabelsPart) else ():
            for called in {text.casefold() for text in (readable(key, label.name), *label.synonyms, label.description)}:
                assert not called or owners.setdefault(called, key) == key, (part_name, called)


@pytest.mark.parametrize("name", [name for name in dataset_names() if not load_dataset(name).held_back])
def test_names_of_classes_that_are_kept_for_measuring_are_in_no_wording(name: str) -> None:
    kept = {"angry", "happy", "unsupportive", "supportive", "furious", "thrilled"}  # see mqan_evaluation.field_sections
    text = (DATASETS / f"{name}.yaml").read_text(encoding="utf-8").lower()
    assert not kept & set(re.findall(r"\w+", text))
