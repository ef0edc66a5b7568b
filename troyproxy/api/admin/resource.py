"""What every admin route has in common: the guard before anything is read, JSON in and out, errors in the envelope."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypeVar

from troyproxy.api.admin.guard import AdminGuard
from troyproxy.api.admin.parameters import Parameter, read_query, wrong_fields
from troyproxy.api.flow import Flow, send_flow
from troyproxy.errors import NotFound, TroyError, ValidationFailed
from troyproxy.ports import Headers
from troyproxy.proxy.answers import Receive, Send, send_error, send_json
from troyproxy.proxy.call import Scope, raw_headers
from troyproxy.proxy.intake import ClientLeft, decode_object, read_body, require_json

T = TypeVar("T")

MIB: Final = 1 << 20
LONGEST_ID: Final = 1000
"""Characters of an ``{id}``; nothing has a longer name."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a handler gives back."""

    value: object
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


class AdminRequest:
    """One request whose sender was let in. Raises NotFound for an id that nothing can have, ValidationFailed."""

    def __init__(self, scope: Scope, receive: Receive, query: tuple[Parameter[Any], ...] = ()) -> None:
        self._scope, self._receive = scope, receive
        self.headers: Headers = raw_headers(scope)
        self.root = str(scope.get("root_path", ""))
        """What stands before ``/api`` in the path."""
        self.params: Mapping[str, str] = scope.get("path_params", {})
        """What the path holds in braces, decoded."""
        for value in self.params.values():
            if len(value) > LONGEST_ID or not value.isprintable():
                raise NotFound("there is nothing by this name")
        self._query = read_query(bytes(scope.get("query_string", b"")), query)

    @property
    def id(self) -> str:
        """The ``{id}`` of the path, decoded."""
        return self.params["id"]

    def header(self, name: bytes) -> str | None:
        """Return the first value of a header, or None."""
        return next((value.decode("latin-1").strip() for key, value in self.headers if key == name), None)

    def joined(self, name: bytes) -> str | None:
        """Return every value of a header that is a list, with commas between; None when it is not there."""
        values = [value.decode("latin-1") for key, value in self.headers if key == name]
        return ", ".join(values) if values else None

    def value(self, parameter: Parameter[T]) -> T:
        """Return what the query says for *parameter*, which the operation declares."""
        found: Any = self._query[parameter.name]
        return found  # type: ignore[no-any-return]  # `read_query` kept what the parameter's own reader gave

    async def body(self, *, limit: int = MIB) -> bytes:
        """Return the body, decompressed. Raises UnsupportedMediaType, BodyTooLarge, …, ClientLeft."""
        require_json(self.headers)
        return await read_body(self._receive, self.headers, limit=limit)

    async def payload(self) -> dict[str, object]:
        """Return the JSON object in the body. Raises InvalidJSON, InvalidRequest, and as `body`."""
        return decode_object(await self.body())


Handler = Callable[[AdminRequest], Awaitable[Answer | Flow]]


class AdminApp:
    """One operation as an ASGI app: *handle* runs when the guard and the declared *query* are content."""

    def __init__(self, guard: AdminGuard, handle: Handler, query: tuple[Parameter[Any], ...] = ()) -> None:
        self._guard, self._handle, self._query = guard, handle, query

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._guard.check(scope)
            answer = await self._handle(AdminRequest(scope, receive, self._query))
        except TroyError as error:
            await send_error(send, error)
        except ClientLeft:
            return
        else:
            if isinstance(answer, Flow):
                await send_flow(scope, receive, send, answer)
            else:
                await send_json(send, answer.status, answer.value, answer.headers)


def invalid(where: str, message: str) -> ValidationFailed:
    """Return the error for one field that is wrong."""
    return wrong_fields([(where, message)])
