"""Keeps the limits of client keys: admits requests, corrects what they were charged, tells clients where they stand.

The account of a key in this process is fed by every request, also while instances count together (`limit_sharing`), so
that it can decide at any moment alone. The accounts are bounded: a key that nobody used for longer than the others
begins anew, with full rates and what the database knows to be spent. Keys without limits never come here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from cachetools import LRUCache

from troyproxy.accounting import limits as rules
from troyproxy.accounting.limits import BUDGETS, Account, Limit, Limits, Standing
from troyproxy.catalog.keys import Key
from troyproxy.errors import BudgetExceeded, RateLimited, TroyError
from troyproxy.ports import Admission, Clock, Correction, Counted
from troyproxy.proxy.limit_sharing import LimitSharing
from troyproxy.proxy.spending import Sums

BOUND: Final = 10_000
"""Keys whose accounts are kept."""
NAMES: Final = 1000
"""Key names under which refusals are counted; the others are counted together, under none."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """What became of one admission; `LimitKeeper.settle` takes it back when the request has ended."""

    key: Key
    limits: Limits
    tokens: int
    """Charged."""
    shared: bool
    """The instances counted it together."""
    standing: tuple[Standing, ...]
    refusal: TroyError | None


@dataclass(slots=True)
class _Kept:
    name: str
    limits: Limits
    account: Account
    apart: bool = False
    """Requests were admitted here alone: what is left here counts when the instances count together again."""


class LimitKeeper:
    """One for all keys of this process. *sums*: the latest reading of what is spent."""

    def __init__(self, *, clock: Clock, sums: Callable[[], Sums] = Sums, sharing: LimitSharing | None = None) -> None:
        self._clock, self._sums, self.sharing = clock, sums, sharing
        self._kept: LRUCache[str, _Kept] = LRUCache(BOUND)
        self._refusals: dict[tuple[str, str], int] = {}

    async def admit(self, key: Key, tokens: int) -> Ticket:
        """Charge a request of about so many *tokens*, or say in the ticket why it is refused. Waits only to share."""
        limits = Limits.of(key.limits)
        counted = await self._ask(key, limits, tokens)
        kept = self._here(key, limits)
        if counted is None:
            refused = rules.lacking(kept.account, limits, tokens)
            kept.account = kept.account if refused is not None else rules.charged(kept.account, tokens)
            kept.apart = kept.apart or self.sharing is not None
            account = kept.account
        else:
            refused = counted.refused
            charged = kept.account if refused is not None else rules.charged(kept.account, tokens)
            kept.account = rules.raised(charged, counted.account)
            kept.apart = False
            account = counted.account
        refusal = None if refused is None else self._refusal(key, limits, account, refused, tokens)
        return Ticket(key, limits, tokens, counted is not None, rules.standings(account, limits), refusal)

    async def _ask(self, key: Key, limits: Limits, tokens: int) -> Counted | None:
        if self.sharing is None:
            return None
        kept = self._here(key, limits)
        # Of levels the others are told only when they saw less than we did.
        mine = kept.account if kept.apart else _full(kept.account)
        return await self.sharing.ask(Admission(key.id, limits, mine, tokens))

    def settle(self, ticket: Ticket, *, used: int, usd: float, at: float) -> None:
        """The request, which arrived *at*, has used so many tokens and cost so much. Never waits."""
        key, kept = ticket.key, self._here(ticket.key)
        here, limits = kept.account, kept.limits
        day = rules.day_of(at)
        day_usd = usd if day == here.day else 0.0
        month_usd = usd if day.startswith(here.month) else 0.0
        tokens = ticket.tokens - used
        kept.account = rules.settled(here, limits, tokens=tokens, day_usd=day_usd, month_usd=month_usd)
        back = tokens if ticket.shared and limits.tokens is not None else 0
        if self.sharing is not None and (back or (usd and limits.budgeted)):
            self.sharing.tell(Correction(key.id, limits, _full(here), back, day_usd, month_usd))

    def standing(self, key: Key) -> tuple[Standing, ...]:
        """Return where a key stands, as this process knows it, for an answer that was given before admission."""
        limits = Limits.of(key.limits)
        return rules.standings(self._here(key, limits).account, limits)

    def renew(self, keys: Iterable[Key]) -> None:
        """Go by these *keys*, which are all there are, also for those that are not used: one that is gone has none."""
        known = {key.id: key for key in keys if key.revoked_at is None}
        for key_id, kept in self._kept.items():
            key = known.get(key_id)
            kept.limits = Limits() if key is None else Limits.of(key.limits)
            kept.name = kept.name if key is None else key.name

    def _here(self, key: Key, limits: Limits | None = None) -> _Kept:
        """Return what is kept of a key, as of now and of all that is known to be spent.

        *limits* are those that it has now. Without them *key* may be as it was when its request began, and what is
        known of it since then stays.
        """
        now = self._clock.now()
        kept = self._kept.get(key.id)
        if kept is None:
            kept = self._kept[key.id] = _Kept(key.name, limits or Limits.of(key.limits), Account(at=now))
        if limits is not None:
            kept.name, kept.limits = key.name, limits
        kept.account = rules.raised(rules.brought_to(kept.account, kept.limits, now), self._sums().of(key.id))
        return kept

    def _refusal(self, key: Key, limits: Limits, account: Account, refused: Limit, tokens: int) -> TroyError:
        self._count(key.name, refused)
        wait_s = rules.wait_s(account, limits, refused, tokens)
        if refused in BUDGETS:
            return _budget_error(limits, refused, account.at + wait_s)
        allowed = limits.requests if refused is Limit.REQUESTS else limits.tokens
        return RateLimited(
            f"This key may use {allowed:.15g} {refused} per minute; try again in {rules.spoken(wait_s)}.",
            retry_after_s=wait_s,
        )

    def _count(self, name: str, refused: Limit) -> None:
        label = (name, str(refused))
        if label not in self._refusals and len(self._refusals) >= NAMES * len(Limit):
            label = ("", str(refused))
        self._refusals[label] = self._refusals.get(label, 0) + 1

    @property
    def refusals(self) -> Mapping[tuple[str, str], int]:
        """(key name, limit) → requests refused so far."""
        return self._refusals

    def page(self) -> dict[str, object]:
        """Return what ``/api/status`` says: whether instances count together, and how often this one had to alone."""
        sharing = self.sharing
        return {"shared": None} if sharing is None else {"shared": sharing.up, "decided_alone": sharing.alone}

    def budgets_left(self) -> Iterator[tuple[str, str, float]]:
        """Yield (key name, ``day`` or ``month``, share of the budget that is left) of the keys that were used."""
        now, sums = self._clock.now(), self._sums()
        for key_id, kept in self._kept.items():
            here = rules.raised(rules.brought_to(kept.account, kept.limits, now), sums.of(key_id))
            for window, budget, spent in (
                (Limit.DAY, kept.limits.day_usd, here.day_usd),
                (Limit.MONTH, kept.limits.month_usd, here.month_usd),
            ):
                if budget is not None:
                    yield kept.name, str(window), max(0.0, 1 - spent / budget) if budget > 0 else 0.0


def _full(account: Account) -> Account:
    return replace(account, requests=math.inf, tokens=math.inf)


def _budget_error(limits: Limits, refused: Limit, until: float) -> BudgetExceeded:
    budget = limits.day_usd if refused is Limit.DAY else limits.month_usd
    anew = datetime.fromtimestamp(until, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    error = BudgetExceeded(f"This key's budget of {budget:.15g} USD per {refused} is spent; it starts anew at {anew}.")
    error.headers["x-should-retry"] = "false"
    return error
