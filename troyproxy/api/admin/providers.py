"""``/api/providers``: list, create, read, replace, change, remove. What one may be is `proxy.provider_book`'s."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Final

from troyproxy.api.admin.combos import GONE
from troyproxy.api.admin.in_force import InForce
from troyproxy.api.admin.operation import Operation
from troyproxy.api.admin.paging import CURSOR, cut, limit, page_schema
from troyproxy.api.admin.parameters import one_of
from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.admin.stored import Stored
from troyproxy.api.admin.upstream_schemas import PROVIDER_ANSWER, PROVIDER_CHANGE, PROVIDER_LISTED, PROVIDER_NEW
from troyproxy.errors import Conflict, NotFound, StoreUnavailable
from troyproxy.proxy.provider_book import ProviderBook, Written
from troyproxy.proxy.provider_entries import Entry, as_written

PATH: Final = "/api/providers"
LIMIT: Final = limit()
CASCADE: Final = one_of("cascade", "Whether its connections go, too.", ("true", "false")).otherwise("false")


class Providers(Stored[Entry]):
    """The handlers."""

    path = PATH

    def __init__(self, book: ProviderBook, in_force: InForce) -> None:
        super().__init__(book, in_force)
        self._book = book

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

    async def remove(self, request: AdminRequest) -> Answer:
        """``DELETE /api/providers/{id}?cascade=``: with *cascade* its connections go, too."""
        cascade, version = request.value(CASCADE) == "true", await self.expected(request)
        entry, warnings = await self._book.remove(request.id, version, cascade=cascade)
        warnings = [*warnings, *await self._in_force.bring()]
        return Answer({"id": entry.provider.id, "deleted": True, "warnings": warnings})

    async def written(self, written: Written) -> Written:
        """Bring a write into force, and tell it as it is then; it is stored, even if it cannot be read again."""
        entry, warnings = await super().written(written)
        with suppress(NotFound, StoreUnavailable):
            entry = await self._book.find(entry.provider.id)
        return entry, warnings

    def id_of(self, entry: Entry) -> str:
        return entry.provider.id

    def told(self, entry: Entry) -> dict[str, object]:
        return as_written(entry)
