"""One description of a model laid over another. Pure: what is unknown above shows what lies below."""

from __future__ import annotations

from typing import TypeVar

from troyproxy.catalog.models import Limits, Model, Price

T = TypeVar("T")


def overlay(over: Model, base: Model) -> Model:
    """Return *over* with everything it does not know taken from *base*; the id is that of *base*, if it has one."""
    return Model(
        id=base.id or over.id,
        capabilities=over.capabilities.over(base.capabilities),
        limits=Limits(_first(over.limits.context, base.limits.context), _first(over.limits.output, base.limits.output)),
        price=Price(
            _first(over.price.input, base.price.input),
            _first(over.price.output, base.price.output),
            _first(over.price.cached, base.price.cached),
        ),
        tool_calls=_first(over.tool_calls, base.tool_calls),
        efforts=over.efforts or base.efforts,
        aliases=over.aliases or base.aliases,
        tier=over.tier or base.tier,
        fitness=over.fitness or base.fitness,
        no_sampling_with_effort=over.no_sampling_with_effort or base.no_sampling_with_effort,
        no_effort=over.no_effort or base.no_effort,
    )


def _first(over: T | None, base: T | None) -> T | None:
    return base if over is None else over
