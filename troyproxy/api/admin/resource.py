"""What every admin route has in common: the guard before anything is read, JSON in and out, errors in the envelope."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qs

from troyproxy.api.admin.guard import AdminGuard
from troyproxy.errors import TroyError, ValidationFailed
from troyproxy.ports import Headers
from troyproxy.proxy.answers import Receive, Send, send_error, send_json
from troyproxy.proxy.call import Scope, raw_headers
from troyproxy.proxy.intake import ClientLeft, decode_object, read_body, require_json

MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Answer:
    """What a handler gives back."""

    value: object
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


class AdminRequest:
    """One request whose sender was let in."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._scope, self._receive = scope, receive
        self.headers: Headers = raw_headers(scope)
        self.root = str(scope.get("root_path", ""))
        """What stands before ``/api`` in the path."""
        self.query: Mapping[str, list[str]] = parse_qs(scope.get("query_string", b"").decode("latin-1"))

    @property
    def id(self) -> str:
        """The ``{id}`` of the path, decoded."""
        return str(self._scope["path_params"]["id"])

    def header(self, name: bytes) -> str | None:
        """Return the first value of a header, or None."""
        return next((value.decode("latin-1").strip() for key, value in self.headers if key == name), None)

    def limit(self, *, default: int, most: int) -> int:
        """Return ``?limit=``. Raises ValidationFailed."""
        text = self.query.get("limit", [str(default)])[-1]
        if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= most):
            raise invalid("limit", f"must be a whole number from 1 to {most}")
        return int(text)

    async def body(self, *, limit: int = MIB) -> bytes:
        """Return the body, decompressed. Raises UnsupportedMediaType, BodyTooLarge, …, ClientLeft."""
        require_json(self.headers)
        return await read_body(self._receive, self.headers, limit=limit)

    async def payload(self) -> dict[str, object]:
        """Return the JSON object in the body. Raises InvalidJSON, InvalidRequest, and as `body`."""
        return decode_object(await self.body())


Handler = Callable[[AdminRequest], Awaitable[Answer]]


class AdminApp:
    """One admin route as an ASGI app."""

    def __init__(self, guard: AdminGuard, handle: Handler) -> None:
        self._guard, self._handle = guard, handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._guard.check(scope)
            answer = await self._handle(AdminRequest(scope, receive))
        except TroyError as error:
            await send_error(send, error)
        except ClientLeft:
            return
        else:
            await send_json(send, answer.status, answer.value, answer.headers)


def invalid(where: str, message: str) -> ValidationFailed:
    """Return the error for one field that is wrong."""
    return ValidationFailed(f"{where}: {message}", details=[{"field": where, "message": message}])
