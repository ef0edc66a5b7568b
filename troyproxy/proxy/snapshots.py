"""Holds the one snapshot that new requests start with, and replaces it whole when the configuration moved.

An invalid configuration changes nothing: the last good snapshot stays and the error is kept for the status page. The
control row is polled twice a second, so that a write by another process is seen within a second, and its orders are
carried out (``orders.py``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import ConfigError, StoreUnavailable
from troyproxy.ports import Clock, Control
from troyproxy.proxy.accounts import synthetic
from troyproxy.proxy.orders import Orders

POLL_S: Final = 0.5
LOGGER: Final = logging.getLogger("troyproxy.config")

BuildSnapshot = Callable[[int], Awaitable[Snapshot]]
"""Takes the control revision; returns the snapshot. Raises ConfigError, StoreUnavailable."""
OnChange = Callable[[Snapshot, Snapshot], None]
"""Hears of a swap: the snapshot before and after."""


class SnapshotKeeper:
    """Owns the current snapshot of this process.

    *on_refused* hears of a configuration that is not valid: what is no part of it, client keys, may have moved all the
    same.
    """

    def __init__(
        self,
        build: BuildSnapshot,
        *,
        control: Control,
        clock: Clock,
        on_change: Sequence[OnChange],
        on_refused: Callable[[], None] | None = None,
        orders: Orders | None = None,
    ) -> None:
        self._build, self._control, self._clock, self._on_change = build, control, clock, tuple(on_change)
        self._on_refused, self._orders = on_refused, orders
        self._turn = asyncio.Lock()
        self.current = Snapshot()
        self.checked_at = 0.0
        """When the current snapshot was last found to be the newest, unix seconds; what is refused is newer."""
        self._refused: int | None = None
        self.error: str | None = None
        """Why the last reload was refused; None after a good one."""

    def tell(self, hear: OnChange) -> None:
        """Tell *hear* of every swap from now on, after those who were there before."""
        self._on_change = (*self._on_change, hear)

    async def reload(self, revision: int | None = None) -> Snapshot:
        """Build and swap in a new snapshot. Raises ConfigError, and then the old one stays."""
        async with self._turn:
            wanted = self.current.revision if revision is None else revision
            try:
                snapshot = await self._build(wanted)
            except ConfigError as exc:
                self.error = str(exc)
                if self._on_refused is not None:
                    self._on_refused()
                raise
            self.error = self._refused = None
            self.checked_at = self._clock.now()
            before, self.current = self.current, snapshot
            for hear in self._on_change:
                hear(before, snapshot)
            return snapshot

    async def begin(self) -> None:
        """Before the journal is read, note which orders are new from now on: none may fall between the two."""
        if self._orders is not None:
            with suppress(StoreUnavailable):
                await self._orders.begin()

    async def follow(self) -> None:
        """Poll the control row until cancelled. A database that is down changes nothing."""
        await self.begin()
        while True:
            await self._clock.sleep(POLL_S)
            await self.look()

    async def look(self) -> int | None:
        """Look at the control row now, catch up with it, and return its revision; None when it cannot be read."""
        try:
            revision = await self._control.revision()
            if self._orders is not None:
                await self._orders.catch_up(revision)
            await self._catch_up(revision)
        except StoreUnavailable as exc:
            LOGGER.debug("the control row cannot be read: %s", exc)
            return None
        return revision

    async def _catch_up(self, revision: int) -> None:
        """Reload if the control row moved; what was refused once is not tried again until it moves on."""
        if revision == self.current.revision and self.error is None:
            self.checked_at = self._clock.now()
        if revision in {self.current.revision, self._refused}:
            return
        try:
            await self.reload(revision)
        except ConfigError as exc:
            self._refused = revision
            LOGGER.warning("the changed configuration is not valid, the last good one stays: %s", exc)


def changed_accounts(before: Snapshot, after: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield (provider, account id) of accounts whose credential or base URL changed, and of those that are gone."""
    for provider in before.providers.values():
        now = after.providers.get(provider.id)
        kept = {account.id: account for account in now.accounts} if now is not None else {}
        moved = now is None or now.base_url != provider.base_url
        for account in provider.accounts or (synthetic(provider),):
            found = kept.get(account.id)
            gone = found is None and bool(provider.accounts)
            if moved or gone or (found is not None and found.api_key != account.api_key):
                yield provider.id, account.id


def changed_combos(before: Snapshot, after: Snapshot) -> Iterator[str]:
    """Yield the ids of combos that are others now, or gone."""
    now = {combo.id: combo for combo in after.combos.values()}
    return (combo.id for combo in before.combos.values() if now.get(combo.id) != combo)
