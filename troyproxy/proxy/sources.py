"""Where a snapshot comes from: the configuration, read again at each reload, and what the database adds to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import StoreUnavailable
from troyproxy.ports import Clock, Store
from troyproxy.proxy.life import UNREAD
from troyproxy.settings.assemble import Stored, assemble
from troyproxy.settings.catalogue import ByVendor, Catalogue, models_dev_path
from troyproxy.settings.load import Configuration

Load = Callable[[], Configuration]


class SnapshotSource:
    """Builds snapshots: the first from *first*, later ones from *load_again*. *ours* is what the caller adds itself."""

    def __init__(
        self,
        first: Configuration,
        load_again: Load,
        *,
        store: Store,
        clock: Clock,
        ours: Stored | None = None,
        fetched: Callable[[], ByVendor] | None = None,
    ) -> None:
        """*fetched* returns the models of the fetched catalogue, if one is fetched."""
        self._first: Configuration | None = first
        self._load, self._store, self._clock = load_again, store, clock
        self._ours = ours or Stored()
        self._fetched = fetched

    async def build(self, revision: int) -> Snapshot:
        """Return the snapshot at *revision* of the control row. Raises ConfigError, StoreUnavailable.

        With the database down at the start, the caller's part is all there is until it is back.
        """
        starting, configuration = self._first is not None, self._first or self._load()
        try:
            stored = await self._stored()
        except StoreUnavailable:
            if not starting:
                raise
            stored, revision = self._ours, UNREAD
        catalogue = Catalogue(configuration.builtins, models_dev_path(), self._fetched()) if self._fetched else None
        snapshot = assemble(configuration, stored, now=self._clock.now(), revision=revision, catalogue=catalogue)
        self._first = None
        return snapshot

    async def _stored(self) -> Stored:
        store = self._store
        return replace(
            self._ours,
            providers=await store.providers.list(),
            accounts=await store.connections.list(),
            combos=await store.combos.list(),
            overrides=await store.models.list(),
        )
