"""Where what keys use is known beyond this process: counted together by instances, and summed in the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from troyproxy.accounting.limits import Account, Limit, Limits
from troyproxy.accounting.quota_board import DayUse


@dataclass(frozen=True, slots=True)
class Admission:
    """May a request of about so many *tokens* be sent with this key? If so, it is charged."""

    key_id: str
    limits: Limits
    mine: Account
    """What this instance knows. Levels count where they are lower, what is spent where it is more."""
    tokens: int


@dataclass(frozen=True, slots=True)
class Correction:
    """A request has ended: *tokens* come back (less than 0: are charged), so much was spent today and this month."""

    key_id: str
    limits: Limits
    mine: Account
    """As in `Admission`, and without this request's money."""
    tokens: int
    day_usd: float = 0.0
    month_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Counted:
    """The account that all instances share, after an order; *refused*: what refused an admission."""

    account: Account
    refused: Limit | None = None


class SharedLimits(Protocol):
    """Where instances count together. Methods but `close` raise StoreUnavailable soon, and are cancel-safe."""

    async def open(self) -> None:
        """Connect, and see that it answers."""

    async def carry(self, orders: Sequence[Admission | Correction]) -> Sequence[Counted]:
        """Carry out *orders* in one trip, each as a whole and in this order, and return what came of each.

        Without orders it only sees whether the others can be reached.
        """

    async def close(self) -> None:
        """Disconnect; safe to call twice, and when nothing was opened."""


class UsageSums(Protocol):
    """What was spent, as the database knows it."""

    async def spent_since(self, day: str) -> Mapping[str, float]:
        """Return key id → USD of the requests that arrived on *day* (UTC, ``2027-01-15``) or later.

        Raises StoreUnavailable.
        """

    async def used_on(self, day: str) -> Sequence[DayUse]:
        """Return what the upstream of each account answered on a UTC *day*. Raises StoreUnavailable."""
