"""Which account carries the next attempt, and how many requests each carries now.

The pick: active, allowed for the model, not tried in this request, not cooling; of those the ones below their
preferred in-flight number, or the least loaded when all are at it; of equals, fill-first or sticky round-robin.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from troyproxy.catalog.providers import Account, Provider
from troyproxy.ports import Observer

STICKY_SUCCESSES = 2
"""A round-robin stop is kept for this many consecutive successes."""


def synthetic(provider: Provider) -> Account:
    """Return the one account of a provider that needs no credential."""
    return _keyless(provider.id)[0]


@lru_cache(maxsize=1024)
def _keyless(provider: str) -> tuple[Account]:
    return (Account(id=f"{provider}#keyless", provider=provider, name=f"{provider}-keyless"),)


def accounts_of(provider: Provider, model: str, pinned: str | None, now: float) -> tuple[Account, ...]:
    """Return the accounts that may carry *model*, best priority first, then the oldest."""
    accounts = provider.accounts
    if not accounts and (provider.keyless or provider.app is not None):
        only = _keyless(provider.id)
        return only if pinned is None or pinned == only[0].name else ()
    usable = [
        a for a in accounts if (pinned is None or pinned in (a.name, a.id)) and a.usable(now) and _allows(a, model)
    ]
    if len(usable) == len(accounts) == 1:
        return accounts
    return tuple(sorted(usable, key=lambda a: (a.priority, a.created_at)) if len(usable) > 1 else usable)


def _allows(account: Account, model: str) -> bool:
    return not account.models or any(fnmatchcase(model, glob) for glob in account.models)


@dataclass(slots=True)
class _Stop:
    account: str
    successes: int = 0


class AccountDesk:
    """In-flight counts and round-robin stops of this process; bounded by the configured accounts."""

    def __init__(self, *, max_inflight: int, observer: Observer) -> None:
        self._max_inflight, self._observer = max_inflight, observer
        self._inflight: dict[str, int] = {}
        self._stops: dict[str, _Stop] = {}

    def inflight(self, account: Account) -> int:
        """Return how many requests *account* carries now."""
        return self._inflight.get(account.id, 0)

    def pick(
        self,
        provider: Provider,
        accounts: Sequence[Account],
        *,
        usable: Callable[[Account], bool],
        round_robin: bool = False,
    ) -> Account | None:
        """Return the account for the next attempt, or None when none is *usable*."""
        if len(accounts) == 1:
            return accounts[0] if usable(accounts[0]) else None
        ready = [account for account in accounts if usable(account)]
        if not ready:
            return None
        free = [account for account in ready if self.inflight(account) < self._room(provider, account)]
        if not free:  # all are at their number: the least loaded ones are equals
            least = min(map(self.inflight, ready))
            free = [account for account in ready if self.inflight(account) == least]
        return self._rotated(provider, accounts, free) if round_robin else free[0]

    def _room(self, provider: Provider, account: Account) -> int:
        return account.max_inflight or provider.max_inflight or self._max_inflight

    def _rotated(self, provider: Provider, accounts: Sequence[Account], free: Sequence[Account]) -> Account:
        stop = self._stops.get(provider.id)
        order = [account.id for account in accounts]
        at = order.index(stop.account) if stop is not None and stop.account in order else 0
        if stop is not None and stop.successes >= STICKY_SUCCESSES:
            at += 1
        circle = [*accounts[at % len(order) :], *accounts[: at % len(order)]]
        chosen = next(account for account in circle if account in free)
        if stop is None or stop.account != chosen.id or stop.successes >= STICKY_SUCCESSES:
            self._stops[provider.id] = _Stop(chosen.id)
        return chosen

    def succeeded(self, account: Account) -> None:
        """Count a success towards the round-robin stop of its provider."""
        if self._stops and (stop := self._stops.get(account.provider)) is not None and stop.account == account.id:
            stop.successes += 1

    @contextmanager
    def slot(self, account: Account) -> Iterator[None]:
        """Hold one in-flight place to the last byte; it is given back whatever happens."""
        self.enter(account)
        try:
            yield
        finally:
            self.leave(account)

    def enter(self, account: Account) -> None:
        """Take an in-flight place: `leave` must follow, whatever happens."""
        count = self._inflight[account.id] = self._inflight.get(account.id, 0) + 1
        self._observer.inflight_changed(account.provider, account.name, count)

    def leave(self, account: Account) -> None:
        """Give an in-flight place back."""
        count = self._inflight[account.id] - 1
        if count:
            self._inflight[account.id] = count
        else:
            del self._inflight[account.id]
        self._observer.inflight_changed(account.provider, account.name, count)

    def keep(self, providers: Collection[str]) -> None:
        """Forget the stops of providers that are gone."""
        self._stops = {provider: stop for provider, stop in self._stops.items() if provider in providers}
