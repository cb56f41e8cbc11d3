"""The adapters of a folder by their names, each read again when its file has changed."""

from pathlib import Path
from typing import Any

from mqan_core.answer.adapter import ENDING, NAME, Adapter, AdapterError, read_adapter
from mqan_serving.contract.errors import SettingsError, refuse
from mqan_serving.contract.questions import AdapterField, ChoiceField, Question

_Found = Adapter | AdapterError


class Adapters:
    """The adapters of a folder, of one bundle; a file that is removed is known no more."""

    def __init__(self, folder: Path | None, bundle: str, width: int) -> None:
        if folder is not None and not folder.is_dir():
            raise SettingsError(f"setting adapters (MQAN_ADAPTERS): {folder} is no folder")
        self._folder, self._bundle, self._width = folder, bundle, width
        self._read: dict[str, tuple[tuple[int, int, int], _Found]] = {}  # by name, with the state of its file

    def adapt(self, question: Question) -> Question:
        """Return a question with the labels of its adapter, if it names one, or raise ``InputError``."""
        if not isinstance(question.choices, AdapterField):
            return question
        adapter = self.named(question.choices.adapter)
        head = adapter.head
        labels = [ChoiceField(label=choice.label, description=choice.description) for choice in head.choices]
        given: dict[str, Any] = {"question": head.question, "multiple": head.multiple, "choices": labels}
        if head.is_scale:
            given |= {"choices": None, "scale": [choice.label for choice in head.choices]}
        return question.decided_by(adapter, **given)

    def named(self, name: str) -> Adapter:
        found = self._look(name)
        if found is None:
            known = ", ".join(self._names()) or "none"
            raise refuse("unknown_adapter", "choices", f"There is no adapter {name[:64]!r} here; there are: {known}.")
        if isinstance(found, AdapterError):
            raise refuse("unusable_adapter", "choices", f"{found}.")
        return found

    def documents(self) -> list[dict[str, Any]]:
        found = [(name, self._look(name)) for name in self._names()]
        return [
            {
                "name": name,
                "sha256": adapter.version.sha256,
                "question": adapter.head.question,
                "labels": [choice.label for choice in adapter.head.choices],
                "multiple": adapter.head.multiple,
                "scale": adapter.head.is_scale,
                "rows": adapter.head.rows,
            }
            for name, adapter in found
            if isinstance(adapter, Adapter)
        ]

    def _names(self) -> list[str]:
        paths = [] if self._folder is None else sorted(self._folder.glob(f"*{ENDING}"))
        return [path.stem for path in paths if NAME.fullmatch(path.stem)]

    def _look(self, name: str) -> _Found | None:
        if self._folder is None or not NAME.fullmatch(name):
            return None
        path = self._folder / f"{name}{ENDING}"
        try:
            status = path.stat()
            state = status.st_mtime_ns, status.st_size, status.st_ino
            if name not in self._read or self._read[name][0] != state:
                try:
                    self._read[name] = state, read_adapter(path, self._bundle, self._width)
                except AdapterError as error:
                    self._read[name] = state, error
        except OSError:
            self._read.pop(name, None)
            return None
        return self._read[name][1]
