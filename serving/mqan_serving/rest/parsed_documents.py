"""The JSON of answers that were read as structures. It has the same fields as the messages of the protobuf contract."""

from collections.abc import Sequence

from pydantic import Field

from mqan_core.answer.types import AnswerSpan, ParsedQuery, ParsedState
from mqan_serving.rest.quotation_documents import Document, QuotationDocument, quotation_document


class ConditionDocument(Document):
    """A condition of a query."""

    column: str = Field(description="The compared column, as the context has it.", examples=["Country"])
    operator: str = Field(description="The comparison.", json_schema_extra={"enum": ["=", ">", "<"]})
    value: str = Field(description="What it is compared with, as the answer has it.", examples=["Nepal"])
    spans: list[QuotationDocument] = Field(description="The quotations in the value.")


class QueryDocument(Document):
    """A query of WikiSQL."""

    select: str = Field(description="The selected column, as the context has it.", examples=["Mountain"])
    aggregation: str = Field(
        description="Of the column, or empty.", json_schema_extra={"enum": ["", "MAX", "MIN", "COUNT", "SUM", "AVG"]}
    )
    conditions: list[ConditionDocument] = Field(description="All of them hold.")
    sql: str = Field(
        description="The query in standard SQL, by sqlglot.",
        examples=['SELECT COUNT("Mountain") FROM "table" WHERE "Country" = \'Nepal\''],
    )


class SlotDocument(Document):
    """The value of a slot."""

    value: str = Field(description="As the answer has it.", examples=["italian"])
    spans: list[QuotationDocument] = Field(description="The quotations in the value.")


class RequestedSlotDocument(Document):
    """A slot that is asked for."""

    slot: str = Field(description="In lower case.", examples=["phone"])
    spans: list[QuotationDocument] = Field(description="The quotations in its name.")


class StateDocument(Document):
    """A change of a dialogue's state."""

    slots: dict[str, SlotDocument] = Field(description="The slots that get a value, by their names in lower case.")
    requests: list[RequestedSlotDocument] = Field(description="The slots that are asked for.")


def parsed_document(parsed: ParsedQuery | ParsedState) -> QueryDocument | StateDocument:
    """Convert a structure."""
    if isinstance(parsed, ParsedState):
        return StateDocument.model_construct(
            slots={
                told.name: SlotDocument.model_construct(value=told.text, spans=_quotations(told.spans))
                for told in parsed.slots
            },
            requests=[
                RequestedSlotDocument.model_construct(slot=wanted.name, spans=_quotations(wanted.spans))
                for wanted in parsed.requests
            ],
        )
    conditions = [
        ConditionDocument.model_construct(
            column=condition.value.name,
            operator=condition.operator,
            value=condition.value.text,
            spans=_quotations(condition.value.spans),
        )
        for condition in parsed.conditions
    ]
    return QueryDocument.model_construct(
        select=parsed.select, aggregation=parsed.aggregation, conditions=conditions, sql=parsed.sql
    )


def _quotations(spans: Sequence[AnswerSpan]) -> list[QuotationDocument]:
    return [quotation_document(span) for span in spans]
