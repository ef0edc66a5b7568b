"""What the board is built of: accounts that can be used, by their names, and windows of our own."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.fake_store import FakeUsageSums
from tests.fakes import FakeClock, FakeEventLog, FakeObserver
from troyproxy.accounting.quota_board import DayUse
from troyproxy.catalog.providers import NO_AUTH, Account, Provider
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.quota_page import QuotaPage
from troyproxy.proxy.quotas import QuotaDesk
from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.events import CircuitOpened, Locked
from troyproxy.resilience.health import HealthPolicy

pytestmark = pytest.mark.anyio

QUOTA = {"requests": 100, "usd": 5, "per": "day"}
ACCOUNTS = (
    Account("alpha#a", "alpha", "a", quota=QUOTA),
    Account("alpha#off", "alpha", "off", active=False),
    Account("alpha#old", "alpha", "old", token_expires_at=1.0),
)
PROVIDERS = {
    "alpha": Provider("alpha", "http://127.0.0.1:9/v1", accounts=ACCOUNTS),
    "local": Provider("local", "http://127.0.0.1:9/v1", auth=NO_AUTH),
    "bare": Provider("bare", "http://127.0.0.1:9/v1"),
}


class Desk:
    """A page, and all it looks at."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock, self.quotas, self.sums = clock, QuotaDesk(), FakeUsageSums()
        self.health = HealthKeeper(
            clock=clock, log=FakeEventLog(), observer=FakeObserver(), policy=HealthPolicy(), rng=Random(1)
        )
        self.page = QuotaPage(
            quotas=self.quotas,
            health=self.health,
            snapshot=lambda: Snapshot(providers=PROVIDERS),
            sums=self.sums,
            clock=clock,
            ceilings=dict,
        )

    async def of(self, provider: str) -> dict[str, Any]:
        made: Any = await self.page.page()
        return dict(next(each for each in made["providers"] if each["provider"] == provider))


@pytest.fixture
def desk(clock: FakeClock) -> Desk:
    return Desk(clock)


async def test_accounts_that_cannot_be_used_are_left_out(desk: Desk) -> None:
    assert [each["account"] for each in (await desk.of("alpha"))["accounts"]] == ["a"]


async def test_a_provider_that_needs_no_key_has_its_one_account(desk: Desk) -> None:
    assert (await desk.of("local"))["accounts"] == [{"account": "local-keyless"}]
    assert (await desk.of("bare"))["state"] == "no-account"


async def test_a_quota_of_our_own_is_counted_by_us(desk: Desk) -> None:
    for _ in range(25):
        desk.quotas.begin(("alpha", "a"), desk.clock.now())
    requests, usd = (await desk.of("alpha"))["accounts"][0]["quotas"]
    assert (requests["bucket"], requests["limit"], requests["remaining_ratio"]) == ("requests/day", 100.0, 0.75)
    assert (usd["bucket"], usd["limit"], usd["remaining_ratio"]) == ("usd/day", 5.0, 1.0)


async def test_what_an_upstream_said_stays_when_its_window_is_over(desk: Desk) -> None:
    headers = ((b"x-ratelimit-remaining-requests", b"0"), (b"x-ratelimit-reset-requests", b"10s"))
    desk.quotas.hear(ACCOUNTS[0], headers, desk.clock.now())
    desk.clock.move(11.0)
    [signal] = (await desk.of("alpha"))["accounts"][0]["signals"]
    assert (signal["current"], signal["age_s"], signal["remaining"], "limit" in signal) == (False, 11.0, 0.0, False)


async def test_locks_go_by_names_and_closed_circuits_are_no_news(desk: Desk) -> None:
    now = desk.clock.now()
    for account in ("alpha#a", "*", "alpha#gone"):
        desk.health.record(Locked(now, "alpha", account, "m1", now + 30, False, ErrorClass.RATE))
    desk.health.record(CircuitOpened(now, "alpha", "m2", now + 30, 30.0))
    found = await desk.of("alpha")
    assert [each["account"] for each in found["accounts"][0]["cooldowns"]] == ["a"]
    assert ([each["account"] for each in found["cooldowns"]], found["circuits"][0]["state"]) == (["*"], "open")
    desk.clock.move(3600.0)
    assert "cooldowns" not in await desk.of("alpha")


async def test_usage_is_that_of_the_utc_day(desk: Desk) -> None:
    desk.sums.used = {"2027-01-15": [DayUse("alpha", "a", requests=7)], "2027-01-14": [DayUse("alpha", "a", 99)]}
    assert (await desk.of("alpha"))["usage"]["requests"] == 7


async def test_a_database_that_is_down_makes_no_zero(desk: Desk) -> None:
    desk.sums.down = True
    assert "usage" not in await desk.of("alpha")
