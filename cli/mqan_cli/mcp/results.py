"""The results of the tools: documents with the places of everything quoted, and the same in words.

Places are half-open ranges of Unicode code points: ``text[start:end]`` in Python.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from mqan_core.ask.options import is_yes_no
from mqan_serving.contract.documents import ChoiceDocument, QuotationDocument
from mqan_serving.contract.model import Document
from mqan_serving.contract.questions import SourceName

_OF_PROBABILITY = "How sure the model is, 0 to 1; where there is no answer, how sure it is of that."


class Word(Document):
    """A word of an answer, or a part of one, and where it came from."""

    text: str = Field(description="As it is written in the answer.")
    source: SourceName = Field(description="Copied from the context or the question, or the model's own (vocabulary).")
    start: int | None = Field(description="First code point of the place that it was copied from; null for its own.")
    end: int | None = Field(description="One past the last code point of it.")

    @classmethod
    def of(cls, token: Mapping[str, Any]) -> "Word":
        return cls(text=token["text"], source=token["source"], **token["span"] or {"start": None, "end": None})


class AnswerResult(Document):
    """An answer, and where each of its words came from."""

    text: str = Field(description="The answer; empty where there is none.")
    answered: bool = Field(description="Whether there is an answer: not where the context does not say.")
    probability: float = Field(description=_OF_PROBABILITY)
    quotations: list[QuotationDocument] = Field(description="What of it was copied, in order.")
    words: list[Word] = Field(description="All of its words, in order.")

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "AnswerResult":
        return cls(
            text=answer["answer"],
            answered=answer["answered"],
            probability=answer["confidence"],
            quotations=answer["spans"],
            words=[Word.of(token) for token in answer["tokens"]],
        )

    def __str__(self) -> str:
        if not self.answered:
            return f"The context does not say (probability {self.probability:.2f})."
        lines = [f"{self.text}\n\nProbability {self.probability:.2f}."]
        if self.quotations:
            lines.append(f"Quoted: {_listed(self.quotations)}.")
        if own := [word.text for word in self.words if word.source == "vocabulary"]:
            lines.append(f"The model's own words: {' '.join(own)}")
        return "\n".join(lines)


class DecideResult(Document):
    """The labels that hold, and how likely each choice is."""

    chosen: list[str] = Field(description="The labels that hold, in the order given; several only with `multiple`.")
    answered: bool = Field(description="Whether any of the choices holds; of yes and no, whether the context says.")
    probability: float = Field(description=f"{_OF_PROBABILITY} With `multiple`, of all choices together.")
    none: float = Field(description="How likely it is that none of the choices is right, or the context does not say.")
    choices: list[ChoiceDocument] = Field(description="All choices, in the order given.")

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "DecideResult":
        return cls(**{name: answer[name] for name in cls.model_fields})

    def __str__(self) -> str:
        is_open = is_yes_no([choice.label for choice in self.choices])
        absent = "The context does not say" if is_open else "None of the choices is right"
        found = ", ".join(self.chosen) if self.answered else absent
        lines = [f"{found} (probability {self.probability:.2f})."]
        lines += [
            f"- {choice.label}: {choice.probability:.2f}"
            + (f"; decided by {_listed(choice.evidence)}" if choice.evidence else "")
            for choice in self.choices
        ]
        return "\n".join([*lines, f"- (none of them): {self.none:.2f}"])


class FieldResult(Document):
    """What fills a field: always a quotation of the context."""

    answered: bool = Field(description="Whether the context says.")
    value: str | None = Field(description="Exactly context[start:end]; null where the context does not say.")
    start: int | None = Field(description="First code point of the value in the context.")
    end: int | None = Field(description="One past the last code point.")
    probability: float = Field(description=_OF_PROBABILITY)

    @classmethod
    def of(cls, field: Mapping[str, Any]) -> "FieldResult":
        place = field["spans"][0] if field["answered"] else {"start": None, "end": None}
        told = {name: field[name] for name in ("answered", "value", "probability")}
        return cls(**told, start=place["start"], end=place["end"])

    def __str__(self) -> str:
        if not self.answered:
            return f"the context does not say (probability {self.probability:.2f})"
        return f'"{self.value}" ({self.start}-{self.end}, probability {self.probability:.2f})'


class ExtractResult(Document):
    """What fills each field."""

    fields: dict[str, FieldResult] = Field(description="By the names that were given.")

    def __str__(self) -> str:
        return "\n".join(f"{name}: {found}" for name, found in self.fields.items())


def _listed(quotations: Iterable[QuotationDocument]) -> str:
    return "; ".join(f'"{one.text}" ({one.source}, {one.start}-{one.end})' for one in quotations)
