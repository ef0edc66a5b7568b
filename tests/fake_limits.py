"""The fake of `ports.SharedLimits`; the others are in `fakes` and `fake_store`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from troyproxy.accounting.limits import Account, admit, brought_to, raised, settled
from troyproxy.errors import StoreUnavailable
from troyproxy.ports import Admission, Correction, Counted


class FakeSharedLimits:
    """One instance's way to accounts in memory; *beside* is another's to the same accounts.

    *down*: this instance cannot reach them. *held*: trips wait for it. `trips` has the orders of each.
    """

    def __init__(self, beside: FakeSharedLimits | None = None) -> None:
        self.accounts: dict[str, Account] = {} if beside is None else beside.accounts
        self.down = False
        self.held: asyncio.Event | None = None
        self.opened = self.closed = 0
        self.trips: list[list[Admission | Correction]] = []

    def _check(self) -> None:
        if self.down:
            raise StoreUnavailable("down")

    async def open(self) -> None:
        self._check()
        self.opened += 1

    async def carry(self, orders: Sequence[Admission | Correction]) -> Sequence[Counted]:
        self.trips.append(list(orders))
        if self.held is not None:
            await self.held.wait()
        self._check()
        return [self._one(order) for order in orders]

    def _one(self, order: Admission | Correction) -> Counted:
        mine, limits = order.mine, order.limits
        here = raised(brought_to(self.accounts.get(order.key_id, mine), limits, mine.at), mine)
        here = replace(here, requests=min(here.requests, mine.requests), tokens=min(here.tokens, mine.tokens))
        refused = None
        if isinstance(order, Admission):
            here, refused = admit(here, limits, mine.at, order.tokens)
        else:
            spent = {"day_usd": order.day_usd, "month_usd": order.month_usd}
            here = settled(here, limits, tokens=order.tokens, **spent)
        self.accounts[order.key_id] = here
        return Counted(here, refused)

    async def close(self) -> None:
        self.closed += 1
