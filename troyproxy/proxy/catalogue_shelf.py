"""What is known of models besides the package's catalogue: the last good one fetched, in memory and on disk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from troyproxy.ports import Clock
from troyproxy.settings.builtin import Builtin
from troyproxy.settings.catalogue import NOTHING, ByVendor
from troyproxy.settings.catalogue_file import CatalogueFile, KeptCatalogue
from troyproxy.settings.fetched_catalogue import FetchedCatalogue, read_catalogue

LOGGER: Final = logging.getLogger("troyproxy.catalog")


class CatalogueShelf:
    """Snapshots take `models` from here. The file is read at the first look."""

    def __init__(self, file: CatalogueFile, builtins: Mapping[str, Builtin], clock: Clock) -> None:
        self._file, self._builtins, self._clock = file, builtins, clock
        self._looked = False
        self.kept: KeptCatalogue | None = None
        self.content = FetchedCatalogue()

    def models(self) -> ByVendor:
        """Return the fetched models by vendor, none before the first fetch."""
        if not self._looked:
            self._looked = True
            self._recall()
        return self.content.models if self.kept is not None else NOTHING

    def read(self, raw: bytes) -> FetchedCatalogue:
        """Return the catalogue in *raw*. Raises CatalogueRefused."""
        return read_catalogue(raw, self._builtins)

    def _recall(self) -> None:
        try:
            kept = self._file.read(self._clock.now())
            content = self.read(kept.unpacked()) if kept is not None else None
        except ValueError as exc:
            LOGGER.warning("%s is ignored: %s", self._file.path, exc)
            return
        if kept is not None and content is not None:
            self.kept, self.content = kept, content

    async def put(self, kept: KeptCatalogue, content: FetchedCatalogue) -> None:
        """Keep a good one, from now on in memory; a disk that refuses costs a fetch at the next start, no more."""
        self._looked, self.kept, self.content = True, kept, content
        try:
            await asyncio.to_thread(self._file.write, kept)
        except OSError as exc:
            LOGGER.warning("%s cannot be written (%s); the catalogue is kept in memory", self._file.path, exc.strerror)
