"""Instances tell each other of their attempts, once a second; what cannot be told stays local."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.fake_attempts import FakeSharedAttempts
from tests.fakes import FakeClock, settle
from tests.proxy.planning import Desk
from tests.proxy.rig import ALPHA
from troyproxy.accounting.records import AttemptRecord
from troyproxy.proxy.measure_sharing import MeasureSharing
from troyproxy.proxy.outcome import Target
from troyproxy.routing.members import candidate_of

pytestmark = pytest.mark.anyio

KEY = ("alpha", "m1", "A")


class Instance:
    """One of several."""

    def __init__(self, clock: FakeClock, beside: Instance | None = None) -> None:
        self.clock, self.desk = clock, Desk(clock)
        self.shared: FakeSharedAttempts = FakeSharedAttempts(None if beside is None else beside.shared)
        self.sharing = MeasureSharing(self.shared, self.desk.measuring, clock)

    def attempt(self) -> None:
        target = Target(candidate_of(ALPHA, "m1"), ALPHA, ALPHA.accounts[0], self.clock.now())
        self.desk.measuring.began(target)
        record = AttemptRecord(*KEY, "ok", 200, target.started_at, 5.0)
        self.desk.measuring.ended(target, record, whole=True)

    @property
    def recent(self) -> int:
        self.clock.move(1.0)  # figures are good for a second
        return self.desk.measuring.statistics.measures(KEY, self.clock.now()).recent


@asynccontextmanager
async def running(*instances: Instance) -> AsyncIterator[None]:
    for instance in instances:
        await instance.sharing.join()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(instance.sharing.follow()) for instance in instances]
        await settle()
        yield
        for task in tasks:
            task.cancel()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(manual=True)


async def test_each_counts_what_the_other_did_and_its_own_once(clock: FakeClock) -> None:
    one = Instance(clock)
    other = Instance(clock, one)
    async with running(one, other):
        one.attempt()
        one.attempt()
        other.attempt()
        await clock.advance(1.0)
        await clock.advance(1.0)
        assert (one.recent, other.recent) == (3, 3)


async def test_a_start_waits_for_nobody_who_is_down(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    one = Instance(clock)
    one.shared.down = True
    async with running(one):
        one.attempt()
        await clock.advance(3.0)
        assert (one.sharing.up, one.recent) == (False, 1)
    assert caplog.text.count("measures by itself") == 1


async def test_after_an_outage_it_goes_on(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    one = Instance(clock)
    other = Instance(clock, one)
    async with running(one, other):
        one.shared.down = True
        other.attempt()
        await clock.advance(1.0)
        one.shared.down = False
        await clock.advance(1.0)
        await clock.advance(1.0)
        assert (one.recent, one.sharing.up, one.shared.opened) == (1, True, 2)
    assert "share what they measure again" in caplog.text


async def test_the_end_disconnects(clock: FakeClock) -> None:
    one = Instance(clock)
    async with running(one):
        pass
    assert (one.sharing.up, one.shared.closed) == (False, 1)
