"""The JSON of quotations, and what all documents have in common."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from mqan_core.answer.types import AnswerSpan, Source


class Document(BaseModel):
    """A JSON document of the server's."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class QuotationDocument(Document):
    """Neighbouring copied tokens as one quotation."""

    source: Literal["context", "question"] = Field(
        description="The text that is quoted. The words of a chosen label count as the question's."
    )
    start: int = Field(
        description="First code point in that text; of a label in `choices`, in the label.", examples=[13]
    )
    end: int = Field(description="One past the last code point.", examples=[16])
    text: str = Field(description="Exactly text[start:end].", examples=["330"])


def quotation_document(span: AnswerSpan) -> QuotationDocument:
    """Convert a quotation."""
    source: Literal["context", "question"] = "context" if span.source is Source.CONTEXT else "question"
    return QuotationDocument.model_construct(source=source, start=span.start, end=span.end, text=span.text)
