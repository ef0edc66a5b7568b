"""What an operator looks at: the state of this process, its settings, and the story of single requests."""

from __future__ import annotations

from dataclasses import asdict

from troyproxy.accounting.records import UsageRow
from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.services import Services
from troyproxy.errors import NotFound
from troyproxy.settings import show


class Reading:
    """The handlers that change nothing."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def status(self, request: AdminRequest) -> Answer:
        """``GET /api/status``."""
        del request
        return Answer(self._services.status.page())

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
        """``GET /api/requests/{id}``: from memory, else from the database."""
        row = self._services.ring.find(request.id) or await self._services.store.requests.find(request.id)
        if row is None:
            raise NotFound(f"there is no request {request.id[:100]!r}")
        return Answer(story(row))


def story(row: UsageRow) -> dict[str, object]:
    """Return *row*, JSON-ready. The seed is a text: it has more digits than other languages' numbers."""
    skipped = [{"member": spec, "reason": reason} for spec, reason in row.skipped]
    return {**asdict(row), "skipped": skipped, "seed": str(row.seed)}
