"""The keeper of limits with other instances, and when they cannot be asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tests.fake_limits import FakeSharedLimits
from tests.fakes import FakeClock
from tests.proxy.limited import CENT, NOON, RATES, Instance, key

pytestmark = pytest.mark.anyio


@pytest.fixture
async def pair(anyio_backend: str) -> AsyncIterator[tuple[Instance, Instance]]:
    clock, shared = FakeClock(NOON), FakeSharedLimits()
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(Instance(clock, shared).running())
        other = await stack.enter_async_context(Instance(clock, FakeSharedLimits(shared)).running())
        yield one, other


async def test_instances_admit_the_limit_together(pair: tuple[Instance, Instance]) -> None:
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(pair[n % 2].admit(key(RATES))) for n in range(20)]
    assert sum(task.result().refusal is None for task in asked) == 3


async def test_a_refusal_of_all_says_when_to_come_back(pair: tuple[Instance, Instance]) -> None:
    await pair[0].admitted(key(RATES), 3)
    refusal = (await pair[1].admit(key(RATES))).refusal
    assert refusal is not None
    assert refusal.headers == {"retry-after": "20"}


async def test_where_the_key_stands_is_told_of_all(pair: tuple[Instance, Instance]) -> None:
    await pair[0].admit(key(RATES), 40)
    assert [each.remaining for each in (await pair[1].admit(key(RATES), 10)).standing] == [1, 50]


async def test_a_correction_reaches_the_others(pair: tuple[Instance, Instance]) -> None:
    one, other = pair
    one.keeper.settle(await one.admit(key(RATES), 100), used=20, usd=0.0, at=NOON)
    await one.admit(key(RATES), 0)
    assert (await other.admit(key(RATES), 80)).refusal is None


async def test_money_is_spent_once_for_all(pair: tuple[Instance, Instance]) -> None:
    one, other = pair
    spent = [await each.spend(key({"budget_usd_per_day": 1.0}), 0.3) is None for each in (one, other, one, other, one)]
    assert spent == [True, True, True, True, False]


async def test_what_all_have_spent_is_known_when_they_cannot_be_asked(pair: tuple[Instance, Instance]) -> None:
    one, other = pair
    await one.spend(key(CENT), 1.0)
    await one.admit(key(CENT))
    assert (await other.admit(key(CENT))).refusal is not None
    assert other.shared is not None
    other.shared.down = True
    assert (await other.admit(key(CENT))).refusal is not None


async def test_what_cannot_be_asked_neither_refuses_nor_opens(pair: tuple[Instance, Instance]) -> None:
    one, _ = pair
    assert one.shared is not None
    one.shared.down = True
    assert await one.admitted(key(RATES), 5) == 3


async def test_what_was_admitted_together_counts_alone_too(pair: tuple[Instance, Instance]) -> None:
    one, _ = pair
    await one.admitted(key(RATES), 2)
    assert one.shared is not None
    one.shared.down = True
    assert await one.admitted(key(RATES), 5) == 1


async def test_what_was_admitted_alone_counts_when_all_are_back(pair: tuple[Instance, Instance]) -> None:
    one, other = pair
    assert one.shared is not None
    one.shared.down = True
    await one.admitted(key(RATES), 3)
    one.shared.down = False
    await one.waits.advance(1)
    assert await one.admitted(key(RATES), 3) == 0
    assert await other.admitted(key(RATES), 3) == 0


async def test_what_was_charged_alone_is_given_back_alone(pair: tuple[Instance, Instance]) -> None:
    one, other = pair
    assert one.shared is not None
    one.shared.down = True
    ticket = await one.admit(key(RATES), 90)
    one.shared.down = False
    await one.waits.advance(1)
    await other.admit(key(RATES), 60)
    one.keeper.settle(ticket, used=0, usd=0.0, at=NOON)
    await one.admit(key(RATES), 0)
    assert (await other.admit(key(RATES), 41)).refusal is not None
