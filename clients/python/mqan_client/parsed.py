"""Answers that the server read as structures: queries of SQL, and changes of a dialogue's state."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqan_client.results import AnswerSpan


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a query.

    Attributes:
        column: as the context has it.
        operator: ``=``, ``>`` or ``<``.
        value: what the column is compared with, as the answer has it.
        spans: the quotations in the value.
    """

    column: str
    operator: str
    value: str
    spans: "tuple[AnswerSpan, ...]"


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query of WikiSQL that an answer was read as.

    Attributes:
        select: the selected column, as the context has it.
        aggregation: MAX, MIN, COUNT, SUM, AVG, or empty.
        conditions: all of them hold.
        sql: the query in standard SQL.
    """

    select: str
    aggregation: str
    conditions: tuple[Condition, ...]
    sql: str


@dataclass(frozen=True, slots=True)
class SlotValue:
    """The value of a slot of a dialogue, as the answer has it, and the quotations in it."""

    value: str
    spans: "tuple[AnswerSpan, ...]"


@dataclass(frozen=True, slots=True)
class RequestedSlot:
    """A slot that is asked for, in lower case, and the quotations in its name."""

    slot: str
    spans: "tuple[AnswerSpan, ...]"


@dataclass(frozen=True, slots=True)
class ParsedState:
    """A change of a dialogue's state that an answer was read as.

    Attributes:
        slots: the slots that get a value, by their names in lower case.
        requests: the slots that are asked for.
    """

    slots: dict[str, SlotValue]
    requests: tuple[RequestedSlot, ...]
