"""Weights: the packs, what a combo's own weights become, and what is refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.auto.variants import MODES, VARIANTS, variant_of
from troyproxy.auto.weights import DEFAULT, FACTORS, PACKS, BadWeights, effective, normalised


@pytest.mark.parametrize("weights", [DEFAULT, *PACKS.values()])
def test_every_set_of_the_table_sums_to_one(weights: dict[str, float]) -> None:
    assert math.isclose(sum(weights.values()), 1.0, abs_tol=1e-9)
    assert tuple(weights) == FACTORS


def test_overrides_are_merged_over_the_default_and_renormalised() -> None:
    found = effective({"tierPriority": 0.3, "costInv": 0.05})
    expected = {
        "quota": 0.1504,
        "health": 0.1947,
        "costInv": 0.0442,
        "latencyInv": 0.1150,
        "taskFit": 0.0708,
        "specificityMatch": 0.0708,
        "stability": 0.0442,
        "tierPriority": 0.2655,
        "tierAffinity": 0.0442,
    }
    assert {name: round(value, 4) for name, value in found.items()} == expected


def test_overrides_may_be_merged_over_a_pack() -> None:
    found = effective({"taskFit": 0.2}, base=PACKS["ship-fast"])
    assert found["latencyInv"] == pytest.approx(0.35 / 1.1)
    assert found["taskFit"] == pytest.approx(0.2 / 1.1)


def test_a_set_that_sums_to_one_is_taken_whole() -> None:
    found = effective({"health": 0.4, "costInv": 0.6000001})
    expected = {**dict.fromkeys(FACTORS, 0.0), "health": 0.4, "costInv": 0.6}
    assert dict(found) == pytest.approx(expected, abs=1e-6)


def test_no_weights_are_those_of_the_base() -> None:
    assert effective({}, base=PACKS["cost-saver"]) is PACKS["cost-saver"]


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, -math.inf, True, "0.5", None, [0.1], 10**400])
def test_a_weight_that_is_no_finite_number_from_zero_is_refused_by_name(value: object) -> None:
    with pytest.raises(BadWeights) as caught:
        effective({"health": 0.5, "quota": value})
    assert set(caught.value.problems) == {"quota"}


def test_an_unknown_weight_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(BadWeights, match="costInv") as caught:
        effective({"speed": 0.5})
    assert set(caught.value.problems) == {"speed"}


def test_weights_that_are_all_zero_are_refused() -> None:
    with pytest.raises(BadWeights, match="above zero"):
        effective({"health": 0, "quota": 0.0})


@given(st.dictionaries(st.sampled_from(FACTORS), st.floats(0, 1e300), min_size=1))
def test_whatever_is_accepted_sums_to_one(weights: dict[str, float]) -> None:
    if any(weights.values()):
        found = effective(weights)
        assert math.isclose(sum(found.values()), 1.0, abs_tol=1e-9)
        assert all(0 <= value <= 1 for value in found.values())


def test_normalising_keeps_the_proportions() -> None:
    found = normalised({name: float(at) for at, name in enumerate(FACTORS)})
    assert found[FACTORS[8]] == pytest.approx(2 * found[FACTORS[4]])


def test_every_pack_is_some_variant_and_has_an_alias() -> None:
    assert {id(pack) for pack in PACKS.values()} <= {id(variant.weights) for variant in VARIANTS.values()}
    assert MODES["fast"] is PACKS["ship-fast"]
    assert MODES["balanced"] is DEFAULT
    assert MODES["auto/cheap"] is MODES["cheap"] is MODES["cost-saver"]


def test_a_trailing_slash_is_auto() -> None:
    assert variant_of("auto/") is VARIANTS["auto"]
    assert variant_of("auto/none") is None
