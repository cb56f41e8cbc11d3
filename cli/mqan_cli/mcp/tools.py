"""The tools ``answer``, ``decide`` and ``extract``, and how they say what is wrong with a call."""

import asyncio
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field, StrictBool, ValidationError

from mqan_cli.mcp.answering import Answerer
from mqan_cli.mcp.results import AnswerResult, DecideResult, ExtractResult, FieldResult
from mqan_core import __version__
from mqan_core.ask.options import MOST_CHOICES
from mqan_serving.contract.questions import ChoiceField

_INSTRUCTIONS = (
    "Reads a text and answers questions about it, without knowledge of its own. Use answer for an open question, "
    "decide to choose among labels (sorting, sentiment, yes or no), and extract to fill named fields with quotations. "
    "Results say where in the text each part came from, in Unicode code points, and whether the text answers at all."
)
_READS_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
_MOST_FIELDS = 256

ContextArgument = Annotated[str, Field(description="The text that is asked about, whole.")]
QuestionArgument = Annotated[str, Field(description="The question, in natural language.")]


def create_server(answerer: Answerer, longest_s: float) -> MCPServer:
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
