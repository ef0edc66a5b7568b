"""Brings a write into force in this process before it is answered; the others see it within a second."""

from __future__ import annotations

from typing import Final

from troyproxy.api.services import Services
from troyproxy.errors import ConfigError, StoreUnavailable

NOT_YET: Final = "stored, but not in force yet"


class InForce:
    """Reloads the snapshot after a write."""

    def __init__(self, services: Services) -> None:
        self._store, self._snapshots = services.store, services.snapshots

    async def bring(self) -> list[str]:
        """Return what keeps it from being in force, as a warning: it is stored, whatever the file says by now."""
        try:
            await self._snapshots.reload(await self._store.control.revision())
        except (ConfigError, StoreUnavailable) as exc:
            return [f"{NOT_YET}: {exc}"]
        return []


def file_of(services: Services) -> str:
    """Return what errors call the config file."""
    path = services.configuration.path
    return f"the config file {path.name}" if path is not None else "the configuration"
