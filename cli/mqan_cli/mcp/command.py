"""The command ``mqan mcp``: which model answers the tools, and how clients reach them."""

import asyncio
from typing import Literal

import typer

from mqan_cli.answering import BundleOption, ServerOption, find_server
from mqan_cli.sections import option

Transport = Literal["stdio", "http"]

_HOST = "127.0.0.1"  # opening it to the network is a decision
_PORT = 8001  # beside those of `mqan serve`


def mcp(
    server: ServerOption = None,
    bundle: BundleOption = None,
    transport: Transport = option(
        "stdio: the client starts this command. http: clients connect to a port.", default="stdio"
    ),
    host: str | None = option(f"Address to listen on; {_HOST} if not given."),
    port: int | None = option(f"Port to listen on; {_PORT} if not given.", min=1, max=65535),
) -> None:
    """Offer the tools answer, decide and extract to language models, over the Model Context Protocol (MCP).

    If the server requires an API key, set MQAN_API_KEY.
    """
    url = find_server(server, bundle)
    if transport == "stdio" and (host is not None or port is not None):
        raise typer.BadParameter("--host and --port are for --transport http")
    from mqan_cli.mcp.serving import serve

    endpoint = None if transport == "stdio" else (host or _HOST, port or _PORT)
    asyncio.run(serve(url, bundle, endpoint))
