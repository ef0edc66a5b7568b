"""Fakes of the database's seams in `troyproxy/ports/`, in the order of that page; the others are in `fakes`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from tests.fake_providers import FakeConnections, FakeProviders
from tests.fake_usage import FakeRequests, FakeStatistics
from tests.fakes import FakeEventLog, FakeUsageSink
from troyproxy.accounting.quota_board import DayUse
from troyproxy.catalog.combos import Combo
from troyproxy.catalog.keys import Key
from troyproxy.catalog.models import Model, Override
from troyproxy.errors import Conflict, NotFound, PreconditionFailed, StoreUnavailable
from troyproxy.ports import ControlEvent
from troyproxy.resilience.events import Event

_T = TypeVar("_T")


class FakeCombos:
    """Combos in memory."""

    def __init__(self) -> None:
        self.held: dict[str, Combo] = {}

    async def list(self) -> list[Combo]:
        return list(self.held.values())

    async def add(self, combo: Combo) -> Combo:
        taken = {name.lower() for held in self.held.values() for name in (held.id, held.name)}
        if {combo.id.lower(), combo.name.lower()} & taken:
            raise Conflict("taken")
        self.held[combo.id] = combo
        return combo

    async def replace(self, combo: Combo, *, expected_version: int | None = None) -> Combo:
        stored = _found(self.held, combo.id)
        if expected_version not in {None, stored.version}:
            raise PreconditionFailed("changed")
        self.held[combo.id] = replace(combo, version=stored.version + 1)
        return self.held[combo.id]

    async def remove(self, combo_id: str) -> None:
        _found(self.held, combo_id)
        del self.held[combo_id]


class FakeKeys:
    """Client keys in memory; `lookups` counts what would be database work. *down*: the database cannot be read."""

    def __init__(self, *keys: Key) -> None:
        self.held = {key.id: key for key in keys}
        self.lookups = 0
        self.down = False

    async def list(self) -> list[Key]:
        return list(self.held.values())

    async def find(self, digest: bytes) -> Key | None:
        self.lookups += 1
        if self.down:
            raise StoreUnavailable("down")
        return next((key for key in self.held.values() if digest in {key.digest, key.previous_digest}), None)

    async def add(self, key: Key) -> Key:
        if any(held.name == key.name for held in self.held.values()):
            raise Conflict("taken")
        self.held[key.id] = replace(key, version=1)
        return self.held[key.id]

    async def replace(self, key: Key, *, expected_version: int | None = None) -> Key:
        stored = self._changeable(key.id, expected_version)
        return self._put(
            replace(
                key,
                digest=stored.digest,
                previous_digest=stored.previous_digest,
                previous_until=stored.previous_until,
                created_at=stored.created_at,
                version=stored.version,
            )
        )

    async def rotate(
        self, key_id: str, digest: bytes, *, old_until: float | None = None, expected_version: int | None = None
    ) -> Key:
        stored = self._changeable(key_id, expected_version)
        old = None if old_until is None else stored.digest
        return self._put(replace(stored, digest=digest, previous_digest=old, previous_until=old_until))

    async def revoke(self, key_id: str, *, at: float) -> Key:
        stored = _found(self.held, key_id)
        return self._put(replace(stored, revoked_at=stored.revoked_at or at))

    async def remove(self, key_id: str) -> None:
        _found(self.held, key_id)
        del self.held[key_id]

    def _changeable(self, key_id: str, expected_version: int | None) -> Key:
        stored = _found(self.held, key_id)
        if expected_version not in {None, stored.version}:
            raise PreconditionFailed("changed")
        if stored.revoked_at is not None:
            raise Conflict("revoked")
        return stored

    def _put(self, key: Key) -> Key:
        self.held[key.id] = replace(key, version=key.version + 1)
        return self.held[key.id]


class FakeModels:
    """Overrides in memory."""

    def __init__(self) -> None:
        self.held: dict[str, Override] = {}

    async def list(self) -> dict[str, Model]:
        return {spec: override.model for spec, override in self.held.items()}

    async def entries(self) -> Sequence[Override]:
        return [override for _, override in sorted(self.held.items())]

    async def add(self, override: Override) -> Override:
        if override.spec in self.held:
            raise Conflict("taken")
        self.held[override.spec] = replace(override, version=1)
        return self.held[override.spec]

    async def replace(self, override: Override, *, expected_version: int | None = None) -> Override:
        stored = _found(self.held, override.spec)
        if expected_version not in {None, stored.version}:
            raise PreconditionFailed("changed")
        self.held[override.spec] = replace(override, version=stored.version + 1)
        return self.held[override.spec]

    async def remove(self, spec: str) -> None:
        _found(self.held, spec)
        del self.held[spec]


class FakeUsageSums:
    """What keys have spent: day → key id → USD. *down*: the database cannot be read."""

    def __init__(self) -> None:
        self.spent: dict[str, dict[str, float]] = {}
        self.used: dict[str, list[DayUse]] = {}
        self.down = False

    async def used_on(self, day: str) -> Sequence[DayUse]:
        if self.down:
            raise StoreUnavailable("down")
        return self.used.get(day, [])

    async def spent_since(self, day: str) -> Mapping[str, float]:
        if self.down:
            raise StoreUnavailable("down")
        sums: dict[str, float] = {}
        for each, keys in self.spent.items():
            for key_id, usd in keys.items() if each >= day else ():
                sums[key_id] = sums.get(key_id, 0.0) + usd
        return sums


class FakeControl:
    """The control row. *down*: the database cannot be read."""

    def __init__(self) -> None:
        self.at = 0
        self.down = False
        self.now = 0.0
        """When the next event is published: long ago, unless a test says otherwise."""
        self.events: list[ControlEvent] = []

    async def revision(self) -> int:
        if self.down:
            raise StoreUnavailable("down")
        return self.at

    async def bump(self) -> int:
        self.at += 1
        return self.at

    async def publish(self, kind: str, payload: Mapping[str, object]) -> int:
        if self.down:
            raise StoreUnavailable("down")
        self.events.append(ControlEvent(len(self.events) + 1, self.now, kind, payload))
        return await self.bump()

    async def newest(self, before: float) -> int:
        if self.down:
            raise StoreUnavailable("down")
        return max((event.id for event in self.events if event.at < before), default=0)

    async def since(self, event_id: int) -> list[ControlEvent]:
        return self.events[event_id : event_id + 2]


class FakeStore:
    """A database in memory."""

    def __init__(self, *earlier: Event) -> None:
        self.combos, self.connections, self.keys, self.models = (
            FakeCombos(),
            FakeConnections(),
            FakeKeys(),
            FakeModels(),
        )
        self.providers = FakeProviders(self.connections)
        self.events, self.usage, self.control = FakeEventLog(*earlier), FakeUsageSink(), FakeControl()
        self.sums = FakeUsageSums()
        self.requests, self.statistics = FakeRequests(self.usage), FakeStatistics()
        self.up = True
        self.queue_depths: Mapping[str, int] = {"events": 0, "usage": 0}
        self.dropped: Mapping[str, int] = {"events": 0, "usage": 0}
        self.running: list[str] = []
        """``start`` and ``stop``, as they came."""

    async def start(self) -> None:
        self.running.append("start")

    async def stop(self) -> None:
        self.running.append("stop")


def _found(held: Mapping[str, _T], name: str) -> _T:
    if name not in held:
        raise NotFound(name)
    return held[name]
