"""What was measured before the start is known again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import MappingProxyType

import pytest
from msgspec import structs

from tests.fake_usage import FakeRequests
from tests.fakes import FakeClock, FakeUsageSink
from tests.proxy.planning import Desk
from tests.proxy.rig import provider, snapshot
from tests.store.test_requests import BARE
from troyproxy.accounting.past import Past
from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.accounting.usage import Usage
from troyproxy.catalog.models import Model, Price
from troyproxy.catalog.providers import Account
from troyproxy.proxy.recall import Recall

pytestmark = pytest.mark.anyio

DAY_S = 86_400.0
PLAIN = provider("alpha", Model("m1", price=Price(1.0, 1.0)))


class Before:
    """A gateway that is about to start, and the rows of the one before. *period*: that of the account's quota."""

    def __init__(self, clock: FakeClock, period: str | None = "month", *, rows: int = 100) -> None:
        self.clock, self.desk, self.sink = clock, Desk(clock), FakeUsageSink()
        self.requests = FakeRequests(self.sink)
        quota = None if period is None else MappingProxyType({"requests": 100, "tokens": 10_000, "per": period})
        self.account: Account = replace(PLAIN.accounts[0], quota=quota)
        picture = snapshot(replace(PLAIN, accounts=(self.account,)))
        self.recall = Recall(self.desk.measuring, self.requests, lambda: picture, clock, rows=rows)

    def row(self, ago_s: float, outcome: str = "ok", name: str = "alpha") -> None:
        at = self.clock.now() - ago_s
        attempt = AttemptRecord(name, "m1", "A", outcome, 200, at, 50.0, usage=Usage(60, 40))
        row: UsageRow = structs.replace(BARE, request_id=f"r{ago_s}", at=at, attempts=(attempt,))
        served = {"provider": name, "model": "m1", "account": "A", "usage": Usage(60, 40)}
        self.sink.record(structs.replace(row, **served) if outcome == "ok" else row)

    @property
    def used(self) -> dict[str, float]:
        """What is used of the account's quota, in per cent."""
        quotas = self.desk.measuring.quotas.quotas(self.account, self.clock.now())
        return {quota.name.partition("/")[0]: round(100 * (1 - quota.remaining), 6) for quota in quotas}

    @property
    def samples(self) -> int:
        return self.desk.measuring.statistics.measures(("alpha", "m1", "A"), self.clock.now()).samples


async def test_luck_and_speed_of_the_last_day_come_back(clock: FakeClock) -> None:
    before = Before(clock, None)
    for ago_s, outcome in ((2 * DAY_S, "ok"), (3_000.0, "ok"), (2_000.0, "transient"), (10.0, "ok")):
        before.row(ago_s, outcome)
    await before.recall.bring()
    measures = before.desk.measuring.statistics.measures(("alpha", "m1", "A"), clock.now())
    assert (measures.samples, measures.p50_ms, round(measures.success_rate or 0, 3)) == (2, 50.0, 0.667)
    assert measures.last_used_at == clock.now() - 10


async def test_what_own_quotas_counted_comes_back(clock: FakeClock) -> None:
    before = Before(clock, "month")
    for ago_s in (5 * DAY_S, 3_000.0, 10.0):
        before.row(ago_s)
    before.row(20.0, "transient")
    await before.recall.bring()
    assert before.used == {"requests": 4, "tokens": 4}


async def test_beyond_the_rows_that_are_read_sums_count_what_was_served(clock: FakeClock) -> None:
    before = Before(clock, "month", rows=2)
    for ago_s in (5 * DAY_S, 4 * DAY_S, 3_000.0, 10.0):
        before.row(ago_s)
    await before.recall.bring()
    assert (before.used, before.samples) == ({"requests": 4, "tokens": 4}, 2)


async def test_without_quotas_no_sums_are_asked_for(clock: FakeClock) -> None:
    before = Before(clock, None, rows=1)
    before.row(20.0)
    before.row(10.0)
    await before.recall.bring()
    assert (before.used, before.samples) == ({}, 1)


async def test_attempts_at_providers_that_are_gone_are_no_trouble(clock: FakeClock) -> None:
    before = Before(clock)
    before.row(10.0, name="gone")
    await before.recall.bring()
    assert before.used == {"requests": 0, "tokens": 0}


async def test_a_second_start_counts_nothing_twice(clock: FakeClock) -> None:
    before = Before(clock, "month", rows=1)
    before.row(20.0)
    before.row(10.0)
    await before.recall.bring()
    await before.recall.bring()
    assert (before.used, before.samples) == ({"requests": 2, "tokens": 2}, 1)


async def test_a_database_that_is_down_stops_no_start(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    before = Before(clock)
    before.requests.down = True
    await before.recall.bring()
    assert (before.samples, "cannot be read" in caplog.text) == (0, True)


async def test_a_database_that_hangs_is_waited_for_so_long(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = Before(clock)

    async def hang(at: float, *, limit: int) -> Past:
        await asyncio.sleep(10**6)
        return Past(at + limit)

    monkeypatch.setattr(before.requests, "attempts_since", hang)
    await before.recall.bring()
    assert "cannot be read" in caplog.text
