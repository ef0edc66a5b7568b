"""``/api/requests``: what happened to requests, from the database and, for the newest, from this process's memory."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from troyproxy.accounting.pages import Page, Position, Wanted, merged
from troyproxy.accounting.records import UsageRow
from troyproxy.api.admin.operation import Operation
from troyproxy.api.admin.paging import CURSOR, cursor_for, limit
from troyproxy.api.admin.parameters import Parameter, moment, one_of, text, whole
from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.admin.usage_schemas import OUTCOMES, STORIES, STORY
from troyproxy.api.services import Services
from troyproxy.errors import NotFound, StoreUnavailable

WRITTEN_S: Final = 0.15
"""A finished request of another process is in the database after so many seconds, while the database keeps up."""
REMEMBERED: Final = 500
"""Rows of this process's memory that are looked at: all of them."""


def _place(cursor: str) -> Position:
    at, _, request_id = (CURSOR.read(cursor) or "").partition("~")
    try:
        place = Position(float(at), request_id)
    except ValueError:
        place = Position(math.nan, "")
    if not math.isfinite(place.at):
        raise ValueError("is no cursor of this list")
    return place


LIMIT: Final = limit(default=50)
PLACE: Final = Parameter(CURSOR.name, CURSOR.doc, _place, CURSOR.schema).optional()
SINCE: Final = moment("since", "Only requests that arrived then or later.").optional()
KEY: Final = text("key", "Only those of the key with this id or name.").optional()
MODEL: Final = text(
    "model", "Only those that asked for this model, or that it served (`provider/model` too)."
).optional()
STATUS: Final = whole("status", "Only those answered with this status.", 100, 599).optional()
OUTCOME: Final = one_of("outcome", "Only those that ended so.", OUTCOMES).optional()
FILTERS: Final = (SINCE, KEY, MODEL, STATUS, OUTCOME)
LISTED: Final = """A page of a filtered list may be short although there are more: it looks at a bounded number of
requests. `stored: false`: the database cannot be read, so this is what one process remembers."""


class Requests:
    """The handlers."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def operations(self) -> list[Operation]:
        """Return what can be looked at."""
        return [
            Operation(
                "GET",
                "/api/requests",
                self.list,
                "requests",
                "Requests, newest first.",
                {200: STORIES},
                query=(LIMIT, PLACE, *FILTERS),
                description=LISTED,
            ),
            Operation(
                "GET",
                "/api/requests/{id}",
                self.read,
                "requests",
                "The full story of one request.",
                {200: STORY},
                fails=(StoreUnavailable,),
            ),
        ]

    async def list(self, request: AdminRequest) -> Answer:
        """``GET /api/requests?limit=&cursor=&since=&key=&model=&status=&outcome=``: newest first.

        A page of a filtered list may be short although there are more: the database looked at so many rows. While the
        database cannot be read, what this process remembers is shown, and ``stored`` is false.
        """
        most, wanted, before = request.value(LIMIT), _wanted(request), request.value(PLACE)
        fresh = [row for row in self._services.ring.recent(REMEMBERED) if wanted.takes(row)]
        stored = await self._stored(wanted, before, most)
        page = merged(stored or Page((), None), fresh, before=before, limit=most)
        return Answer(
            {
                "data": [story(row) for row in page.rows],
                "next_cursor": None if page.end is None else cursor_for(f"{page.end.at!r}~{page.end.request_id}"),
                "stored": stored is not None,
            }
        )

    async def read(self, request: AdminRequest) -> Answer:
        """``GET /api/requests/{id}``: from memory, else from the database, where another process may be writing it."""
        row = await self._row(request.id)
        if row is None:
            await self._services.clock.sleep(WRITTEN_S)
            row = await self._row(request.id)
        if row is None:
            raise NotFound(f"there is no request {request.id[:100]!r}")
        return Answer(story(row))

    async def _stored(self, wanted: Wanted, before: Position | None, limit: int) -> Page | None:
        try:
            return await self._services.store.requests.page(wanted, before=before, limit=limit)
        except StoreUnavailable:
            return None

    async def _row(self, request_id: str) -> UsageRow | None:
        return self._services.ring.find(request_id) or await self._services.store.requests.find(request_id)


def _wanted(request: AdminRequest) -> Wanted:
    return Wanted(
        since=request.value(SINCE),
        key=request.value(KEY),
        model=request.value(MODEL),
        status=request.value(STATUS),
        outcome=request.value(OUTCOME),
    )


def story(row: UsageRow) -> dict[str, object]:
    """Return *row*, JSON-ready. The seed is a text: it has more digits than other languages' numbers."""
    skipped = [{"member": spec, "reason": reason} for spec, reason in row.skipped]
    told = msgspec.to_builtins(row)
    del told["traced"]  # of this process only, like the ids of its spans
    return {**told, "skipped": skipped, "seed": str(row.seed)}
