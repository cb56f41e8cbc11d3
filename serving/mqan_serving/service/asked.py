"""The fields of a question that say what kind of answer is wanted, and the options that they stand for."""

from collections.abc import Mapping
from functools import cached_property
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from mqan_core.answer.types import Source
from mqan_core.ask.options import ALL_SOURCES, MOST_ALTERNATIVES, MOST_CHOICES, MOST_LEVELS, YES_NO, Options
from mqan_core.errors import InputError
from mqan_core.example import Choice
from mqan_core.forms.parsed import check_parse

SourceName = Literal["context", "question", "vocabulary"]
ParseName = Literal["sql", "dialogue_state"]


class ChoiceField(BaseModel):
    """A label to choose from."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    label: str = Field(description="What the answer says when it is chosen.", examples=["billing"])
    description: str = Field(
        default="", description="What the label stands for, read beside it.", examples=["invoices, payments, refunds"]
    )


class AskedFor(BaseModel):
    """What is asked for beside context and question. At most one of choices, yes_no and scale."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    choices: list[str | ChoiceField] | None = Field(
        default=None,
        description=f"A closed set of 1 to {MOST_CHOICES} labels to choose from. Their order does not matter. Without "
        "them, labels that the question lists apart (`Choose from: a, b or c.`) are choices.",
        examples=[["billing", "shipping", {"label": "technical support", "description": "faults of the product"}]],
    )
    multiple: bool = Field(default=False, description="Whether several choices can be right: each is judged by itself.")
    yes_no: bool = Field(
        default=False, description='Whether the answer is to be "yes" or "no", or that the text does not say.'
    )
    none: bool = Field(
        default=False,
        description="Whether none of the choices may be the answer, too. Otherwise one of them is, but where they are "
        "yes and no, or with `multiple` or `min_probability`.",
    )
    scale: list[str] | None = Field(
        default=None,
        description=f"2 to {MOST_LEVELS} levels, low to high, to choose from; the response has an expected value.",
        examples=[["bad", "fair", "good"]],
    )
    sources: list[SourceName] | None = Field(
        default=None,
        description="Where the words of a free answer may come from; with context alone no word can be invented. "
        "Unset: everywhere.",
        examples=[["context"]],
    )
    contiguous: bool = Field(
        default=False, description="Whether the answer is to be one contiguous quotation of the context."
    )
    all: bool = Field(
        default=False, description="Whether every place of the context that answers is wanted; see `places`."
    )
    alternatives: int = Field(
        default=0,
        description=f"How many of the next best quotations are wanted, 0 to {MOST_ALTERNATIVES}; there may be fewer.",
        examples=[3],
    )
    explain: bool = Field(
        default=False, description="Whether the response is to say what each step looked at; see `steps`."
    )
    parse: ParseName | None = Field(
        default=None,
        description='What a free answer is to be read as: "sql", a query of WikiSQL, or "dialogue_state", a change of '
        "state of WOZ; see `parsed`.",
        examples=["sql"],
    )
    min_probability: float | None = Field(
        default=None, description="Below this, 0 to 1, there is no answer: answered is false.", examples=[0.5]
    )

    @cached_property
    def options(self) -> Options:
        """What the fields stand for, found once: they are looked at before and while the question is read.

        Raises:
            InputError: they make no sense together.
        """
        given = [
            name
            for name, is_given in (
                ("choices", self.choices is not None),
                ("yes_no", self.yes_no),
                ("scale", self.scale is not None),
            )
            if is_given
        ]
        if len(given) > 1:
            raise InputError(
                "senseless_combination",
                given[1],
                f"{' and '.join(given)} ask for different answers to one question.",
                "Leave all but one of them out; ask twice for both.",
            )
        if self.yes_no and self.multiple:
            raise InputError(
                "senseless_combination",
                "multiple",
                "multiple makes no sense with yes_no: one of yes and no is right, not both.",
                "Leave out multiple or yes_no.",
            )
        if self.choices is not None and not self.choices:
            _refuse_empty("choices")
        if self.scale is not None and not self.scale:
            _refuse_empty("scale")
        options = Options(
            choices=self._choices(),
            multiple=self.multiple,
            is_scale=self.scale is not None,
            sources=ALL_SOURCES if self.sources is None else frozenset(map(Source, self.sources)),
            contiguous=self.contiguous,
            every=self.all,
            alternatives=self.alternatives,
            explain=self.explain,
            min_probability=self.min_probability,
            reads_lists=self.parse is None,
            none=self.none,
        )
        if self.parse is not None:
            check_parse(options)
        return options

    @property
    def labels(self) -> list[str]:
        """All labels, with their descriptions."""
        given = (*(self.choices or ()), *(self.scale or ()))
        return [one if isinstance(one, str) else f"{one.label} {one.description}" for one in given]

    def _choices(self) -> tuple[Choice, ...]:
        if self.yes_no:
            return YES_NO
        if self.scale is not None:
            return tuple(Choice(level) for level in self.scale)
        return tuple(
            Choice(choice) if isinstance(choice, str) else Choice(choice.label, choice.description)
            for choice in self.choices or ()
        )


_MOST_ENTRIES: Final = {"choices": MOST_CHOICES, "scale": MOST_LEVELS, "sources": len(ALL_SOURCES)}


def check_lists(lengths: Mapping[str, int]) -> None:
    """Check how long the lists of a question are, before each entry of a list of any length is read.

    Args:
        lengths: by the names of the fields; others than lists of ``AskedFor`` do not matter.

    Raises:
        InputError: one is too long.
    """
    for name, most in _MOST_ENTRIES.items():
        if lengths.get(name, 0) > most:
            message = f"{name} has {lengths[name]} entries; at most {most} are accepted."
            code = "wrong_type" if name == "sources" else "wrong_number_of_choices"
            raise InputError(code, name, message, f"Send at most {most}.")


def _refuse_empty(name: str) -> None:
    raise InputError(
        "wrong_number_of_choices", name, f"{name} is an empty list.", "Send the labels, or leave the field out."
    )
