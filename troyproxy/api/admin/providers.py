"""``/api/providers``: list, create, read, replace, change, remove. What one may be is `proxy.provider_book`'s."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Final
from urllib.parse import quote

from troyproxy.api.admin.combos import GONE
from troyproxy.api.admin.in_force import InForce
from troyproxy.api.admin.operation import Operation
from troyproxy.api.admin.paging import CURSOR, cut, limit, page_schema
from troyproxy.api.admin.parameters import one_of
from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.admin.upstream_schemas import PROVIDER_ANSWER, PROVIDER_CHANGE, PROVIDER_LISTED, PROVIDER_NEW
from troyproxy.api.admin.versions import etag, expected_version
from troyproxy.errors import Conflict, NotFound, StoreUnavailable
from troyproxy.proxy.provider_book import ProviderBook, Written
from troyproxy.proxy.provider_entries import Entry, as_written

PATH: Final = "/api/providers"
LIMIT: Final = limit()
CASCADE: Final = one_of("cascade", "Whether its connections go, too.", ("true", "false")).otherwise("false")


class Providers:
    """The handlers. A write is in force in this process when it is answered; others follow within a second."""

    def __init__(self, book: ProviderBook, in_force: InForce) -> None:
        self._book, self._in_force = book, in_force

    def operations(self) -> list[Operation]:
        """Return what can be done with providers."""
        one, answers, page = f"{PATH}/{{id}}", {200: PROVIDER_ANSWER}, {200: page_schema(PROVIDER_LISTED)}
        reads = partial(Operation, tag="providers", fails=(StoreUnavailable,))
        lists = partial(reads, answers=page, query=(LIMIT, CURSOR))
        writes = partial(Operation, tag="providers", fails=(Conflict, StoreUnavailable))
        changes = partial(writes, answers=answers, takes=PROVIDER_CHANGE, versioned=True)
        new = partial(writes, answers={201: PROVIDER_ANSWER}, takes=PROVIDER_NEW)
        gone = partial(writes, answers={200: GONE}, versioned=True, query=(CASCADE,))
        return [
            lists("GET", PATH, self.list, summary="List the providers that are configured."),
            new("POST", PATH, self.create, summary="Configure a built-in provider, or add one of your own."),
            reads("GET", one, self.read, summary="Read a provider.", answers=answers),
            changes("PUT", one, self.replace, summary="Write a provider anew; its connections stay."),
            changes("PATCH", one, self.change, summary="Change fields of a provider; null takes one away."),
            gone("DELETE", one, self.remove, summary="Remove a provider."),
        ]

    async def list(self, request: AdminRequest) -> Answer:
        """``GET /api/providers?limit=&cursor=``: by id."""
        entries, after, most = await self._book.entries(), request.value(CURSOR), request.value(LIMIT)
        return Answer(cut(entries, lambda entry: entry.provider.id, as_written, after, most))

    async def create(self, request: AdminRequest) -> Answer:
        """``POST /api/providers``: 201 with its place."""
        entry, warnings = await self._written(await self._book.create(await request.payload()))
        return _answer(
            entry, warnings, status=201, location=f"{request.root}{PATH}/{quote(entry.provider.id, safe='')}"
        )

    async def read(self, request: AdminRequest) -> Answer:
        """``GET /api/providers/{id}``."""
        return _answer(await self._book.find(request.id))

    async def replace(self, request: AdminRequest) -> Answer:
        """``PUT /api/providers/{id}``: the whole provider anew; its connections stay."""
        raw, version = await request.payload(), await self._expected(request)
        return _answer(*await self._written(await self._book.replace(request.id, raw, version)))

    async def change(self, request: AdminRequest) -> Answer:
        """``PATCH /api/providers/{id}``: the given fields anew, null takes one away."""
        raw, version = await request.payload(), await self._expected(request)
        return _answer(*await self._written(await self._book.change(request.id, raw, version)))

    async def remove(self, request: AdminRequest) -> Answer:
        """``DELETE /api/providers/{id}?cascade=``: with *cascade* its connections go, too."""
        cascade, version = request.value(CASCADE) == "true", await self._expected(request)
        entry, warnings = await self._book.remove(request.id, version, cascade=cascade)
        warnings = [*warnings, *await self._in_force.bring()]
        return Answer({"id": entry.provider.id, "deleted": True, "warnings": warnings})

    async def _expected(self, request: AdminRequest) -> int | None:
        return expected_version(request, (await self._book.find(request.id)).version)

    async def _written(self, written: Written) -> Written:
        """Bring a write into force, and tell it as it is then; it is stored, even if it cannot be read again."""
        entry, warnings = written
        warnings = [*warnings, *await self._in_force.bring()]
        with suppress(NotFound, StoreUnavailable):
            entry = await self._book.find(entry.provider.id)
        return entry, warnings


def _answer(entry: Entry, warnings: object = (), *, status: int = 200, location: str | None = None) -> Answer:
    headers = {"etag": etag(entry.version), **({"location": location} if location is not None else {})}
    return Answer({**as_written(entry), "warnings": warnings}, status, headers)
