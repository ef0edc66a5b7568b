from __future__ import annotations

import asyncio
import logging
from random import Random

import pytest

from tests.fake_store import FakeStore
from tests.fakes import FakeClock, FakeObserver, FakeUpstream, settle
from tests.proxy.rig import ALPHA, snapshot
from troyproxy.catalog.snapshot import Snapshot, build
from troyproxy.errors import ConfigError, StoreUnavailable
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.life import UNREAD, Life
from troyproxy.proxy.snapshots import SnapshotKeeper
from troyproxy.resilience.events import CircuitOpened, Event
from troyproxy.resilience.health import HealthPolicy

pytestmark = pytest.mark.anyio


class House:
    """A life and what it owns."""

    def __init__(self, store: FakeStore | None = None) -> None:
        clock = FakeClock()
        self.store, self.upstream = store or FakeStore(), FakeUpstream()
        self.error: ConfigError | None = None
        self.working = 0
        self.bug = False
        self.snapshots = SnapshotKeeper(self._build, control=self.store.control, clock=clock, on_change=())
        self.health = HealthKeeper(
            clock=clock, log=self.store.events, observer=FakeObserver(), policy=HealthPolicy(), rng=Random(7)
        )
        self.life = Life(
            store=self.store,
            snapshots=self.snapshots,
            health=self.health,
            upstream=self.upstream,
            background=[self._work],
        )

    async def _build(self, revision: int) -> Snapshot:
        if self.error is not None:
            raise self.error
        return build(snapshot(ALPHA).providers.values(), revision=revision, warnings=["odd"])

    async def _work(self) -> None:
        self.working += 1
        try:
            if self.bug:
                raise ZeroDivisionError
            await asyncio.Event().wait()
        finally:
            self.working -= 1


@pytest.fixture
def house() -> House:
    return House()


async def test_a_start_brings_everything_up(house: House) -> None:
    await house.life.start()
    await settle()
    assert (house.life.started, house.store.running, house.working) == (True, ["start"], 1)
    await house.life.stop()


async def test_what_is_ordered_is_noted_before_the_journal_is_read(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    async def begin() -> None:
        done.append("orders")

    async def replay() -> list[Event]:
        done.append("journal")
        return []

    monkeypatch.setattr(house.snapshots, "begin", begin)
    monkeypatch.setattr(house.store.events, "replay", replay)
    await house.life.start()
    await house.life.stop()
    assert done[:2] == ["orders", "journal"]


async def test_starting_twice_at_once_starts_once(house: House) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(house.life.start())
        group.create_task(house.life.start())
    assert house.store.running == ["start"]
    await house.life.stop()


async def test_a_stop_takes_everything_down_in_reverse(house: House) -> None:
    await house.life.start()
    await settle()
    await house.life.stop()
    assert (house.life.started, house.working, house.upstream.closed, house.store.running) == (
        False,
        0,
        True,
        ["start", "stop"],
    )


async def test_stopping_twice_or_before_a_start_is_fine(house: House) -> None:
    await house.life.stop()
    await house.life.start()
    await house.life.stop()
    await house.life.stop()
    assert house.store.running == ["start", "stop"]


async def test_stopping_is_told_until_the_next_start(house: House) -> None:
    await house.life.start()
    await house.life.stop()
    stopped = house.life.stopping
    await house.life.start()
    assert (stopped, house.life.stopping) == (True, False)
    await house.life.stop()


async def test_a_wrong_configuration_undoes_what_was_started(house: House) -> None:
    house.error = ConfigError("typo")
    with pytest.raises(ConfigError):
        await house.life.start()
    assert (house.life.started, house.store.running, house.upstream.closed) == (False, ["start", "stop"], True)


async def test_the_warnings_of_the_configuration_are_logged(house: House, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        await house.life.start()
    assert caplog.messages == ["odd"]
    await house.life.stop()


async def test_a_database_that_is_down_does_not_stop_the_start(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def down() -> list[object]:
        raise StoreUnavailable("down")

    house.store.control.down = True
    monkeypatch.setattr(house.store.events, "replay", down)
    await house.life.start()
    assert house.snapshots.current.revision == UNREAD
    await house.life.stop()


async def test_a_later_start_without_the_database_goes_on_with_the_last_configuration(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(revision: int) -> Snapshot:
        raise StoreUnavailable(str(revision))

    await house.life.start()
    first = house.snapshots.current
    await house.life.stop()
    monkeypatch.setattr(house.snapshots, "_build", down)
    await house.life.start()
    assert (house.life.started, house.snapshots.current) == (True, first)
    await house.life.stop()


async def test_circuits_of_the_last_run_come_back_when_the_database_does(monkeypatch: pytest.MonkeyPatch) -> None:
    async def down() -> list[object]:
        raise StoreUnavailable("down")

    now = FakeClock().now()
    house = House(FakeStore(CircuitOpened(now - 1, "alpha", "m1", now + 29, 30.0)))
    with monkeypatch.context() as outage:
        outage.setattr(house.store.events, "replay", down)
        await house.life.start()
    before = house.health.circuit("alpha", "m1")
    await settle()
    assert (before, house.health.circuit("alpha", "m1")) == ("closed", "open")
    await house.life.stop()


async def test_circuits_of_the_last_run_come_back() -> None:
    now = FakeClock().now()
    house = House(FakeStore(CircuitOpened(now - 1, "alpha", "m1", now + 29, 30.0)))
    await house.life.start()
    assert house.health.circuit("alpha", "m1") == "open"
    await house.life.stop()


async def test_background_work_that_dies_of_a_bug_says_so_at_once(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.bug = True
    await house.life.start()
    await settle()
    assert caplog.messages[-1] == "background work has failed"
    await house.life.stop()


async def test_what_comes_first_is_done_before_it_is_started_and_before_the_background() -> None:
    house, order = House(), []

    async def first() -> None:
        order.append((house.life.started, house.working))

    house.life = Life(
        store=house.store,
        snapshots=house.snapshots,
        health=house.health,
        upstream=house.upstream,
        background=[house._work],
        first=[first],
    )
    await house.life.start()
    await settle()
    assert (order, house.working) == ([(False, 0)], 1)
    await house.life.stop()
