"""The quota board: three things side by side, and what is not known is absent."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from troyproxy.accounting.quota_board import (
    AccountView,
    Circuit,
    DayUse,
    Heard,
    Lock,
    Own,
    ProviderView,
    State,
    board,
    state_of,
)
from troyproxy.catalog.ceilings import Ceiling, Confidence

NOW = 1_796_040_000.0  # 2026-11-30T12:00:00Z
SOURCE = "https://vendor.example/limits"


def ceiling(verified_on: date = date(2026, 11, 1), **numbers: Any) -> Ceiling:  # noqa: ANN401 -- any field
    return Ceiling(
        plan="free",
        confidence=Confidence.LOW,
        verified_on=verified_on,
        source_url=SOURCE,
        **(numbers or {"requests_per_day": 50}),
    )


def view(*accounts: AccountView, locks: tuple[Lock, ...] = (), circuits: tuple[Circuit, ...] = ()) -> ProviderView:
    return ProviderView("alpha", accounts or (AccountView("a"),), locks, circuits)


def only(made: dict[str, Any]) -> dict[str, Any]:
    [found] = made["providers"]
    return dict(found)


def lock(account: str, model: str, *, soft: bool = False) -> Lock:
    return Lock(account, model, "rate", NOW + 30, soft)


def heard(*, current: bool = True, **more: Any) -> Heard:  # noqa: ANN401 -- any field
    facts = {"limit": None, "remaining": None, "reset_at": None, "at": NOW - 5, **more}
    return Heard("requests", 0.5, current=current, **facts)


def test_a_provider_without_traffic_has_no_usage_and_no_zero_stands_for_it() -> None:
    found = only(board([view()], {}, [], NOW))
    assert found == {"provider": "alpha", "state": "unknown", "ceilings": [], "accounts": [{"account": "a"}]}


def test_the_board_says_which_day_it_counts_and_until_when() -> None:
    made = board([], {}, [], NOW)
    assert (made["day"], made["day_ends_at"], made["now"]) == ("2026-11-30", 1_796_083_200.0, NOW)


@pytest.mark.parametrize(("used", "known"), [([], True), (None, False)])
def test_a_database_that_cannot_be_read_is_said(used: list[DayUse] | None, known: bool) -> None:
    assert board([], {}, used, NOW)["usage_known"] is known


def test_usage_is_a_lower_bound_summed_over_the_accounts_of_a_provider() -> None:
    used = [DayUse("alpha", "a", 10, 2, 3, 400, 8), DayUse("alpha", "b", 1, 0, 0, 0, 0), DayUse("beta", "a", 99)]
    found = only(board([view(AccountView("a"), AccountView("b"))], {}, used, NOW))
    counts = {"lower_bound": True, "requests": 11, "rate_limited": 2, "embeddings": 3, "requests_with_tokens": 8}
    assert found["usage"] == {**counts, "tokens": 400}
    assert found["accounts"][1]["usage"] == {
        "lower_bound": True,
        "requests": 1,
        "rate_limited": 0,
        "embeddings": 0,
        "requests_with_tokens": 0,
    }


def test_tokens_that_nobody_told_are_absent() -> None:
    found = only(board([view()], {}, [DayUse("alpha", "a", 3)], NOW))
    assert "tokens" not in found["usage"]


def test_an_account_that_is_gone_keeps_its_usage_of_the_day() -> None:
    found = only(board([view()], {}, [DayUse("alpha", "old", 3)], NOW))
    assert [each["account"] for each in found["accounts"]] == ["a", "old"]
    assert found["accounts"][1]["usage"]["requests"] == 3


@pytest.mark.parametrize(("verified_on", "stale"), [(date(2026, 6, 3), False), (date(2026, 6, 2), True)])
def test_a_ceiling_older_than_180_days_is_stale(verified_on: date, stale: bool) -> None:
    [found] = only(board([view()], {"alpha": (ceiling(verified_on),)}, [], NOW))["ceilings"]
    assert (found["stale"], found["age_days"]) == (stale, 181 if stale else 180)


def test_a_ceiling_has_only_the_numbers_that_are_documented() -> None:
    [found] = only(board([view()], {"alpha": (ceiling(requests_per_minute=5),)}, [], NOW))["ceilings"]
    assert found == {
        "plan": "free",
        "models": "*",
        "shared": False,
        "per": "organization",
        "requests_per_minute": 5,
        "confidence": "low",
        "verified_on": "2026-11-01",
        "age_days": 29,
        "stale": False,
        "source_url": SOURCE,
    }


def test_providers_that_are_not_configured_come_last_with_their_ceilings_alone() -> None:
    made = board([view()], {"zeta": (ceiling(),), "alpha": (ceiling(),)}, [], NOW)
    listed: Any = made["providers"]
    assert [(each["provider"], each["state"]) for each in listed] == [("alpha", "unknown"), ("zeta", "not-configured")]
    assert listed[1].keys() == {"provider", "state", "ceilings", "accounts"}


def test_what_was_said_last_has_its_age_and_the_upstreams_own_numbers() -> None:
    said = heard(limit=60.0, remaining=30.0, reset_at=NOW + 10)
    [found] = only(board([view(AccountView("a", (said, heard(current=False))))], {}, [], NOW))["accounts"]
    assert found["signals"][0] == {
        "bucket": "requests",
        "remaining_ratio": 0.5,
        "limit": 60.0,
        "remaining": 30.0,
        "reset_at": NOW + 10,
        "at": NOW - 5,
        "current": True,
        "age_s": 5.0,
    }
    assert found["signals"][1].keys() == {"bucket", "remaining_ratio", "at", "current", "age_s"}


def test_a_clock_that_was_set_back_makes_no_age_below_zero() -> None:
    [found] = only(board([view(AccountView("a", (heard(at=NOW + 9),)))], {}, [], NOW))["accounts"]
    assert found["signals"][0]["age_s"] == 0.0


def test_a_quota_of_our_own_is_shown_beside_it() -> None:
    own = Own("requests/day", 100.0, 0.25, NOW + 60)
    [found] = only(board([view(AccountView("a", (), (own,)))], {}, [], NOW))["accounts"]
    assert found["quotas"] == [
        {"bucket": "requests/day", "limit": 100.0, "remaining_ratio": 0.25, "reset_at": NOW + 60}
    ]


def test_locks_stand_with_their_account_and_those_of_all_accounts_with_the_provider() -> None:
    locks = (lock("a", "m1"), lock("*", "m2", soft=True))
    found = only(board([view(locks=locks)], {}, [], NOW))
    said = {"class": "rate", "until": NOW + 30}
    assert found["accounts"][0]["cooldowns"] == [{**said, "account": "a", "model": "m1", "soft": False}]
    assert found["cooldowns"] == [{**said, "account": "*", "model": "m2", "soft": True}]


def test_circuits_stand_with_the_provider() -> None:
    circuits = (Circuit("m1", "open", NOW + 9), Circuit("m2", "half_open", None))
    found = only(board([view(circuits=circuits)], {}, [], NOW))
    assert found["circuits"] == [
        {"model": "m1", "state": "open", "until": NOW + 9},
        {"model": "m2", "state": "half_open"},
    ]


TWO = (AccountView("a"), AccountView("b"))


@pytest.mark.parametrize(
    ("seen", "used", "state"),
    [
        (ProviderView("alpha"), {}, State.NO_ACCOUNT),
        (view(), {}, State.UNKNOWN),
        (view(AccountView("a", (heard(current=False),))), {}, State.UNKNOWN),
        (view(AccountView("a", (heard(),))), {}, State.OK),
        (view(), {"a": DayUse("alpha", "a")}, State.OK),
        (view(*TWO, locks=(lock("a", "*"),)), {}, State.PARTLY),
        (view(*TWO, locks=(lock("a", "*"), lock("b", "m"))), {}, State.PARTLY),
        (view(*TWO, locks=(lock("a", "*"), lock("b", "*", soft=True))), {}, State.PARTLY),
        (view(*TWO, locks=(lock("a", "*"), lock("b", "*"))), {}, State.LIMITED),
        (view(circuits=(Circuit("m", "open", None),)), {}, State.PARTLY),
    ],
)
def test_the_state_is_what_is_known_and_no_more(seen: ProviderView, used: dict[str, DayUse], state: State) -> None:
    assert state_of(seen, used) is state
