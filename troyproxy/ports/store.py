"""The database as one value, and the control row that tells every process to reload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from troyproxy.ports.limits import UsageSums
from troyproxy.ports.observing import UsageSink
from troyproxy.ports.repositories import (
    ComboRepository,
    ConnectionRepository,
    KeyRepository,
    ModelRepository,
    ProviderRepository,
    RequestRepository,
)
from troyproxy.ports.state import EventLog
from troyproxy.ports.statistics import Statistics


@dataclass(frozen=True, slots=True)
class ControlEvent:
    """One thing that every process must do once: *kind* says what, *payload* on what. `id` grows."""

    id: int
    at: float
    kind: str
    payload: Mapping[str, object]


class Control(Protocol):
    """The control row that tells every process to reload, and what it must do besides."""

    async def revision(self) -> int: ...

    async def bump(self) -> int: ...

    async def publish(self, kind: str, payload: Mapping[str, object]) -> int:
        """Store an event for every process, bump the revision in the same transaction, and return the revision."""

    async def newest(self, before: float) -> int:
        """Return the id of the newest event that was published before a moment (unix seconds), 0 when there is none."""

    async def since(self, event_id: int) -> list[ControlEvent]:
        """Return the next events behind *event_id*, oldest first; a bounded number, so ask again until none is left."""


class Store(Protocol):
    """The database as one value: its repositories, journal and sink, started and stopped by the lifespan."""

    @property
    def combos(self) -> ComboRepository: ...

    @property
    def providers(self) -> ProviderRepository: ...

    @property
    def connections(self) -> ConnectionRepository: ...

    @property
    def keys(self) -> KeyRepository: ...

    @property
    def models(self) -> ModelRepository: ...

    @property
    def requests(self) -> RequestRepository: ...

    @property
    def statistics(self) -> Statistics: ...

    @property
    def sums(self) -> UsageSums: ...

    @property
    def control(self) -> Control: ...

    @property
    def events(self) -> EventLog: ...

    @property
    def usage(self) -> UsageSink: ...

    @property
    def up(self) -> bool:
        """Whether the last database operation of the writer succeeded."""

    @property
    def queue_depths(self) -> Mapping[str, int]: ...

    @property
    def dropped(self) -> Mapping[str, int]:
        """Rows dropped at the bound, per queue."""

    async def start(self) -> None:
        """Migrate where that is automatic, open the engine, start the writer."""

    async def stop(self) -> None:
        """Drain the queues, stop the writer, close the engine."""
