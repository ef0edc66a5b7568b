"""``/api/connections``: the accounts of providers. What one may be is `proxy.connection_book`'s; keys only go in."""

from __future__ import annotations

from functools import partial
from typing import Final

from troyproxy.api.admin.combos import GONE
from troyproxy.api.admin.in_force import InForce
from troyproxy.api.admin.operation import Operation
from troyproxy.api.admin.paging import CURSOR, cut, limit, page_schema
from troyproxy.api.admin.parameters import text
from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.admin.stored import Stored
from troyproxy.api.admin.upstream_schemas import (
    CONNECTION_ANSWER,
    CONNECTION_CHANGE,
    CONNECTION_LISTED,
    CONNECTION_NEW,
)
from troyproxy.catalog.providers import Account
from troyproxy.errors import Conflict, StoreUnavailable
from troyproxy.proxy.connection_book import ConnectionBook, as_written

PATH: Final = "/api/connections"
LIMIT: Final = limit()
PROVIDER: Final = text("provider", "Only those of this provider: an id or an alias.").optional()


class Connections(Stored[Account]):
    """The handlers."""

    path = PATH

    def __init__(self, book: ConnectionBook, in_force: InForce) -> None:
        super().__init__(book, in_force)
        self._book = book

    def operations(self) -> list[Operation]:
        """Return what can be done with connections."""
        one, answers, page = f"{PATH}/{{id}}", {200: CONNECTION_ANSWER}, {200: page_schema(CONNECTION_LISTED)}
        reads = partial(Operation, tag="connections", fails=(StoreUnavailable,))
        lists = partial(reads, answers=page, query=(PROVIDER, LIMIT, CURSOR))
        writes = partial(Operation, tag="connections", fails=(Conflict, StoreUnavailable))
        changes = partial(writes, answers=answers, takes=CONNECTION_CHANGE, versioned=True)
        new = partial(writes, answers={201: CONNECTION_ANSWER}, takes=CONNECTION_NEW)
        gone = partial(writes, answers={200: GONE}, versioned=True)
        return [
            lists("GET", PATH, self.list, summary="List the accounts of providers."),
            new("POST", PATH, self.create, summary="Add an account to a provider."),
            reads("GET", one, self.read, summary="Read a connection.", answers=answers),
            changes("PUT", one, self.replace, summary="Write a connection anew; its key stays if none is given."),
            changes("PATCH", one, self.change, summary="Change fields of a connection."),
            gone("DELETE", one, self.remove, summary="Remove a connection."),
        ]

    async def list(self, request: AdminRequest) -> Answer:
        """``GET /api/connections?provider=&limit=&cursor=``: by id."""
        entries = await self._book.entries(request.value(PROVIDER))
        after, most = request.value(CURSOR), request.value(LIMIT)
        return Answer(cut(entries, lambda account: account.id, as_written, after, most))

    async def remove(self, request: AdminRequest) -> Answer:
        """``DELETE /api/connections/{id}``."""
        account, warnings = await self.written((await self._book.remove(request.id, await self.expected(request)), []))
        return Answer({"id": account.id, "deleted": True, "warnings": warnings})

    def id_of(self, entry: Account) -> str:
        return entry.id

    def told(self, entry: Account) -> dict[str, object]:
        return as_written(entry)
