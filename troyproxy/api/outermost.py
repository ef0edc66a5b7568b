"""What stands around every route: a request id, our envelope for a bug of ours, and CORS where it is allowed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from troyproxy.api.request_id import ASGIApp, Named
from troyproxy.api.routing_table import Route, RoutingTable
from troyproxy.errors import TroyError
from troyproxy.proxy.answers import Message, Receive, Send
from troyproxy.proxy.call import Scope

CORS: Final[Mapping[str, Any]] = {"allow_methods": ("GET", "POST"), "allow_headers": ("*",), "expose_headers": ("*",)}


def outermost(app: ASGIApp, origins: Collection[str]) -> ASGIApp:
    """Return *app* with all three."""
    return cors(guarded(app), origins)


def cors(app: ASGIApp, origins: Collection[str]) -> ASGIApp:
    """Return *app* whose every answer, errors included, carries its headers for an allowed origin.

    A preflight never reaches *app*, and so gets its request id here.
    """
    if not origins:
        return app
    allowing = Named(CORSMiddleware(app, allow_origins=origins, **CORS))
    return allowing if "*" in origins else Varying(allowing)


class Varying:
    """Says on every answer that it depends on the Origin, also where that was none of ours, or there was none."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_varying(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                if not any(name == b"vary" and b"origin" in value.lower() for name, value in headers):
                    message = {**message, "headers": [*headers, (b"vary", b"Origin")]}
            await send(message)

        await self.app(scope, receive, send_varying)


def guarded(app: ASGIApp) -> ASGIApp:
    """Return *app* with a request id; a bug inside is answered as 500, and raised again for the server to log."""
    return Named(answering_bugs(app))


def answering_bugs(app: ASGIApp) -> ASGIApp:
    """Return *app* whose bugs the client hears of in the one envelope, and nothing more."""
    return ServerErrorMiddleware(app, handler=_internal_error)


def preflights(routes: Iterable[Route], origins: Collection[str]) -> list[Route]:
    """Return the routes by which browsers ask before they call *routes*, without a key; none without *origins*."""
    paths = {route.path: RoutingTable([r for r in routes if r.path == route.path]) for route in routes}
    return [Route("OPTIONS", path, cors(table, origins)) for path, table in paths.items() if origins]


def _internal_error(request: Request, exc: Exception) -> Response:
    """Answer in the one envelope; the server logs the bug, the client learns nothing of it."""
    del request, exc
    return JSONResponse(bug().envelope(), status_code=500, headers={"cache-control": "no-store"})


def bug() -> TroyError:
    """Return what a client is told of a bug of ours."""
    return TroyError("the gateway failed on this request")
