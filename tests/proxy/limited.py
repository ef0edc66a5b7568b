"""One process's keeper of limits, and its way to others, for the tests of both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

from tests.fake_limits import FakeSharedLimits
from tests.fakes import FakeClock
from troyproxy.accounting.limits import day_of, month_of
from troyproxy.catalog.keys import Key
from troyproxy.errors import TroyError
from troyproxy.proxy.limit_sharing import LimitSharing
from troyproxy.proxy.limits import LimitKeeper, Ticket
from troyproxy.proxy.spending import Sums

NOON = datetime(2027, 1, 15, 12, tzinfo=UTC).timestamp()
RATES = {"requests_per_minute": 3.0, "tokens_per_minute": 100.0}
CENT = {"budget_usd_per_day": 0.01}


def key(limits: Mapping[str, float], name: str = "k") -> Key:
    return Key(id=f"id-{name}", name=name, digest=b"", limits=limits)


class Instance:
    """One process's keeper, and its way to others."""

    def __init__(self, clock: FakeClock | None = None, shared: FakeSharedLimits | None = None) -> None:
        self.clock = clock or FakeClock(NOON)
        self.sums = Sums()
        self.shared = shared
        self.waits = FakeClock(manual=True)
        self.sharing = None if shared is None else LimitSharing(shared, clock=self.waits)
        self.keeper = LimitKeeper(clock=self.clock, sums=lambda: self.sums, sharing=self.sharing)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Instance]:
        assert self.sharing is not None
        await self.sharing.join()
        task = asyncio.get_running_loop().create_task(self.sharing.follow())
        try:
            yield self
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def admit(self, key: Key, tokens: int = 1) -> Ticket:
        return await self.keeper.admit(key, tokens)

    async def admitted(self, key: Key, times: int, tokens: int = 1) -> int:
        return sum([(await self.admit(key, tokens)).refusal is None for _ in range(times)])

    async def spend(self, key: Key, usd: float) -> TroyError | None:
        """Serve a request of that price; return why it was refused."""
        ticket = await self.admit(key)
        if ticket.refusal is None:
            self.keeper.settle(ticket, used=1, usd=usd, at=self.clock.now())
        return ticket.refusal

    def know(self, usd: float, name: str = "k") -> None:
        """Have read from the database that so much was spent today, and nothing earlier this month."""
        now = self.clock.now()
        self.sums = Sums(now, day_of(now), month_of(now), {f"id-{name}": usd}, {f"id-{name}": usd})
