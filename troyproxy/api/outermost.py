"""What stands around every client route: our envelope for a bug of ours, and CORS where it is allowed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from troyproxy.api.gateway import ASGIApp
from troyproxy.errors import TroyError

CORS: Final[Mapping[str, Any]] = {"allow_methods": ("GET", "POST"), "allow_headers": ("*",), "expose_headers": ("*",)}


def outermost(app: ASGIApp, origins: Collection[str]) -> ASGIApp:
    """Return *app* so wrapped. A preflight needs no key; an allowed origin gets its headers on errors too."""
    app = ServerErrorMiddleware(app, handler=_internal_error)
    return CORSMiddleware(app, allow_origins=origins, **CORS) if origins else app


def _internal_error(request: Request, exc: Exception) -> Response:
    """Answer in the one envelope; the server logs the bug, the client learns nothing of it."""
    del request, exc
    return JSONResponse(TroyError("the gateway failed on this request").envelope(), status_code=500)
