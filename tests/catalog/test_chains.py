"""Combos that refer to combos."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.catalog.chains import depth, find_ring, references, resolve_member
from troyproxy.catalog.combos import Combo, Member


def combos(**links: str) -> dict[str, Combo]:
    """Return combos by name, each with a model and the combos that its text names."""
    return {
        name: Combo(name, name, members=(Member(model="p/m"), *(Member(combo=ref) for ref in refs.split())))
        for name, refs in links.items()
    }


def test_a_known_model_is_a_model_even_if_a_combo_has_its_name() -> None:
    member = Member(model="gpt-x")
    assert resolve_member(member, {"gpt-x": "gpt-x"}, lambda _: True) == member


def test_a_text_that_is_no_model_is_a_combo_and_keeps_its_weight() -> None:
    assert resolve_member(Member(model="b1", weight=3), {"b1": "backup"}, lambda _: False) == Member(
        combo="backup", weight=3
    )


def test_a_reference_by_id_becomes_one_by_name() -> None:
    assert resolve_member(Member(combo="b1"), {"b1": "backup"}, lambda _: False) == Member(combo="backup")


@pytest.mark.parametrize("member", [Member(model="nosuch/m"), Member(combo="nosuch")])
def test_what_is_neither_is_nothing(member: Member) -> None:
    assert resolve_member(member, {}, lambda _: False) is None


def test_references_are_the_combos_in_order() -> None:
    assert references(combos(a="c b")["a"]) == ("c", "b")


def test_a_combo_that_contains_itself_is_a_ring() -> None:
    assert find_ring(combos(a="a")) == ("a", "a")


def test_a_ring_through_others_is_named_without_the_way_to_it() -> None:
    assert find_ring(combos(x="a", a="b", b="c", c="a")) == ("a", "b", "c", "a")


def test_a_combo_reached_twice_is_no_ring() -> None:
    assert find_ring(combos(a="b c", b="d", c="d nosuch", d="")) is None


def test_a_long_chain_is_walked_without_recursion() -> None:
    chain = {str(i): Combo(str(i), str(i), members=(Member(combo=str(i + 1)),)) for i in range(5000)}
    assert (find_ring(chain), depth("0", chain)) == (None, 5000)


def test_a_combo_of_models_has_depth_one() -> None:
    assert depth("a", combos(a="nosuch")) == 1


def test_depth_follows_the_deepest_member() -> None:
    assert depth("a", combos(a="b c", b="", c="d", d="")) == 3


@given(st.lists(st.lists(st.integers(0, 5), max_size=3), min_size=6, max_size=6))
def test_a_ring_that_is_found_is_a_ring(links: list[list[int]]) -> None:
    graph = combos(**{f"c{i}": " ".join(f"c{j}" for j in refs) for i, refs in enumerate(links)})
    ring = find_ring(graph)
    steps = list(itertools.pairwise(ring)) if ring else []
    assert all(b in references(graph[a]) for a, b in steps)
    assert ring is None or ring[0] == ring[-1]
