"""What an operator does: ask why, lift locks, reload the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from troyproxy.api.admin.acting_schemas import CHAT, CLEARED, EXPLANATION, LOCKS, RELOADED, ROUTING
from troyproxy.api.admin.explaining import FAILS, KEY, explained
from troyproxy.api.admin.operation import Operation
from troyproxy.api.admin.resource import MIB, AdminRequest, Answer, invalid
from troyproxy.api.services import Services
from troyproxy.catalog.providers import Provider
from troyproxy.errors import ConfigError, StoreUnavailable, ValidationFailed
from troyproxy.proxy.accounts import synthetic
from troyproxy.resilience import health
from troyproxy.resilience.breaker import CircuitState
from troyproxy.resilience.events import Cleared

LONGEST_REQUEST: Final = 32 * MIB
CLEARED_BY: Final = ("provider", "account", "model")


class Acting:
    """The handlers that are no resource of their own."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def operations(self) -> list[Operation]:
        """Return what can be done."""
        return [
            Operation(
                "POST",
                "/api/explain",
                self.explain,
                "actions",
                "Why a chat request would go where it goes; nothing is called.",
                {200: EXPLANATION},
                takes=CHAT,
                headers=ROUTING,
                query=(KEY,),
                fails=FAILS,
            ),
            Operation(
                "POST",
                "/api/cooldowns/clear",
                self.clear_cooldowns,
                "actions",
                "Lift cooldowns and circuits.",
                {200: CLEARED},
                takes=LOCKS,
            ),
            Operation(
                "POST",
                "/api/config/reload",
                self.reload,
                "actions",
                "Read the configuration again.",
                {200: RELOADED},
                fails=(StoreUnavailable,),
            ),
        ]

    async def explain(self, request: AdminRequest) -> Answer:
        """``POST /api/explain``: a chat request as a client would send it, with its ``x-troy-*`` headers."""
        return await explained(self._services, request, await request.body(limit=LONGEST_REQUEST))

    async def clear_cooldowns(self, request: AdminRequest) -> Answer:
        """``POST /api/cooldowns/clear``: lift what matches; what is not given matches all."""
        wanted = _texts(await request.payload())
        provider = self._provider(wanted.get("provider"))
        account = _account_id(provider, wanted.get("account"))
        model = wanted.get("model")
        before = self._locks()
        cleared = self._services.health.clear(None if provider is None else provider.id, account, model)
        after = self._locks()
        told = await self._told(cleared)
        return Answer({"cooldowns": before[0] - after[0], "circuits": before[1] - after[1], "everywhere": told})

    async def _told(self, cleared: Cleared) -> bool:
        """Tell the other processes; False when the database cannot be written, and the clearing is for here only."""
        try:
            await self._services.orders.clear(cleared)
        except StoreUnavailable:
            return False
        return True

    async def reload(self, request: AdminRequest) -> Answer:
        """``POST /api/config/reload``: valid, it is swapped in whole, here and elsewhere; else the old one stays."""
        del request
        control, snapshots = self._services.store.control, self._services.snapshots
        try:
            # One ahead, as the row will be: otherwise this process would load it twice.
            snapshot = await snapshots.reload(await control.revision() + 1)
        except ConfigError as exc:
            details = exc.details or [{"field": "", "message": str(exc)}]
            raise ValidationFailed(str(exc), details=details) from exc
        return Answer({"revision": await self._services.orders.reload(), "warnings": list(snapshot.warnings)})

    def _provider(self, name: str | None) -> Provider | None:
        if name is None:
            return None
        provider = self._services.snapshots.current.provider(name)
        if provider is None:
            raise invalid("provider", "names no configured provider")
        return provider

    def _locks(self) -> tuple[int, int]:
        state, now = self._services.health.state, self._services.clock.now()
        open_now = [circuit for circuit in health.circuits(state, now) if circuit.state is not CircuitState.CLOSED]
        return len(health.cooldowns(state, now)), len(open_now)


def _texts(raw: Mapping[str, object]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in raw.items():
        if key not in CLEARED_BY:
            raise invalid(key, f"is unknown; allowed: {', '.join(CLEARED_BY)}")
        if value is not None and not isinstance(value, str):
            raise invalid(key, "must be a text or null")
        if value is not None:
            found[key] = value
    return found


def _account_id(provider: Provider | None, name: str | None) -> str | None:
    if name is None:
        return None
    if provider is None:
        raise invalid("account", "needs the provider too")
    known = (*provider.accounts, synthetic(provider))
    account = next((account for account in known if name in {account.name, account.id}), None)
    if account is None:
        raise invalid("account", f"names no account of {provider.id}")
    return account.id
