"""Path and method to app. Exact paths first; ``{name:path}`` takes slashes too; only fixed segments follow it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final

from troyproxy.api.request_id import ASGIApp, naming, new_request_id
from troyproxy.errors import MethodNotAllowed, NotFound, TroyError
from troyproxy.proxy.answers import Receive, Send, send_error
from troyproxy.proxy.call import Scope, local_path

Around = Callable[[ASGIApp], ASGIApp]
CLIENT: Final = "/v1/"
"""Where the client API lies."""


@dataclass(frozen=True, slots=True)
class Route:
    """One route. *path* may hold ``{name}`` segments, and one ``{name:path}`` with only fixed segments behind it."""

    method: str
    path: str
    app: ASGIApp


class RoutingTable:
    """Finds the app for a request; `path_params` are put into the scope."""

    def __init__(self, routes: Iterable[Route], *, around: Around | None = None) -> None:
        """*around* wraps the refusals below ``/v1/``, as it wraps the routes there: a page may read them, too."""
        self.routes = tuple(routes)
        self._around = around
        self._served: dict[tuple[str, str], ASGIApp] = {}
        """What is served at once: by method and whole path."""
        self._exact: dict[str, dict[str, ASGIApp]] = {}
        self._templates: list[tuple[list[str], str, ASGIApp]] = []
        for route in self.routes:
            if "{" in route.path:
                self._templates.append((route.path.split("/"), route.method, route.app))
            else:
                self._exact.setdefault(route.path, {})[route.method] = route.app
                self._served[route.method, route.path] = route.app

    def find(self, method: str, path: str) -> tuple[ASGIApp | None, dict[str, str], list[str]]:
        """Return the app (None when there is none), its parameters, and the methods that the path knows."""
        methods: dict[str, tuple[ASGIApp | None, dict[str, str]]] = {}
        methods.update((name, (app, {})) for name, app in self._exact.get(path, {}).items())
        if not methods:
            for template, name, app in self._templates:
                if (matched := _match(template, path)) is not None:
                    methods.setdefault(name, (app, matched))
        found, params = methods.get("GET" if method == "HEAD" else method, (None, {}))
        return found, params, sorted({*methods, *(("HEAD",) if "GET" in methods else ())})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.serve(scope, receive, send)

    def serve(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve a request; what is returned is to be awaited at once."""
        path = local_path(scope)
        app = self._served.get((scope["method"], path))
        return app(scope, receive, send) if app is not None else self._look(path, scope, receive, send)

    async def _look(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        app, params, methods = self.find(scope["method"], path)
        if app is None:
            app = Refusal(_refused(scope["method"], path, methods))
            app = self._around(app) if self._around is not None and path.startswith(CLIENT) else app
        await app({**scope, "path_params": params} if params else scope, receive, send)


class Refusal:
    """Answers one error, whatever is asked."""

    def __init__(self, error: TroyError) -> None:
        self._error = error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        await send_error(naming(send, new_request_id()), self._error)


def _refused(method: str, path: str, methods: list[str]) -> TroyError:
    if methods:
        return MethodNotAllowed(f"{method[:20]} is not allowed here; use {', '.join(methods)}", allow=methods)
    return NotFound(f"there is nothing at {path[:200]!r}")


def _match(template: list[str], path: str) -> dict[str, str] | None:
    parts = path.split("/")
    params: dict[str, str] = {}
    for at, piece in enumerate(template):
        if piece.endswith(":path}"):
            behind = template[at + 1 :]
            end = len(parts) - len(behind)
            rest = "/".join(parts[at:end])
            return {**params, piece[1:-6]: rest} if rest and parts[end:] == behind else None
        if at >= len(parts) or not (piece.startswith("{") or piece == parts[at]):
            return None
        if piece.startswith("{"):
            if not parts[at]:
                return None
            params[piece[1:-1]] = parts[at]
    return params if len(template) == len(parts) else None
