"""The documented limits of vendors: the data file holds together, and a mistake in it is named."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from troyproxy.catalog.ceilings import Ceiling, Confidence
from troyproxy.errors import ConfigError
from troyproxy.settings.builtin import load_builtins
from troyproxy.settings.ceilings import load_ceilings, parse_ceilings

CEILINGS = load_ceilings()
PLAN: dict[str, Any] = {
    "plan": "free",
    "requests_per_day": 50,
    "confidence": "high",
    "verified_on": date(2026, 8, 31),
    "source_url": "https://vendor.example/limits",
}


def test_at_least_twelve_vendors_are_documented_and_all_of_them_are_built_in() -> None:
    assert len(CEILINGS) >= 12
    assert CEILINGS.keys() <= load_builtins().keys()


@pytest.mark.parametrize("name", CEILINGS)
def test_no_plan_of_a_vendor_is_documented_twice(name: str) -> None:
    plans = [(each.plan, each.models) for each in CEILINGS[name]]
    assert sorted(set(plans)) == sorted(plans)


def test_what_is_not_documented_is_none_and_never_zero() -> None:
    [found] = parse_ceilings({"vendor": [PLAN]})["vendor"]
    assert found == Ceiling(
        plan="free",
        requests_per_day=50,
        confidence=Confidence.HIGH,
        verified_on=date(2026, 8, 31),
        source_url="https://vendor.example/limits",
    )
    assert (found.requests_per_minute, found.tokens_per_minute) == (None, None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"requests_per_day": None}, "needs one of requests_per_day"),
        ({"requests_per_day": 0}, "requests_per_day"),
        ({"verified_on": "2026-08-31"}, "verified_on"),
        ({"source_url": "http://vendor.example"}, "source_url"),
        ({"source_url": 7}, "source_url"),
        ({"confidence": "certain"}, "confidence"),
        ({"plan": None}, "plan: is required"),
        ({"per": "planet"}, "per"),
        ({"remaining": 7}, "remaining: is unknown"),
    ],
)
def test_a_mistake_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_ceilings({"vendor": [PLAN | change]})


def test_a_ceiling_ages_by_the_day_and_never_backwards() -> None:
    [found] = parse_ceilings({"vendor": [PLAN]})["vendor"]
    assert [found.age_days(date(2026, 9, 30)), found.age_days(date(2026, 8, 1))] == [30, 0]
