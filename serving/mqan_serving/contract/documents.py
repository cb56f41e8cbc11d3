"""The forms of the documents that say what an answer is, for the API's description; ``answers.py`` writes them."""

from typing import Literal

from mqan_serving.contract.model import (
    AdapterVersionDocument,
    Document,
    ItemErrorDocument,
    ModelVersionDocument,
    described,
)


class SpanDocument(Document):
    """Half-open range of Unicode code points."""

    start: int = described("First code point.", 13)
    end: int = described("One past the last code point.", 16)


class MassesDocument(Document):
    """How the model divided its trust between the sources at one step; the three sum to 1."""

    context: float = described("Mass on copying from the context.", 0.96)
    question: float = described("Mass on copying from the question.", 0.01)
    vocabulary: float = described("Mass on generating from the vocabulary.", 0.03)


class TokenDocument(Document):
    """One token of an answer."""

    text: str = described("The token as it is written in the answer.", "330")
    probability: float = described("Probability of this token given those before it.", 0.94)
    source: Literal["context", "question", "vocabulary"] = described("Where the token came from.")
    masses: MassesDocument
    span: SpanDocument | None = described("Place it was copied from; null for a generated token.")


class QuotationDocument(Document):
    """Neighbouring copied tokens as one quotation."""

    source: Literal["context", "question"] = described(
        "The text that is quoted. The words of a chosen label count as the question's."
    )
    start: int = described("First code point in that text; of a label in `choices`, in the label.", 13)
    end: int = described("One past the last code point.", 16)
    text: str = described("Exactly text[start:end].", "330")


class PlaceDocument(QuotationDocument):
    """A place of the context that answers, or decides for a label."""

    probability: float = described("How likely it does.", 0.41)


class ChoiceDocument(Document):
    """How likely one of the choices is."""

    label: str = described("As the caller gave it.", "billing")
    probability: float = described(
        "Its share of all choices, which sum to 1; of the choices and `none` for yes and no, and with "
        "`none` or `min_probability`; with `multiple` how likely it is by itself."
    )
    evidence: list[PlaceDocument] = described(
        "The words of the context that decide for it, up to three places in the order of the text, where "
        "it was chosen. Of a model that was not trained to tell, those that it looked at most."
    )


class AlternativeDocument(Document):
    """One of the next best answers: an unbroken quotation of the context."""

    answer: str = described("The quotation.", "12 May 2024")
    probability: float = described("How likely its first and last words are those of the answer.")
    tokens: list[TokenDocument]
    spans: list[QuotationDocument]


class WeightDocument(SpanDocument):
    """What pointing at a word of a text gave to a step."""

    weight: float = described("Its part of the step, 0 to 1.", 0.83)


class CandidateDocument(Document):
    """A word that a step could have chosen."""

    text: str = described("The word, in lower case; empty for the end of the answer.", "1889")
    probability: float = described("How likely it was.", 0.83)
    source: Literal["context", "question", "vocabulary"] = described("What gave most of its probability.")


class StepDocument(Document):
    """What the model looked at when it chose a word, the end of the answer, or a label."""

    context: list[WeightDocument] = described(
        "Words of the context, the largest weight first, up to 50; weights below 0.001 are left out. For "
        "a label: how attention was divided when it was chosen."
    )
    question: list[WeightDocument] = described("Words of the question, likewise; none for a label.")
    candidates: list[CandidateDocument] = described(
        "The likeliest words, up to five, the likeliest first; of the vocabulary's only the one that was "
        "chosen. None for a label: see `choices`."
    )


class ConditionDocument(Document):
    """A condition of a query."""

    column: str = described("The compared column, as the context has it.", "Country")
    operator: str = described("The comparison.", json_schema_extra={"enum": ["=", ">", "<"]})
    value: str = described("What it is compared with, as the answer has it.", "Nepal")
    spans: list[QuotationDocument] = described("The quotations in the value.")


class QueryDocument(Document):
    """A query of WikiSQL."""

    select: str = described("The selected column, as the context has it.", "Mountain")
    aggregation: str = described(
        "Of the column, or empty.", json_schema_extra={"enum": ["", "MAX", "MIN", "COUNT", "SUM", "AVG"]}
    )
    conditions: list[ConditionDocument] = described("All of them hold.")
    sql: str = described(
        "The query in standard SQL, by sqlglot.", 'SELECT COUNT("Mountain") FROM "table" WHERE "Country" = \'Nepal\''
    )


class SlotDocument(Document):
    """The value of a slot."""

    value: str = described("As the answer has it.", "italian")
    spans: list[QuotationDocument] = described("The quotations in the value.")


class RequestedSlotDocument(Document):
    """A slot that is asked for."""

    slot: str = described("In lower case.", "phone")
    spans: list[QuotationDocument] = described("The quotations in its name.")


class StateDocument(Document):
    """A change of a dialogue's state."""

    slots: dict[str, SlotDocument] = described("The slots that get a value, by their names in lower case.")
    requests: list[RequestedSlotDocument] = described("The slots that are asked for.")


class CitationDocument(Document):
    """A quotation of the context in the shape of Anthropic's citations; positions count code points."""

    type: Literal["char_location"] = "char_location"
    cited_text: str = described("Exactly the context from start to end.", "330")
    document_index: int = described("The text's place among those of the call, from 0.", 0)
    document_title: str | None = described("The text's id, where the call gives it one; else null.", "mail-17")
    start_char_index: int = described("First code point.", 13)
    end_char_index: int = described("One past the last code point.", 16)


class AnswerDocument(Document):
    """An answer that says where each of its words came from."""

    answer: str = described(
        "The answer. Copied words keep the caller's casing, generated words are lower case.", "330 m"
    )
    probability: float = described(
        "How sure the model is of the whole answer: the product of the probabilities of its tokens and of "
        "its end, of a chosen label its own, and with `multiple` that of every label being judged rightly; mapped to "
        "how often such answers were right on validation data where the model holds such a map."
    )
    tokens: list[TokenDocument]
    spans: list[QuotationDocument]
    truncated: bool = described("Whether the answer was cut at max_answer_tokens before the model ended it.")
    answered: bool = described(
        "Whether there is an answer: not where the text does not say, no choice is right, or "
        "`min_probability` is not reached. The answer is empty then."
    )
    confidence: float = described(
        "Of choices, the best one's probability; of no answer, that there is none; else `probability`."
    )
    none: float = described("How likely it is that the text does not say, or that none of the choices is right.", 0.02)
    choices: list[ChoiceDocument] = described(
        "The choices, in the caller's order, also where the question lists them; empty for a free answer."
    )
    chosen: list[str] = described("The labels that hold; several only with `multiple`.")
    expected: float | None = described("Expected value of a scale, its lowest level being 1; null without one.")
    places: list[PlaceDocument] = described(
        "With `all`, every place that answers, in the order of the text: those at least a fifth as likely "
        "as the likeliest, and not below `min_probability`."
    )
    alternatives: list[AlternativeDocument] = described(
        "The next best quotations, the likeliest first, as many as are wanted and are not below 0.001."
    )
    steps: list[StepDocument] = described(
        "With `explain`, what each step looked at: one for each token and one for the end of the answer; a "
        "label and an unbroken quotation take one step. Empty where `min_probability` is not reached."
    )
    parsed: QueryDocument | StateDocument | None = described(
        "With `parse`, what the answer was read as; null where it is not of that form."
    )
    parse_error: str | None = described("With `parse`, why the answer could not be read; null where it could.")
    windows: int = described("Windows of the context that were read, each of up to 384 word pieces.")
    model: ModelVersionDocument
    adapter: AdapterVersionDocument | None = described(
        "The adapter that decided between the choices; absent without one.",
        default=None,
        exclude_if=lambda found: found is None,
    )
    citations: list[CitationDocument] | None = described(
        "With `citations`, the quotations of the context, and for labels the words that decide for them; "
        "absent otherwise.",
        default=None,
        exclude_if=lambda found: found is None,
    )


class ItemDocument(Document):
    """What became of a question: an answer or an error."""

    id: str | None = described("The question's id, where it has one.", "height")
    answer: AnswerDocument | None
    error: ItemErrorDocument | None


class TextAnswersDocument(Document):
    """The answers about one text, in the order of its questions."""

    id: str | None = described("The text's id, where it has one.", "mail-17")
    answers: list[ItemDocument]


class AnswersDocument(Document):
    """The answers of a call, in the order of its texts."""

    texts: list[TextAnswersDocument]
    model: ModelVersionDocument
