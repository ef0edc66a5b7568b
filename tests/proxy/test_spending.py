from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from tests.fake_store import FakeUsageSums
from tests.fakes import FakeClock, settle
from troyproxy.proxy.spending import EVERY_S, PATIENCE_S, Spending, Sums

pytestmark = pytest.mark.anyio
NOON = datetime(2027, 1, 15, 12, tzinfo=UTC).timestamp()


@pytest.fixture
def sums() -> FakeUsageSums:
    found = FakeUsageSums()
    found.spent = {"2026-12-31": {"k": 8.0}, "2027-01-01": {"k": 4.0}, "2027-01-15": {"k": 1.0, "other": 2.0}}
    return found


@pytest.fixture
def spending(sums: FakeUsageSums) -> Spending:
    return Spending(sums, FakeClock(NOON, manual=True))


async def test_the_day_and_the_month_are_read(spending: Spending) -> None:
    await spending.read()
    account = spending.latest.of("k")
    assert (account.day, account.day_usd, account.month, account.month_usd) == ("2027-01-15", 1.0, "2027-01", 5.0)


async def test_a_key_that_spent_nothing_has_spent_nothing(spending: Spending) -> None:
    await spending.read()
    assert (spending.latest.of("new").day_usd, spending.latest.of("new").month_usd) == (0.0, 0.0)


async def test_a_database_that_is_down_leaves_the_last_reading_and_is_said_once(
    spending: Spending, sums: FakeUsageSums, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "troyproxy.limits")
    await spending.read()
    before = spending.latest
    sums.down = True
    for _ in range(3):
        await spending.read()
    assert (spending.latest, len(caplog.records)) == (before, 1)
    sums.down = False
    await spending.read()
    assert spending.latest is not before


async def test_it_is_read_again_and_again(sums: FakeUsageSums) -> None:
    clock = FakeClock(NOON, manual=True)
    spending = Spending(sums, clock)
    task = asyncio.get_running_loop().create_task(spending.follow())
    await settle()
    assert spending.latest == Sums()
    await clock.advance(EVERY_S)
    assert spending.latest.at == NOON + EVERY_S
    await clock.advance(EVERY_S)
    assert spending.latest.at == NOON + 2 * EVERY_S
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_database_that_hangs_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    class Hanging(FakeUsageSums):
        async def spent_since(self, day: str) -> Mapping[str, float]:
            await asyncio.Event().wait()
            raise AssertionError(day)

    loop = asyncio.get_running_loop()
    before = loop.time()
    await Spending(Hanging(), FakeClock()).read()
    assert (loop.time() - before == PATIENCE_S, "cannot be read" in caplog.text) == (True, True)
