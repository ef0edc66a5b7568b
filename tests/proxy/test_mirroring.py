"""Instances beside each other on one place in memory, in virtual time: what one learns, all honour."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from random import Random

import pytest

from tests.fake_store import FakeControl
from tests.fakes import FakeEventLog, FakeObserver, FakeStateMirror, settle
from tests.proxy.rig import ALPHA, snapshot
from tests.virtual import LoopClock
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import StoreUnavailable
from troyproxy.ports import News
from troyproxy.proxy import mirroring as module
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.mirroring import Mirroring, Pace
from troyproxy.proxy.outcome import Target
from troyproxy.proxy.snapshots import SnapshotKeeper
from troyproxy.resilience.breaker import Admission, BreakerPolicy, CircuitState
from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.classify import Verdict
from troyproxy.resilience.events import CircuitOpened, Cleared, Locked
from troyproxy.resilience.health import HealthPolicy
from troyproxy.routing.members import candidate_of

pytestmark = pytest.mark.anyio
ACCOUNT = ALPHA.accounts[0].id
NEWS_ONLY = Pace(read_s=1e6)
KEEP_S = 5400.0


class Instance:
    """One gateway's state and its way to the others."""

    def __init__(
        self, beside: Instance | None = None, pace: Pace = NEWS_ONLY, policy: HealthPolicy | None = None
    ) -> None:
        self.clock, self.log, self.observer = LoopClock(), FakeEventLog(), FakeObserver()
        self.control: FakeControl = FakeControl() if beside is None else beside.control
        self.mirror: FakeStateMirror = FakeStateMirror(None if beside is None else beside.mirror)
        self.health = HealthKeeper(
            clock=self.clock,
            log=self.log,
            observer=self.observer,
            policy=policy or HealthPolicy(breaker=BreakerPolicy(failures=1)),
            rng=Random(7),
        )
        self.snapshots = SnapshotKeeper(self._build, control=self.control, clock=self.clock, on_change=())
        self.mirroring = Mirroring(
            self.mirror, health=self.health, snapshots=self.snapshots, clock=self.clock, keep_s=KEEP_S, pace=pace
        )

    async def _build(self, revision: int) -> Snapshot:
        return replace(snapshot(ALPHA), revision=revision, loaded_at=self.clock.now())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Instance]:
        await self.snapshots.reload(await self.control.revision())
        await self.mirroring.join()
        task = asyncio.get_running_loop().create_task(self.mirroring.follow())
        try:
            yield self
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await self.mirroring.leave()

    def fail(self, hint_s: float | None = 60.0, error_class: ErrorClass = ErrorClass.RATE, model: str = "m1") -> None:
        self.health.failed(self.target(model), Verdict.of(error_class, "reason", hint_s=hint_s))

    def target(self, model: str = "m1") -> Target:
        return Target(candidate_of(ALPHA, model), ALPHA, ALPHA.accounts[0], self.clock.now(), limit_s=10.0)

    def until(self, model: str = "m1") -> float | None:
        """Return when the lock of the pair ends, None without one."""
        lock = self.health.cooldown("alpha", ACCOUNT, model)
        return None if lock is None else lock.until

    def circuit(self) -> CircuitState:
        return self.health.circuit("alpha", "m1")


async def eventually(look: Callable[[], object], *, within_s: float = 1.0) -> None:
    """Wait in virtual time until *look* is true; a second is what is promised."""
    async with asyncio.timeout(within_s):
        while not look():  # noqa: ASYNC110 -- in virtual time, and what is looked at has no event
            await asyncio.sleep(0.01)


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


async def test_a_control_row_that_cannot_be_read_leaves_it_to_the_poll() -> None:
    async with Instance().running() as one, Instance(one).running() as other:
        other.control.down = True
        await one.snapshots.reload(1)
        await asyncio.sleep(1)
        assert (other.snapshots.current.revision, other.mirroring.up) == (0, True)


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
    first = Instance()
    async with first.running() as one:
        await asyncio.sleep(1)
        one.fail(60.0)
        one.mirror.down = True
    assert (one.mirror.closed, one.mirroring.failures) == (1, 1)


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
