"""Instances beside each other on one place in memory, in virtual time: what one learns, all honour."""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes import settle
from tests.proxy.instances import ACCOUNT, KEEP_S, Instance, eventually
from troyproxy.ports import News
from troyproxy.proxy import mirroring as module
from troyproxy.proxy.mirroring import Pace
from troyproxy.resilience.breaker import Admission, CircuitState
from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.events import CircuitOpened, Cleared, Locked
from troyproxy.resilience.health import HealthPolicy

pytestmark = pytest.mark.anyio


async def test_a_cooldown_set_by_one_is_honoured_by_all_within_a_second() -> None:
    async with Instance().running() as one, Instance(one).running() as other, Instance(one).running() as third:
        one.fail(60.0)
        await eventually(lambda: other.until() == third.until() == one.until())
        assert other.health.admission("alpha", "m1") is Admission.ADMIT


async def test_an_open_circuit_of_one_is_honoured_by_all_within_a_second() -> None:
    async with Instance().running() as one, Instance(one).running() as other:
        one.fail(None, ErrorClass.TRANSIENT)
        await eventually(lambda: other.circuit() is CircuitState.OPEN)
        assert other.health.admission("alpha", "m1") is Admission.DENY
        assert other.observer.of("circuit_changed") == [("alpha", "m1", "closed", "open")]


async def test_what_is_heard_is_not_journalled_here() -> None:
    async with Instance().running() as one, Instance(one).running() as other:
        one.fail(60.0)
        await eventually(other.until)
        assert other.log.events == []


async def test_a_newcomer_takes_over_what_is_known_before_its_first_request() -> None:
    async with Instance().running() as one:
        one.fail(60.0)
        one.fail(None, ErrorClass.TRANSIENT, "m1")
        await eventually(lambda: one.mirror.kept)
        newcomer = Instance(one)
        await newcomer.mirroring.join()
        assert (newcomer.until(), newcomer.circuit()) == (one.until(), CircuitState.OPEN)


async def test_what_was_known_outlives_who_set_it() -> None:
    first = Instance()
    async with first.running() as one:
        one.fail(60.0)
    async with Instance(first).running() as after:
        assert after.until() == first.until()


async def test_a_lost_message_is_made_good_by_the_next_full_read() -> None:
    async with Instance().running() as one, Instance(one, Pace()).running() as other:
        one.fail(60.0)
        await eventually(lambda: one.mirror.told)
        other.mirror.news = asyncio.Queue()
        await eventually(other.until, within_s=2.5)
        assert other.until() == one.until()


async def test_nobody_shortens_a_lock_set_elsewhere() -> None:
    async with Instance().running() as one, Instance(one).running() as other:
        one.fail(600.0)
        other.fail(5.0)
        await eventually(lambda: other.until() == one.until())
        assert (one.until() or 0) > one.clock.now() + 590


async def test_counts_and_levels_are_not_shared() -> None:
    async with (
        Instance(policy=HealthPolicy()).running() as one,
        Instance(one, policy=HealthPolicy()).running() as other,
    ):
        one.fail(None, ErrorClass.RATE)
        one.fail(None, ErrorClass.TRANSIENT)
        await eventually(other.until)
        assert not other.health.state.breakers
        assert not other.health.state.has_level("alpha", ACCOUNT, "m1")


async def test_a_clearing_lifts_the_lock_everywhere() -> None:
    async with Instance().running() as one, Instance(one, Pace()).running() as other, Instance(one).running() as third:
        one.fail(60.0)
        one.fail(None, ErrorClass.TRANSIENT)
        await eventually(lambda: other.until() and third.until())
        other.health.clear("alpha")
        await eventually(lambda: (one.until(), third.until()) == (None, None))
        assert {each.circuit() for each in (one, other, third)} == {CircuitState.CLOSED}
        await asyncio.sleep(5)
        assert [each.until() for each in (one, other, third)] == [None] * 3


async def test_a_clearing_that_is_heard_late_leaves_what_was_set_after_it() -> None:
    async with Instance().running() as one, Instance(one).running() as other:
        one.fail(60.0)
        await eventually(other.until)
        cleared_at = one.clock.now()
        await asyncio.sleep(1)
        other.fail(90.0)
        other.mirror.news.put_nowait(News((Cleared(cleared_at, "alpha"),)))
        await settle()
        assert other.until() == other.clock.now() + 90.0


async def test_a_clearing_that_is_heard_first_lifts_a_lock_that_is_heard_later() -> None:
    async with Instance().running() as one:
        now = one.clock.now()
        lock = Locked(now - 5, "alpha", ACCOUNT, "m1", now + 60, soft=False, error_class=ErrorClass.RATE)
        one.mirror.news.put_nowait(News((Cleared(now - 1, "alpha"),)))
        one.mirror.news.put_nowait(News((lock, CircuitOpened(now - 5, "alpha", "m1", now + 30, 30.0))))
        await settle()
        assert (one.until(), one.circuit()) == (None, CircuitState.CLOSED)


async def test_what_a_new_credential_lifts_here_does_not_come_back_from_the_others() -> None:
    async with Instance().running() as one, Instance(one, Pace()).running() as other:
        one.fail(60.0)
        await eventually(other.until)
        other.health.forget("alpha", ACCOUNT)
        await asyncio.sleep(10)
        assert (other.until(), one.until() is not None) == (None, True)


async def test_a_probe_that_succeeds_closes_the_circuit_everywhere() -> None:
    async with Instance().running() as one, Instance(one).running() as other:
        one.fail(None, ErrorClass.TRANSIENT)
        await eventually(lambda: other.circuit() is CircuitState.OPEN)
        await asyncio.sleep(31)
        assert (one.circuit(), other.circuit()) == (CircuitState.HALF_OPEN, CircuitState.HALF_OPEN)
        one.health.lease_probe(probe := one.target())
        assert other.health.admission("alpha", "m1") is Admission.PROBE  # each instance has a probe of its own
        one.health.succeeded(probe)
        await eventually(lambda: other.circuit() is CircuitState.CLOSED)
        assert other.observer.of("circuit_changed")[-1] == ("alpha", "m1", "half_open", "closed")


async def test_a_revision_is_told_and_the_control_row_looked_at() -> None:
    async with Instance().running() as one, Instance(one).running() as other:
        await one.snapshots.reload(await one.control.bump())
        await eventually(lambda: other.snapshots.current.revision == 1, within_s=0.2)
        assert [news.revision for news in one.mirror.told + other.mirror.told] == [1]


async def test_a_revision_told_before_it_is_committed_is_waited_for() -> None:
    async with Instance().running() as one, Instance(one).running() as other:
        await one.snapshots.reload(1)
        await asyncio.sleep(0.12)
        assert other.snapshots.current.revision == 0
        await one.control.bump()
        await eventually(lambda: other.snapshots.current.revision == 1, within_s=0.4)


async def test_a_revision_that_is_never_committed_is_looked_for_a_few_times() -> None:
    async with Instance().running() as one, Instance(one).running() as other:
        await one.snapshots.reload(1)
        await asyncio.sleep(5)
        assert (other.snapshots.current.revision, other.mirroring.up) == (0, True)


async def test_a_control_row_that_cannot_be_read_leaves_it_to_the_poll() -> None:
    async with Instance().running() as one, Instance(one).running() as other:
        other.control.down = True
        await one.snapshots.reload(1)
        await asyncio.sleep(1)
        assert (other.snapshots.current.revision, other.mirroring.up) == (0, True)


async def test_clearings_are_remembered_up_to_a_bound_and_for_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLEARINGS", 2)
    async with Instance(pace=Pace()).running() as one:
        for model in ("m1", "m1", "m2", "m3"):
            one.health.clear("alpha", model=model)
            await asyncio.sleep(0.1)
        await eventually(lambda: len(one.mirror.kept) == 2)
        assert {event.model for event in one.mirror.kept} == {"m2", "m3"}
        await asyncio.sleep(KEEP_S + 3)
        assert one.mirror.kept == set()
