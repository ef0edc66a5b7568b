"""Path and method to app. Exact paths first; a template may end in ``{name:path}``, which takes slashes too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from troyproxy.api.request_id import ASGIApp, naming, new_request_id
from troyproxy.errors import MethodNotAllowed, NotFound
from troyproxy.proxy.answers import Receive, Send, send_error
from troyproxy.proxy.call import Scope, local_path


@dataclass(frozen=True, slots=True)
class Route:
    """One route. *path* may hold ``{name}`` segments, and ``{name:path}`` as the last one."""

    method: str
    path: str
    app: ASGIApp


class RoutingTable:
    """Finds the app for a request; `path_params` are put into the scope."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._exact: dict[str, dict[str, ASGIApp]] = {}
        self._templates: list[tuple[list[str], str, ASGIApp]] = []
        for route in self.routes:
            if "{" in route.path:
                self._templates.append((route.path.split("/"), route.method, route.app))
            else:
                self._exact.setdefault(route.path, {})[route.method] = route.app

    def find(self, method: str, path: str) -> tuple[ASGIApp | None, dict[str, str], list[str]]:
        """Return the app (None when there is none), its parameters, and the methods that the path knows."""
        methods: dict[str, tuple[ASGIApp | None, dict[str, str]]] = {}
        methods.update((name, (app, {})) for name, app in self._exact.get(path, {}).items())
        if not methods:
            for template, name, app in self._templates:
                if (matched := _match(template, path)) is not None:
                    methods.setdefault(name, (app, matched))
        found, params = methods.get("GET" if method == "HEAD" else method, (None, {}))
        return found, params, sorted(methods)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = local_path(scope)
        app, params, methods = self.find(scope["method"], path)
        if app is not None:
            await app({**scope, "path_params": params} if params else scope, receive, send)
        elif methods:
            error = MethodNotAllowed(f"{scope['method']} is not allowed here; use {', '.join(methods)}", allow=methods)
            await send_error(naming(send, new_request_id()), error)
        else:
            await send_error(naming(send, new_request_id()), NotFound(f"there is nothing at {path[:200]!r}"))


def _match(template: list[str], path: str) -> dict[str, str] | None:
    parts = path.split("/")
    params: dict[str, str] = {}
    for at, piece in enumerate(template):
        if piece.endswith(":path}"):
            rest = "/".join(parts[at:])
            return {**params, piece[1:-6]: rest} if rest else None
        if at >= len(parts) or not (piece.startswith("{") or piece == parts[at]):
            return None
        if piece.startswith("{"):
            if not parts[at]:
                return None
            params[piece[1:-1]] = parts[at]
    return params if len(template) == len(parts) else None
