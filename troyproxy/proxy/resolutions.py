"""What names mean in the newest snapshot, each looked up once. How a name is read is `routing.names`."""

from __future__ import annotations

from typing import Final

from troyproxy.catalog.snapshot import Snapshot
from troyproxy.routing.names import Resolution, resolve

MOST: Final = 1_000
"""Names that are kept: clients choose them. Past that all are looked up anew."""
LONGEST: Final = 1_000
"""Characters of a name that is kept; what means something is shorter but for the blanks around it."""


class Resolutions:
    """The names that were asked for since the configuration changed."""

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._known: dict[str, Resolution] = {}

    def of(self, name: object, snapshot: Snapshot) -> Resolution:
        """Return what *name* means. Raises what `resolve` raises; a refusal is not kept."""
        if snapshot is not self._snapshot:
            self._snapshot, self._known = snapshot, {}
        found = self._known.get(name) if isinstance(name, str) else None
        return found or self._resolved(name, snapshot)

    def _resolved(self, name: object, snapshot: Snapshot) -> Resolution:
        found = resolve(name, snapshot)
        if len(found.asked) <= LONGEST:
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[found.asked] = found
        return found
