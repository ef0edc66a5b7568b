from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

import pytest

from tests.fake_store import FakeControl
from tests.fakes import FakeClock, FakeEventLog, FakeObserver, settle
from tests.proxy.rig import ALPHA, snapshot
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import StoreUnavailable
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.orders import CLEAR, RECENT_S, Orders
from troyproxy.proxy.policy import health_policy
from troyproxy.proxy.snapshots import POLL_S, SnapshotKeeper
from troyproxy.resilience.classes import ErrorClass, Scope
from troyproxy.resilience.events import CircuitClosed, Cleared, Event, Failed, to_record
from troyproxy.resilience.health import breaker_of
from troyproxy.settings.values import Settings

pytestmark = pytest.mark.anyio


class Process:
    """One process of several on one control row."""

    def __init__(self, control: FakeControl, clock: FakeClock) -> None:
        self.clock, self.log = clock, FakeEventLog()
        policy = health_policy(Settings())
        self.health = HealthKeeper(clock=clock, log=self.log, observer=FakeObserver(), policy=policy, rng=Random(7))
        self.orders = Orders(control, self.health, clock)
        self.keeper = SnapshotKeeper(self._build, control=control, clock=clock, on_change=(), orders=self.orders)

    async def _build(self, revision: int) -> Snapshot:
        return replace(snapshot(ALPHA), revision=revision)

    def lock(self) -> None:
        """Learn that the account must rest."""
        now = self.clock.now()
        self.health.record(
            Failed(
                at=now,
                provider="alpha",
                model="m1",
                account="alpha#A",
                error_class=ErrorClass.RATE,
                hint_s=60.0,
                cooldown_s=60.0,
                soft=False,
                scope=Scope.PAIR,
                started_at=now,
            )
        )

    def fail(self) -> None:
        """Count a failure of the target."""
        now, transient = self.clock.now(), ErrorClass.TRANSIENT
        failed = Failed(now, "alpha", "m1", "alpha#A", transient, None, None, False, Scope.NONE, now, counts=True)
        self.health.record(failed)

    @property
    def counted(self) -> int:
        """How many failures of the target are counted."""
        return sum(bucket.failed for bucket in breaker_of(self.health.state, "alpha", "m1").window)

    @property
    def locked(self) -> bool:
        return self.health.cooldown("alpha", "alpha#A", "m1") is not None


@pytest.fixture
def control() -> FakeControl:
    return FakeControl()


@pytest.fixture
def processes(control: FakeControl) -> list[Process]:
    clock = FakeClock(manual=True)
    return [Process(control, clock) for _ in range(3)]


async def follow(tasks: asyncio.TaskGroup, processes: list[Process]) -> list[asyncio.Task[None]]:
    following = [tasks.create_task(process.keeper.follow()) for process in processes]
    await settle()
    return following


async def test_a_clearing_reaches_every_process_at_its_next_look(processes: list[Process]) -> None:
    async with asyncio.TaskGroup() as tasks:
        following = await follow(tasks, processes)
        for process in processes:
            process.lock()
        await processes[0].orders.clear(processes[0].health.clear("alpha"))
        await processes[0].clock.advance(POLL_S)
        assert [process.locked for process in processes] == [False, False, False]
        for task in following:
            task.cancel()


async def test_what_was_locked_after_the_clearing_stays(control: FakeControl, processes: list[Process]) -> None:
    giver, other, _ = processes
    await other.orders.begin()
    revision = await giver.orders.clear(giver.health.clear())
    other.clock.move(0.2)
    other.lock()
    await other.orders.catch_up(revision)
    assert other.locked


async def test_an_order_is_carried_out_once(processes: list[Process]) -> None:
    giver, other, _ = processes
    await other.orders.begin()
    other.lock()
    cleared = giver.health.clear()
    for _ in range(5):
        revision = await giver.orders.clear(cleared)
    await other.orders.catch_up(revision)
    assert not other.locked
    other.lock()
    await other.orders.catch_up(revision)
    assert other.locked


async def test_the_process_that_cleared_does_not_clear_again_when_it_reads_its_own_order(
    processes: list[Process],
) -> None:
    giver, heard = processes[0], list[Event]()
    await giver.orders.begin()
    giver.health.watch(heard.append)
    revision = await giver.orders.clear(giver.health.clear())
    giver.fail()
    await giver.orders.catch_up(revision)
    assert (giver.counted, [type(event) for event in heard]) == (1, [Cleared, Failed])


async def test_what_was_counted_elsewhere_after_the_clearing_stays(processes: list[Process]) -> None:
    giver, other, _ = processes
    await other.orders.begin()
    other.fail()
    revision = await giver.orders.clear(giver.health.clear())
    other.clock.move(1.5)
    other.fail()
    await other.orders.catch_up(revision)
    assert other.counted == 1


async def test_a_clearing_that_the_other_instances_told_of_already_is_carried_out_once(
    processes: list[Process],
) -> None:
    giver, other, _ = processes
    heard = list[Event]()
    await other.orders.begin()
    other.health.watch(heard.append)
    cleared = giver.health.clear()
    other.health.hear(cleared)
    await other.orders.catch_up(await giver.orders.clear(cleared))
    assert heard == [cleared]


async def test_what_was_ordered_just_before_the_start_is_carried_out_too(
    control: FakeControl, processes: list[Process]
) -> None:
    """Its journal row may have been on its way while the starting process read the journal."""
    giver, starting, _ = processes
    starting.lock()
    for age_s in (RECENT_S + 1, RECENT_S - 1):
        control.now = starting.clock.now() - age_s
        revision = await giver.orders.clear(giver.health.clear())
    await starting.orders.catch_up(revision)
    assert not starting.locked


async def test_a_process_that_waited_for_the_database_hears_what_was_ordered_meanwhile(
    control: FakeControl, processes: list[Process]
) -> None:
    giver, waiting, _ = processes
    control.down = True
    with pytest.raises(StoreUnavailable):
        await waiting.orders.begin()
    waiting.lock()
    control.down, control.now = False, waiting.clock.now()
    revision = await giver.orders.clear(giver.health.clear())
    waiting.clock.move(600.0)
    await waiting.orders.catch_up(revision)
    assert not waiting.locked


async def test_an_order_from_before_the_start_is_left_alone(processes: list[Process]) -> None:
    giver, other, _ = processes
    other.lock()
    revision = await giver.orders.clear(giver.health.clear())
    await other.orders.catch_up(revision)
    assert other.locked


async def test_a_process_that_started_without_a_database_begins_with_its_return(
    control: FakeControl, processes: list[Process]
) -> None:
    process = processes[0]
    control.down = True
    async with asyncio.TaskGroup() as tasks:
        [task] = await follow(tasks, [process])
        await process.clock.advance(POLL_S)
        control.down = False
        await process.clock.advance(POLL_S)
        process.lock()
        await processes[1].orders.clear(processes[1].health.clear())
        await process.clock.advance(POLL_S)
        assert not process.locked
        task.cancel()


async def test_a_clearing_that_is_heard_is_not_journalled_again(processes: list[Process]) -> None:
    giver, other, _ = processes
    await other.orders.begin()
    await other.orders.catch_up(await giver.orders.clear(giver.health.clear()))
    assert (len(giver.log.events), other.log.events) == (1, [])


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("reload", {}),
        ("dance", {"v": 1}),
        (CLEAR, {"v": 99, "type": "cleared"}),
        (CLEAR, to_record(CircuitClosed(1.0, "alpha", "m1"))),
        (CLEAR, to_record(Cleared(4_000_000_000.0))),
    ],
)
async def test_what_is_no_order_to_clear_clears_nothing(
    control: FakeControl, processes: list[Process], kind: str, payload: dict[str, object]
) -> None:
    process = processes[0]
    await process.orders.begin()
    process.lock()
    await process.orders.catch_up(await control.publish(kind, payload))
    assert process.locked


async def test_a_reload_moves_the_control_row(control: FakeControl, processes: list[Process]) -> None:
    before = await control.revision()
    assert await processes[0].orders.reload() == before + 1 == await control.revision()
