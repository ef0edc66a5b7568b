"""The nine factors: golden scores, floors, unknowns, and that none is a constant."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.auto.pools import POOL, A, golden_scores
from troyproxy.auto import tiers
from troyproxy.auto.factors import Demand, Standing, cost_usd, factors_of, p95_ms, score, sigma_ms
from troyproxy.auto.tiers import EconomicTier
from troyproxy.auto.weights import DEFAULT, FACTORS, PACKS
from troyproxy.resilience.breaker import CircuitState

GOLDEN = {
    "default": [0.6305, 0.6188, 0.5627],
    "ship-fast": [0.6835, 0.5317, 0.5423],
    "cost-saver": [0.5168, 0.7434, 0.6630],
    "quality-first": [0.8035, 0.6537, 0.6533],
    "offline-friendly": [0.8101, 0.6423, 0.4407],
}


@pytest.mark.parametrize("pack", GOLDEN)
def test_the_golden_pool_scores_as_the_design_says(pack: str) -> None:
    weights = DEFAULT if pack == "default" else PACKS[pack]
    assert golden_scores(weights) == pytest.approx(GOLDEN[pack], abs=1e-4)


MOVED = {
    "health": replace(A, circuit=CircuitState.HALF_OPEN),
    "quota": replace(A, quota=0.3),
    "costInv": replace(A, input_usd=0.1),
    "latencyInv": replace(A, p95_ms=900.0),
    "taskFit": replace(A, fitness=0.1),
    "specificityMatch": replace(A, model_tier=EconomicTier.FREE),
    "stability": replace(A, sigma_ms=50.0),
    "tierPriority": replace(A, account_tier="ultra"),
    "tierAffinity": replace(A, model_tier=EconomicTier.CHEAP),
}


@pytest.mark.parametrize("name", FACTORS)
def test_no_factor_is_a_constant(name: str) -> None:
    demand = Demand(specificity=70, tier=EconomicTier.PREMIUM)
    before, after = (factors_of([mine, *POOL[1:]], demand)[0] for mine in (A, MOVED[name]))
    assert before[name] != after[name]
    assert score(DEFAULT, before) != score(DEFAULT, after)


@pytest.mark.parametrize(
    ("moved", "name"),
    [(replace(A, error_rate=0.5), "stability"), (replace(A, reset_interval_s=3600.0), "tierPriority")],
)
def test_the_second_inputs_of_a_factor_move_it_too(moved: Standing, name: str) -> None:
    before, after = (factors_of([mine, *POOL[1:]], Demand())[0] for mine in (A, moved))
    assert before[name] != after[name]


def test_the_request_moves_what_depends_on_it() -> None:
    low, high = (factors_of(POOL, demand)[0] for demand in (Demand(), Demand(90, EconomicTier.PREMIUM)))
    assert low["specificityMatch"] != high["specificityMatch"]
    assert low["tierAffinity"] != high["tierAffinity"]


def test_what_is_unknown_is_neither_punished_nor_rewarded_beyond_its_default() -> None:
    nothing = Standing()
    assert (cost_usd(nothing), p95_ms(nothing), sigma_ms(nothing)) == (1.0, 1500.0, 150.0)
    assert factors_of([nothing], Demand())[0]["quota"] == 1.0


def test_output_is_as_dear_as_input_where_its_price_is_missing() -> None:
    assert cost_usd(Standing(input_usd=2.0)) == pytest.approx(2.0)
    assert cost_usd(Standing(input_usd=2.0, output_usd=7.0)) == pytest.approx(0.6 * 2 + 0.4 * 7)


@pytest.mark.parametrize(
    ("samples", "p95", "sigma"), [(2, 1500.0, 150.0), (3, 400.0, 40.0), (9, 400.0, 40.0), (10, 400.0, 77.0)]
)
def test_a_latency_counts_from_three_samples_and_its_spread_from_ten(samples: int, p95: float, sigma: float) -> None:
    standing = Standing(samples=samples, p95_ms=400.0, sigma_ms=77.0)
    assert (p95_ms(standing), sigma_ms(standing)) == (p95, sigma)


def test_a_spread_is_at_least_ten_milliseconds() -> None:
    assert sigma_ms(Standing(samples=50, p95_ms=10.0, sigma_ms=0.0)) == 10.0
    assert sigma_ms(Standing(samples=3, p95_ms=10.0)) == 10.0


def test_free_models_of_a_pool_share_the_best_cost() -> None:
    assert [f["costInv"] for f in factors_of([Standing(input_usd=0.0)] * 2, Demand())] == [1.0, 1.0]


def test_a_number_that_is_none_counts_nothing() -> None:
    assert score(DEFAULT, dict.fromkeys(FACTORS, math.nan)) == 0.0


@given(
    st.lists(
        st.builds(
            Standing,
            quota=st.none() | st.floats(),
            input_usd=st.none() | st.floats(),
            output_usd=st.none() | st.floats(),
            samples=st.integers(0, 30),
            p95_ms=st.none() | st.floats(),
            sigma_ms=st.none() | st.floats(),
            error_rate=st.none() | st.floats(),
            fitness=st.floats(),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_a_score_is_within_zero_and_one_whatever_was_measured(pool: list[Standing]) -> None:
    for factors in factors_of(pool, Demand()):
        assert 0 <= score(DEFAULT, factors) <= 1


@pytest.mark.parametrize(
    ("price", "tier"), [(0.0, "free"), (0.2, "cheap"), (1.0, "cheap"), (1.01, "premium"), (None, "premium")]
)
def test_an_economic_tier_follows_the_input_price(price: float | None, tier: str) -> None:
    assert tiers.economic_tier(price) == tier


def test_an_override_decides_the_economic_tier() -> None:
    assert tiers.economic_tier(9.0, override="free") is EconomicTier.FREE


def test_an_account_tier_has_its_defaults() -> None:
    assert tiers.account_tier(None, keyless=True) == "free"
    assert tiers.account_tier(None, keyless=False) == "standard"
    assert tiers.account_tier("ultra", keyless=True) == "ultra"


@pytest.mark.parametrize(
    ("specificity", "tools", "tier"),
    [(20, False, "free"), (20, True, "cheap"), (21, False, "cheap"), (65, False, "cheap"), (66, True, "premium")],
)
def test_specificity_recommends_a_tier_and_tools_at_least_a_cheap_one(
    specificity: float, tools: bool, tier: str
) -> None:
    assert tiers.recommended_tier(specificity, tools=tools) == tier


@pytest.mark.parametrize(
    ("tier", "specificity", "match"),
    [
        ("free", 15, 0.9),
        ("free", 16, 0.2),
        ("cheap", 15, 0.4),
        ("cheap", 16, 0.9),
        ("cheap", 50, 0.9),
        ("cheap", 51, 0.4),
        ("premium", 50, 0.3),
        ("premium", 51, 0.9),
    ],
)
def test_a_tier_matches_its_band_of_specificity(tier: str, specificity: float, match: float) -> None:
    assert tiers.specificity_match(EconomicTier(tier), specificity) == match


@pytest.mark.parametrize(("tier", "affinity"), [("free", 1.0), ("cheap", 0.7), ("premium", 0.3)])
def test_affinity_falls_with_the_steps_between_tiers(tier: str, affinity: float) -> None:
    assert tiers.tier_affinity(EconomicTier(tier), EconomicTier.FREE) == affinity


def test_a_soon_reset_lifts_an_account_a_little() -> None:
    assert tiers.tier_priority("pro", None) == pytest.approx(0.536)
    assert tiers.tier_priority("pro", 86_400.0 * 15) == pytest.approx(0.636)
    assert tiers.tier_priority("free", 86_400.0 * 60) == 0.0
