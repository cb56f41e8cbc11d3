"""The tools ``answer``, ``decide`` and ``extract``, their results, who answers, and how they say what is wrong.

Places in results are half-open ranges of Unicode code points: ``text[start:end]`` in Python.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field, StrictBool, ValidationError

from mqan_cli.answering import explain, open_client
from mqan_cli.asked import for_client
from mqan_client import AsyncClient, ClientError, documents
from mqan_core import __version__
from mqan_core.ask.options import MOST_CHOICES, is_yes_no
from mqan_core.errors import InputError
from mqan_serving.contract.answers import document_of
from mqan_serving.contract.documents import ChoiceDocument, QuotationDocument
from mqan_serving.contract.errors import AnsweringError, ServingError, describe
from mqan_serving.contract.model import Document
from mqan_serving.contract.questions import ChoiceField, Question, SourceName
from mqan_serving.records.documents import record_document
from mqan_serving.records.filling import RecordRequest, fill_record
from mqan_serving.records.schema import read_schema
from mqan_serving.service.answer_service import Service, open_service
from mqan_serving.service.health import Health
from mqan_serving.service.many import answer_texts
from mqan_serving.settings import Settings, find_bundle

_INSTRUCTIONS = (
    "Reads a text and answers questions about it, without knowledge of its own. Use answer for an open question, "
    "decide to choose among labels (sorting, sentiment, yes or no), and extract to fill named fields with quotations. "
    "Results say where in the text each part came from, in Unicode code points, and whether the text answers at all."
)
_READS_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
_MOST_FIELDS = 256

ContextArgument = Annotated[str, Field(description="The text that is asked about, whole.")]
QuestionArgument = Annotated[str, Field(description="The question, in natural language.")]

_OF_PROBABILITY = "How sure the model is, 0 to 1; where there is no answer, how sure it is of that."


def create_server(answerer: "Answerer", longest_s: float) -> MCPServer:
    server = PlainServer(
        "mqan",
        title="mqan",
        description="Answers with sources",
        instructions=_INSTRUCTIONS,
        version=__version__,
        subscriptions=False,  # the tools are always the same: a stream of their changes would have no end
    )
    server.longest_s = longest_s

    @server.tool(title="Answer a question about a text", annotations=_READS_ONLY)
    async def answer(context: ContextArgument, question: QuestionArgument) -> Annotated[CallToolResult, AnswerResult]:
        """Answer an open question about a text; say where each word came from, or that the text does not say."""
        return _told(AnswerResult.of(await answerer.answer(context, {"question": question})))

    @server.tool(title="Choose among labels", annotations=_READS_ONLY)
    async def decide(
        context: ContextArgument,
        question: QuestionArgument,
        choices: Annotated[
            list[str | ChoiceField],
            Field(
                min_length=1,
                max_length=MOST_CHOICES,
                description="The labels; a description may say what a label means.",
            ),
        ],
        multiple: Annotated[StrictBool, Field(description="Whether several of them can be right.")] = False,
        none: Annotated[StrictBool, Field(description="Whether none of them may be the answer, too.")] = False,
    ) -> Annotated[CallToolResult, DecideResult]:
        """Choose the labels that apply to a text; give each a probability and the words that decide for it.

        Of yes and no, neither is chosen where the text does not say.
        """
        given = [choice if isinstance(choice, str) else choice.model_dump() for choice in choices]
        asked = {"question": question, "choices": given, "multiple": multiple, "none": none}
        return _told(DecideResult.of(await answerer.answer(context, asked)))

    @server.tool(title="Extract fields from a text", annotations=_READS_ONLY)
    async def extract(
        context: ContextArgument,
        fields: Annotated[
            dict[str, str],
            Field(
                description="Name of each field, and the question whose answer fills it.",
                examples=[{"total": "What is the total?", "due": "When is it due?"}],
                min_length=1,
                max_length=_MOST_FIELDS,
            ),
        ],
    ) -> Annotated[CallToolResult, ExtractResult]:
        """Fill named fields from a text; each value is a quotation with its position, or the text has no value."""
        for name, question in fields.items():
            if not question.strip():  # a record would make one of the name
                raise ToolError(f"The question of the field {name} is empty. Send a question in natural language.")
        schema = {"properties": {name: {"type": "string", "ask": question} for name, question in fields.items()}}
        record = await answerer.fill(context, schema)
        return _told(ExtractResult(fields={name: FieldResult.of(found) for name, found in record["fields"].items()}))

    return server


def _told(result: BaseModel) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=str(result))], structured_content=result.model_dump(mode="json")
    )


class PlainServer(MCPServer):
    """A server whose errors are plain sentences: the SDK's own name the tool again and quote pydantic."""

    longest_s: float | None = None  # of a call, all of its fields together

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        of_tools = {tool.name: tool.input_schema["properties"] for tool in await self.list_tools()}
        known = of_tools.get(name, arguments)
        if unknown := [argument for argument in arguments if argument not in known]:
            raise ToolError(f"The argument {unknown[0][:40]} is unknown. Known are {', '.join(known)}.")
        try:
            async with asyncio.timeout(self.longest_s):
                return await super().call_tool(name, arguments, context)
        except TimeoutError:
            message = f"The call took longer than {self.longest_s:g} s: send fewer fields, or a shorter text."
            raise ToolError(message) from None
        except UnexpectedToolError:
            raise
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(_explain(error.__cause__)) from error.__cause__
            raise error.__cause__ or error from None


def _explain(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_input=False)
    name = str(problems[0]["loc"][0])
    if problems[0]["type"] == "missing" and len(problems[0]["loc"]) == 1:
        return f"The argument {name} is missing. Compare the call with the tool's input schema."
    lines = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in problems if one["loc"][0] == name]
    return f"The argument {name} is wrong ({'; '.join(lines[:3])}). Compare the call with the tool's input schema."


class Word(Document):
    """A word of an answer, or a part of one, and where it came from."""

    text: str = Field(description="As it is written in the answer.")
    source: SourceName = Field(description="Copied from the context or the question, or the model's own (vocabulary).")
    start: int | None = Field(description="First code point of the place that it was copied from; null for its own.")
    end: int | None = Field(description="One past the last code point of it.")

    @classmethod
    def of(cls, token: Mapping[str, Any]) -> "Word":
        return cls(text=token["text"], source=token["source"], **token["span"] or {"start": None, "end": None})


class AnswerResult(Document):
    """An answer, and where each of its words came from."""

    text: str = Field(description="The answer; empty where there is none.")
    answered: bool = Field(description="Whether there is an answer: not where the context does not say.")
    probability: float = Field(description=_OF_PROBABILITY)
    quotations: list[QuotationDocument] = Field(description="What of it was copied, in order.")
    words: list[Word] = Field(description="All of its words, in order.")

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "AnswerResult":
        return cls(
            text=answer["answer"],
            answered=answer["answered"],
            probability=answer["confidence"],
            quotations=answer["spans"],
            words=[Word.of(token) for token in answer["tokens"]],
        )

    def __str__(self) -> str:
        if not self.answered:
            return f"The context does not say (probability {self.probability:.2f})."
        lines = [f"{self.text}\n\nProbability {self.probability:.2f}."]
        if self.quotations:
            lines.append(f"Quoted: {_listed(self.quotations)}.")
        if own := [word.text for word in self.words if word.source == "vocabulary"]:
            lines.append(f"The model's own words: {' '.join(own)}")
        return "\n".join(lines)


class DecideResult(Document):
    """The labels that hold, and how likely each choice is."""

    chosen: list[str] = Field(description="The labels that hold, in the order given; several only with `multiple`.")
    answered: bool = Field(description="Whether any of the choices holds; of yes and no, whether the context says.")
    probability: float = Field(description=f"{_OF_PROBABILITY} With `multiple`, of all choices together.")
    none: float = Field(description="How likely it is that none of the choices is right, or the context does not say.")
    choices: list[ChoiceDocument] = Field(description="All choices, in the order given.")

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "DecideResult":
        return cls(**{name: answer[name] for name in cls.model_fields})

    def __str__(self) -> str:
        is_open = is_yes_no([choice.label for choice in self.choices])
        absent = "The context does not say" if is_open else "None of the choices is right"
        found = ", ".join(self.chosen) if self.answered else absent
        lines = [f"{found} (probability {self.probability:.2f})."]
        lines += [
            f"- {choice.label}: {choice.probability:.2f}"
            + (f"; decided by {_listed(choice.evidence)}" if choice.evidence else "")
            for choice in self.choices
        ]
        return "\n".join([*lines, f"- (none of them): {self.none:.2f}"])


class FieldResult(Document):
    """What fills a field: always a quotation of the context."""

    answered: bool = Field(description="Whether the context says.")
    value: str | None = Field(description="Exactly context[start:end]; null where the context does not say.")
    start: int | None = Field(description="First code point of the value in the context.")
    end: int | None = Field(description="One past the last code point.")
    probability: float = Field(description=_OF_PROBABILITY)

    @classmethod
    def of(cls, field: Mapping[str, Any]) -> "FieldResult":
        place = field["spans"][0] if field["answered"] else {"start": None, "end": None}
        told = {name: field[name] for name in ("answered", "value", "probability")}
        return cls(**told, start=place["start"], end=place["end"])

    def __str__(self) -> str:
        if not self.answered:
            return f"the context does not say (probability {self.probability:.2f})"
        return f'"{self.value}" ({self.start}-{self.end}, probability {self.probability:.2f})'


class ExtractResult(Document):
    """What fills each field."""

    fields: dict[str, FieldResult] = Field(description="By the names that were given.")

    def __str__(self) -> str:
        return "\n".join(f"{name}: {found}" for name, found in self.fields.items())


def _listed(quotations: Iterable[QuotationDocument]) -> str:
    return "; ".join(f'"{one.text}" ({one.source}, {one.start}-{one.end})' for one in quotations)


class ServerAnswerer:
    """A running server, asked by a client of it."""

    def __init__(self, client: AsyncClient, url: str) -> None:
        self.health = Health()  # of the server we know nothing until it is asked
        self._client = client
        self._url = url

    async def answer(self, context: str, asked: dict[str, Any]) -> dict[str, Any]:
        given = dict(asked)
        with _failures_told(self._url):
            found = await self._client.answer(context, given.pop("question"), **for_client(given))
        return dict(documents.document_of(found))

    async def fill(self, context: str, schema: dict[str, Any]) -> dict[str, Any]:
        with _failures_told(self._url):
            return dict(documents.document_of(await self._client.fill_record(context, schema)))


class LocalAnswerer:
    """A service in this process, ready."""

    def __init__(self, service: Service) -> None:
        self.health = service.health
        self._service = service

    async def answer(self, context: str, asked: dict[str, Any]) -> dict[str, Any]:
        with _failures_told():
            found = await self._service.answer(Question(context=context, **asked))
        return document_of(found, self._service.model)

    async def fill(self, context: str, schema: dict[str, Any]) -> dict[str, Any]:
        with _failures_told():
            asked = RecordRequest(context, tuple(read_schema(schema)), None)
            found = await fill_record(asked, self._service, partial(answer_texts, self._service))
        return record_document(found, self._service.model)


Answerer = ServerAnswerer | LocalAnswerer


@contextmanager
def _failures_told(url: str = "") -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        raise ToolError(explain(error, url)) from None
    except (InputError, AnsweringError, ServingError) as error:
        failure = describe(error)
        raise ToolError(f"{failure.message} {failure.hint}") from None


@asynccontextmanager
async def open_answerer(url: str | None, settings: Settings) -> AsyncIterator[Answerer]:
    """Let a server answer, which may come later, or a bundle in this process, with the limits of a server."""
    if url is not None:
        async with open_client(AsyncClient, url) as client:
            yield ServerAnswerer(client, url)
        return
    service = await open_service(find_bundle(settings), settings)
    try:
        yield LocalAnswerer(service)
    finally:
        await service.close()
