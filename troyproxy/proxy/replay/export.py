"""From usage rows to a trace: page by page, oldest first, with what routing must know of each key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from troyproxy.accounting.pages import Position, position
from troyproxy.catalog.keys import Key
from troyproxy.ports import RequestRepository
from troyproxy.proxy.replay.trace import head_line, request_line, routed, traced
from troyproxy.proxy.trials import TESTER

PAGE: Final = 500


@dataclass(slots=True)
class Exported:
    """How many requests were written, and how many left out: refused before they were routed, or trials of our own."""

    requests: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Export:
    """One export. *keys* by id; *since* and *now* in unix seconds: what arrives meanwhile is not in it."""

    requests: RequestRepository
    keys: Mapping[str, Key]
    since: float
    now: float
    done: Exported = field(default_factory=Exported)

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the trace. Raises StoreUnavailable."""
        yield head_line(exported_at=self.now, since=self.since)
        after: Position | None = Position(self.since, "")
        while after is not None:
            rows = await self.requests.following(after, limit=PAGE)
            after = position(rows[-1]) if len(rows) == PAGE else None
            for row in rows:
                if row.at > self.now:
                    return
                if routed(row) and row.key_id != TESTER.id:
                    self.done.requests += 1
                    yield request_line(traced(row, self.keys.get(row.key_id or "")))
                else:
                    self.done.left_out += 1
