"""The keeper of limits, alone and with what the database knows; `test_limits_together` has it with other instances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.fake_limits import FakeSharedLimits
from tests.proxy.limited import CENT, NOON, RATES, Instance, key
from troyproxy.accounting.limits import Standing, next_day, next_month
from troyproxy.catalog.keys import Key
from troyproxy.errors import BudgetExceeded, RateLimited
from troyproxy.proxy import limits as module

pytestmark = pytest.mark.anyio


@pytest.fixture
def alone() -> Instance:
    return Instance()


# --- rates ----------------------------------------------------------------------------------------------------------


async def test_a_key_may_ask_as_often_as_its_limit_says(alone: Instance) -> None:
    assert await alone.admitted(key(RATES), 5) == 3


async def test_keys_do_not_share(alone: Instance) -> None:
    await alone.admitted(key(RATES), 5)
    assert await alone.admitted(key(RATES, "other"), 5) == 3


async def test_a_refusal_says_when_to_come_back(alone: Instance) -> None:
    await alone.admitted(key(RATES), 3)
    refusal = (await alone.admit(key(RATES))).refusal
    assert isinstance(refusal, RateLimited)
    assert refusal.headers == {"retry-after": "20"}
    assert str(refusal) == "This key may use 3 requests per minute; try again in 20s."


async def test_a_refusal_for_tokens_names_them(alone: Instance) -> None:
    await alone.admit(key(RATES), 80)
    refusal = (await alone.admit(key(RATES), 30)).refusal
    assert str(refusal) == "This key may use 100 tokens per minute; try again in 6s."


async def test_who_waits_is_admitted(alone: Instance) -> None:
    await alone.admitted(key(RATES), 3)
    alone.clock.move(20)
    assert await alone.admitted(key(RATES), 2) == 1


async def test_what_was_charged_too_much_comes_back(alone: Instance) -> None:
    ticket = await alone.admit(key(RATES), 90)
    alone.keeper.settle(ticket, used=10, usd=0.0, at=NOON)
    assert alone.keeper.standing(key(RATES))[1].remaining == 90


async def test_what_was_charged_too_little_is_a_debt(alone: Instance) -> None:
    ticket = await alone.admit(key(RATES), 10)
    alone.keeper.settle(ticket, used=200, usd=0.0, at=NOON)
    assert alone.keeper.standing(key(RATES))[1] == Standing("tokens", 100, 0, 120.0)


async def test_a_ticket_says_where_the_key_stands(alone: Instance) -> None:
    assert (await alone.admit(key(RATES), 25)).standing == (
        Standing("requests", 3, 2, 20.0),
        Standing("tokens", 100, 75, 15.0),
    )


async def test_a_key_with_a_new_limit_keeps_what_it_used(alone: Instance) -> None:
    await alone.admitted(key(RATES), 2)
    assert await alone.admitted(key({"requests_per_minute": 2.0}), 3) == 1


async def test_the_accounts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BOUND", 2)
    alone = Instance()
    for name in ("a", "b", "c"):
        await alone.admitted(key(RATES, name), 3)
    assert [await alone.admitted(key(RATES, name), 1) for name in ("c", "a")] == [0, 1]


# --- budgets --------------------------------------------------------------------------------------------------------


async def test_a_cent_is_spent_and_there_again_after_midnight_utc(alone: Instance) -> None:
    assert [type(await alone.spend(key(CENT), 0.006)) for _ in range(3)] == [type(None), type(None), BudgetExceeded]
    alone.clock.move(next_day(NOON) - NOON - 0.001)
    assert isinstance(await alone.spend(key(CENT), 0.006), BudgetExceeded)
    alone.clock.move(0.001)
    assert await alone.spend(key(CENT), 0.006) is None


async def test_a_months_budget_is_there_again_with_the_month(alone: Instance) -> None:
    monthly = key({"budget_usd_per_month": 1.0})
    await alone.spend(monthly, 2.0)
    alone.clock.move(next_day(NOON) - NOON)
    assert isinstance(await alone.spend(monthly, 0.1), BudgetExceeded)
    alone.clock.move(next_month(NOON) - alone.clock.now())
    assert await alone.spend(monthly, 0.1) is None


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (CENT, "This key's budget of 0.01 USD per day is spent; it starts anew at 2027-01-16T00:00:00Z."),
        (
            {"budget_usd_per_month": 0.01},
            "This key's budget of 0.01 USD per month is spent; it starts anew at 2027-02-01T00:00:00Z.",
        ),
    ],
)
async def test_a_spent_budget_says_which_and_until_when(
    alone: Instance, limits: Mapping[str, float], said: str
) -> None:
    await alone.spend(key(limits), 1.0)
    refusal = await alone.spend(key(limits), 1.0)
    assert refusal is not None
    assert (str(refusal), refusal.headers) == (said, {"x-should-retry": "false"})


async def test_a_budget_of_nothing_allows_nothing(alone: Instance) -> None:
    assert isinstance(await alone.spend(key({"budget_usd_per_day": 0.0}), 0.0), BudgetExceeded)


async def test_what_the_database_knows_counts(alone: Instance) -> None:
    alone.know(0.01)
    assert isinstance(await alone.spend(key(CENT), 0.001), BudgetExceeded)


async def test_own_spending_goes_on_top_of_what_was_read(alone: Instance) -> None:
    alone.know(0.006)
    assert await alone.spend(key(CENT), 0.004) is None
    assert isinstance(await alone.spend(key(CENT), 0.004), BudgetExceeded)


async def test_what_was_read_of_yesterday_counts_for_nothing_today(alone: Instance) -> None:
    alone.know(0.01)
    alone.clock.move(next_day(NOON) - NOON)
    assert await alone.spend(key(CENT), 0.001) is None


async def test_a_request_that_began_yesterday_is_paid_from_yesterdays_budget(alone: Instance) -> None:
    ticket = await alone.admit(key(CENT))
    alone.clock.move(next_day(NOON) - NOON)
    alone.keeper.settle(ticket, used=1, usd=1.0, at=NOON)
    assert await alone.spend(key(CENT), 0.001) is None


async def test_a_request_that_began_last_month_is_paid_from_last_months_budget(alone: Instance) -> None:
    monthly = key({"budget_usd_per_month": 1.0})
    ticket = await alone.admit(monthly)
    alone.clock.move(next_month(NOON) - NOON)
    alone.keeper.settle(ticket, used=1, usd=1.0, at=NOON)
    assert await alone.spend(monthly, 0.001) is None


async def test_workers_without_a_redis_learn_of_each_other_through_the_database() -> None:
    one, other = Instance(), Instance()
    await one.spend(key(CENT), 0.006)
    await other.spend(key(CENT), 0.006)
    for each in (one, other):
        each.know(0.012)
        assert isinstance(await each.spend(key(CENT), 0.001), BudgetExceeded)


# --- what is shown --------------------------------------------------------------------------------------------------


async def test_refusals_are_counted_by_key_and_limit(alone: Instance) -> None:
    await alone.admitted(key(RATES), 5)
    await alone.spend(key(CENT, "poor"), 1.0)
    await alone.spend(key(CENT, "poor"), 1.0)
    assert alone.keeper.refusals == {("k", "requests"): 2, ("poor", "day"): 1}


async def test_names_of_refused_keys_are_bounded(alone: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NAMES", 1)
    for name in "abcdef":
        await alone.spend(key({"budget_usd_per_day": 0.0}, name), 0.0)
    assert alone.keeper.refusals == {**{(name, "day"): 1 for name in "abcd"}, ("", "day"): 2}


async def test_what_is_left_of_budgets_is_shown(alone: Instance) -> None:
    await alone.spend(key({"budget_usd_per_day": 1.0, "budget_usd_per_month": 4.0}), 1.0)
    await alone.admit(key({"budget_usd_per_day": 0.0}, "none"))
    await alone.admit(key(RATES, "rates"))
    alone.know(2.0)
    assert list(alone.keeper.budgets_left()) == [("k", "day", 0.0), ("k", "month", 0.5), ("none", "day", 0.0)]


@pytest.mark.parametrize("became", [[key(RATES)], [replace(key(CENT), revoked_at=NOON)], []])
async def test_a_budget_that_is_no_more_is_not_shown_though_nobody_uses_the_key(
    alone: Instance, became: list[Key]
) -> None:
    await alone.spend(key(CENT), 1.0)
    alone.keeper.renew([key(CENT, "other"), *became])
    assert list(alone.keeper.budgets_left()) == []


async def test_a_budget_that_is_raised_is_shown_so_though_nobody_uses_the_key(alone: Instance) -> None:
    await alone.spend(key(CENT), 1.0)
    alone.keeper.renew([replace(key({"budget_usd_per_day": 4.0}), name="renamed")])
    assert list(alone.keeper.budgets_left()) == [("renamed", "day", 0.75)]


async def test_a_request_that_ends_does_not_bring_back_the_limits_that_it_began_with(alone: Instance) -> None:
    ticket = await alone.admit(key(CENT))
    await alone.admit(key(RATES))
    alone.keeper.settle(ticket, used=10, usd=1.0, at=NOON)
    assert list(alone.keeper.budgets_left()) == []


async def test_a_request_that_ends_does_not_cut_a_level_to_the_limit_that_it_began_with(alone: Instance) -> None:
    ticket = await alone.admit(key(RATES), 10)
    wider = key({"tokens_per_minute": 1000.0})
    alone.clock.move(60.0)
    await alone.admit(wider)
    alone.clock.move(60.0)
    alone.keeper.settle(ticket, used=10, usd=0.0, at=NOON)
    assert alone.keeper.standing(wider)[0].remaining == 1000


async def test_the_status_tells_whether_instances_count_together(alone: Instance) -> None:
    assert alone.keeper.page() == {"shared": None}
    async with Instance(shared=FakeSharedLimits()).running() as one:
        assert one.keeper.page() == {"shared": True, "decided_alone": 0}
