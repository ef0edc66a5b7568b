"""The alarm does what `asyncio.timeout` does, in whatever order timers, ends and cancellations come."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.proxy.rig import Rig, answer
from tests.virtual import START, VirtualLoop
from troyproxy.proxy.alarm import OFF, Alarm, Bell

pytestmark = pytest.mark.anyio


# --- against the model ---

Step = tuple[str, int | None]
"""``wait`` so many seconds; ``set`` the deadline so long from now; ``stubborn``: wait, and let nobody end it."""
Guards = list[tuple[int | None, list[Step]]]
"""In how many seconds each is over, and what is done in it."""
STEPS = st.lists(
    st.tuples(st.sampled_from(["wait", "wait", "set", "stubborn"]), st.integers(-1, 4) | st.none()), max_size=4
)
GUARDS = st.lists(st.tuples(st.integers(-1, 4) | st.none(), STEPS), min_size=1, max_size=3)
MOMENTS = st.lists(st.integers(0, 8), max_size=2)


Put = Callable[[float], None]
Body = Callable[[Put], Awaitable[None]]
Guard = Callable[[float, Body], Awaitable[None]]
Make = Callable[[], Guard]


def _library() -> Make:
    return lambda: _timeout


async def _timeout(until: float, body: Body) -> None:
    async with asyncio.timeout_at(None if until == OFF else until) as clock:

        def put(at: float) -> None:
            if not clock.expired():  # once it is over, the library lets nobody change it
                clock.reschedule(None if at == OFF else at)

        await body(put)


def _ours() -> Make:
    bell = Bell()

    def make() -> Guard:
        alarm = Alarm(bell)

        async def guard(until: float, body: Body) -> None:
            with alarm.until(until):
                await body(alarm.set)

        return guard

    return make


def _in(seconds: int | None) -> float:
    return OFF if seconds is None else asyncio.get_running_loop().time() + seconds


async def _take(step: Step, put: Put) -> None:
    what, seconds = step
    if what == "set":
        put(_in(seconds))
        return
    with contextlib.suppress(*([asyncio.CancelledError] if what == "stubborn" else [])):
        await asyncio.sleep(max(0, seconds or 0))


async def _guarded(guard: Guard, limit: int | None, steps: list[Step]) -> str:
    async def body(put: Put) -> None:
        for step in steps:
            await _take(step, put)

    try:
        await guard(_in(limit), body)
    except TimeoutError:
        return "timed out"
    except asyncio.CancelledError:
        return "cancelled"
    return "ended"


def _story(way: Callable[[], Make], tasks: list[Guards], cancels: list[int]) -> list[object]:
    """Run guards one after the other, in tasks beside each other; others cancel the first. Return what was seen."""
    seen: list[list[object]] = [[] for _ in tasks]

    async def work(number: int, make: Make) -> None:
        loop, task, guard = asyncio.get_running_loop(), asyncio.current_task(), make()
        assert task is not None
        for limit, steps in tasks[number]:
            seen[number].append((await _guarded(guard, limit, steps), loop.time(), task.cancelling()))

    async def main() -> None:
        loop, make = asyncio.get_running_loop(), way()
        first, *others = (loop.create_task(work(number, make)) for number in range(len(tasks)))
        for moment in cancels:
            loop.call_at(START + moment, first.cancel)
        await asyncio.wait({first, *others})

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
    return [*seen]


@settings(max_examples=300, deadline=None)
@given(st.lists(GUARDS, min_size=1, max_size=2), MOMENTS)
@example([[(-1, [("set", 0), ("wait", 1)])]], [])
@example([[(1, [("stubborn", 2), ("set", 1), ("wait", 4)])]], [])
def test_whatever_happens_it_happens_as_with_the_standard_library(tasks: list[Guards], cancels: list[int]) -> None:
    assert _story(_ours, tasks, cancels) == _story(_library, tasks, cancels)


# --- by itself ---


async def test_a_time_that_is_up_ends_the_wait_as_a_timeout() -> None:
    alarm, loop, task = Alarm(), asyncio.get_running_loop(), asyncio.current_task()
    with pytest.raises(TimeoutError), alarm.until(loop.time() + 3):
        await asyncio.sleep(100)
    assert task is not None
    assert (loop.time(), task.cancelling()) == (START + 3, 0)


async def test_a_cancellation_at_the_same_moment_stays_one() -> None:
    async def work() -> None:
        with Alarm().until(START + 3):
            await asyncio.sleep(100)

    task = asyncio.get_running_loop().create_task(work())
    asyncio.get_running_loop().call_at(START + 3, task.cancel)
    await asyncio.wait({task})
    assert task.cancelled()


async def test_what_ended_in_time_is_not_ended_later() -> None:
    alarm, loop = Alarm(), asyncio.get_running_loop()
    with alarm.until(loop.time() + 3):
        await asyncio.sleep(1)
    await asyncio.sleep(100)
    assert loop.time() == START + 101


async def test_another_error_passes_and_the_task_is_not_marked_as_cancelled() -> None:
    async def fail() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            raise ZeroDivisionError

    alarm, task = Alarm(), asyncio.current_task()
    with pytest.raises(ZeroDivisionError), alarm.until(START + 3):
        await fail()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_thousand_deadlines_need_few_timers(monkeypatch: pytest.MonkeyPatch) -> None:
    alarm, loop, made = Alarm(), asyncio.get_running_loop(), []
    schedule = Bell.schedule

    def counted(self: Bell, at: float) -> None:
        made.append(at)
        schedule(self, at)

    monkeypatch.setattr(Bell, "schedule", counted)
    with alarm.until(OFF):
        for _ in range(1000):
            alarm.set(loop.time() + 60)
            await asyncio.sleep(0.1)
    assert len(made) == 2  # the first, and the one that found itself too early after a minute


async def test_a_closed_alarm_leaves_nothing_behind() -> None:
    bell = Bell()
    alarm = Alarm(bell)
    with alarm.until(START + 3):
        pass
    alarm.close()
    assert not bell.alarms


def test_a_walk_meets_its_deadlines_in_each_loop_that_it_is_served_in(rig: Rig) -> None:
    async def ask() -> tuple[int, float]:
        rig.script(alpha=answer(before=[100.0]))
        served = await rig.ask("alpha/m1")
        return served.exchange.status, asyncio.get_running_loop().time()

    rig.set(upstream_timeout_s=10.0)
    told = []
    for _ in range(2):
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            told.append(runner.run(ask()))
    assert told == [(504, START + 10)] * 2
