from __future__ import annotations

import pytest

from tests.routing.builders import combo, provider, snapshot
from troyproxy.routing import lookup

HOUSE = snapshot(provider("alpha", "m1"), provider("openrouter", "x/claude-a"), combo("daily", "alpha/m1"))


def test_names_longer_than_any_of_ours_are_not_searched() -> None:
    name = "d" * 300
    assert lookup.exact_combo(name, HOUSE) is None
    assert lookup.folded_combo(name, HOUSE) is None
    assert lookup.near(name, HOUSE) == []


@pytest.mark.parametrize(
    ("name", "found"),
    [("alpha/any", ("alpha", "any")), ("m1", ("alpha", "m1")), ("claude-a", ("openrouter", "x/claude-a"))],
)
def test_a_member_names_a_model_by_spec_list_or_completion(name: str, found: tuple[str, str]) -> None:
    hit = lookup.find_model(name, HOUSE)
    assert hit is not None
    assert (hit[0].id, hit[1]) == found


@pytest.mark.parametrize("name", ["gpt-9", "nosuch/m1", "alpha/", "claude-b", ""])
def test_a_member_is_never_guessed(name: str) -> None:
    assert lookup.find_model(name, HOUSE) is None


def test_near_names_are_at_most_three() -> None:
    house = snapshot(provider("alpha", *(f"model-{i}" for i in range(9))))
    assert len(lookup.near("model-x", house)) == 3
