"""What an operator looks at: the state of this process and its settings."""

from __future__ import annotations

import os
from typing import Final

from troyproxy.api.admin.operation import Operation
from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.admin.schemas import TEXT, exactly, listing, titled
from troyproxy.api.admin.status_schema import STATUS
from troyproxy.api.services import Services
from troyproxy.settings import show

SETTINGS: Final = titled("Settings", exactly(data=listing(exactly(name=TEXT, value=TEXT, origin=TEXT))))


class Reading:
    """The handlers that change nothing."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def operations(self) -> list[Operation]:
        """Return what can be looked at."""
        return [
            Operation(
                "GET", "/api/status", self.status, "state", "The state of the process that answers.", {200: STATUS}
            ),
            Operation(
                "GET",
                "/api/settings",
                self.settings,
                "state",
                "The settings in force, and where from.",
                {200: SETTINGS},
            ),
        ]

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
