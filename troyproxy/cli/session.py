"""A gateway for the length of one command: the same configuration, database and demo mode as `serve`, no listener."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from troyproxy.api.gateway import Gateway
from troyproxy.api.services import Services
from troyproxy.app import Wiring, create_with_services, sql_store
from troyproxy.catalog.keys import Key
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.cli.configured import configured
from troyproxy.cli.demo_mode import nothing_configured
from troyproxy.proxy.combo_book import ComboBook
from troyproxy.proxy.key_book import KeyBook

T = TypeVar("T")

SOURCE: Final = "cli"
"""Who writes to the journal: not the running gateway."""


@dataclass(frozen=True, slots=True)
class Session:
    """What a command works with."""

    gateway: Gateway
    services: Services

    @property
    def snapshot(self) -> Snapshot:
        """What is configured now."""
        return self.services.snapshots.current

    @property
    def combos(self) -> ComboBook:
        """The combos, to read and to write."""
        return ComboBook(self.services.store, lambda: self.snapshot, file=self._file)

    @property
    def keys(self) -> KeyBook:
        """The client keys, to read and to write."""
        return KeyBook(self.services.store, lambda: self.snapshot, self.services.clock, file=self._file)

    @property
    def _file(self) -> str:
        path = self.services.configuration.path
        return path.name if path is not None else "the config file"


@asynccontextmanager
async def session(config: Path | None, *, keys: tuple[Key, ...] = ()) -> AsyncIterator[Session]:
    """Open a gateway. *keys* are accepted as client keys. Raises ConfigError."""
    found = configured(config)
    # The story of a request is wanted whole here, and asking takes a key, whatever clients get.
    configuration = replace(found, settings=replace(found.settings, expose="full", auth=True, trace=False))
    wiring = Wiring(keys=keys)
    wiring.store = store = sql_store(configuration.settings, wiring.clock, source=SOURCE)
    wiring.demo = await nothing_configured(configuration, store)
    gateway, services = create_with_services(configuration, wiring=wiring)
    async with gateway:
        yield Session(gateway, services)


def run_with(config: Path | None, work: Callable[[Session], Awaitable[T]], *, keys: tuple[Key, ...] = ()) -> T:
    """Open a session, do *work* in it, and return its result."""

    async def opened() -> T:
        async with session(config, keys=keys) as found:
            return await work(found)

    return run(opened())


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* in an event loop of its own."""
    return asyncio.run(work)
