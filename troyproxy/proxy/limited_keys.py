"""Tells the keeper of limits what became of keys that were written while nobody used them.

A request brings its key's limits along; the metrics of budgets must not wait for one. What is written is rare, so that
all keys are read anew after it, in the background. No request waits, and a database that is down is asked again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import StoreUnavailable
from troyproxy.ports import Clock, KeyRepository
from troyproxy.proxy.limits import LimitKeeper

LOOK_S: Final = 1.0


class LimitedKeys:
    """The keys of *snapshot* and of the database, for *keeper*."""

    def __init__(
        self, keeper: LimitKeeper, keys: KeyRepository, snapshot: Callable[[], Snapshot], clock: Clock
    ) -> None:
        self._keeper, self._keys, self._snapshot, self._clock = keeper, keys, snapshot, clock
        self._written = False

    def written(self) -> None:
        """Keys were written: read them soon."""
        self._written = True

    async def follow(self) -> None:
        """Read them after every change until cancelled."""
        while True:
            await self._clock.sleep(LOOK_S)
            if self._written:
                await self._read()

    async def _read(self) -> None:
        self._written = False
        try:
            stored = await self._keys.list()
        except StoreUnavailable:
            self._written = True
        else:
            self._keeper.renew([*self._snapshot().keys.values(), *stored])
