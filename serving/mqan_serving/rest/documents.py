"""The JSON documents that REST answers with. They carry the same fields as the messages of the protobuf contract."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Literal

from pydantic import Field

from mqan_core import __version__
from mqan_core.answer.streaming import StreamedWord
from mqan_core.answer.types import Answer, AnswerToken, Place, Span
from mqan_core.manifest import Manifest
from mqan_serving.rest.citations import CitationDocument, cite
from mqan_serving.rest.parsed_documents import QueryDocument, StateDocument, parsed_document
from mqan_serving.rest.quotation_documents import Document, QuotationDocument, quotation_document
from mqan_serving.service.answer_service import Model


class SpanDocument(Document):
    """Half-open range of Unicode code points."""

    start: int = Field(description="First code point.", examples=[13])
    end: int = Field(description="One past the last code point.", examples=[16])


class MassesDocument(Document):
    """How the model divided its trust between the sources at one step; the three sum to 1."""

    context: float = Field(description="Mass on copying from the context.", examples=[0.96])
    question: float = Field(description="Mass on copying from the question.", examples=[0.01])
    vocabulary: float = Field(description="Mass on generating from the vocabulary.", examples=[0.03])


class TokenDocument(Document):
    """One token of an answer."""

    text: str = Field(description="The token as it stands in the answer.", examples=["330"])
    probability: float = Field(description="Probability of this token given those before it.", examples=[0.94])
    source: Literal["context", "question", "vocabulary"] = Field(description="Where the token came from.")
    masses: MassesDocument
    span: SpanDocument | None = Field(description="Place it was copied from; null for a generated token.")


class WordDocument(TokenDocument):
    """A word of an answer that is not whole yet; nothing takes it back."""

    delta: str = Field(
        description="What it appends to the answer's text: itself, and what stands between it and the word before it.",
        examples=[" 330"],
    )

    @classmethod
    def of(cls, word: StreamedWord) -> "WordDocument":
        """Convert a word."""
        return cls.model_construct(**dict(_token(word.token)), delta=word.delta)


class PlaceDocument(QuotationDocument):
    """A place of the context that answers, or decides for a label."""

    probability: float = Field(description="How likely it does.", examples=[0.41])

    @classmethod
    def of(cls, place: Place) -> "PlaceDocument":
        """Convert a place."""
        return cls.model_construct(**dict(quotation_document(place.span)), probability=place.probability)


class ChoiceDocument(Document):
    """How likely one of the choices is."""

    label: str = Field(description="As the caller gave it.", examples=["billing"])
    probability: float = Field(
        description="Its share of all choices, which sum to 1; of the choices and `none` for yes and no, and with "
        "`none` or `min_probability`; with `multiple` how likely it is by itself."
    )
    evidence: list[PlaceDocument] = Field(
        description="The words of the context that decide for it, up to three places in the order of the text, where "
        "it was chosen. Of a model that was not trained to tell, those that it looked at most."
    )


class AlternativeDocument(Document):
    """One of the next best answers: an unbroken quotation of the context."""

    answer: str = Field(description="The quotation.", examples=["12 May 2024"])
    probability: float = Field(description="How likely its first and last words are those of the answer.")
    tokens: list[TokenDocument]
    spans: list[QuotationDocument]


class WeightDocument(SpanDocument):
    """What pointing at a word of a text gave to a step."""

    weight: float = Field(description="Its part of the step, 0 to 1.", examples=[0.83])


class CandidateDocument(Document):
    """A word that a step could have chosen."""

    text: str = Field(description="The word, in lower case; empty for the end of the answer.", examples=["1889"])
    probability: float = Field(description="How likely it was.", examples=[0.83])
    source: Literal["context", "question", "vocabulary"] = Field(description="What gave most of its probability.")


class StepDocument(Document):
    """What the model looked at when it chose a word, the end of the answer, or a label."""

    context: list[WeightDocument] = Field(
        description="Words of the context, the largest weight first, up to 50; weights below 0.001 are left out. For "
        "a label: how attention was divided when it was chosen."
    )
    question: list[WeightDocument] = Field(description="Words of the question, likewise; none for a label.")
    candidates: list[CandidateDocument] = Field(
        description="The likeliest words, up to five, the likeliest first; of the vocabulary's only the one that was "
        "chosen. None for a label: see `choices`."
    )


class ModelVersionDocument(Document):
    """Identity of a model."""

    name: str = Field(examples=["mqan-default"])
    version: str = Field(examples=["2.0.0-rc4"])


class AnswerDocument(Document):
    """An answer that says where each of its words came from."""

    answer: str = Field(
        description="The answer. Copied words keep the caller's casing, generated words are lower case.",
        examples=["330 m"],
    )
    probability: float = Field(
        description="How sure the model is of the whole answer: the product of the probabilities of its tokens and of "
        "its end, of a chosen label its own, and with `multiple` that of every label being judged rightly; mapped to "
        "how often such answers were right on validation data where the model holds such a map."
    )
    tokens: list[TokenDocument]
    spans: list[QuotationDocument]
    truncated: bool = Field(description="Whether the answer was cut at max_answer_tokens before the model ended it.")
    answered: bool = Field(
        description="Whether there is an answer: not where the text does not say, no choice is right, or "
        "`min_probability` is not reached. The answer is empty then."
    )
    confidence: float = Field(
        description="Of choices, the best one's probability; of no answer, that there is none; else `probability`."
    )
    none: float = Field(
        description="How likely it is that the text does not say, or that none of the choices is right.",
        examples=[0.02],
    )
    choices: list[ChoiceDocument] = Field(
        description="The choices, in the caller's order, also where the question lists them; empty for a free answer."
    )
    chosen: list[str] = Field(description="The labels that hold; several only with `multiple`.")
    expected: float | None = Field(description="Expected value of a scale, its lowest level being 1; null without one.")
    places: list[PlaceDocument] = Field(
        description="With `all`, every place that answers, in the order of the text: those at least a fifth as likely "
        "as the likeliest, and not below `min_probability`."
    )
    alternatives: list[AlternativeDocument] = Field(
        description="The next best quotations, the likeliest first, as many as are wanted and are not below 0.001."
    )
    steps: list[StepDocument] = Field(
        description="With `explain`, what each step looked at: one for each token and one for the end of the answer; a "
        "label and an unbroken quotation take one step. Empty where `min_probability` is not reached."
    )
    parsed: QueryDocument | StateDocument | None = Field(
        description="With `parse`, what the answer was read as; null where it is not of that form."
    )
    parse_error: str | None = Field(description="With `parse`, why the answer could not be read; null where it could.")
    windows: int = Field(description="Windows of the context that were read, each of up to 384 word pieces.")
    model: ModelVersionDocument
    citations: list[CitationDocument] | None = Field(
        default=None,
        exclude_if=lambda found: found is None,
        description="With `citations`, the quotations of the context, and for labels the words that decide for them; "
        "absent otherwise.",
    )

    @classmethod
    def of(
        cls,
        answer: Answer,
        model: Model | Manifest,
        *,
        is_cited: bool = False,
        text_index: int = 0,
        text_id: str | None = None,
    ) -> "AnswerDocument":
        """Convert an answer.

        Args:
            answer: the answer.
            model: what answered, of which its name and version are told.
            is_cited: whether citations are wanted.
            text_index, text_id: of the context among the texts of a call.
        """
        return cls.model_construct(
            answer=answer.text,
            probability=answer.probability,
            tokens=[_token(token) for token in answer.tokens],
            spans=[quotation_document(span) for span in answer.spans],
            truncated=answer.truncated,
            answered=answer.answered,
            confidence=answer.confidence,
            none=answer.refusal,
            choices=[
                ChoiceDocument.model_construct(
                    label=choice.label, probability=share, evidence=list(map(PlaceDocument.of, choice.evidence))
                )
                for choice, share in zip(answer.choices, answer.shares, strict=True)
            ],
            chosen=list(answer.chosen),
            expected=answer.expected,
            places=list(map(PlaceDocument.of, answer.places)),
            alternatives=[
                AlternativeDocument.model_construct(
                    answer=other.text,
                    probability=other.probability,
                    tokens=[_token(token) for token in other.tokens],
                    spans=[quotation_document(span) for span in other.spans],
                )
                for other in answer.alternatives
            ],
            steps=[
                StepDocument.model_construct(
                    context=_weights(step.context),
                    question=_weights(step.question),
                    candidates=[
                        CandidateDocument.model_construct(**asdict(candidate) | {"source": candidate.source.value})
                        for candidate in step.candidates
                    ],
                )
                for step in answer.explanation
            ],
            parsed=None if answer.parsed is None else parsed_document(answer.parsed),
            parse_error=answer.parse_error,
            windows=answer.num_windows,
            model=ModelVersionDocument.model_construct(name=model.name, version=model.version),
            citations=cite(answer, text_index, text_id) if is_cited else None,
        )


class ItemErrorDocument(Document):
    """Why a question of a call was not answered."""

    code: str = Field(description="Stable, machine-readable.", examples=["empty_question"])
    message: str = Field(description="What is wrong, and where.", examples=["The question is empty."])
    hint: str = Field(description="How to fix it.", examples=["Send a question in natural language."])


class ItemDocument(Document):
    """What became of a question: an answer or an error."""

    id: str | None = Field(description="The question's id, where it has one.", examples=["height"])
    answer: AnswerDocument | None
    error: ItemErrorDocument | None


class TextAnswersDocument(Document):
    """The answers about one text, in the order of its questions."""

    id: str | None = Field(description="The text's id, where it has one.", examples=["mail-17"])
    answers: list[ItemDocument]


class AnswersDocument(Document):
    """The answers of a call, in the order of its texts."""

    texts: list[TextAnswersDocument]
    model: ModelVersionDocument


class LimitsDocument(Document):
    """Limits that hold for requests; more is refused, never cut."""

    max_request_bytes: int = Field(description="Bytes of a request.", examples=[1048576])
    max_context_tokens: int = Field(description="Tokens of a context.", examples=[4000])
    max_question_tokens: int = Field(description="Tokens of a question.", examples=[256])
    max_answer_tokens: int = Field(description="Tokens of an answer.", examples=[100])
    max_word_length: int = Field(description="Characters of one token.", examples=[1000])
    max_metadata_bytes: int = Field(
        description="Bytes of HTTP headers: names and values, and 32 for each pair, as HTTP/2 counts them.",
        examples=[8192],
    )
    max_timeout_ms: int = Field(
        description="Milliseconds that a request may take; longer deadlines are cut to it.", examples=[30000]
    )
    max_concurrent_requests: int = Field(
        description="Requests inside one replica, those that wait included.", examples=[260]
    )
    max_queued_requests: int = Field(description="Those of them that wait.", examples=[256])


class ScoreDocument(Document):
    """A validation score of the model, as measured."""

    task: str = Field(examples=["squad"])
    metric: str = Field(examples=["nf1"])
    value: float = Field(examples=[68.8])


class AcceptedQuestionDocument(Document):
    """A question that a model of fixed tasks takes."""  # part of the contract; no such model is served

    task: str = Field(description="Its task.", examples=["rte"])
    question: str = Field(
        description="Its words; in the places of {first} and {second} stand texts of the caller.",
        examples=["Does the hypothesis follow from the premise?"],
    )
    context: str = Field(
        description="The form of its context, likewise.", examples=["Premise: {first}\nHypothesis: {second}"]
    )
    labels: list[str] = Field(description="Its classes.", examples=[["entailment", "not entailment"]])


class ModelDocument(Document):
    """The served model and its limits."""

    model: ModelVersionDocument
    sha256: str = Field(
        description="SHA-256 of the bundle's manifest, which covers every file of the model.", examples=["5f0c" * 16]
    )
    provider: str = Field(description="Execution provider that runs the model.", examples=["CPUExecutionProvider"])
    limits: LimitsDocument
    num_generated: int = Field(description="Pieces that the model can generate.", examples=[9000])
    num_words: int = Field(
        description="Words that have a pretrained vector; others are read by their characters.", examples=[48734]
    )
    scores: list[ScoreDocument]
    questions: list[AcceptedQuestionDocument] = Field(
        description="The questions that a model of fixed tasks takes; empty of a model that takes any question."
    )
    server_version: str = Field(
        description="Version of the server's software; the model's own is in `model`.", examples=[__version__]
    )

    @classmethod
    def of(cls, model: Model) -> "ModelDocument":
        """Convert a description."""
        return cls(
            model=ModelVersionDocument(name=model.name, version=model.version),
            sha256=model.sha256,
            provider=model.provider,
            limits=LimitsDocument(**asdict(model.limits)),
            num_generated=model.num_generated,
            num_words=model.num_words,
            scores=[ScoreDocument(task=s.task, metric=s.metric, value=s.value) for s in model.scores],
            questions=[],
            server_version=__version__,
        )


class HealthDocument(Document):
    """Health of the server."""

    status: Literal["live", "ready"]


class ErrorDocument(Document):
    """Why a request was not answered."""

    code: str = Field(description="Stable, machine-readable.", examples=["empty_question"])
    message: str = Field(description="What is wrong, and where.", examples=["The question is empty."])
    hint: str = Field(description="How to fix it.", examples=["Send a question in natural language."])
    request_id: str = Field(description="Names this request in the server's log.", examples=["5f0c1d2e3a4b5c6d"])


def _weights(weights: Sequence[tuple[Span, float]]) -> list[WeightDocument]:
    return [WeightDocument.model_construct(start=span.start, end=span.end, weight=weight) for span, weight in weights]


def _token(token: AnswerToken) -> TokenDocument:
    masses = token.masses
    span = token.span
    return TokenDocument.model_construct(
        text=token.text,
        probability=token.probability,
        source=token.source.value,
        masses=MassesDocument.model_construct(
            context=masses.context, question=masses.question, vocabulary=masses.vocabulary
        ),
        span=None if span is None else SpanDocument.model_construct(start=span.start, end=span.end),
    )
