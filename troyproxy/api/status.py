"""The state of this process, for ``/api/status``, ``/readyz`` and the metrics: one reading of one truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from troyproxy.catalog.providers import Account, Provider
from troyproxy.ports import Clock, Store
from troyproxy.proxy.accounts import AccountDesk, synthetic
from troyproxy.proxy.catalogue_refresh import CatalogueRefresh
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.limits import LimitKeeper
from troyproxy.proxy.mirroring import Mirroring
from troyproxy.proxy.snapshots import SnapshotKeeper
from troyproxy.resilience import health as machine
from troyproxy.resilience.breaker import CircuitState
from troyproxy.telemetry.status import CLOSED, HALF_OPEN, OPEN, StatusFacts

LEVELS: Mapping[CircuitState, int] = {
    CircuitState.CLOSED: CLOSED,
    CircuitState.HALF_OPEN: HALF_OPEN,
    CircuitState.OPEN: OPEN,
}


class Status:
    """Reads what the parts know; changes nothing."""

    def __init__(  # noqa: PLR0913 -- whatever has a state to tell, by keyword
        self,
        *,
        health: HealthKeeper,
        desk: AccountDesk,
        snapshots: SnapshotKeeper,
        store: Store,
        clock: Clock,
        shared: Mirroring | None = None,
        catalogue: CatalogueRefresh | None = None,
        limits: LimitKeeper | None = None,
    ) -> None:
        self._health, self._desk, self._snapshots = health, desk, snapshots
        self._store, self._clock, self._shared, self._catalogue = store, clock, shared, catalogue
        self._limits = limits

    def facts(self) -> StatusFacts:
        """Return the state as the metrics want it."""
        now = self._clock.now()
        snapshot = self._snapshots.current
        circuits = machine.circuits(self._health.state, now)
        locks = machine.cooldowns(self._health.state, now)
        return StatusFacts(
            circuits=tuple((c.provider, c.model, LEVELS[c.state]) for c in circuits),
            cooldowns=(
                *((provider.id, account.name, 0.0) for provider, account in self._pairs()),
                *((lock.provider, self._name(lock.provider, lock.account), lock.until - now) for lock in locks),
            ),
            queues=self._store.queue_depths,
            dropped=self._store.dropped,
            database_up=self._store.up,
            shared_state_up=None if self._shared is None else self._shared.up,
            config_revision=snapshot.revision,
            config_age_s=max(0.0, now - self._snapshots.checked_at),
            refusals={} if self._limits is None else dict(self._limits.refusals),
            budgets=() if self._limits is None else tuple(self._limits.budgets_left()),
        )

    def page(self) -> dict[str, object]:
        """Return the body of ``GET /api/status``."""
        now = self._clock.now()
        state = self._health.state
        return {
            "circuits": [
                {"provider": c.provider, "model": c.model, "state": c.state.value, "until": c.until}
                for c in machine.circuits(state, now)
            ],
            "cooldowns": [
                {
                    "provider": lock.provider,
                    "account": self._name(lock.provider, lock.account),
                    "model": lock.model,
                    "class": str(lock.error_class),
                    "until": lock.until,
                    "soft": lock.soft,
                }
                for lock in machine.cooldowns(state, now)
            ],
            "accounts": self._accounts(),
            "queues": dict(self._store.queue_depths),
            "shared_state": None
            if self._shared is None
            else {"up": self._shared.up, "failures": self._shared.failures},
            "key_limits": None if self._limits is None else self._limits.page(),
            "catalog": None if self._catalogue is None else self._catalogue.page(),
            "config": {
                "revision": self._snapshots.current.revision,
                "loaded_at": self._snapshots.current.loaded_at,
                "error": self._snapshots.error,
                "warnings": list(self._snapshots.current.warnings),
            },
        }

    def _name(self, provider_id: str, account: str) -> str:
        """Return the name of an account by its id (``<provider>#<name>``); ``*`` stays."""
        provider = self._snapshots.current.providers.get(provider_id)
        if provider is not None and provider.keyless and account == (keyless := synthetic(provider)).id:
            return keyless.name
        return account.partition("#")[2] or account

    def _accounts(self) -> list[dict[str, object]]:
        return [{"provider": p.id, "account": a.name, "inflight": self._desk.inflight(a)} for p, a in self._pairs()]

    def _pairs(self) -> Iterator[tuple[Provider, Account]]:
        """Yield each configured provider with each of its accounts."""
        for provider in self._snapshots.current.providers.values():
            accounts = provider.accounts or ((synthetic(provider),) if provider.keyless else ())
            yield from ((provider, account) for account in accounts)

    def dependencies(self) -> Mapping[str, str]:
        """Return what the gateway leans on, and ``ok`` or what is wrong."""
        shared = {} if self._shared is None else {"shared_state": "ok" if self._shared.up else "down"}
        return {
            "database": "ok" if self._store.up else "down",
            "config": "ok" if self._snapshots.error is None else "the last reload was refused",
            **shared,
        }
