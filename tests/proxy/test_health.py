from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from tests.fakes import FakeClock, FakeEventLog, FakeObserver
from tests.proxy.rig import ALPHA
from troyproxy.errors import StoreUnavailable
from troyproxy.proxy.health import PRUNE_EVERY, HealthKeeper
from troyproxy.proxy.outcome import Target
from troyproxy.resilience.breaker import Admission, BreakerPolicy, CircuitState
from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.classify import Verdict
from troyproxy.resilience.events import CircuitOpened, Event, Failed
from troyproxy.resilience.health import EMPTY, HealthPolicy
from troyproxy.routing.members import candidate_of

OPENS_AT_ONCE = HealthPolicy(breaker=BreakerPolicy(failures=1))


class Watching(FakeEventLog):
    """A journal that notes what the state was when an event came in."""

    def __init__(self) -> None:
        super().__init__()
        self.keeper: HealthKeeper | None = None
        self.states: list[bool] = []

    def append(self, event: Event) -> None:
        super().append(event)
        assert self.keeper is not None
        self.states.append(self.keeper.state == EMPTY)


def _keeper(clock: FakeClock, log: FakeEventLog | None = None, observer: FakeObserver | None = None) -> HealthKeeper:
    return HealthKeeper(
        clock=clock,
        log=log or FakeEventLog(),
        observer=observer or FakeObserver(),
        policy=OPENS_AT_ONCE,
        rng=Random(7),
    )


def _target(clock: FakeClock) -> Target:
    return Target(candidate_of(ALPHA, "m1"), ALPHA, ALPHA.accounts[0], clock.now(), limit_s=10.0)


def _verdict(error_class: ErrorClass = ErrorClass.TRANSIENT, hint_s: float | None = None) -> Verdict:
    return Verdict.of(error_class, "reason", hint_s=hint_s)


def test_an_event_is_journalled_before_it_is_applied(clock: FakeClock) -> None:
    log = Watching()
    log.keeper = _keeper(clock, log)
    log.keeper.failed(_target(clock), _verdict(ErrorClass.RATE, 5.0))
    assert log.states == [True]


def test_a_failure_locks_its_pair(clock: FakeClock) -> None:
    keeper = _keeper(clock)
    keeper.failed(_target(clock), _verdict(ErrorClass.RATE, 5.0))
    lock = keeper.cooldown("alpha", "alpha#A", "m1")
    assert lock is not None
    assert (lock.until, keeper.eligible_at("alpha", "alpha#A", "m1")) == (clock.now() + 5, clock.now() + 5)


def test_a_failure_that_opens_the_circuit_is_told(clock: FakeClock) -> None:
    observer = FakeObserver()
    keeper = _keeper(clock, observer=observer)
    keeper.failed(_target(clock), _verdict())
    assert (keeper.circuit("alpha", "m1"), observer.of("circuit_changed")) == (
        CircuitState.OPEN,
        [("alpha", "m1", "closed", "open")],
    )


def test_every_turn_of_a_circuit_is_told(clock: FakeClock) -> None:
    observer = FakeObserver()
    keeper = _keeper(clock, observer=observer)
    keeper.failed(_target(clock), _verdict())
    clock.move(31)
    target = _target(clock)
    keeper.lease_probe(target)
    keeper.succeeded(target)
    assert [turn[2:] for turn in observer.of("circuit_changed")] == [
        ("closed", "open"),
        ("open", "half_open"),
        ("half_open", "closed"),
    ]


def test_a_leased_probe_denies_the_next_until_it_is_returned(clock: FakeClock) -> None:
    keeper = _keeper(clock)
    keeper.failed(_target(clock), _verdict())
    clock.move(31)
    target = _target(clock)
    keeper.lease_probe(target)
    leased = keeper.admission("alpha", "m1")
    keeper.return_probe(target)
    assert (leased, keeper.admission("alpha", "m1")) == (Admission.DENY, Admission.PROBE)


def test_a_lease_lapses_by_itself_after_the_attempts_limit(clock: FakeClock) -> None:
    keeper = _keeper(clock)
    keeper.failed(_target(clock), _verdict())
    clock.move(31)
    keeper.lease_probe(_target(clock))
    clock.move(10)
    assert keeper.admission("alpha", "m1") is Admission.PROBE


def test_successes_and_leases_are_not_journalled(clock: FakeClock) -> None:
    log = FakeEventLog()
    keeper = _keeper(clock, log)
    keeper.succeeded(_target(clock))
    keeper.return_probe(_target(clock))
    assert log.events == []


def test_clearing_lifts_locks_and_circuits(clock: FakeClock) -> None:
    observer = FakeObserver()
    keeper = _keeper(clock, observer=observer)
    keeper.failed(_target(clock), _verdict())
    keeper.clear("alpha")
    assert (keeper.admission("alpha", "m1"), keeper.cooldown("alpha", "alpha#A", "m1")) == (Admission.ADMIT, None)
    assert observer.of("circuit_changed")[-1] == ("alpha", "m1", "open", "closed")


def test_clearing_everything_names_no_circuit(clock: FakeClock) -> None:
    log = FakeEventLog()
    _keeper(clock, log).clear()
    assert len(log.events) == 1


@pytest.mark.anyio
async def test_a_replay_brings_locks_and_circuits_back_with_their_remaining_time(clock: FakeClock) -> None:
    log = FakeEventLog()
    _keeper(clock, log).failed(_target(clock), _verdict(ErrorClass.TRANSIENT, 60.0))
    clock.move(20)
    after = _keeper(clock, FakeEventLog(*log.events))
    await after.restore()
    lock = after.cooldown("alpha", "alpha#A", "m1")
    assert lock is not None
    assert (lock.until - clock.now(), after.circuit("alpha", "m1")) == (40.0, CircuitState.OPEN)


@pytest.mark.anyio
async def test_a_replay_writes_nothing(clock: FakeClock) -> None:
    log = FakeEventLog(CircuitOpened(clock.now(), "alpha", "m1", clock.now() + 30, 30.0))
    await _keeper(clock, log).restore()
    assert log.events == []


class Late(FakeEventLog):
    """A journal that cannot be read at first."""

    down = True

    async def replay(self) -> Sequence[Event]:
        if self.down:
            raise StoreUnavailable("down")
        return await super().replay()


async def _started_without(clock: FakeClock, log: Late) -> HealthKeeper:
    keeper = _keeper(clock, log)
    with pytest.raises(StoreUnavailable):
        await keeper.restore()
    return keeper


async def _caught_up(keeper: HealthKeeper, log: Late) -> None:
    log.down = False
    await keeper.follow()


def _earlier(clock: FakeClock) -> Late:
    """Return what a run before has journalled: a lock for 60 s, and a circuit open for as long."""
    before = FakeEventLog()
    _keeper(clock, before).failed(_target(clock), _verdict(ErrorClass.TRANSIENT, 60.0))
    clock.move(1)
    return Late(*before.events)


@pytest.mark.anyio
async def test_a_journal_that_is_back_is_caught_up_with(clock: FakeClock) -> None:
    log = _earlier(clock)
    keeper = await _started_without(clock, log)
    await _caught_up(keeper, log)
    assert (keeper.cooldown("alpha", "alpha#A", "m1") is None, keeper.circuit("alpha", "m1")) == (
        False,
        CircuitState.OPEN,
    )


@pytest.mark.anyio
async def test_catching_up_shortens_no_lock_that_was_set_meanwhile(clock: FakeClock) -> None:
    log = _earlier(clock)
    keeper = await _started_without(clock, log)
    keeper.failed(_target(clock), _verdict(ErrorClass.RATE, 600.0))
    until = keeper.eligible_at("alpha", "alpha#A", "m1")
    await _caught_up(keeper, log)
    assert keeper.eligible_at("alpha", "alpha#A", "m1") == until


@pytest.mark.anyio
async def test_catching_up_brings_nothing_back_that_was_cleared_meanwhile(clock: FakeClock) -> None:
    log = _earlier(clock)
    keeper = await _started_without(clock, log)
    keeper.clear("alpha")
    await _caught_up(keeper, log)
    assert keeper.state == EMPTY


@pytest.mark.anyio
async def test_catching_up_opens_no_circuit_that_was_used_meanwhile(clock: FakeClock) -> None:
    log = _earlier(clock)
    keeper = await _started_without(clock, log)
    keeper.succeeded(_target(clock))
    await _caught_up(keeper, log)
    assert keeper.circuit("alpha", "m1") is CircuitState.CLOSED


@pytest.mark.anyio
async def test_a_journal_that_was_read_at_the_start_is_not_read_again(clock: FakeClock) -> None:
    log = _earlier(clock)
    log.down = False
    keeper = _keeper(clock, log)
    await keeper.restore()
    keeper.clear()
    await keeper.follow()
    assert keeper.state == EMPTY


def test_what_has_lost_its_effect_is_pruned_now_and_then(clock: FakeClock) -> None:
    keeper = _keeper(clock)
    keeper.failed(_target(clock), _verdict(ErrorClass.RATE, 5.0))
    clock.move(10_000)
    for _ in range(PRUNE_EVERY):
        keeper.return_probe(_target(clock))
    assert not keeper.state.cooldowns


def test_a_bad_request_changes_nothing(clock: FakeClock) -> None:
    log = FakeEventLog()
    keeper = _keeper(clock, log)
    keeper.failed(_target(clock), _verdict(ErrorClass.REQUEST))
    assert (keeper.state, log.events) == (EMPTY, [])


def test_the_journal_keeps_the_failure_itself(clock: FakeClock) -> None:
    log = FakeEventLog()
    _keeper(clock, log).failed(_target(clock), _verdict(ErrorClass.QUOTA))
    assert [type(event) for event in log.events] == [Failed]


def test_an_ordinary_success_is_counted_and_told_to_nobody(clock: FakeClock) -> None:
    keeper = _keeper(clock)
    told: list[Event] = []
    keeper.watch(told.append)
    for _ in range(3):
        keeper.succeeded(_target(clock))
    assert told == []
    assert [bucket.ok for breaker in keeper.state.breakers.values() for bucket in breaker.window] == [3]


def test_successes_that_were_held_back_count_when_a_failure_is_judged(clock: FakeClock) -> None:
    policy = HealthPolicy(breaker=BreakerPolicy(failures=1, ratio=0.5))
    keeper = HealthKeeper(clock=clock, log=FakeEventLog(), observer=FakeObserver(), policy=policy, rng=Random(7))
    for _ in range(2):
        keeper.succeeded(_target(clock))
    keeper.failed(_target(clock), _verdict())
    assert keeper.circuit("alpha", "m1") is CircuitState.CLOSED


def test_it_is_calm_until_a_lock_or_a_circuit_bars_somebody(clock: FakeClock) -> None:
    keeper = _keeper(clock)
    assert keeper.calm(clock.now())
    keeper.failed(_target(clock), _verdict(ErrorClass.RATE, 5.0))
    assert [keeper.calm(clock.now()), keeper.calm(clock.now() + 5)] == [False, True]
    keeper.failed(_target(clock), _verdict())
    assert not keeper.calm(clock.now() + 60)


@pytest.mark.anyio
async def test_what_the_journal_brings_back_is_not_calm(clock: FakeClock) -> None:
    now = clock.now()
    log = FakeEventLog(CircuitOpened(now, "alpha", "m1", now + 30, 30))
    keeper = _keeper(clock, log)
    await keeper.restore()
    assert [keeper.calm(now), keeper.calm(now)] == [False, False]
    assert keeper.admission("alpha", "m1") is Admission.DENY
