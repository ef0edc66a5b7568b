"""Gathers what the quota board is built of: configuration, usage of the day, headers, locks. Asks no upstream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from troyproxy.accounting.quota_board import (
    ANY,
    AccountView,
    Circuit,
    DayUse,
    Heard,
    Lock,
    Own,
    ProviderView,
    Told,
    board,
)
from troyproxy.catalog.ceilings import Ceilings
from troyproxy.catalog.providers import Account, Provider
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import StoreUnavailable
from troyproxy.ports import Clock, UsageSums
from troyproxy.proxy.accounts import synthetic
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.quotas import QuotaDesk, still_holds
from troyproxy.resilience import health as machine
from troyproxy.resilience.breaker import CircuitState
from troyproxy.resilience.health import CircuitStatus, CooldownStatus
from troyproxy.resilience.signals import Signal


class QuotaPage:
    """Makes the board. Headers, locks and circuits are those that this process knows of."""

    def __init__(
        self,
        *,
        quotas: QuotaDesk,
        health: HealthKeeper,
        snapshot: Callable[[], Snapshot],
        sums: UsageSums,
        clock: Clock,
        ceilings: Callable[[], Ceilings],
    ) -> None:
        self._quotas, self._health, self._snapshot = quotas, health, snapshot
        self._sums, self._clock, self._ceilings = sums, clock, ceilings

    async def page(self) -> Told:
        """Return the board as of now. Without the database, usage is not known and everything else is."""
        now = self._clock.now()
        used = await self._used(now)
        circuits = [c for c in machine.circuits(self._health.state, now) if c.state is not CircuitState.CLOSED]
        locks = machine.cooldowns(self._health.state, now)
        views = [self._view(each, circuits, locks, now) for each in self._snapshot().providers.values()]
        return board(views, self._ceilings(), used, now)

    async def _used(self, now: float) -> Sequence[DayUse] | None:
        try:
            return await self._sums.used_on(datetime.fromtimestamp(now, UTC).date().isoformat())
        except StoreUnavailable:
            return None

    def _view(
        self, provider: Provider, circuits: Sequence[CircuitStatus], locks: Sequence[CooldownStatus], now: float
    ) -> ProviderView:
        names = {account.id: account.name for account in (*provider.accounts, synthetic(provider))}
        return ProviderView(
            id=provider.id,
            accounts=tuple(self._account(each, now) for each in _accounts(provider, now)),
            locks=tuple(_lock(lock, names) for lock in locks if lock.provider == provider.id),
            circuits=tuple(Circuit(c.model, c.state.value, c.until) for c in circuits if c.provider == provider.id),
        )

    def _account(self, account: Account, now: float) -> AccountView:
        heard = tuple(_heard(signal, now) for signal in self._quotas.heard(account))
        return AccountView(account.name, heard, tuple(self._own(account, now)))

    def _own(self, account: Account, now: float) -> list[Own]:
        limits = account.quota or {}
        return [
            Own(quota.name, float(str(limits[kind])), quota.remaining, quota.reset_at)
            for quota in self._quotas.quotas(account, now)
            if quota.own and (kind := quota.name.partition("/")[0]) in limits
        ]


def _accounts(provider: Provider, now: float) -> Sequence[Account]:
    if not provider.accounts and (provider.keyless or provider.app is not None):
        return (synthetic(provider),)
    return [account for account in provider.accounts if account.usable(now)]


def _heard(signal: Signal, now: float) -> Heard:
    return Heard(
        bucket=signal.bucket,
        remaining_ratio=signal.remaining,
        limit=signal.limit,
        remaining=signal.left,
        reset_at=signal.reset_at,
        at=signal.at,
        current=still_holds(signal, now),
    )


def _lock(lock: CooldownStatus, names: Mapping[str, str]) -> Lock:
    account = ANY if lock.account == ANY else names.get(lock.account, lock.account.partition("#")[2] or lock.account)
    return Lock(account, lock.model, str(lock.error_class), lock.until, lock.soft)
