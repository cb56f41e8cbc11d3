from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ParseKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PARSE_KIND_UNSPECIFIED: _ClassVar[ParseKind]
    PARSE_KIND_SQL: _ClassVar[ParseKind]
    PARSE_KIND_DIALOGUE_STATE: _ClassVar[ParseKind]

class Source(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SOURCE_UNSPECIFIED: _ClassVar[Source]
    SOURCE_CONTEXT: _ClassVar[Source]
    SOURCE_QUESTION: _ClassVar[Source]
    SOURCE_VOCABULARY: _ClassVar[Source]
PARSE_KIND_UNSPECIFIED: ParseKind
PARSE_KIND_SQL: ParseKind
PARSE_KIND_DIALOGUE_STATE: ParseKind
SOURCE_UNSPECIFIED: Source
SOURCE_CONTEXT: Source
SOURCE_QUESTION: Source
SOURCE_VOCABULARY: Source

class AnswerRequest(_message.Message):
    __slots__ = ("context", "question", "max_answer_tokens", "choices", "multiple", "yes_no", "scale", "sources", "min_probability", "contiguous", "all", "alternatives", "explain", "parse", "none", "adapter", "model")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    MAX_ANSWER_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    MULTIPLE_FIELD_NUMBER: _ClassVar[int]
    YES_NO_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    MIN_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    CONTIGUOUS_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    ALTERNATIVES_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    PARSE_FIELD_NUMBER: _ClassVar[int]
    NONE_FIELD_NUMBER: _ClassVar[int]
    ADAPTER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    context: str
    question: str
    max_answer_tokens: int
    choices: _containers.RepeatedCompositeFieldContainer[Choice]
    multiple: bool
    yes_no: bool
    scale: _containers.RepeatedScalarFieldContainer[str]
    sources: _containers.RepeatedScalarFieldContainer[Source]
    min_probability: float
    contiguous: bool
    all: bool
    alternatives: int
    explain: bool
    parse: ParseKind
    none: bool
    adapter: str
    model: str
    def __init__(self, context: _Optional[str] = ..., question: _Optional[str] = ..., max_answer_tokens: _Optional[int] = ..., choices: _Optional[_Iterable[_Union[Choice, _Mapping]]] = ..., multiple: _Optional[bool] = ..., yes_no: _Optional[bool] = ..., scale: _Optional[_Iterable[str]] = ..., sources: _Optional[_Iterable[_Union[Source, str]]] = ..., min_probability: _Optional[float] = ..., contiguous: _Optional[bool] = ..., all: _Optional[bool] = ..., alternatives: _Optional[int] = ..., explain: _Optional[bool] = ..., parse: _Optional[_Union[ParseKind, str]] = ..., none: _Optional[bool] = ..., adapter: _Optional[str] = ..., model: _Optional[str] = ...) -> None: ...

class Choice(_message.Message):
    __slots__ = ("label", "description")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    label: str
    description: str
    def __init__(self, label: _Optional[str] = ..., description: _Optional[str] = ...) -> None: ...

class AnswerResponse(_message.Message):
    __slots__ = ("answer", "probability", "tokens", "spans", "truncated", "model", "answered", "confidence", "choices", "chosen", "expected", "windows", "places", "alternatives", "steps", "query", "state", "parse_error", "none", "adapter")
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ANSWERED_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    CHOSEN_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    ALTERNATIVES_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PARSE_ERROR_FIELD_NUMBER: _ClassVar[int]
    NONE_FIELD_NUMBER: _ClassVar[int]
    ADAPTER_FIELD_NUMBER: _ClassVar[int]
    answer: str
    probability: float
    tokens: _containers.RepeatedCompositeFieldContainer[AnswerToken]
    spans: _containers.RepeatedCompositeFieldContainer[AnswerSpan]
    truncated: bool
    model: ModelVersion
    answered: bool
    confidence: float
    choices: _containers.RepeatedCompositeFieldContainer[ChoiceProbability]
    chosen: _containers.RepeatedScalarFieldContainer[str]
    expected: float
    windows: int
    places: _containers.RepeatedCompositeFieldContainer[Place]
    alternatives: _containers.RepeatedCompositeFieldContainer[Alternative]
    steps: _containers.RepeatedCompositeFieldContainer[Step]
    query: ParsedQuery
    state: ParsedState
    parse_error: str
    none: float
    adapter: AdapterVersion
    def __init__(self, answer: _Optional[str] = ..., probability: _Optional[float] = ..., tokens: _Optional[_Iterable[_Union[AnswerToken, _Mapping]]] = ..., spans: _Optional[_Iterable[_Union[AnswerSpan, _Mapping]]] = ..., truncated: _Optional[bool] = ..., model: _Optional[_Union[ModelVersion, _Mapping]] = ..., answered: _Optional[bool] = ..., confidence: _Optional[float] = ..., choices: _Optional[_Iterable[_Union[ChoiceProbability, _Mapping]]] = ..., chosen: _Optional[_Iterable[str]] = ..., expected: _Optional[float] = ..., windows: _Optional[int] = ..., places: _Optional[_Iterable[_Union[Place, _Mapping]]] = ..., alternatives: _Optional[_Iterable[_Union[Alternative, _Mapping]]] = ..., steps: _Optional[_Iterable[_Union[Step, _Mapping]]] = ..., query: _Optional[_Union[ParsedQuery, _Mapping]] = ..., state: _Optional[_Union[ParsedState, _Mapping]] = ..., parse_error: _Optional[str] = ..., none: _Optional[float] = ..., adapter: _Optional[_Union[AdapterVersion, _Mapping]] = ...) -> None: ...

class ParsedQuery(_message.Message):
    __slots__ = ("select", "aggregation", "conditions", "sql")
    SELECT_FIELD_NUMBER: _ClassVar[int]
    AGGREGATION_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    SQL_FIELD_NUMBER: _ClassVar[int]
    select: str
    aggregation: str
    conditions: _containers.RepeatedCompositeFieldContainer[Condition]
    sql: str
    def __init__(self, select: _Optional[str] = ..., aggregation: _Optional[str] = ..., conditions: _Optional[_Iterable[_Union[Condition, _Mapping]]] = ..., sql: _Optional[str] = ...) -> None: ...

class Condition(_message.Message):
    __slots__ = ("column", "operator", "value", "spans")
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    column: str
    operator: str
    value: str
    spans: _containers.RepeatedCompositeFieldContainer[AnswerSpan]
    def __init__(self, column: _Optional[str] = ..., operator: _Optional[str] = ..., value: _Optional[str] = ..., spans: _Optional[_Iterable[_Union[AnswerSpan, _Mapping]]] = ...) -> None: ...

class ParsedState(_message.Message):
    __slots__ = ("slots", "requests")
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    slots: _containers.RepeatedCompositeFieldContainer[SlotValue]
    requests: _containers.RepeatedCompositeFieldContainer[RequestedSlot]
    def __init__(self, slots: _Optional[_Iterable[_Union[SlotValue, _Mapping]]] = ..., requests: _Optional[_Iterable[_Union[RequestedSlot, _Mapping]]] = ...) -> None: ...

class SlotValue(_message.Message):
    __slots__ = ("slot", "value", "spans")
    SLOT_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    slot: str
    value: str
    spans: _containers.RepeatedCompositeFieldContainer[AnswerSpan]
    def __init__(self, slot: _Optional[str] = ..., value: _Optional[str] = ..., spans: _Optional[_Iterable[_Union[AnswerSpan, _Mapping]]] = ...) -> None: ...

class RequestedSlot(_message.Message):
    __slots__ = ("slot", "spans")
    SLOT_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    slot: str
    spans: _containers.RepeatedCompositeFieldContainer[AnswerSpan]
    def __init__(self, slot: _Optional[str] = ..., spans: _Optional[_Iterable[_Union[AnswerSpan, _Mapping]]] = ...) -> None: ...

class AnswerManyRequest(_message.Message):
    __slots__ = ("texts", "model")
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedCompositeFieldContainer[AskedText]
    model: str
    def __init__(self, texts: _Optional[_Iterable[_Union[AskedText, _Mapping]]] = ..., model: _Optional[str] = ...) -> None: ...

class AskedText(_message.Message):
    __slots__ = ("id", "context", "questions")
    ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    QUESTIONS_FIELD_NUMBER: _ClassVar[int]
    id: str
    context: str
    questions: _containers.RepeatedCompositeFieldContainer[AskedQuestion]
    def __init__(self, id: _Optional[str] = ..., context: _Optional[str] = ..., questions: _Optional[_Iterable[_Union[AskedQuestion, _Mapping]]] = ...) -> None: ...

class AskedQuestion(_message.Message):
    __slots__ = ("id", "request", "timeout_ms")
    ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    id: str
    request: AnswerRequest
    timeout_ms: int
    def __init__(self, id: _Optional[str] = ..., request: _Optional[_Union[AnswerRequest, _Mapping]] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class AnswerManyResponse(_message.Message):
    __slots__ = ("texts", "model")
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedCompositeFieldContainer[AnsweredText]
    model: ModelVersion
    def __init__(self, texts: _Optional[_Iterable[_Union[AnsweredText, _Mapping]]] = ..., model: _Optional[_Union[ModelVersion, _Mapping]] = ...) -> None: ...

class AnsweredText(_message.Message):
    __slots__ = ("id", "answers")
    ID_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    id: str
    answers: _containers.RepeatedCompositeFieldContainer[QuestionOutcome]
    def __init__(self, id: _Optional[str] = ..., answers: _Optional[_Iterable[_Union[QuestionOutcome, _Mapping]]] = ...) -> None: ...

class QuestionOutcome(_message.Message):
    __slots__ = ("id", "answer", "error")
    ID_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    id: str
    answer: AnswerResponse
    error: QuestionError
    def __init__(self, id: _Optional[str] = ..., answer: _Optional[_Union[AnswerResponse, _Mapping]] = ..., error: _Optional[_Union[QuestionError, _Mapping]] = ...) -> None: ...

class QuestionError(_message.Message):
    __slots__ = ("code", "message", "hint")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    hint: str
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., hint: _Optional[str] = ...) -> None: ...

class AnswerStreamResponse(_message.Message):
    __slots__ = ("word", "answer")
    WORD_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    word: StreamedWord
    answer: AnswerResponse
    def __init__(self, word: _Optional[_Union[StreamedWord, _Mapping]] = ..., answer: _Optional[_Union[AnswerResponse, _Mapping]] = ...) -> None: ...

class StreamedWord(_message.Message):
    __slots__ = ("token", "delta")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    token: AnswerToken
    delta: str
    def __init__(self, token: _Optional[_Union[AnswerToken, _Mapping]] = ..., delta: _Optional[str] = ...) -> None: ...

class Step(_message.Message):
    __slots__ = ("context", "question", "candidates")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    context: _containers.RepeatedCompositeFieldContainer[PointerWeight]
    question: _containers.RepeatedCompositeFieldContainer[PointerWeight]
    candidates: _containers.RepeatedCompositeFieldContainer[Candidate]
    def __init__(self, context: _Optional[_Iterable[_Union[PointerWeight, _Mapping]]] = ..., question: _Optional[_Iterable[_Union[PointerWeight, _Mapping]]] = ..., candidates: _Optional[_Iterable[_Union[Candidate, _Mapping]]] = ...) -> None: ...

class PointerWeight(_message.Message):
    __slots__ = ("span", "weight")
    SPAN_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    span: TextSpan
    weight: float
    def __init__(self, span: _Optional[_Union[TextSpan, _Mapping]] = ..., weight: _Optional[float] = ...) -> None: ...

class Candidate(_message.Message):
    __slots__ = ("text", "probability", "source")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    text: str
    probability: float
    source: Source
    def __init__(self, text: _Optional[str] = ..., probability: _Optional[float] = ..., source: _Optional[_Union[Source, str]] = ...) -> None: ...

class Place(_message.Message):
    __slots__ = ("span", "probability")
    SPAN_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    span: AnswerSpan
    probability: float
    def __init__(self, span: _Optional[_Union[AnswerSpan, _Mapping]] = ..., probability: _Optional[float] = ...) -> None: ...

class Alternative(_message.Message):
    __slots__ = ("answer", "probability", "tokens", "spans")
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    answer: str
    probability: float
    tokens: _containers.RepeatedCompositeFieldContainer[AnswerToken]
    spans: _containers.RepeatedCompositeFieldContainer[AnswerSpan]
    def __init__(self, answer: _Optional[str] = ..., probability: _Optional[float] = ..., tokens: _Optional[_Iterable[_Union[AnswerToken, _Mapping]]] = ..., spans: _Optional[_Iterable[_Union[AnswerSpan, _Mapping]]] = ...) -> None: ...

class ChoiceProbability(_message.Message):
    __slots__ = ("label", "probability", "evidence")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    label: str
    probability: float
    evidence: _containers.RepeatedCompositeFieldContainer[Place]
    def __init__(self, label: _Optional[str] = ..., probability: _Optional[float] = ..., evidence: _Optional[_Iterable[_Union[Place, _Mapping]]] = ...) -> None: ...

class AnswerToken(_message.Message):
    __slots__ = ("text", "probability", "source", "masses", "span")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    MASSES_FIELD_NUMBER: _ClassVar[int]
    SPAN_FIELD_NUMBER: _ClassVar[int]
    text: str
    probability: float
    source: Source
    masses: SourceMasses
    span: TextSpan
    def __init__(self, text: _Optional[str] = ..., probability: _Optional[float] = ..., source: _Optional[_Union[Source, str]] = ..., masses: _Optional[_Union[SourceMasses, _Mapping]] = ..., span: _Optional[_Union[TextSpan, _Mapping]] = ...) -> None: ...

class SourceMasses(_message.Message):
    __slots__ = ("context", "question", "vocabulary")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    VOCABULARY_FIELD_NUMBER: _ClassVar[int]
    context: float
    question: float
    vocabulary: float
    def __init__(self, context: _Optional[float] = ..., question: _Optional[float] = ..., vocabulary: _Optional[float] = ...) -> None: ...

class TextSpan(_message.Message):
    __slots__ = ("start", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: int
    end: int
    def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class AnswerSpan(_message.Message):
    __slots__ = ("source", "start", "end", "text")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    source: Source
    start: int
    end: int
    text: str
    def __init__(self, source: _Optional[_Union[Source, str]] = ..., start: _Optional[int] = ..., end: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class ModelVersion(_message.Message):
    __slots__ = ("name", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class FillRecordRequest(_message.Message):
    __slots__ = ("context", "schema", "model")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    context: str
    schema: str
    model: str
    def __init__(self, context: _Optional[str] = ..., schema: _Optional[str] = ..., model: _Optional[str] = ...) -> None: ...

class FillRecordResponse(_message.Message):
    __slots__ = ("record", "missing", "fields", "model")
    RECORD_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    record: str
    missing: _containers.RepeatedScalarFieldContainer[str]
    fields: _containers.RepeatedCompositeFieldContainer[FilledField]
    model: ModelVersion
    def __init__(self, record: _Optional[str] = ..., missing: _Optional[_Iterable[str]] = ..., fields: _Optional[_Iterable[_Union[FilledField, _Mapping]]] = ..., model: _Optional[_Union[ModelVersion, _Mapping]] = ...) -> None: ...

class FilledField(_message.Message):
    __slots__ = ("name", "value", "text", "spans", "answered", "probability", "question", "normalized", "reason")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    ANSWERED_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    NORMALIZED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    text: str
    spans: _containers.RepeatedCompositeFieldContainer[AnswerSpan]
    answered: bool
    probability: float
    question: str
    normalized: NormalizedValue
    reason: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ..., text: _Optional[str] = ..., spans: _Optional[_Iterable[_Union[AnswerSpan, _Mapping]]] = ..., answered: _Optional[bool] = ..., probability: _Optional[float] = ..., question: _Optional[str] = ..., normalized: _Optional[_Union[NormalizedValue, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...

class NormalizedValue(_message.Message):
    __slots__ = ("library", "amount", "currency", "iso")
    LIBRARY_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    CURRENCY_FIELD_NUMBER: _ClassVar[int]
    ISO_FIELD_NUMBER: _ClassVar[int]
    library: str
    amount: float
    currency: str
    iso: str
    def __init__(self, library: _Optional[str] = ..., amount: _Optional[float] = ..., currency: _Optional[str] = ..., iso: _Optional[str] = ...) -> None: ...

class GetModelRequest(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: str
    def __init__(self, model: _Optional[str] = ...) -> None: ...

class GetModelResponse(_message.Message):
    __slots__ = ("model", "sha256", "provider", "limits", "num_generated", "num_words", "scores", "server_version", "questions", "adapters")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    NUM_GENERATED_FIELD_NUMBER: _ClassVar[int]
    NUM_WORDS_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    SERVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    QUESTIONS_FIELD_NUMBER: _ClassVar[int]
    ADAPTERS_FIELD_NUMBER: _ClassVar[int]
    model: ModelVersion
    sha256: str
    provider: str
    limits: Limits
    num_generated: int
    num_words: int
    scores: _containers.RepeatedCompositeFieldContainer[Score]
    server_version: str
    questions: _containers.RepeatedCompositeFieldContainer[AcceptedQuestion]
    adapters: _containers.RepeatedCompositeFieldContainer[Adapter]
    def __init__(self, model: _Optional[_Union[ModelVersion, _Mapping]] = ..., sha256: _Optional[str] = ..., provider: _Optional[str] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., num_generated: _Optional[int] = ..., num_words: _Optional[int] = ..., scores: _Optional[_Iterable[_Union[Score, _Mapping]]] = ..., server_version: _Optional[str] = ..., questions: _Optional[_Iterable[_Union[AcceptedQuestion, _Mapping]]] = ..., adapters: _Optional[_Iterable[_Union[Adapter, _Mapping]]] = ...) -> None: ...

class AdapterVersion(_message.Message):
    __slots__ = ("name", "sha256")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    name: str
    sha256: str
    def __init__(self, name: _Optional[str] = ..., sha256: _Optional[str] = ...) -> None: ...

class Adapter(_message.Message):
    __slots__ = ("name", "sha256", "question", "labels", "multiple", "scale", "rows")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    MULTIPLE_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    name: str
    sha256: str
    question: str
    labels: _containers.RepeatedScalarFieldContainer[str]
    multiple: bool
    scale: bool
    rows: int
    def __init__(self, name: _Optional[str] = ..., sha256: _Optional[str] = ..., question: _Optional[str] = ..., labels: _Optional[_Iterable[str]] = ..., multiple: _Optional[bool] = ..., scale: _Optional[bool] = ..., rows: _Optional[int] = ...) -> None: ...

class AcceptedQuestion(_message.Message):
    __slots__ = ("task", "question", "context", "labels")
    TASK_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    task: str
    question: str
    context: str
    labels: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, task: _Optional[str] = ..., question: _Optional[str] = ..., context: _Optional[str] = ..., labels: _Optional[_Iterable[str]] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("max_request_bytes", "max_context_tokens", "max_question_tokens", "max_answer_tokens", "max_word_length", "max_metadata_bytes", "max_timeout_ms", "max_concurrent_requests", "max_queued_requests")
    MAX_REQUEST_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_CONTEXT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_QUESTION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_ANSWER_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_WORD_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_METADATA_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENT_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    MAX_QUEUED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    max_request_bytes: int
    max_context_tokens: int
    max_question_tokens: int
    max_answer_tokens: int
    max_word_length: int
    max_metadata_bytes: int
    max_timeout_ms: int
    max_concurrent_requests: int
    max_queued_requests: int
    def __init__(self, max_request_bytes: _Optional[int] = ..., max_context_tokens: _Optional[int] = ..., max_question_tokens: _Optional[int] = ..., max_answer_tokens: _Optional[int] = ..., max_word_length: _Optional[int] = ..., max_metadata_bytes: _Optional[int] = ..., max_timeout_ms: _Optional[int] = ..., max_concurrent_requests: _Optional[int] = ..., max_queued_requests: _Optional[int] = ...) -> None: ...

class Score(_message.Message):
    __slots__ = ("task", "metric", "value")
    TASK_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    task: str
    metric: str
    value: float
    def __init__(self, task: _Optional[str] = ..., metric: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
