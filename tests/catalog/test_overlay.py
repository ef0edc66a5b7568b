"""One description of a model over another."""

from __future__ import annotations

from troyproxy.catalog.models import Capabilities, Limits, Model, Price, ToolCalls
from troyproxy.catalog.overlay import overlay

BASE = Model(
    id="m",
    capabilities=Capabilities(tools=True, vision=True),
    limits=Limits(1000, 100),
    price=Price(1.0, 2.0, 0.5),
    tool_calls=ToolCalls.RELIABLE,
    efforts=("low",),
    aliases=("x",),
)


def test_nothing_said_changes_nothing() -> None:
    assert overlay(Model(id=""), BASE) == BASE


def test_what_is_said_wins_field_by_field() -> None:
    over = Model(id="", capabilities=Capabilities(vision=False), limits=Limits(output=7), price=Price(input=0.0))
    merged = overlay(over, BASE)
    assert (merged.capabilities, merged.limits, merged.price) == (
        Capabilities(tools=True, vision=False),
        Limits(1000, 7),
        Price(0.0, 2.0, 0.5),
    )


def test_what_a_model_refuses_below_is_refused_above() -> None:
    below = Model(id="m", no_effort=True, no_sampling_with_effort=True)
    merged = overlay(Model(id=""), below)
    assert (merged.no_effort, merged.no_sampling_with_effort) == (True, True)


def test_the_id_of_the_base_stays() -> None:
    assert overlay(Model(id="alias"), BASE).id == "m"


def test_over_an_unknown_base_the_id_is_ones_own() -> None:
    assert overlay(BASE, Model(id="")).id == "m"
