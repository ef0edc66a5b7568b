"""Fakes of the database's seams in `troyproxy/ports/`, in the order of that page; the others are in `fakes`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from tests.fakes import FakeEventLog, FakeUsageSink
from troyproxy.accounting.records import UsageRow
from troyproxy.catalog.combos import Combo
from troyproxy.catalog.keys import Key
from troyproxy.catalog.models import Model
from troyproxy.catalog.providers import Account
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


class FakeConnections:
    """Accounts in memory. *down*: the database cannot be read."""

    def __init__(self) -> None:
        self.held: dict[str, Account] = {}
        self.down = False

    async def list(self) -> list[Account]:
        if self.down:
            raise StoreUnavailable("down")
        return list(self.held.values())

    async def add(self, account: Account) -> Account:
        if account.id in self.held:
            raise Conflict("taken")
        self.held[account.id] = account
        return account

    async def remove(self, account_id: str) -> None:
        _found(self.held, account_id)
        del self.held[account_id]


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
        return next((key for key in self.held.values() if key.digest == digest), None)

    async def add(self, key: Key) -> Key:
        if any(held.name == key.name for held in self.held.values()):
            raise Conflict("taken")
        self.held[key.id] = key
        return key

    async def revoke(self, key_id: str, *, at: float) -> Key:
        self.held[key_id] = replace(_found(self.held, key_id), revoked_at=at)
        return self.held[key_id]


class FakeModels:
    """Overrides in memory."""

    def __init__(self) -> None:
        self.held: dict[str, Model] = {}

    async def list(self) -> dict[str, Model]:
        return dict(self.held)

    async def put(self, spec: str, model: Model) -> None:
        self.held[spec] = model

    async def remove(self, spec: str) -> None:
        _found(self.held, spec)
        del self.held[spec]


class FakeRequests:
    """Usage rows, read back from a sink."""

    def __init__(self, sink: FakeUsageSink) -> None:
        self._sink = sink

    async def find(self, request_id: str) -> UsageRow | None:
        return next((row for row in self._sink.rows if row.request_id == request_id), None)

    async def recent(self, *, limit: int = 50) -> list[UsageRow]:
        return self._sink.rows[: -limit - 1 : -1]


class FakeControl:
    """The control row. *down*: the database cannot be read."""

    def __init__(self) -> None:
        self.at = 0
        self.down = False
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
        self.events.append(ControlEvent(len(self.events) + 1, 0.0, kind, payload))
        return await self.bump()

    async def newest(self) -> int:
        if self.down:
            raise StoreUnavailable("down")
        return len(self.events)

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
        self.events, self.usage, self.control = FakeEventLog(*earlier), FakeUsageSink(), FakeControl()
        self.requests = FakeRequests(self.usage)
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
