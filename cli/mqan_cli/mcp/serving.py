"""Puts the tools on a transport: standard input and output, or streamable HTTP on a port."""

import signal
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mqan_cli.mcp.tools import create_server, open_answerer
from mqan_core.errors import EngineFailedError, InputError
from mqan_serving.contract.errors import ServingError, SettingsError, describe, refuse
from mqan_serving.keys import ApiKeys
from mqan_serving.local import wait_for_end
from mqan_serving.observability.logs import set_up_logs
from mqan_serving.observability.metrics import Metrics
from mqan_serving.rest.gateway import check_host, is_allowed_host
from mqan_serving.rest.http_server import HttpServer, listen
from mqan_serving.service.health import Health
from mqan_serving.settings import Settings, address, load_settings

_PATH = "/mcp"
_HINT = f"POST to {_PATH}, as clients of MCP do."
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


async def serve(url: str | None, bundle: Path | None, endpoint: tuple[str, int] | None) -> None:
    """Serve the tools on a host and port until SIGTERM or SIGINT, or on standard input until the client goes away.

    Without a URL this process answers. Raise ``EngineFailedError`` if its engine has failed for good.
    """
    settings = load_settings(**({} if bundle is None else {"bundle": bundle}))
    set_up_logs(settings.log_level)
    async with open_answerer(url, settings) as answerer:
        server = create_server(answerer, settings.request_timeout_s)
        if endpoint is None:
            await _serve_stdio(server)
            return
        await _serve_http(server, settings, *endpoint, answerer.health)
        if not answerer.health.is_live:
            raise EngineFailedError("the engine has failed; start mqan mcp again")


async def _serve_stdio(server: MCPServer) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # else Ctrl-C waits for the line that a thread is about to read
    if sys.stdin is None:
        message = "standard input is closed; give --transport http, or let a program that speaks MCP start it"
        raise SettingsError(message)
    if sys.stdin.isatty():
        print("mqan is ready, for a program that speaks MCP on standard input; Ctrl-C ends it.", file=sys.stderr)
    await server.run_stdio_async()


async def _serve_http(server: MCPServer, settings: Settings, host: str, port: int, health: Health) -> None:
    app = server.streamable_http_app(
        streamable_http_path=_PATH,
        json_response=True,
        stateless_http=True,  # no call depends on another
        max_request_body_size=settings.max_request_bytes,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the guard's own
        host=host,
    )
    app.router.redirect_slashes = False
    http = HttpServer(_Guard(app, settings, host), settings, Metrics(), settings.drain_timeout_s)
    shown = address(host, port)
    try:
        listener = listen(host, port)
    except OSError as error:
        raise SettingsError(f"cannot listen on {shown}: {error.strerror}; give another --host or --port") from None
    async with server.session_manager.run():
        await http.open(listener)
        print(f"mqan is ready: MCP on http://{shown}{_PATH}", file=sys.stderr, flush=True)
        await wait_for_end(health)
        await http.close()


class _Guard:
    """Lets in who REST would: by names that are allowed and holders of API keys, where there are such settings.

    On loopback, where no names are set, no other names than its own are allowed. Nothing is answered but POST: without
    sessions, the stream that GET opens would carry nothing.
    """

    def __init__(self, app: ASGIApp, settings: Settings, host: str) -> None:
        self._app = app
        self._allowed = settings.allowed_hosts or (("localhost",) if host in _LOOPBACK else ())
        self._keys = ApiKeys(settings.api_key_file)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        try:
            check_host(headers, self._allowed)
            origin = headers.get("origin")
            if self._allowed and origin and not is_allowed_host(origin.rpartition("/")[2], self._allowed):
                raise refuse("unknown_host", "origin", "The request comes from a page of another host.")
            self._keys.check_rate(self._keys.authenticate(headers.get("authorization")))
            if scope["path"] != _PATH:
                raise refuse("not_found", "path", "There is nothing at this path.", _HINT)
            if scope["method"] != "POST":
                raise refuse("method_not_allowed", "method", "This path does not accept this method.", _HINT)
        except (InputError, ServingError) as error:
            failure = describe(error)
            headers_of = {"allow": "POST"} if failure.code == "method_not_allowed" else {}
            if failure.retry_after_s is not None:
                headers_of["retry-after"] = str(failure.retry_after_s)
            await JSONResponse(failure.document, failure.kind.http, headers_of)(scope, receive, send)
        else:
            await self._app(scope, receive, send)
