"""The options of a question, and which of them make sense together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mqan_core.answer.adapter import Adapter
from mqan_core.answer.types import Source
from mqan_core.errors import InputError
from mqan_core.example import Choice
from mqan_core.text.tokens import without_invisible

MOST_CHOICES = 255
MOST_LEVELS = 10
MOST_ALTERNATIVES = 20
YES_NO = (Choice("yes"), Choice("no"))
_YES_NO_LABELS = ({"yes", "no"}, {"true", "false"})
ALL_SOURCES = frozenset(Source)


@dataclass(frozen=True, slots=True)
class Options:
    choices: tuple[Choice, ...] = ()  # the closed set of labels to choose from; empty for a free answer
    multiple: bool = False  # several labels can be right: each is judged by itself
    is_scale: bool = False  # the choices are levels, low to high, of which an expected value is wanted
    sources: frozenset[Source] = ALL_SOURCES  # where the words of a free answer may come from
    contiguous: bool = False  # a free answer is to be one unbroken quotation of the context
    every: bool = False  # every place of the context that answers is wanted
    alternatives: int = 0  # further answers that are wanted
    min_probability: float | None = None  # below this there is no answer
    explain: bool = False
    refuses: bool = True  # one quotation may be none, where the text does not say; otherwise the likeliest is given
    reads_lists: bool = True  # labels that the question lists are choices
    none: bool = False  # none of the choices may be the answer; see ``may_be_none``
    adapter: Adapter | None = None  # decides between the choices, which are its own

    @property
    def may_be_withheld(self) -> bool:
        """Whether it is known at an answer's end only if it is given."""
        return self.min_probability is not None

    @property
    def least(self) -> float:
        """The probability that an answer has to have."""
        return self.min_probability or 0.0

    @property
    def may_be_none(self) -> bool:
        return self.none or self.may_be_withheld or is_yes_no([choice.label for choice in self.choices])

    @property
    def fields(self) -> tuple[str, ...]:
        """The names in REST of the options that are asked for; none where the question is plain."""
        asked = {
            "scale" if self.is_scale else "yes_no" if self.choices == YES_NO else "choices": bool(self.choices),
            "multiple": self.multiple,
            "sources": self.sources != ALL_SOURCES,
            "contiguous": self.contiguous,
            "all": self.every,
            "alternatives": self.alternatives > 0,
            "min_probability": self.may_be_withheld,
            "explain": self.explain,
            "none": self.none,
        }
        return tuple(name for name, is_asked in asked.items() if is_asked)

    @property
    def quotes(self) -> bool:
        return self.contiguous or self.every

    @property
    def takes_labels(self) -> bool:
        """Whether labels that the question lists are read as choices: nothing asks for another kind of answer."""
        is_free = self.sources == ALL_SOURCES and not self.quotes and not self.alternatives
        return self.reads_lists and is_free and not self.choices

    def check(self) -> None:
        """Refuse options that make no sense together by an ``InputError``, whose field is the option's name in REST."""
        _check_numbers(self)
        if self.choices:
            _check_choices(self)
        elif self.none:
            raise _clash("none", "none is about choices, and there are none.", "Send choices, too.")
        elif self.multiple:
            raise _clash("multiple", "multiple is about choices, and there are none.", "Send choices, too.")
        elif self.is_scale:
            raise _clash("scale", "The scale has no levels.", f"Send 2 to {MOST_LEVELS} levels, low to high.")
        if not self.sources:
            raise _clash("sources", "No source is allowed.", "Name at least one, or leave the field out.")
        if (self.quotes or self.alternatives) and Source.CONTEXT not in self.sources:
            name = "all" if self.every else "contiguous" if self.contiguous else "alternatives"
            raise _clash(name, f"{name} quotes the context, which sources leaves out.", "Add context to sources.")
        if not self.refuses and not self.contiguous:
            raise _clash("refuses", "Only one unbroken quotation can always be given.", "Ask for contiguous, too.")


PLAIN = Options()


def is_yes_no(labels: Sequence[str]) -> bool:
    """Return whether labels are yes and no, or true and false: whether a text says so can then be open, too."""
    return {label.strip().casefold() for label in labels} in _YES_NO_LABELS


def choices_of(labels: Sequence[str]) -> tuple[Choice, ...]:
    return tuple(Choice(label) for label in labels)


def _check_numbers(options: Options) -> None:
    least = options.min_probability
    if least is not None and not (math.isfinite(least) and 0 <= least <= 1):
        raise _out_of_range("min_probability", f"min_probability is {least}; 0 to 1 is accepted.")
    if not 0 <= options.alternatives <= MOST_ALTERNATIVES:
        found = f"alternatives is {options.alternatives}; 0 to {MOST_ALTERNATIVES} are accepted."
        raise _out_of_range("alternatives", found)


def _check_choices(options: Options) -> None:
    name = "scale" if options.is_scale else "choices"
    most = MOST_LEVELS if options.is_scale else MOST_CHOICES
    least = 2 if options.is_scale else 1
    if not least <= len(options.choices) <= most:
        found = f"{name} has {len(options.choices)} labels; {least} to {most} are accepted."
        raise InputError("wrong_number_of_choices", name, found, "Send a number of labels that is accepted.")
    seen: set[str] = set()
    read: dict[str, str] = {}
    for choice in options.choices:
        if choice.label in seen:
            found = f"{name} has the label {choice.label[:40]!r} twice."
            raise InputError("duplicate_choice", name, found, "Send each label once.")
        seen.add(choice.label)
        other = read.setdefault(_as_read(f"{choice.label}\n{choice.description}"), choice.label)
        if other != choice.label:
            told = "The model reads them alike: send one, or describe both."
            found = f"{name} has {other[:40]!r} and {choice.label[:40]!r}, which differ in case or white space only."
            raise InputError("duplicate_choice", name, found, told)
    for field, is_set, why in (
        ("multiple", options.is_scale and options.multiple, "one level of a scale is right, not several"),
        ("sources", options.sources != ALL_SOURCES, "a label is chosen, not copied or generated"),
        ("contiguous", options.contiguous, "a label is chosen, not quoted"),
        ("all", options.every, "a label is chosen, not quoted; multiple asks for all labels that are right"),
        ("none", options.none and options.multiple, "multiple judges each label by itself, and all may be wrong"),
        ("alternatives", options.alternatives > 0, "every label has its probability already"),
    ):
        if is_set:
            raise _clash(field, f"{field} cannot be combined with {name}: {why}.", f"Leave out {field} or {name}.")


def _as_read(text: str) -> str:
    """Return a text without what is not read of it, so that texts that are read alike are alike."""
    return " ".join(without_invisible(text).lower().split())


def _clash(field: str, message: str, hint: str) -> InputError:
    return InputError("incompatible_options", field, message, hint)


def _out_of_range(field: str, message: str) -> InputError:
    return InputError("option_out_of_range", field, message, "Choose a number in this range or leave the field out.")
