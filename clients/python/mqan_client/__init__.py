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
from mqan_client.parsed import Condition, ParsedQuery, ParsedState, RequestedSlot, SlotValue
from mqan_client.records import Normalized, Record, RecordField
from mqan_client.results import (
    Alternative,
    Answer,
    AnswerSpan,
    AnswerToken,
    Candidate,
    ChoiceProbability,
    Limits,
    Masses,
    Model,
    ModelVersion,
    Place,
    PointerWeight,
    Score,
    Source,
    Span,
    Step,
    StreamedWord,
)
from mqan_client.tables import answer_column
from mqan_client.transport import AskedQuestion, Choice, Retries

__all__ = [
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
]
