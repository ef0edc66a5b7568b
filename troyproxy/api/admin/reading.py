"""What an operator looks at: the state of this process, its settings, and the story of single requests."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Final

from troyproxy.accounting.records import UsageRow
from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.services import Services
from troyproxy.errors import NotFound
from troyproxy.settings import show

WRITTEN_S: Final = 0.15
"""A finished request of another process is in the database after so many seconds, while the database keeps up."""


class Reading:
    """The handlers that change nothing."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def status(self, request: AdminRequest) -> Answer:
        """``GET /api/status``: of this process, which is named."""
        del request
        worker = {"name": self._services.worker, "pid": os.getpid()}
        return Answer({"worker": worker, **self._services.status.page()})

    async def settings(self, request: AdminRequest) -> Answer:
        """``GET /api/settings``: those in force, with where each came from and without a secret."""
        del request
        rows = show.rows(self._services.configuration)
        return Answer({"data": [{"name": name, "value": value, "origin": origin} for name, value, origin in rows]})

    async def requests(self, request: AdminRequest) -> Answer:
        """``GET /api/requests?limit=``: the last ones of this process, newest first."""
        rows = self._services.ring.recent(request.limit(default=50, most=500))
        return Answer({"data": [story(row) for row in rows]})

    async def request(self, request: AdminRequest) -> Answer:
        """``GET /api/requests/{id}``: from memory, else from the database, where another process may be writing it."""
        row = await self._row(request.id)
        if row is None:
            await self._services.clock.sleep(WRITTEN_S)
            row = await self._row(request.id)
        if row is None:
            raise NotFound(f"there is no request {request.id[:100]!r}")
        return Answer(story(row))

    async def _row(self, request_id: str) -> UsageRow | None:
        return self._services.ring.find(request_id) or await self._services.store.requests.find(request_id)


def story(row: UsageRow) -> dict[str, object]:
    """Return *row*, JSON-ready. The seed is a text: it has more digits than other languages' numbers."""
    skipped = [{"member": spec, "reason": reason} for spec, reason in row.skipped]
    return {**asdict(row), "skipped": skipped, "seed": str(row.seed)}
