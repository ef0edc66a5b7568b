"""Who this process is among those that share a database."""

from __future__ import annotations

import platform

from troyproxy.settings.values import Settings


def instance_name(settings: Settings, worker: str | None = None) -> str:
    """Return the name in the journal: the machine's name and the port, and the *worker* where there are several.

    The same after a restart, and another for each replica, even where all of them listen on the same address.
    """
    name = f"{platform.node() or settings.host}:{settings.port}"
    return name if worker is None else f"{name}/{worker}"
