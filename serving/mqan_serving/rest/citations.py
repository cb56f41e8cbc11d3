"""Citations in the shape of Anthropic's (``char_location``), which programs written for those read."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from mqan_core.answer.types import Answer, Source


class CitationDocument(BaseModel):
    """A quotation of the context in the shape of Anthropic's citations; positions count code points."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["char_location"] = "char_location"
    cited_text: str = Field(description="Exactly the context from start to end.", examples=["330"])
    document_index: int = Field(description="The text's place among those of the call, from 0.", examples=[0])
    document_title: str | None = Field(
        description="The text's id, where the call gives it one; else null.", examples=["mail-17"]
    )
    start_char_index: int = Field(description="First code point.", examples=[13])
    end_char_index: int = Field(description="One past the last code point.", examples=[16])


def cite(answer: Answer, text_index: int, text_id: str | None) -> list[CitationDocument]:
    """Return the quotations of the context in an answer, and for labels the words that decide for them, each once.

    Args:
        answer: the answer.
        text_index, text_id: of the context among the texts of a call.
    """
    spans = [*answer.spans, *(place.span for choice in answer.choices for place in choice.evidence)]
    return [
        CitationDocument.model_construct(
            type="char_location",
            cited_text=span.text,
            document_index=text_index,
            document_title=text_id,
            start_char_index=span.start,
            end_char_index=span.end,
        )
        for span in dict.fromkeys(spans)
        if span.source is Source.CONTEXT
    ]
