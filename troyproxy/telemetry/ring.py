"""The last requests of this process, in memory, for ``GET /api/requests/{id}``. The database has the long memory."""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice

from troyproxy.accounting.records import UsageRow
from troyproxy.telemetry.silent import Silent


class RequestRing(Silent):
    """Keeps the last *size* usage rows by request id; a row under a known id replaces the older one."""

    def __init__(self, size: int = 500) -> None:
        self._size = size
        # To find the oldest entry of a plain dict takes longer with each that was taken away before it.
        self._rows: OrderedDict[str, UsageRow] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def request_finished(self, row: UsageRow) -> None:
        """Keep *row*; at the bound the oldest one goes."""
        rows, request_id = self._rows, row.request_id
        if request_id in rows:
            del rows[request_id]  # so that it becomes the latest
        rows[request_id] = row
        if len(rows) > self._size:
            rows.popitem(last=False)

    def find(self, request_id: str) -> UsageRow | None:
        """Return the row of this request while it is remembered."""
        return self._rows.get(request_id)

    def recent(self, limit: int = 50) -> list[UsageRow]:
        """Return at most *limit* rows, the latest first."""
        return list(islice(reversed(self._rows.values()), limit))
