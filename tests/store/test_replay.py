"""A replay equals what was live: whatever happens, a restart finds the same locks, back-off levels and open circuits.

Random storms go through the real keeper into the real journal on a SQLite file, whose writer prunes at every turn; then
the process "dies", and another keeper is restored from the file.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from random import Random
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, func, select
from sqlalchemy.engine.url import URL

from tests.fakes import FakeClock, FakeObserver
from tests.store.conftest import BRISK
from troyproxy.catalog.providers import Account, Provider
from troyproxy.catalog.secret import Secret
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.outcome import Target
from troyproxy.resilience import health as machine
from troyproxy.resilience.breaker import Admission, BreakerPolicy, CircuitState
from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.classify import Verdict
from troyproxy.resilience.health import Health, HealthPolicy, journal_horizon_s
from troyproxy.routing.members import candidate_of
from troyproxy.store import migrations
from troyproxy.store.database import Database, parse_url
from troyproxy.store.journal import SqlEventLog
from troyproxy.store.pruning import Keep, Pruner, PruningPace
from troyproxy.store.queue import BoundedQueue
from troyproxy.store.tables import STATE_EVENTS
from troyproxy.store.writer import Pace, Writer

POLICY: Final = HealthPolicy(breaker=BreakerPolicy(failures=2))
CAP_S: Final = 1800.0
KEEP_S: Final = journal_horizon_s(POLICY, CAP_S)
INSTANT_S: Final = 0.001
"""Between any two things that happen: no two of a process are at one instant."""
PRUNING: Final = Pace(linger_s=0.0, retry_s=BRISK.retry_s, heartbeat_s=0.001, pruning=PruningPace(every_s=0.0))
ACCOUNTS: Final = tuple(Account(id=f"p#{name}", provider="p", name=name, api_key=Secret("s")) for name in ("A", "B"))
PROVIDER: Final = Provider(id="p", base_url="http://p.test/v1", accounts=ACCOUNTS)


@dataclass(frozen=True, slots=True)
class Begin:
    """An attempt begins, if the circuit lets it."""

    model: str
    account: int


@dataclass(frozen=True, slots=True)
class End:
    """One of the attempts under way ends: None is a success, "left" an attempt without an outcome."""

    which: int
    outcome: ErrorClass | str | None
    hint_s: float | None = None


@dataclass(frozen=True, slots=True)
class Clear:
    account: int | None
    model: str | None


@dataclass(frozen=True, slots=True)
class Pass:
    seconds: float


@dataclass(frozen=True, slots=True)
class Die:
    """The process dies once its queue is written, and another begins."""


MODELS: Final = st.sampled_from(["m1", "m2"])
HINTS: Final = st.none() | st.floats(1.0, CAP_S)
OUTCOMES: Final = st.one_of(
    st.none(), st.just("left"), st.just(ErrorClass.RATE), st.just(ErrorClass.TRANSIENT), st.sampled_from(ErrorClass)
)
SPANS: Final = st.one_of(st.floats(0.0, 5.0), st.floats(0.0, 400.0), st.floats(0.0, 2 * KEEP_S))
ONE: Final = st.one_of(
    st.builds(Begin, MODELS, st.sampled_from([0, 1])),
    st.builds(Begin, st.just("m1"), st.just(0)),
    st.builds(End, st.integers(0, 3), OUTCOMES, HINTS),
    st.builds(Clear, st.none() | st.sampled_from([0, 1]), st.none() | MODELS),
    st.builds(Pass, SPANS),
    st.builds(Pass, st.floats(0.0, 40.0)),
    st.builds(Die),
)
Step = Begin | End | Clear | Pass | Die
FAILURE: Final = (Begin("m1", 0), End(0, ErrorClass.TRANSIENT))
SOME: Final = st.one_of(
    st.tuples(ONE),
    st.just((*FAILURE, *FAILURE)),  # opens the circuit
    st.tuples(st.builds(Pass, st.floats(30.0, 61.0)), st.just(Begin("m1", 0)), st.builds(End, st.just(0), OUTCOMES)),
    st.tuples(st.just(Begin("m2", 1)), st.just(End(0, ErrorClass.RATE, CAP_S)), st.just(Pass(CAP_S + 1.0))),
)
STEPS: Final = st.lists(SOME, max_size=30).map(lambda some: [step for each in some for step in each])


class Process:
    """One run of the gateway: its keeper, its journal and the writer of it."""

    def __init__(self, url: URL, clock: FakeClock) -> None:
        self.clock, self.database, queue = clock, Database(url), BoundedQueue(10_000)
        queues = {STATE_EVENTS: queue}
        pruner = Pruner(self.database, Keep(events_s=KEEP_S), clock=clock, pace=PRUNING.pruning)
        self.writer = Writer(self.database, queues, prepare=_ready, pruner=pruner, pace=PRUNING)
        log = SqlEventLog(self.database, queue, self.writer.wake, clock=clock, source="one", keep_s=KEEP_S)
        rng = Random(clock.now())
        self.keeper = HealthKeeper(clock=clock, log=log, observer=FakeObserver(), policy=POLICY, rng=rng)
        self.under_way: list[Target] = []

    async def begin(self) -> None:
        await self.keeper.restore()
        await self.writer.start()

    async def die(self) -> None:
        await self.writer.stop()
        await self.database.close()

    def do(self, step: Step) -> None:
        self.clock.move(step.seconds if isinstance(step, Pass) else INSTANT_S)
        match step:
            case Begin(model, account):
                self._begin(model, ACCOUNTS[account])
            case End(which, outcome, hint_s) if self.under_way:
                self._end(self.under_way.pop(which % len(self.under_way)), outcome, hint_s)
            case Clear(account, model):
                self.keeper.clear("p", None if account is None else ACCOUNTS[account].id, model)
            case _:
                pass

    def _begin(self, model: str, account: Account) -> None:
        admission = self.keeper.admission("p", model)
        target = Target(candidate_of(PROVIDER, model), PROVIDER, account, self.clock.now(), limit_s=60.0)
        if admission is Admission.PROBE:
            self.keeper.lease_probe(target)
        if admission is not Admission.DENY:
            self.under_way.append(target)

    def _end(self, target: Target, outcome: ErrorClass | str | None, hint_s: float | None) -> None:
        if outcome is None:
            self.keeper.succeeded(target)
        elif isinstance(outcome, ErrorClass):
            self.keeper.failed(target, Verdict.of(outcome, "reason", hint_s=hint_s))
        else:
            self.keeper.return_probe(target)


async def _ready() -> None:
    """The file is migrated."""


def effect(state: Health, now: float) -> object:
    """Return what *state* does at *now* and later: locks, levels, circuits that are not closed; not who has a probe."""
    holderless = {key: replace(breaker, lease=None) for key, breaker in state.breakers.items()}
    kept = machine.prune(replace(state, breakers=holderless), now, POLICY)
    locks = {
        key: (lock.until, lock.error_class) if lock.until > now else ("over", key.soft, lock.until)
        for key, lock in kept.cooldowns.items()
    }
    levels = {key: lock.level for key, lock in kept.cooldowns.items() if lock.level}
    circuits = {
        key: (breaker.until, breaker.open_s, breaker.opened_at, machine.circuit_state(kept, *key, now))
        for key, breaker in kept.breakers.items()
        if breaker.stored is not CircuitState.CLOSED
    }
    return locks, levels, circuits


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> URL:
    name = f"sqlite:///{tmp_path_factory.mktemp('replay')}/troy.db"
    asyncio.run(migrations.upgrade(name))
    return parse_url(name)


async def first_process(url: URL, clock: FakeClock) -> Process:
    """Begin a process with an empty journal."""
    process = Process(url, clock)
    async with process.database.write() as connection:
        await connection.execute(delete(STATE_EVENTS))
    await process.begin()
    return process


async def _storm(url: URL, steps: list[Step]) -> tuple[list[object], list[object]]:
    """Return what was in effect before each death, and after it."""
    clock, before, after = FakeClock(), list[object](), list[object]()
    process = await first_process(url, clock)
    try:
        for step in (*steps, Die()):
            process.do(step)
            if isinstance(step, Die):
                before.append(effect(process.keeper.state, clock.now()))
                await process.die()
                process = Process(url, clock)
                await process.begin()
                after.append(effect(process.keeper.state, clock.now()))
    finally:
        await process.die()
    return before, after


@settings(max_examples=150)
@given(STEPS)
def test_a_replay_equals_what_was_live(url: URL, steps: list[Step]) -> None:
    before, after = asyncio.run(_storm(url, steps))
    assert after == before


@pytest.mark.anyio
async def test_what_has_no_effect_any_more_is_gone_from_the_journal(url: URL, clock: FakeClock) -> None:
    process = await first_process(url, clock)
    for step in (Begin("m1", 0), End(0, ErrorClass.QUOTA, CAP_S), Pass(KEEP_S + 1.0)):
        process.do(step)
    await process.die()
    process = Process(url, clock)
    await process.begin()
    process.do(Clear(None, None))
    await process.die()
    async with process.database.read() as connection:
        oldest = (await connection.execute(select(func.min(STATE_EVENTS.c.at)))).scalar_one()
    await process.database.close()
    assert oldest == clock.now()
