"""``/api/connections``: the accounts of providers. What one may be is `proxy.connection_book`'s; keys only go in."""

from __future__ import annotations

from functools import partial
from typing import Final
from urllib.parse import quote

from troyproxy.api.admin.combos import GONE
from troyproxy.api.admin.in_force import InForce
from troyproxy.api.admin.operation import Operation
from troyproxy.api.admin.paging import CURSOR, cut, limit, page_schema
from troyproxy.api.admin.parameters import text
from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.admin.upstream_schemas import (
    CONNECTION_ANSWER,
    CONNECTION_CHANGE,
    CONNECTION_LISTED,
    CONNECTION_NEW,
)
from troyproxy.api.admin.versions import etag, expected_version
from troyproxy.catalog.providers import Account
from troyproxy.errors import Conflict, StoreUnavailable
from troyproxy.proxy.connection_book import ConnectionBook, Written, as_written

PATH: Final = "/api/connections"
LIMIT: Final = limit()
PROVIDER: Final = text("provider", "Only those of this provider: an id or an alias.").optional()


class Connections:
    """The handlers. A write is in force in this process when it is answered; others follow within a second."""

    def __init__(self, book: ConnectionBook, in_force: InForce) -> None:
        self._book, self._in_force = book, in_force

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

    async def create(self, request: AdminRequest) -> Answer:
        """``POST /api/connections``: 201 with its place."""
        account, warnings = await self._written(await self._book.create(await request.payload()))
        return _answer(account, warnings, status=201, location=f"{request.root}{PATH}/{quote(account.id, safe='')}")

    async def read(self, request: AdminRequest) -> Answer:
        """``GET /api/connections/{id}``."""
        return _answer(await self._book.find(request.id))

    async def replace(self, request: AdminRequest) -> Answer:
        """``PUT /api/connections/{id}``: the whole connection anew; the key stays if none is given."""
        raw, version = await request.payload(), await self._expected(request)
        return _answer(*await self._written(await self._book.replace(request.id, raw, version)))

    async def change(self, request: AdminRequest) -> Answer:
        """``PATCH /api/connections/{id}``: the given fields anew."""
        raw, version = await request.payload(), await self._expected(request)
        return _answer(*await self._written(await self._book.change(request.id, raw, version)))

    async def remove(self, request: AdminRequest) -> Answer:
        """``DELETE /api/connections/{id}``."""
        account, warnings = await self._written(
            (await self._book.remove(request.id, await self._expected(request)), [])
        )
        return Answer({"id": account.id, "deleted": True, "warnings": warnings})

    async def _expected(self, request: AdminRequest) -> int | None:
        return expected_version(request, (await self._book.find(request.id)).version)

    async def _written(self, written: Written) -> Written:
        account, warnings = written
        return account, [*warnings, *await self._in_force.bring()]


def _answer(account: Account, warnings: object = (), *, status: int = 200, location: str | None = None) -> Answer:
    headers = {"etag": etag(account.version), **({"location": location} if location is not None else {})}
    return Answer({**as_written(account), "warnings": warnings}, status, headers)
