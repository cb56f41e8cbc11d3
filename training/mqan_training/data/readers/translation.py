"""What the datasets of translation share: one way to ask (McCann et al. 2018, table 1)."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

from mqan_core.example import Example
from mqan_training.data.readers.files import Member, count_dropped, malformed

LANGUAGES = {"cs": "Czech", "de": "German", "en": "English"}

Line = tuple[int, str]


def translation_examples(
    task: str,
    split: str,
    languages: tuple[str, str],
    sources: tuple[Iterable[Line], Iterable[Line]],
    file: Path | Member,
    dropped: Counter[str] | None,
) -> Iterator[Example]:
    """Pair the lines of two files; pairs with an empty side are dropped.

    Args:
        task: name of the task.
        split: name of the split.
        languages: codes of the source and the target language.
        sources: numbered lines in these languages.
        file: the source file, to name it in errors.
        dropped: counts the empty pairs.
    """
    source_language, target_language = (LANGUAGES[code] for code in languages)
    question = f"Translate from {source_language} to {target_language}"
    for source, target in zip_longest(*sources):
        if source is None or target is None:
            raise malformed(file, None, f"has not as many lines as its counterpart in {target_language}.")
        number, context, answer = source[0], source[1].strip(), target[1].strip()
        if context and answer:
            yield Example(task, f"{split}/{number}", context, question, (answer,))
        else:
            count_dropped(dropped, "empty pair")
