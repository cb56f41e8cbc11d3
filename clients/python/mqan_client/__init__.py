"""Ask a mqan server, over gRPC or REST.

>>> from mqan_client import Client
>>> with Client("grpc://127.0.0.1:9000") as client:
...     answer = client.answer("The Eiffel Tower is in Paris.", "Where is the Eiffel Tower?")
...     print(answer.text, answer.spans)
"""

from mqan_client.async_client import AsyncClient as AsyncClient
from mqan_client.client import Client as Client
from mqan_client.documents import AskedQuestion as AskedQuestion
from mqan_client.documents import Choice as Choice
from mqan_client.errors import ClientError as ClientError
from mqan_client.errors import DeadlineExceededError as DeadlineExceededError
from mqan_client.errors import InvalidRequestError as InvalidRequestError
from mqan_client.errors import OverloadedError as OverloadedError
from mqan_client.errors import ServerError as ServerError
from mqan_client.errors import UnauthenticatedError as UnauthenticatedError
from mqan_client.errors import UnavailableError as UnavailableError
from mqan_client.results import Adapter as Adapter
from mqan_client.results import AdapterVersion as AdapterVersion
from mqan_client.results import Alternative as Alternative
from mqan_client.results import Answer as Answer
from mqan_client.results import AnswerSpan as AnswerSpan
from mqan_client.results import AnswerToken as AnswerToken
from mqan_client.results import Candidate as Candidate
from mqan_client.results import ChoiceProbability as ChoiceProbability
from mqan_client.results import Condition as Condition
from mqan_client.results import Limits as Limits
from mqan_client.results import Masses as Masses
from mqan_client.results import Model as Model
from mqan_client.results import ModelVersion as ModelVersion
from mqan_client.results import Normalized as Normalized
from mqan_client.results import ParsedQuery as ParsedQuery
from mqan_client.results import ParsedState as ParsedState
from mqan_client.results import Place as Place
from mqan_client.results import PointerWeight as PointerWeight
from mqan_client.results import Record as Record
from mqan_client.results import RecordField as RecordField
from mqan_client.results import RequestedSlot as RequestedSlot
from mqan_client.results import Score as Score
from mqan_client.results import SlotValue as SlotValue
from mqan_client.results import Source as Source
from mqan_client.results import Span as Span
from mqan_client.results import Step as Step
from mqan_client.results import StreamedWord as StreamedWord
from mqan_client.tables import answer_column as answer_column
from mqan_client.tables import record_column as record_column
from mqan_client.transport import Retries as Retries

__all__ = sorted(name for name, value in globals().items() if getattr(value, "__module__", "").startswith("mqan_"))
