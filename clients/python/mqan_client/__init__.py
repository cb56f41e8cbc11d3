"""Ask a mqan server, over gRPC or REST.

>>> from mqan_client import Client
>>> with Client("grpc://127.0.0.1:9000") as client:
...     answer = client.answer("The Eiffel Tower is in Paris.", "Where is the Eiffel Tower?")
...     print(answer.text, answer.spans)
"""

from mqan_client.async_client import AsyncClient
from mqan_client.client import Client
from mqan_client.errors import (
    ClientError,
    DeadlineExceededError,
    InvalidRequestError,
    OverloadedError,
    ServerError,
    UnauthenticatedError,
    UnavailableError,
)
from mqan_client.questions import AskedQuestion, Choice
from mqan_client.results import (
    Adapter,
    AdapterVersion,
    Alternative,
    Answer,
    AnswerSpan,
    AnswerToken,
    Candidate,
    ChoiceProbability,
    Condition,
    Limits,
    Masses,
    Model,
    ModelVersion,
    Normalized,
    ParsedQuery,
    ParsedState,
    Place,
    PointerWeight,
    Record,
    RecordField,
    RequestedSlot,
    Score,
    SlotValue,
    Source,
    Span,
    Step,
    StreamedWord,
)
from mqan_client.tables import answer_column, record_column
from mqan_client.transport import Retries

__all__ = [
    "Adapter",
    "AdapterVersion",
    "Alternative",
    "Answer",
    "AnswerSpan",
    "AnswerToken",
    "AskedQuestion",
    "AsyncClient",
    "Candidate",
    "Choice",
    "ChoiceProbability",
    "Client",
    "ClientError",
    "Condition",
    "DeadlineExceededError",
    "InvalidRequestError",
    "Limits",
    "Masses",
    "Model",
    "ModelVersion",
    "Normalized",
    "OverloadedError",
    "ParsedQuery",
    "ParsedState",
    "Place",
    "PointerWeight",
    "Record",
    "RecordField",
    "RequestedSlot",
    "Retries",
    "Score",
    "ServerError",
    "SlotValue",
    "Source",
    "Span",
    "Step",
    "StreamedWord",
    "UnauthenticatedError",
    "UnavailableError",
    "answer_column",
    "record_column",
]
