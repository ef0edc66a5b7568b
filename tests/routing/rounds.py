"""Short ways to members, readings and contexts for the tests of strategies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from types import MappingProxyType
from typing import Final

from troyproxy.catalog.combos import Combo
from troyproxy.catalog.models import Limits, Model
from troyproxy.routing.context import Order, RouteContext
from troyproxy.routing.members import Candidate, Group, Unit
from troyproxy.routing.readings import UNKNOWN, Reading

NOW: Final = 1_000_000.0


def units(names: str) -> list[Unit]:
    """Return one candidate for each letter."""
    return [Candidate(name, None, name) for name in names]


def weighing(weights: Mapping[str, float]) -> list[Unit]:
    """Return candidates with these weights."""
    return [Candidate(name, None, name, weight=weight) for name, weight in weights.items()]


def windowed(windows: Mapping[str, int | None]) -> list[Unit]:
    """Return candidates with these context windows."""
    return [Candidate(name, None, name, Model(name, limits=Limits(window))) for name, window in windows.items()]


def group(name: str, members: list[Unit]) -> Unit:
    """Return *members* as a combo inside another one."""
    return Group(Combo(id=name, name=name), tuple(members))


def context(seed: int = 1, *, readings: Mapping[str, Reading] = MappingProxyType({}), **more: object) -> RouteContext:
    """Return a context at `NOW`."""
    made = RouteContext(NOW, Random(seed), "c", read=lambda unit: readings.get(unit.identity, UNKNOWN))
    return replace(made, **more)  # type: ignore[arg-type]  # fields by name


def names(order: Order) -> str:
    """Return the identities of an order, run together."""
    return "".join(unit.identity for unit in order.members)
