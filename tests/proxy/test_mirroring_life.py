"""The mirror's life: a place that is down, hangs, comes back or is empty; start, stop and cancellation."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.fakes import settle
from tests.proxy.instances import Instance, eventually
from troyproxy.errors import StoreUnavailable
from troyproxy.ports import News
from troyproxy.proxy.mirroring import Pace
from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.events import Locked

pytestmark = pytest.mark.anyio


async def test_what_is_missing_in_the_place_lifts_nothing_and_is_written_again() -> None:
    async with Instance(pace=Pace()).running() as one:
        one.fail(60.0)
        await eventually(lambda: one.mirror.kept)
        kept = set(one.mirror.kept)
        one.mirror.kept.clear()
        await eventually(lambda: one.mirror.kept, within_s=2.5)
        assert (one.mirror.kept, one.until() is not None) == (kept, True)


async def test_a_place_that_is_down_at_the_start_stops_nothing() -> None:
    first = Instance()
    first.mirror.down = True
    async with first.running() as one:
        assert (one.mirroring.up, one.mirroring.failures) == (False, 1)
        one.fail(60.0)
        assert one.until() is not None
        one.mirror.down = False
        await eventually(lambda: one.mirroring.up, within_s=2.5)
        assert [event.until for event in one.mirror.kept if isinstance(event, Locked)] == [one.until()]


async def test_a_place_that_goes_down_leaves_each_its_own_state_and_gets_all_of_it_afterwards() -> None:
    async with Instance(pace=Pace()).running() as one, Instance(one, Pace()).running() as other:
        one.fail(600.0)
        await eventually(other.until)
        one.mirror.down = other.mirror.down = True
        await eventually(lambda: not (one.mirroring.up or other.mirroring.up), within_s=2.5)
        one.mirror.kept.clear()
        one.fail(600.0, model="m2")
        other.fail(600.0, model="m3")
        await asyncio.sleep(10)
        assert [other.until("m1") is not None, other.until("m2"), one.until("m3")] == [True, None, None]
        one.mirror.down = other.mirror.down = False
        await eventually(lambda: other.until("m2") and one.until("m3"), within_s=4.5)
        assert {event.model for event in one.mirror.kept if isinstance(event, Locked)} == {"m1", "m2", "m3"}


async def test_an_outage_is_said_once_and_its_attempts_are_spaced(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "troyproxy.shared")
    async with Instance(pace=Pace()).running() as one:
        for _ in range(2):
            one.mirror.down = True
            await asyncio.sleep(60)
            one.mirror.down = False
            await eventually(lambda: one.mirroring.up, within_s=2.5)
        assert 40 < one.mirroring.failures < 90
    assert [record.getMessage() for record in caplog.records] == [
        "down; the state of this instance decides alone",
        "the shared state is back",
    ] * 2


async def test_a_storm_becomes_a_few_writes() -> None:
    async with Instance().running() as one:
        for n in range(100):
            one.fail(60.0 + n)
            await asyncio.sleep(0.001)
        await asyncio.sleep(1)
        assert len(one.mirror.told) <= 5
        assert len(one.mirror.kept) == 1


async def test_what_concerns_nobody_else_is_not_pushed() -> None:
    async with Instance().running() as one:
        one.health.succeeded(one.target())
        one.fail(None, ErrorClass.REQUEST)
        await asyncio.sleep(1)
        assert one.mirror.told == []


async def test_a_place_that_does_not_answer_delays_a_start_by_no_more_than_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = Instance()

    async def hang() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(one.mirror, "open", hang)
    before = one.clock.monotonic()
    await one.mirroring.join()
    assert (one.clock.monotonic() - before, one.mirroring.up) == (Pace().join_s, False)


async def test_a_stop_says_what_is_new_and_disconnects() -> None:
    first = Instance()
    async with first.running() as one:
        await asyncio.sleep(1)
        one.fail(60.0)
    assert (len(one.mirror.kept), one.mirror.closed, one.mirroring.up) == (1, 1, False)


async def test_a_stop_disconnects_from_a_place_that_is_down() -> None:
    one = Instance()
    await one.mirroring.join()
    one.fail(60.0)
    one.mirror.down = True
    await one.mirroring.leave()
    assert (one.mirror.closed, one.mirroring.failures, one.mirroring.up) == (1, 1, False)


async def test_it_may_be_started_again() -> None:
    one = Instance()
    for n in (1, 2):
        async with one.running():
            one.fail(60.0 * n)
            await eventually(lambda: one.mirror.told)
            one.mirror.told.clear()
    assert (one.mirror.opened, one.mirror.closed) == (2, 2)


@pytest.mark.parametrize("moment", range(12))
async def test_it_ends_when_it_is_cancelled_at_whatever_moment(moment: int) -> None:
    one = Instance(pace=Pace(read_s=0.02))
    await one.mirroring.join()
    task = asyncio.get_running_loop().create_task(one.mirroring.follow())
    one.fail(60.0)
    await settle(moment)
    task.cancel()
    one.mirror.down = True  # and fails while it is being cancelled
    await asyncio.wait({task}, timeout=30)
    assert task.cancelled()


async def test_it_ends_when_its_last_failure_hides_that_it_was_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Instance()

    async def fail_when_cancelled() -> News:
        try:
            await asyncio.Event().wait()
        finally:
            raise StoreUnavailable("broken off")

    monkeypatch.setattr(one.mirror, "listen", fail_when_cancelled)
    await one.mirroring.join()
    task = asyncio.get_running_loop().create_task(one.mirroring.follow())
    await settle()
    task.cancel()
    await asyncio.wait({task}, timeout=30)
    assert task.cancelled()
