from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.routing.builders import combo, model, provider, snapshot
from troyproxy.catalog.combos import Combo, Member
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.routing.members import (
    MAX_DEPTH,
    Candidate,
    Group,
    Unit,
    candidate_of,
    cycle,
    expand,
    leaves,
    units_of,
    warnings_of,
)
from troyproxy.routing.names import resolve

ALPHA = provider("alpha", model("m1", aliases=("llama",), context=100), "gpt-x")
BETA = provider("beta", "m2")


def specs(root: Unit) -> list[str]:
    return [leaf.spec for leaf in leaves(root)]


def depth(unit: Unit) -> int:
    return 0 if isinstance(unit, Candidate) else 1 + max((depth(inner) for inner in unit.units), default=0)


def test_a_spec_is_a_fallback_group_of_one() -> None:
    house = snapshot(ALPHA)
    root = units_of(resolve("alpha/llama", house), house)
    assert (root.combo.strategy, root.combo.name, specs(root)) == ("fallback", "alpha/m1", ["alpha/m1"])


def test_a_combo_keeps_its_members_in_order_with_account_and_weight() -> None:
    pinned = Member(model="alpha/m1", account="team-a", weight=3)
    house = snapshot(ALPHA, BETA, combo("daily", "beta/m2", pinned))
    units = units_of(resolve("daily", house), house).units
    assert [unit.identity for unit in units] == ["beta/m2", "alpha/m1#team-a"]
    assert [unit.weight for unit in units] == [1.0, 3]


@pytest.mark.parametrize("name", ["default", "auto", "auto/fast"])
def test_default_and_auto_have_the_members_they_are_given(name: str) -> None:
    house = snapshot(ALPHA)
    pool = (candidate_of(ALPHA, "m1"),)
    assert units_of(resolve(name, house), house, pool=pool).units == pool


def test_a_candidate_carries_the_facts_of_its_model() -> None:
    assert candidate_of(ALPHA, "m1").facts.limits.context == 100


@pytest.mark.parametrize("written", ["llama", "alpha/llama"])
def test_a_member_string_that_is_a_known_model_is_that_model(written: str) -> None:
    assert specs(expand(combo("c", written), snapshot(ALPHA))) == ["alpha/m1"]


@pytest.mark.parametrize("written", ["backup", "combo:backup", "combo/backup", "BACKUP", "combo:id-backup"])
def test_a_member_string_that_is_no_model_is_a_combo(written: str) -> None:
    house = snapshot(ALPHA, BETA, combo("backup", "beta/m2", strategy="random"))
    inner = expand(combo("c", written), house).units[0]
    assert isinstance(inner, Group)
    assert (inner.identity, inner.combo.strategy) == ("combo/id-backup", "random")


@pytest.mark.parametrize("written", ["nosuch/m1", "gpt-9", "combo:nosuch"])
def test_a_member_that_names_nothing_stays_visible_without_a_provider(written: str) -> None:
    (unit,) = expand(combo("c", written), snapshot(ALPHA)).units
    assert isinstance(unit, Candidate)
    assert (unit.provider, unit.spec) == (None, written.replace("combo:", "combo/"))


def test_a_member_equal_to_the_combos_name_is_the_real_model() -> None:
    itself = combo("gpt-x", "gpt-x")
    assert specs(expand(itself, snapshot(ALPHA, itself))) == ["alpha/gpt-x"]


def test_a_ring_in_the_store_ends_and_the_good_member_is_there_once() -> None:
    a, b, c = combo("a", "combo:b", "alpha/m1"), combo("b", "combo:c"), combo("c", "combo:a")
    root = expand(a, snapshot(ALPHA, a, b, c))
    assert [leaf.spec for leaf in leaves(root) if leaf.provider is not None] == ["alpha/m1"]


def test_a_combo_of_itself_ends() -> None:
    a = combo("a", "a")
    (unit,) = expand(a, snapshot(a)).units
    assert isinstance(unit, Candidate)
    assert unit.provider is None


def test_a_fourth_level_is_not_followed() -> None:
    chain = [combo("a", "combo:b"), combo("b", "combo:c"), combo("c", "combo:d", "alpha/m1"), combo("d", "beta/m2")]
    assert specs(expand(chain[0], snapshot(ALPHA, BETA, *chain))) == ["combo/d", "alpha/m1"]


def test_a_combo_may_appear_on_two_branches() -> None:
    house = snapshot(
        ALPHA,
        a := combo("a", "combo:b", "combo:c"),
        combo("b", "combo:d"),
        combo("c", "combo:d"),
        combo("d", "alpha/m1"),
    )
    assert specs(expand(a, house)) == ["alpha/m1", "alpha/m1"]


@pytest.mark.parametrize(
    ("stored", "saved", "ring"),
    [
        ((), combo("a", "a"), ["a", "a"]),
        ((), combo("a", "combo:A"), ["a", "a"]),
        ((combo("b", "combo:a"),), combo("a", "combo:b"), ["a", "b", "a"]),
        (
            (combo("b", "combo:c", "combo:c"), combo("c", "combo:a")),
            combo("a", "combo:b", "alpha/m1"),
            ["a", "b", "c", "a"],
        ),
        ((combo("b", "alpha/m1"),), combo("a", "combo:b", "combo:b"), None),
        ((), combo("a", "alpha/m1", "nosuch/x"), None),
        ((), combo("gpt-x", "gpt-x"), None),
    ],
)
def test_the_ring_that_saving_a_combo_would_close_is_named(
    stored: tuple[Combo, ...], saved: Combo, ring: list[str] | None
) -> None:
    assert cycle(saved, snapshot(ALPHA, *stored)) == ring


def test_a_rename_that_closes_a_ring_is_seen() -> None:
    old, b = combo("old", "combo:b"), combo("b", "combo:new")
    house = snapshot(ALPHA, old, b)
    assert cycle(old, house) is None
    assert cycle(replace(old, name="new"), house) == ["new", "b", "new"]


def test_a_ring_among_others_is_not_this_combos_ring() -> None:
    house = snapshot(combo("b", "combo:c"), combo("c", "combo:b"))
    assert cycle(combo("a", "combo:b"), house) is None


def test_a_very_long_chain_does_not_exhaust_the_stack() -> None:
    chain = [combo(f"c{i}", f"combo:c{i + 1}") for i in range(3000)]
    assert cycle(combo("c3000", "combo:c0"), snapshot(*chain)) == ["c3000", *(f"c{i}" for i in range(3001))]


def test_members_without_a_provider_are_warned_about_once() -> None:
    said = warnings_of(combo("a", "nosuch/x", "nosuch/x", "alpha/m1"), snapshot(ALPHA))
    assert len(said) == 1
    assert "nosuch/x" in said[0]


def test_an_account_that_is_not_there_is_warned_about() -> None:
    pinned = tuple(Member(model="alpha/m1", account=name) for name in ("nosuch", ALPHA.accounts[0].name))
    said = warnings_of(replace(combo("a"), members=pinned), snapshot(ALPHA))
    assert said == ["member 'alpha/m1' is skipped: alpha has no account 'nosuch'"]


def test_a_combo_named_like_a_model_is_warned_about() -> None:
    assert "alpha" in warnings_of(combo("gpt-x", "alpha/m1"), snapshot(ALPHA))[0]


def test_a_model_to_sum_up_that_is_nobodys_is_warned_about() -> None:
    said = warnings_of(replace(combo("a", "alpha/m1"), config={"handoff_model": "nosuch/x"}), snapshot(ALPHA))
    assert said == ["handoff_model 'nosuch/x' names no model of a configured provider: nothing is handed over"]


def test_a_model_to_sum_up_that_is_known_is_fine() -> None:
    made = replace(combo("a", "alpha/m1"), config={"handoff_model": "alpha/m1"})
    assert warnings_of(made, snapshot(ALPHA)) == []


def test_a_plain_combo_has_no_warnings() -> None:
    assert warnings_of(combo("a", "alpha/m1"), snapshot(ALPHA)) == []


NAMES = ("a", "b", "c", "d")


@st.composite
def stores(draw: st.DrawFn) -> Snapshot:
    """Any web of combos, rings included."""
    written = st.sampled_from([f"combo:{name}" for name in NAMES] + ["alpha/m1", "beta/m2", "nosuch/x"])
    return snapshot(ALPHA, BETA, *(combo(name, *draw(st.lists(written, max_size=4))) for name in NAMES))


@given(stores(), st.sampled_from(NAMES))
def test_any_web_of_combos_expands_to_three_levels_at_most(house: Snapshot, name: str) -> None:
    assert depth(expand(house.combos[name], house)) <= MAX_DEPTH


@given(stores(), st.sampled_from(NAMES))
def test_a_named_ring_is_a_path_of_references_back_to_its_start(house: Snapshot, name: str) -> None:
    ring = cycle(house.combos[name], house)
    steps = pairwise(ring) if ring else ()
    assert all(any(m.combo == after for m in house.combos[before].members) for before, after in steps)
    assert ring is None or ring[0] == ring[-1] == name
